//! Where to connect and as whom: libpq's URLs and environment.
//!
//! <https://www.postgresql.org/docs/current/libpq-connect.html>

use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_model::format::nearest;
use percent_encoding::percent_decode_str;

use crate::env::Env;
use crate::error::TargetError;
use crate::secret::Secret;

/// Parameters that a URL may carry after `?`.
const PARAMETERS: [&str; 11] = [
    "host",
    "port",
    "user",
    "password",
    "dbname",
    "sslmode",
    "sslrootcert",
    "connect_timeout",
    "options",
    "application_name",
    "passfile",
];

/// How a connection is encrypted, as in libpq.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SslMode {
    /// Never.
    Disable,
    /// If the server can.
    Prefer,
    /// Always; the certificate is not looked at.
    Require,
    /// Always; the certificate must be signed by a known authority.
    VerifyCa,
    /// As before, and it must be made out to the host's name.
    VerifyFull,
}

impl SslMode {
    const ALL: [(&'static str, SslMode); 5] = [
        ("disable", SslMode::Disable),
        ("prefer", SslMode::Prefer),
        ("require", SslMode::Require),
        ("verify-ca", SslMode::VerifyCa),
        ("verify-full", SslMode::VerifyFull),
    ];
}

/// Where the server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    /// Folder of the Unix socket.
    Unix(PathBuf),
    /// Host name or IP address.
    Tcp(String),
}

/// A node's address and credentials. Its `Debug` shows no password ([`Secret`]).
#[derive(Debug, Clone)]
pub(super) struct Config {
    pub(super) address: Address,
    pub(super) port: u16,
    pub(super) user: String,
    pub(super) database: String,
    pub(super) password: Option<Secret>,
    /// `.pgpass` or what takes its place.
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
    /// Reads `url`, filling in from the environment what it does not say.
    ///
    /// # Errors
    /// [`TargetError::Usage`], naming what is wrong and what may stand there.
    pub(super) fn parse(url: &str, env: Env<'_>) -> Result<Config, TargetError> {
        let shown = crate::redact(url);
        let usage = |what: String| TargetError::Usage(format!("«{shown}»: {what}"));
        let form = "write postgres://user@host:5432/database or postgres://user@/database?host=/socket/folder";
        let (_, rest) = url
            .split_once(':')
            .and_then(|(scheme, rest)| Some((scheme, rest.strip_prefix("//")?)))
            .ok_or_else(|| usage(format!("a PostgreSQL URL goes on with «//» after its scheme: {form}")))?;
        let (rest, query) = rest.split_once('?').map_or((rest, ""), |(r, q)| (r, q));
        let decode = |what: &str, text: &str| -> Result<String, TargetError> {
            let decoded =
                percent_decode_str(text).decode_utf8().map_err(|_| usage(format!("the {what} is no UTF-8")))?;
            if decoded.contains('\0') {
                return Err(usage(format!("the {what} holds a zero byte, which PostgreSQL does not take")));
            }
            Ok(decoded.into_owned())
        };

        if query.contains('@') && !rest.contains('@') && rest.contains(':') {
            // What stands before the «?» is then likely the beginning of a password: show nothing.
            return Err(TargetError::Usage(
                "the URL has its «@» after a «?»: write a «?» in a password as %3F, an «@» in a parameter as %40"
                    .into(),
            ));
        }
        // A password may hold a careless '@' or '/': the last '@' ends it, as `redact` has it.
        let (credentials, place) = rest.rsplit_once('@').map_or((None, rest), |(c, p)| (Some(c), p));
        let (user, password) = match credentials.map(|c| c.split_once(':').map_or((c, None), |(u, p)| (u, Some(p)))) {
            Some((user, password)) => {
                (Some(decode("user", user)?), password.map(|p| decode("password", p)).transpose()?)
            }
            None => (None, None),
        };
        let (host_port, database) = place.split_once('/').map_or((place, ""), |(h, d)| (h, d));
        let (host, port) = split_port(host_port).ok_or_else(|| usage(format!("«{host_port}» is no host and port")))?;
        let mut given = Given {
            host: some(decode("host", host)?),
            port: some(port.to_owned()),
            user: user.and_then(some),
            password: password.and_then(some),
            dbname: some(decode("database", database)?),
            ..Given::default()
        };
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            let (name, value) =
                pair.split_once('=').ok_or_else(|| usage(format!("the parameter «{pair}» has no «=»")))?;
            let value = some(decode(name, value)?);
            let place = match name {
                "host" => &mut given.host,
                "port" => &mut given.port,
                "user" => &mut given.user,
                "password" => &mut given.password,
                "dbname" => &mut given.dbname,
                "sslmode" => &mut given.sslmode,
                "sslrootcert" => &mut given.sslrootcert,
                "connect_timeout" => &mut given.connect_timeout,
                "options" => &mut given.options,
                "application_name" => &mut given.application_name,
                "passfile" => &mut given.passfile,
                _ => {
                    let hint = nearest(name, PARAMETERS).map_or(String::new(), |n| format!(": did you mean «{n}»?"));
                    let known = PARAMETERS.join(", ");
                    return Err(usage(format!("there is no parameter «{name}»{hint} (known: {known})")));
                }
            };
            *place = value;
        }
        given.finish(shown.clone(), env).map_err(usage)
    }

    /// `host:port`, or the socket's path.
    pub(super) fn place(&self) -> String {
        match &self.address {
            Address::Tcp(host) if host.contains(':') => format!("[{host}]:{}", self.port),
            Address::Tcp(host) => format!("{host}:{}", self.port),
            Address::Unix(dir) => dir.join(format!(".s.PGSQL.{}", self.port)).display().to_string(),
        }
    }
}

