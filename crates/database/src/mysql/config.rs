//! Where to connect and as whom: URL, environment and option file.
//!
//! Parameters are named as the options of MariaDB's and MySQL's own clients.

use std::path::PathBuf;
use std::time::Duration;

use loadline_model::format::nearest;
use percent_encoding::percent_decode_str;

use super::option_file::{self, Options};
use crate::env::Env;
use crate::error::TargetError;
use crate::secret::Secret;

/// Parameters that a URL may carry after `?`.
const PARAMETERS: [&str; 5] = ["socket", "ssl-mode", "ssl-ca", "connect-timeout", "password"];

/// How a connection over TCP is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SslMode {
    /// Never.
    Disabled,
    /// If the server can.
    Preferred,
    /// Always; the certificate is not looked at.
    Required,
    /// Always; the certificate must be signed by a known authority.
    VerifyCa,
    /// As before, and it must be made out to the host's name.
    VerifyIdentity,
}

impl SslMode {
    const ALL: [(&'static str, SslMode); 5] = [
        ("disabled", SslMode::Disabled),
        ("preferred", SslMode::Preferred),
        ("required", SslMode::Required),
        ("verify-ca", SslMode::VerifyCa),
        ("verify-identity", SslMode::VerifyIdentity),
    ];
}

/// Where the server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    /// Path of the Unix socket.
    Unix(PathBuf),
    /// Host name or IP address, and port.
    Tcp(String, u16),
}

/// Address and credentials. Its `Debug` shows no password ([`Secret`]).
#[derive(Debug, Clone)]
pub(super) struct Config {
    pub(super) address: Address,
    pub(super) user: String,
    /// The database of the session; loadline's own tables are in a database of their own.
    pub(super) database: Option<String>,
    pub(super) password: Option<Secret>,
    /// Why a password file was left aside.
    pub(super) note: Option<String>,
    pub(super) ssl_mode: SslMode,
    pub(super) ssl_ca: Option<PathBuf>,
    pub(super) connect_timeout: Duration,
}

impl Config {
    /// Reads `url`, filling in from environment and `~/.my.cnf` what it does not say.
    ///
    /// # Errors
    /// [`TargetError::Usage`], naming what is wrong and what may stand there.
    pub(super) fn parse(url: &str, env: Env<'_>) -> Result<Config, TargetError> {
        let shown = crate::redact(url);
        let usage = |what: String| TargetError::Usage(format!("«{shown}»: {what}"));
        let form = "write mysql://user@host:3306/database or mysql://user@/database?socket=/path/of/the.sock";
        let (_, rest) = url
            .split_once(':')
            .and_then(|(scheme, rest)| Some((scheme, rest.strip_prefix("//")?)))
            .ok_or_else(|| usage(format!("a MariaDB or MySQL URL goes on with «//» after its scheme: {form}")))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        if query.contains('@') && !rest.contains('@') && rest.contains(':') {
            // What stands before the «?» is then likely the beginning of a password: show nothing.
            return Err(TargetError::Usage(
                "the URL has its «@» after a «?»: write a «?» in a password as %3F, an «@» in a parameter as %40"
                    .into(),
            ));
        }
        let decode = |what: &str, text: &str| -> Result<Option<String>, TargetError> {
            let decoded =
                percent_decode_str(text).decode_utf8().map_err(|_| usage(format!("the {what} is no UTF-8")))?;
            if decoded.contains('\0') {
                return Err(usage(format!("the {what} holds a zero byte")));
            }
            Ok(Some(decoded.into_owned()).filter(|t| !t.is_empty()))
        };
        // A password may hold a careless '@' or '/': the last '@' ends it, as `redact` has it.
        let (credentials, place) = rest.rsplit_once('@').map_or(("", rest), |(c, p)| (c, p));
        let (user, password) = credentials.split_once(':').map_or((credentials, None), |(u, p)| (u, Some(p)));
        let (host_port, database) = place.split_once('/').unwrap_or((place, ""));
        let mut given = Parameters::default();
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            let (name, value) =
                pair.split_once('=').ok_or_else(|| usage(format!("the parameter «{pair}» has no «=»")))?;
            let name = name.replace('_', "-");
            let value = decode(&name, value)?;
            given.set(&name, value).map_err(&usage)?;
        }
        let (host, port) = split_port(host_port).ok_or_else(|| usage(format!("«{host_port}» is no host and port")))?;
        let file = option_file::read(env);
        let options = file.options;
        let host = decode("host", host)?;
        if given.socket.is_some() && host.is_some() {
            return Err(usage("it names a host and a socket: leave one of them out".into()));
        }
        let address = match (given.socket, host, port) {
            (Some(socket), _, _) => Address::Unix(socket.into()),
            (None, Some(host), port) => Address::Tcp(host, port.or(options.port).unwrap_or(3306)),
            (None, None, Some(port)) => Address::Tcp("localhost".into(), port),
            (None, None, None) => from_options(&options),
        };
        let password = password.map(|p| decode("password", p)).transpose()?.flatten().or(given.password);
        let user = decode("user", user)?.or(options.user).or_else(|| env("USER")).unwrap_or_else(|| "root".into());
        Ok(Config {
            address,
            user,
            database: decode("database", database)?,
            password: password.or_else(|| env("MYSQL_PWD")).map(Secret::new).or(options.password),
            note: file.note,
            ssl_mode: given.ssl_mode.unwrap_or(SslMode::Preferred),
            ssl_ca: given.ssl_ca.map(PathBuf::from),
            connect_timeout: Duration::from_secs(given.connect_timeout.unwrap_or(10)),
        })
    }

    /// The server, for messages.
    pub(super) fn place(&self) -> String {
        match &self.address {
            Address::Unix(path) => format!("the socket {}", path.display()),
            Address::Tcp(host, port) => format!("{host}:{port}"),
        }
    }
}

