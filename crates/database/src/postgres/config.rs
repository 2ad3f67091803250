//! Address and credentials of a node, from libpq's URLs and environment variables.
//!
//! <https://www.postgresql.org/docs/current/libpq-connect.html>

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::knowledge::{KNOWLEDGE, message};
use crate::error::TargetError;
use crate::request::{Env, Secret};
use crate::tcp::Address;
use crate::tls::SslMode;
use crate::url::{self, Url, choice, unknown};

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
        let known = &KNOWLEDGE.parameters;
        for (name, value) in url.parameters()? {
            if !known.contains_key(name) {
                return Err(url.wrong(unknown(name, &known.keys().map(String::as_str).collect::<Vec<_>>())));
            }
            given.insert(name, value);
        }
        let value = |(name, variable): (&'static String, &String)| {
            Some((name.as_str(), given.remove(name.as_str()).flatten().or_else(|| env(variable))?))
        };
        let given = known.iter().filter_map(value).collect();
        Config::new(given, env("HOME"), url.shown.clone()).map_err(|e| url.wrong(e))
    }

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
        let sslrootcert = take("sslrootcert");
        let is_system = sslrootcert.as_deref() == Some("system");
        let usual = if is_system { SslMode::VerifyName } else { SslMode::Prefer };
        let sslmode = take("sslmode").map_or(Ok(usual), |mode| choice("sslmode", &mode, &SSL_MODES))?;
        // As libpq from 16 on: a public authority signs for anyone who has a host name.
        if is_system && sslmode != SslMode::VerifyName {
            return Err("sslrootcert=system checks nothing with a weaker sslmode: write sslmode=verify-full".into());
        }
        Ok(Config {
            address: if host.starts_with('/') { Address::Unix(socket) } else { Address::Tcp(host, port) },
            port,
            database: take("dbname").unwrap_or_else(|| user.clone()),
            user,
            password: take("password").map(Secret::new),
            passfile: take("passfile").map(PathBuf::from).or_else(|| Some(Path::new(&home?).join(".pgpass"))),
            sslmode,
            sslrootcert,
            // 0 means `for ever` to libpq; here it means one hour, so that an unattended run ends.
            connect_timeout: Duration::from_secs(if seconds == 0 { 3600 } else { seconds.min(3600) }),
            options: take("options"),
            application_name: take("application_name"),
            shown,
        })
    }

    pub(super) fn place(&self) -> String {
        match &self.address {
            Address::Tcp(host, port) if host.contains(':') => format!("[{host}]:{port}"),
            Address::Tcp(host, port) => format!("{host}:{port}"),
            Address::Unix(socket) => socket.display().to_string(),
        }
    }

    /// The password of the password file: of the first line for this host (of a socket its folder, or `localhost` for the default
    /// one), port, database and user; else why the file is not used.
    pub(super) fn password_of_file(&self) -> Result<Option<Secret>, String> {
        let Some(path) = &self.passfile else { return Ok(None) };
        let Ok(meta) = std::fs::metadata(path) else { return Ok(None) };
        let shown = path.display().to_string();
        if !meta.is_file() {
            return Err(message("passfile-not-plain", &[("file", &shown)]));
        }
        if meta.permissions().mode() & 0o077 != 0 {
            return Err(message("passfile-open", &[("file", &shown)]));
        }
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|e| format!("the password file '{shown}' cannot be read: {e}"))?;
        let hosts = match &self.address {
            Address::Tcp(host, _) => vec![host.clone()],
            Address::Unix(path) => {
                let dir = path.parent().unwrap_or(path).display().to_string();
                if dir == default_host() { vec!["localhost".into(), dir] } else { vec![dir] }
            }
        };
        Ok(find_password(&text, &hosts, [&self.port.to_string(), &self.database, &self.user]))
    }
}

/// Of the lines `host:port:database:user:password`; `*` alone matches anything, `\` escapes.
///
/// <https://www.postgresql.org/docs/current/libpq-pgpass.html>
fn find_password(text: &str, hosts: &[String], of: [&str; 3]) -> Option<Secret> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let mut escaped = false;
        let ends = |c| {
            let ends = c == ':' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        };
        let fields: Vec<&str> = line.split(ends).collect();
        // The last field ends with the line, or with a colon.
        let [host, place @ .., password] = fields.get(..5)? else { return None };
        let plain = |field: &str| {
            let mut chars = field.chars();
            let next = || chars.next().map(|c| if c == '\\' { chars.next().unwrap_or(c) } else { c });
            std::iter::from_fn(next).collect::<String>()
        };
        let fits = |field: &&str, value: &str| *field == "*" || plain(field) == value;
        let is_wanted = hosts.iter().any(|value| fits(host, value))
            && place.iter().zip(of).all(|(pattern, value)| fits(pattern, value));
        is_wanted.then(|| Secret::new(plain(password)))
    })
}

/// libpq's default folder of the socket: Debian's, or PostgreSQL's built-in one.
fn default_host() -> String {
    let debian = "/var/run/postgresql";
    if Path::new(debian).is_dir() { debian.into() } else { "/tmp".into() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::cases::cases;

    #[test]
    fn urls_are_read_and_missing_parts_come_from_the_environment() {
        for (url, env, place, names, password) in
            cases::<(String, BTreeMap<String, String>, String, [String; 2], Vec<String>)>("postgres-urls")
        {
            let c = Config::parse(&url, &|name| env.get(name).cloned()).unwrap();
            let place = place.replace("{default}", &default_host());
            assert_eq!((c.place(), [c.user.clone(), c.database.clone()]), (place, names), "{url}");
            assert_eq!(c.password.iter().map(Secret::expose).collect::<Vec<_>>(), password, "{url}");
            let shown = format!("{c:?}");
            assert!(!shown.contains("p@ss") && !shown.contains("p%40ss"), "{shown}");
        }
        let url = "postgres://ann@h:6543/d?sslmode=verify-full&connect_timeout=3";
        let c = Config::parse(url, &|_| None).unwrap();
        assert_eq!((c.port, c.sslmode, c.connect_timeout), (6543, SslMode::VerifyName, Duration::from_secs(3)));
        let mode = |of: &str| {
            let env = |name: &str| (name == "PGSSLROOTCERT").then(|| of.to_owned());
            Config::parse("postgres://ann@h/d", &env).unwrap().sslmode
        };
        assert_eq!((mode("system"), mode("/ca.pem")), (SslMode::VerifyName, SslMode::Prefer));
    }

    #[test]
    fn the_first_line_of_the_password_file_that_fits_counts_and_escapes_are_read() {
        for (text, host, password) in cases::<(String, String, Vec<String>)>("postgres-password-files") {
            let found = find_password(&text, &[host], ["5432", "shop", "ann"]);
            assert_eq!(found.iter().map(Secret::expose).collect::<Vec<_>>(), password, "{text}");
        }
    }

    #[test]
    fn a_password_file_that_others_can_read_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pgpass");
        let c = Config::parse(&format!("postgres://ann@h/d?passfile={}", path.display()), &|_| None).unwrap();
        assert_eq!(c.password_of_file(), Ok(None), "there is none");
        std::fs::write(&path, "*:*:*:*:secret\n").unwrap();
        let with = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            c.password_of_file()
        };
        assert!(with(0o644).unwrap_err().contains("chmod 0600"));
        assert_eq!(with(0o600), Ok(Some(Secret::new("secret".into()))));
    }
}