/// What the URL says, as text.
#[derive(Default)]
struct Given {
    host: Option<String>,
    port: Option<String>,
    user: Option<String>,
    password: Option<String>,
    dbname: Option<String>,
    sslmode: Option<String>,
    sslrootcert: Option<String>,
    connect_timeout: Option<String>,
    options: Option<String>,
    application_name: Option<String>,
    passfile: Option<String>,
}

impl Given {
    fn finish(self, shown: String, env: Env<'_>) -> Result<Config, String> {
        let or = |given: Option<String>, name: &str| given.or_else(|| env(name));
        let host = or(self.host, "PGHOST").unwrap_or_else(default_host);
        if host.contains(',') {
            return Err(format!("«{host}» names several hosts: give one here and the others with --node"));
        }
        let port = or(self.port, "PGPORT").unwrap_or_else(|| "5432".into());
        let port = port.parse().ok().filter(|p| *p != 0).ok_or(format!("«{port}» is no port: 1 to 65535"))?;
        let os_user = || nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten().map(|u| u.name);
        let user = or(self.user, "PGUSER").or_else(os_user).ok_or("no user is given: write postgres://user@…")?;
        let mode = or(self.sslmode, "PGSSLMODE").unwrap_or_else(|| "prefer".into());
        let Some((_, sslmode)) = SslMode::ALL.into_iter().find(|(name, _)| *name == mode) else {
            let known = SslMode::ALL.map(|(name, _)| name);
            let hint = nearest(&mode, known).map_or(String::new(), |n| format!(": did you mean «{n}»?"));
            return Err(format!("there is no sslmode «{mode}»{hint} (known: {})", known.join(", ")));
        };
        let timeout = or(self.connect_timeout, "PGCONNECT_TIMEOUT").unwrap_or_else(|| "10".into());
        let seconds: u64 =
            timeout.parse().map_err(|_| format!("connect_timeout «{timeout}» is no number of seconds"))?;
        // 0 means «for ever» to libpq; a tool that nobody watches must come to an end.
        let connect_timeout = Duration::from_secs(if seconds == 0 { 3600 } else { seconds.min(3600) });
        let home = env("HOME").map(PathBuf::from);
        let passfile = or(self.passfile, "PGPASSFILE").map(PathBuf::from).or_else(|| home.map(|h| h.join(".pgpass")));
        let address = if host.starts_with('/') { Address::Unix(host.into()) } else { Address::Tcp(host) };
        Ok(Config {
            address,
            port,
            database: or(self.dbname, "PGDATABASE").unwrap_or_else(|| user.clone()),
            user,
            password: or(self.password, "PGPASSWORD").map(Secret::new),
            passfile,
            sslmode,
            sslrootcert: or(self.sslrootcert, "PGSSLROOTCERT"),
            connect_timeout,
            options: or(self.options, "PGOPTIONS"),
            application_name: or(self.application_name, "PGAPPNAME"),
            shown,
        })
    }
}