/// The URL names no place: option file, then the sockets of the distributions, then TCP.
fn from_options(options: &Options) -> Address {
    const SOCKETS: [&str; 3] = ["/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock"];
    match (&options.socket, &options.host) {
        (Some(socket), _) => Address::Unix(socket.into()),
        (None, Some(host)) => Address::Tcp(host.clone(), options.port.unwrap_or(3306)),
        (None, None) => SOCKETS
            .iter()
            .map(PathBuf::from)
            .find(|p| p.exists())
            .map_or_else(|| Address::Tcp("localhost".into(), options.port.unwrap_or(3306)), Address::Unix),
    }
}

#[derive(Default)]
struct Parameters {
    socket: Option<String>,
    ssl_mode: Option<SslMode>,
    ssl_ca: Option<String>,
    connect_timeout: Option<u64>,
    password: Option<String>,
}

impl Parameters {
    fn set(&mut self, name: &str, value: Option<String>) -> Result<(), String> {
        let text = value.clone().unwrap_or_default();
        match name {
            "socket" if text.starts_with('/') => self.socket = value,
            "socket" => return Err(format!("socket=«{text}» must be a path that begins with /")),
            "ssl-ca" => self.ssl_ca = value,
            "password" => self.password = value,
            "ssl-mode" => {
                let wanted = text.to_ascii_lowercase().replace('_', "-");
                let found = SslMode::ALL.iter().find(|(name, _)| *name == wanted);
                let allowed = SslMode::ALL.map(|(name, _)| name).join(", ");
                let (_, mode) = found.ok_or_else(|| format!("ssl-mode=«{text}» is not one of: {allowed}"))?;
                self.ssl_mode = Some(*mode);
            }
            "connect-timeout" => {
                let seconds = text.parse().ok().filter(|s| (1..=3600).contains(s));
                let seconds = seconds.ok_or_else(|| format!("connect-timeout=«{text}» is no number from 1 to 3600"))?;
                self.connect_timeout = Some(seconds);
            }
            _ => {
                let hint = nearest(name, PARAMETERS).map_or(String::new(), |n| format!(", did you mean «{n}»?"));
                return Err(format!("unknown parameter «{name}»{hint} (allowed: {})", PARAMETERS.join(", ")));
            }
        }
        Ok(())
    }
}

/// Host and port of `host`, `host:3306`, `[::1]` or `[::1]:3306`.
fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(inner) => inner.split_once(']')?,
        None => text.find(':').map_or((text, ""), |at| text.split_at(at)),
    };
    match rest.strip_prefix(':') {
        None if rest.is_empty() => Some((host, None)),
        None => None,
        Some(port) => port.parse().ok().filter(|p| *p != 0).map(|p| (host, Some(p))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Config, TargetError> {
        Config::parse(url, &|name| (name == "USER").then(|| "ann".to_owned()))
    }

    #[test]
    fn urls_are_read() {
        let c = parse("mysql://bob:p%40ss@db.example:3307/shop?ssl-mode=VERIFY_CA&ssl-ca=/ca.pem").unwrap();
        assert_eq!(c.address, Address::Tcp("db.example".into(), 3307));
        assert_eq!((c.user.as_str(), c.database.as_deref()), ("bob", Some("shop")));
        assert_eq!(c.password.as_ref().map(|p| p.expose().to_owned()).as_deref(), Some("p@ss"));
        assert_eq!(c.ssl_mode, SslMode::VerifyCa);
        assert!(!format!("{c:?}").contains("p@ss"));
        let c = parse("mariadb://root@/?socket=/run/x.sock").unwrap();
        assert_eq!(c.address, Address::Unix("/run/x.sock".into()));
        let c = parse("mysql://[::1]:3308").unwrap();
        assert_eq!((c.address, c.user.as_str()), (Address::Tcp("::1".into(), 3308), "ann"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (url, words) in [
            ("mysql:db", "goes on with «//»"),
            ("mysql://h/d?ssl_mod=required", "did you mean «ssl-mode»?"),
            ("mysql://h/d?ssl-mode=on", "disabled, preferred, required, verify-ca, verify-identity"),
            ("mysql://h:99999/d", "no host and port"),
            ("mysql://h/d?socket=/x", "a host and a socket"),
            ("mysql:///d?socket=x", "begins with /"),
            ("mysql://h/d?connect-timeout=no", "no number"),
        ] {
            let e = parse(url).unwrap_err().to_string();
            assert!(e.contains(words), "{url}: {e}");
        }
        let e = parse("mysql://ann:se?cr@t/db").unwrap_err().to_string();
        assert!(!e.contains("se"), "{e}");
    }
}
