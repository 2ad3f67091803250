//! Address and credentials from URL, environment and option file.
//!
//! Parameters are named as the options of MariaDB's and MySQL's own clients.

use std::path::PathBuf;
use std::time::Duration;

use super::option_file::{self, Options};
use crate::env::Env;
use crate::error::TargetError;
use crate::secret::Secret;
use crate::tcp::Address;
use crate::tls::SslMode;
use crate::url::{Url, choice, unknown};

const PARAMETERS: [&str; 5] = ["socket", "ssl-mode", "ssl-ca", "connect-timeout", "password"];

/// How a connection over TCP is encrypted, as the products' own clients name it.
const SSL_MODES: [(&str, SslMode); 5] = [
    ("disabled", SslMode::Disable),
    ("preferred", SslMode::Prefer),
    ("required", SslMode::Require),
    ("verify-ca", SslMode::VerifyCa),
    ("verify-identity", SslMode::VerifyName),
];

/// Address and credentials. Its `Debug` shows no password ([`Secret`]).
#[derive(Debug, Clone)]
pub(super) struct Config {
    pub(super) address: Address,
    pub(super) user: String,
    /// The session's database; loadline's tables are in the database `loadline`.
    pub(super) database: Option<String>,
    pub(super) password: Option<Secret>,
    /// Why the option file, or its password, was ignored.
    pub(super) note: Option<String>,
    pub(super) ssl_mode: SslMode,
    pub(super) ssl_ca: Option<PathBuf>,
    pub(super) connect_timeout: Duration,
    /// Which node of a cluster it is, for messages.
    node: Option<String>,
}

impl Config {
    /// Parses `url`. What it leaves out comes from the environment and `~/.my.cnf`.
    pub(super) fn parse(url: &str, env: Env<'_>) -> Result<Config, TargetError> {
        let form = "mysql://user@host:3306/database or mysql://user@/database?socket=/path/of/the.sock";
        let url = Url::parse(url, form)?;
        let (mut socket, mut ssl_mode, mut ssl_ca) = (None, None, None);
        let (mut timeout_s, mut password) = (10_u64, None);
        for (name, value) in url.parameters()? {
            let (name, text) = (name.replace('_', "-"), value.clone().unwrap_or_default());
            match name.as_str() {
                "socket" if text.starts_with('/') => socket = Some(PathBuf::from(text)),
                "socket" => return Err(url.wrong(format!("socket='{text}' must be a path that begins with /"))),
                "ssl-ca" => ssl_ca = value.map(PathBuf::from),
                "password" => password = value,
                "ssl-mode" => {
                    let wanted = text.to_ascii_lowercase().replace('_', "-");
                    ssl_mode = Some(choice(&name, &wanted, &SSL_MODES).map_err(|e| url.wrong(e))?);
                }
                "connect-timeout" => {
                    let wrong = || url.wrong(format!("connect-timeout='{text}' must be a number from 1 to 3600"));
                    timeout_s = text.parse().ok().filter(|s| (1..=3600).contains(s)).ok_or_else(wrong)?;
                }
                _ => return Err(url.wrong(unknown(&name, &PARAMETERS))),
            }
        }
        let options = option_file::read(env);
        let password = url.decode("password", url.password.unwrap_or_default())?.or(password);
        let host = url.decode("host", url.host)?;
        if socket.is_some() && host.is_some() {
            return Err(url.wrong("it names a host and a socket: leave one of them out"));
        }
        let address = match (socket, host, url.port()?) {
            (Some(socket), _, _) => Address::Unix(socket),
            (None, Some(host), port) => Address::Tcp(host, port.or(options.port).unwrap_or(3306)),
            (None, None, Some(port)) => Address::Tcp("localhost".into(), port),
            (None, None, None) => from_options(&options),
        };
        let user =
            url.decode("user", url.user)?.or(options.user).or_else(|| env("USER")).unwrap_or_else(|| "root".into());
        // As Oracle's clients do: an authority that is given is not ignored.
        let default_mode = if ssl_ca.is_some() { SslMode::VerifyCa } else { SslMode::Prefer };
        Ok(Config {
            address,
            user,
            database: url.decode("database", url.path)?,
            password: password.or_else(|| env("MYSQL_PWD")).map(Secret::new).or(options.password),
            note: options.note,
            ssl_mode: ssl_mode.unwrap_or(default_mode),
            ssl_ca,
            connect_timeout: Duration::from_secs(timeout_s),
            node: None,
        })
    }

    /// The server, for messages.
    pub(super) fn place(&self) -> String {
        let address = match &self.address {
            Address::Unix(path) => format!("the socket {}", path.display()),
            Address::Tcp(host, port) => format!("{host}:{port}"),
        };
        self.node.as_ref().map_or_else(|| address.clone(), |node| format!("{node} at {address}"))
    }

    /// Has messages name it as the target's node number `index` (from 0), called `name` in its cluster.
    pub(super) fn name_node(&mut self, index: usize, name: &str) {
        self.node = Some(format!("node {} ('{name}')", index + 1));
    }
}

/// Address for a URL without one: option file, then the distributions' sockets, then TCP. A socket is of this machine: as for the
/// products' clients, it does not count beside another host.
fn from_options(options: &Options) -> Address {
    const SOCKETS: [&str; 3] = ["/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock"];
    match (&options.host, &options.socket) {
        (Some(host), socket) if socket.is_none() || !matches!(host.as_str(), "" | "localhost") => {
            Address::Tcp(host.clone(), options.port.unwrap_or(3306))
        }
        (_, Some(socket)) => Address::Unix(socket.into()),
        (_, None) => SOCKETS
            .iter()
            .map(PathBuf::from)
            .find(|p| p.exists())
            .map_or_else(|| Address::Tcp("localhost".into(), options.port.unwrap_or(3306)), Address::Unix),
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
        for (parameters, mode) in [
            ("", SslMode::Prefer),
            ("?ssl-ca=/ca.pem", SslMode::VerifyCa),
            ("?ssl-ca=/ca.pem&ssl-mode=preferred", SslMode::Prefer),
        ] {
            assert_eq!(parse(&format!("mysql://h/{parameters}")).unwrap().ssl_mode, mode, "{parameters}");
        }
    }

    #[test]
    fn a_socket_is_used_for_this_machine_only() {
        let (unix, tcp) = (Address::Unix("/s".into()), |host: &str| Address::Tcp(host.to_owned(), 3306));
        for (host, socket, address) in [
            (Some("db1"), Some("/s"), tcp("db1")),
            (Some("localhost"), Some("/s"), unix.clone()),
            (None, Some("/s"), unix.clone()),
            (Some("localhost"), None, tcp("localhost")),
        ] {
            let (host, socket) = (host.map(str::to_owned), socket.map(str::to_owned));
            assert_eq!(from_options(&Options { host, socket, ..Options::default() }), address);
        }
    }
}