/// The folder in which libpq looks for a socket: Debian's, or that of PostgreSQL as it is compiled.
pub(super) fn default_host() -> String {
    let debian = "/var/run/postgresql";
    if Path::new(debian).is_dir() { debian.into() } else { "/tmp".into() }
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// `host`, `host:port`, `[v6]:port`, either part possibly empty.
fn split_port(text: &str) -> Option<(&str, &str)> {
    if let Some(v6) = text.strip_prefix('[') {
        let (host, port) = v6.split_once(']')?;
        return if port.is_empty() { Some((host, "")) } else { Some((host, port.strip_prefix(':')?)) };
    }
    match text.split_once(':') {
        Some((_, port)) if port.contains(':') => None,
        Some(parts) => Some(parts),
        None => Some((text, "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(url: &str) -> Result<Config, TargetError> {
        Config::parse(url, &|name| (name == "PGUSER").then(|| "env_user".to_owned()))
    }

    #[test]
    fn tcp_urls_are_read() {
        let c = parse("postgres://ann:p%40ss@db.example:6543/shop?sslmode=verify-full&connect_timeout=3").unwrap();
        assert_eq!(c.address, Address::Tcp("db.example".into()));
        assert_eq!((c.port, c.user.as_str(), c.database.as_str()), (6543, "ann", "shop"));
        assert_eq!(c.password.as_ref().map(Secret::expose), Some("p@ss"));
        assert_eq!((c.sslmode, c.connect_timeout), (SslMode::VerifyFull, Duration::from_secs(3)));
        assert!(!format!("{c:?}").contains("p@ss") && !format!("{c:?}").contains("p%40ss"));
        let c = parse("postgresql://[::1]:5433/x").unwrap();
        assert_eq!((c.address, c.port), (Address::Tcp("::1".into()), 5433));
    }

    #[test]
    fn socket_urls_are_read() {
        for url in ["postgres://ann@/db?host=/dir&port=5433", "postgres://ann@%2Fdir:5433/db"] {
            let c = parse(url).unwrap();
            assert_eq!(c.place(), "/dir/.s.PGSQL.5433", "{url}");
        }
    }

    #[test]
    fn what_is_missing_comes_from_the_environment() {
        let c = parse("postgres://").unwrap();
        assert_eq!((c.user.as_str(), c.database.as_str(), c.port), ("env_user", "env_user", 5432));
        assert_eq!(c.address, Address::Unix(default_host().into()));
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

    #[test]
    fn mistakes_are_named_and_never_show_the_password() {
        for (url, words) in [
            ("postgres://a:secret@h/d?sslmod=require", "«sslmod»: did you mean «sslmode»"),
            ("postgres://a:secret@h/d?sslmode=verify-ful", "did you mean «verify-full»"),
            ("postgres://a:secret@h:99999/d", "«99999» is no port"),
            ("postgres://a:secret@h:1:2/d", "«h:1:2» is no host and port"),
            ("postgres://a:secret@h,i/d", "--node"),
            ("postgres:a", "«//»"),
            ("postgres://a:secret@h/d?connect_timeout=soon", "«soon»"),
            ("postgres://a:sec?secret@h/d", "%3F"),
        ] {
            let e = parse(url).unwrap_err().to_string();
            assert!(e.contains(words), "{url}: {e}");
            assert!(!e.contains("secret"), "{e}");
        }
    }

    proptest! {
        #[test]
        fn no_url_panics(rest in "\\PC{0,80}") {
            let _ = parse(&format!("postgres:{rest}"));
            let _ = parse(&format!("postgres://{rest}"));
        }

        #[test]
        fn passwords_never_show(password in "[A-Z]{8}[@/:%]{0,2}[A-Z]{3}", bad in "[a-z]{3,6}") {
            if let Err(e) = parse(&format!("postgres://ann:{password}@host/db?{bad}=1")) {
                prop_assert!(!e.to_string().contains(&password[..8]), "{}", e);
            }
        }
    }
}
