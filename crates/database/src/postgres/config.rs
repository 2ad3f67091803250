//! Address and credentials of a node, from libpq's URLs and environment variables.
//!
//! <https://www.postgresql.org/docs/current/libpq-connect.html>

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::env::Env;
use crate::error::TargetError;
use crate::secret::Secret;
use crate::tcp::Address;
use crate::tls::SslMode;
use crate::url::{self, Url, choice, unknown};

/// Parameters of a URL, after `?`, each with the environment variable that stands in for it.
const PARAMETERS: [(&str, &str); 11] = [
    ("host", "PGHOST"),
    ("port", "PGPORT"),
    ("user", "PGUSER"),
    ("password", "PGPASSWORD"),
    ("dbname", "PGDATABASE"),
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("options", "PGOPTIONS"),
    ("application_name", "PGAPPNAME"),
    ("passfile", "PGPASSFILE"),
];

/// libpq's values of `sslmode`.
const SSL_MODES: [(&str, SslMode); 5] = [
    ("disable", SslMode::Disable),
    ("prefer", SslMode::Prefer),
    ("require", SslMode::Require),
    ("verify-ca", SslMode::VerifyCa),
    ("verify-full", SslMode::VerifyName),
];

/// A node's address and credentials. Its `Debug` shows no password ([`Secret`]).
#[derive(Debug, Clone)]
pub(super) struct Config {
    pub(super) address: Address,
    /// Also in the name of a socket, and in the password file.
    pub(super) port: u16,
    pub(super) user: String,
    pub(super) database: String,
    pub(super) password: Option<Secret>,
    /// `.pgpass` or the file given instead.
    pub(super) passfile: Option<PathBuf>,
    pub(super) sslmode: SslMode,
    pub(super) sslrootcert: Option<String>,
    pub(super) connect_timeout: Duration,
    pub(super) options: Option<String>,
    pub(super) application_name: Option<String>,
    /// The URL without its password.
    pub(super) shown: String,
}

impl Config {
    /// Parses `url`; missing parts come from the environment.
    pub(super) fn parse(url: &str, env: Env<'_>) -> Result<Config, TargetError> {
        let form = "postgres://user@host:5432/database or postgres://user@/database?host=/socket/folder";
        let url = Url::parse(url, form)?;
        let mut given = BTreeMap::from([
            ("host", url.decode("host", url.host)?),
            ("port", Some(url.port.to_owned()).filter(|port| !port.is_empty())),
            ("user", url.decode("user", url.user)?),
            ("password", url.decode("password", url.password.unwrap_or_default())?),
            ("dbname", url.decode("database", url.path)?),
        ]);
        for (name, value) in url.parameters()? {
            if PARAMETERS.iter().all(|(known, _)| *known != name) {
                return Err(url.wrong(unknown(name, &PARAMETERS.map(|(known, _)| known))));
            }
            given.insert(name, value);
        }
        let value = |(name, variable): (&'static str, &str)| {
            Some((name, given.remove(name).flatten().or_else(|| env(variable))?))
        };
        let given = PARAMETERS.into_iter().filter_map(value).collect();
        Config::new(given, env("HOME"), url.shown.clone()).map_err(|e| url.wrong(e))
    }

