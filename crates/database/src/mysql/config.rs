//! Address and credentials from URL, environment and option file.
//!
//! Parameters are named as the options of MariaDB's and MySQL's own clients, whose option file is `~/.my.cnf`:
//! <https://mariadb.com/kb/en/configuring-mariadb-with-option-files/>

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::TargetError;
use crate::request::{Env, Secret};
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
    pub(super) node: Option<String>,
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
        let mut options = read_options(env);
        let password = url.decode("password", url.password.unwrap_or_default())?.or(password);
        let host = url.decode("host", url.host)?;
        if socket.is_some() && host.is_some() {
            return Err(url.wrong("it names a host and a socket: leave one of them out"));
        }
        let address = match (socket, host, url.port()?) {
            (Some(socket), _, _) => Address::Unix(socket),
            (None, Some(host), port) => Address::Tcp(host, port.unwrap_or(options.port())),
            (None, None, Some(port)) => Address::Tcp("localhost".into(), port),
            (None, None, None) => from_options(&options),
        };
        let user = url.decode("user", url.user)?.or(options.values.remove("user")).or_else(|| env("USER"));
        let password = password.or_else(|| env("MYSQL_PWD")).or(options.values.remove("password"));
        // As Oracle's clients do: an authority that is given is not ignored.
        let default_mode = if ssl_ca.is_some() { SslMode::VerifyCa } else { SslMode::Prefer };
        Ok(Config {
            address,
            user: user.unwrap_or_else(|| "root".into()),
            database: url.decode("database", url.path)?,
            password: password.map(Secret::new),
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
}

/// Address for a URL without one: option file, then the distributions' sockets, then TCP. A socket is of this machine: as for the
/// products' clients, it does not count beside another host.
fn from_options(options: &Options) -> Address {
    const SOCKETS: [&str; 3] = ["/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock"];
    let (host, socket) = (options.values.get("host"), options.values.get("socket").map(PathBuf::from));
    let socket = match host.map(String::as_str) {
        None => socket.or_else(|| SOCKETS.iter().map(PathBuf::from).find(|path| path.exists())),
        Some("" | "localhost") => socket,
        Some(_) => None,
    };
    socket.map_or_else(|| Address::Tcp(host.map_or("localhost", String::as_str).into(), options.port()), Address::Unix)
}

/// An option file.
#[derive(Default)]
struct Options {
    values: BTreeMap<String, String>,
    /// Why the file, or its password, was ignored.
    note: Option<String>,
}

impl Options {
    fn port(&self) -> u16 {
        self.values.get("port").and_then(|port| port.parse().ok()).unwrap_or(3306)
    }
}

/// Reads `~/.my.cnf`. Ignores a file that everybody may write, as the clients do, and the password in one
/// that everybody may read.
fn read_options(env: Env<'_>) -> Options {
    let path = env("HOME").map(|home| PathBuf::from(home).join(".my.cnf"));
    path.map(|path| read_file(&path)).unwrap_or_default()
}

fn read_file(path: &Path) -> Options {
    let Ok(metadata) = std::fs::metadata(path) else { return Options::default() };
    let (mode, shown) = (metadata.permissions().mode(), path.display());
    let ignored = |why: String| Options { note: Some(why), ..Options::default() };
    if mode & 0o002 != 0 {
        return ignored(format!("{shown} is ignored because everybody may write it: chmod 600"));
    }
    let Ok(text) = std::fs::read_to_string(path) else { return ignored(format!("{shown} cannot be read")) };
    let mut values = parse_options(&text);
    let is_open = mode & 0o004 != 0 && values.remove("password").is_some();
    let note = || format!("the password in {shown} is ignored because everybody may read it: chmod 600");
    Options { values, note: is_open.then(note) }
}

/// Options of the groups `[client]`, `[client-server]` and `[client-mariadb]`.
fn parse_options(text: &str) -> BTreeMap<String, String> {
    let (mut options, mut of_client) = (BTreeMap::new(), false);
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if let Some(group) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            of_client = matches!(group, "client" | "client-server" | "client-mariadb");
        } else if of_client && let Some((name, value)) = line.split_once('=') {
            options.insert(name.trim().replace('_', "-"), unquoted(value.trim()));
        }
    }
    options
}

/// The value without its quotes and escapes; a comment may follow an unquoted value.
fn unquoted(value: &str) -> String {
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
    let inner = quote.and_then(|q| value[1..].find(q).map(|end| &value[1..=end]));
    let text = inner.unwrap_or_else(|| value.split('#').next().unwrap_or_default().trim_end());
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let escaped = if c == '\\' { chars.next() } else { None };
        out.push(match escaped {
            Some('s') => ' ',
            Some('t') => '\t',
            Some('n') => '\n',
            other => other.unwrap_or(c),
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;

    fn parse(url: &str) -> Result<Config, TargetError> {
        Config::parse(url, &|name| (name == "USER").then(|| "ann".to_owned()))
    }

    #[test]
    fn urls_are_read() {
        for (url, address, [user, database], password, mode) in
            cases::<(String, String, [String; 2], String, String)>("mysql-urls")
        {
            let c = parse(&url).unwrap();
            let found = (c.place(), c.user.as_str(), c.database.as_deref().unwrap_or_default());
            assert_eq!(found, (address, &*user, &*database), "{url}");
            assert_eq!(c.password.as_ref().map_or("", Secret::expose), password, "{url}");
            assert!(!format!("{c:?}").contains("p@ss"));
            assert_eq!(Ok(c.ssl_mode), choice("ssl-mode", &mode, &SSL_MODES), "{url}");
        }
    }

    #[test]
    fn only_the_clients_groups_are_read_and_a_socket_is_of_this_machine() {
        let text = "[mysqld]\nuser=mysql\n[client]\nuser = ann # me\npassword=\"a # b\"\n[x]\nhost=h\n";
        let read: Vec<_> = parse_options(text).into_iter().collect();
        assert_eq!(read, [("password", "a # b"), ("user", "ann")].map(|(n, v)| (n.to_owned(), v.to_owned())));
        let tcp = |host: &str, port| Address::Tcp(host.to_owned(), port);
        for (text, address) in [
            ("host=db1\nsocket=/s", tcp("db1", 3306)),
            ("host=localhost\nsocket=/s", Address::Unix("/s".into())),
            ("socket=/s", Address::Unix("/s".into())),
            ("host=localhost\nport=3310", tcp("localhost", 3310)),
        ] {
            let values = parse_options(&format!("[client]\n{text}"));
            assert_eq!(from_options(&Options { values, note: None }), address, "{text}");
        }
    }

    #[test]
    fn a_password_that_others_can_read_is_not_taken() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "[client]\nuser=ann\npassword=secret\n").unwrap();
        for (mode, user, password, note) in
            [(0o600, true, true, false), (0o644, true, false, true), (0o666, false, false, true)]
        {
            std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            let found = read_file(file.path());
            assert_eq!(found.values.contains_key("user"), user, "{mode:o}");
            assert_eq!(found.values.contains_key("password"), password, "{mode:o}");
            assert_eq!(found.note.is_some(), note, "{mode:o}");
        }
    }
}