    /// Of the `given` parameters.
    fn new(mut given: BTreeMap<&str, String>, home: Option<String>, shown: String) -> Result<Config, String> {
        let mut take = |name: &str| given.remove(name);
        let host = take("host").unwrap_or_else(default_host);
        if host.contains(',') {
            return Err(format!("'{host}' names several hosts: give one here and the others with --node"));
        }
        let os_user = || nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten().map(|u| u.name);
        let user = take("user").or_else(os_user).ok_or("no user given: write postgres://user@…")?;
        let timeout = take("connect_timeout").unwrap_or_else(|| "10".into());
        let seconds: u64 =
            timeout.parse().map_err(|_| format!("connect_timeout '{timeout}' is not a number of seconds"))?;
        let port = take("port").map_or(Ok(5432), |port| url::port(&port))?;
        let socket = Path::new(&host).join(format!(".s.PGSQL.{port}"));
        Ok(Config {
            address: if host.starts_with('/') { Address::Unix(socket) } else { Address::Tcp(host, port) },
            port,
            database: take("dbname").unwrap_or_else(|| user.clone()),
            user,
            password: take("password").map(Secret::new),
            passfile: take("passfile").map(PathBuf::from).or_else(|| Some(Path::new(&home?).join(".pgpass"))),
            sslmode: take("sslmode").map_or(Ok(SslMode::Prefer), |mode| choice("sslmode", &mode, &SSL_MODES))?,
            sslrootcert: take("sslrootcert"),
            // 0 means `for ever` to libpq; here it means one hour, so that an unattended run ends.
            connect_timeout: Duration::from_secs(if seconds == 0 { 3600 } else { seconds.min(3600) }),
            options: take("options"),
            application_name: take("application_name"),
            shown,
        })
    }

    /// `host:port`, or the socket's path.
    pub(super) fn place(&self) -> String {
        match &self.address {
            Address::Tcp(host, port) if host.contains(':') => format!("[{host}]:{port}"),
            Address::Tcp(host, port) => format!("{host}:{port}"),
            Address::Unix(socket) => socket.display().to_string(),
        }
    }
}

/// libpq's default folder of the socket: Debian's, or PostgreSQL's built-in one.
pub(super) fn default_host() -> String {
    let debian = "/var/run/postgresql";
    if Path::new(debian).is_dir() { debian.into() } else { "/tmp".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Config, TargetError> {
        Config::parse(url, &|name| (name == "PGUSER").then(|| "env_user".to_owned()))
    }

    #[test]
    fn tcp_urls_are_read() {
        let c = parse("postgres://ann:p%40ss@db.example:6543/shop?sslmode=verify-full&connect_timeout=3").unwrap();
        assert_eq!(c.address, Address::Tcp("db.example".into(), 6543));
        assert_eq!((c.port, c.user.as_str(), c.database.as_str()), (6543, "ann", "shop"));
        assert_eq!(c.password.as_ref().map(Secret::expose), Some("p@ss"));
        assert_eq!((c.sslmode, c.connect_timeout), (SslMode::VerifyName, Duration::from_secs(3)));
        assert!(!format!("{c:?}").contains("p@ss") && !format!("{c:?}").contains("p%40ss"));
        let c = parse("postgresql://[::1]:5433/x").unwrap();
        assert_eq!(c.address, Address::Tcp("::1".into(), 5433));
    }

    #[test]
    fn socket_urls_are_read() {
        for url in ["postgres://ann@/db?host=/dir&port=5433", "postgres://ann@%2Fdir:5433/db"] {
            let c = parse(url).unwrap();
            assert_eq!(c.place(), "/dir/.s.PGSQL.5433", "{url}");
        }
    }

    #[test]
    fn missing_parts_come_from_the_environment() {
        let c = parse("postgres://").unwrap();
        assert_eq!((c.user.as_str(), c.database.as_str(), c.port), ("env_user", "env_user", 5432));
        assert_eq!(c.place(), format!("{}/.s.PGSQL.5432", default_host()));
        let env = |name: &str| match name {
            "PGHOST" => Some("h".to_owned()),
            "PGPORT" => Some("7".to_owned()),
            "PGDATABASE" => Some("d".to_owned()),
            "PGPASSWORD" => Some("secret".to_owned()),
            _ => None,
        };
        let c = Config::parse("postgres://ann@", &env).unwrap();
        assert_eq!((c.place().as_str(), c.database.as_str()), ("h:7", "d"));
        assert_eq!(c.password.as_ref().map(Secret::expose), Some("secret"));
    }
}
