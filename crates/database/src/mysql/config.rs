//! Address and credentials from URL, environment and option file.
//!
//! Parameters are named as the options of MariaDB's and MySQL's own clients, whose option file is `~/.my.cnf`:
//! <https://mariadb.com/kb/en/configuring-mariadb-with-option-files/>

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
        let options = read_options(env);
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

/// Options of the groups `[client]`, `[client-server]` and `[client-mariadb]`.
#[derive(Debug, Clone, Default)]
struct Options {
    user: Option<String>,
    password: Option<Secret>,
    host: Option<String>,
    port: Option<u16>,
    socket: Option<String>,
    /// Why the file, or its password, was ignored.
    note: Option<String>,
}

/// Reads `~/.my.cnf`. Ignores a file that everybody may write, as the clients do, and the password in one
/// that everybody may read.
fn read_options(env: Env<'_>) -> Options {
    let path = env("HOME").map(|home| PathBuf::from(home).join(".my.cnf"));
    path.map(|path| read_file(&path)).unwrap_or_default()
}

fn read_file(path: &Path) -> Options {
    let Ok(metadata) = std::fs::metadata(path) else { return Options::default() };
    let mode = metadata.permissions().mode();
    let ignored = |why: String| Options { note: Some(why), ..Options::default() };
    if mode & 0o002 != 0 {
        return ignored(format!("{} is ignored because everybody may write it: chmod 600", path.display()));
    }
    let Ok(text) = std::fs::read_to_string(path) else {
        return ignored(format!("{} cannot be read", path.display()));
    };
    let mut options = parse_options(&text);
    if mode & 0o004 != 0 && options.password.take().is_some() {
        let why = "is ignored because everybody may read it: chmod 600";
        options.note = Some(format!("the password in {} {why}", path.display()));
    }
    options
}

fn parse_options(text: &str) -> Options {
    let mut options = Options::default();
    let mut of_client = false;
    for line in text.lines().map(str::trim) {
        if let Some(group) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            of_client = matches!(group, "client" | "client-server" | "client-mariadb");
            continue;
        }
        if !of_client || line.starts_with(['#', ';']) {
            continue;
        }
        let Some((name, value)) = line.split_once('=') else { continue };
        let value = unquoted(value.trim());
        match name.trim().replace('_', "-").as_str() {
            "user" => options.user = Some(value),
            "password" => options.password = Some(Secret::new(value)),
            "host" => options.host = Some(value),
            "port" => options.port = value.parse().ok(),
            "socket" => options.socket = Some(value),
            _ => {}
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
    fn a_socket_is_used_for_this_machine_only() {
        for (host, socket, is_socket) in [
            (Some("db1"), true, false),
            (Some("localhost"), true, true),
            (None, true, true),
            (Some("localhost"), false, false),
        ] {
            let socket = socket.then(|| "/s".to_owned());
            let options = Options { host: host.map(str::to_owned), socket, ..Options::default() };
            let tcp = || Address::Tcp(host.unwrap_or_default().to_owned(), 3306);
            assert_eq!(from_options(&options), if is_socket { Address::Unix("/s".into()) } else { tcp() }, "{host:?}");
        }
    }

    #[test]
    fn only_the_clients_groups_are_read() {
        let o = parse_options(
            "[mysqld]\nuser=mysql\n[client]\nuser = ann # me\npassword=\"a # b\"\nport=3310\n[x]\nhost=h\n",
        );
        assert_eq!((o.user.as_deref(), o.port, o.host), (Some("ann"), Some(3310), None));
        assert_eq!(o.password.unwrap().expose(), "a # b");
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
            assert_eq!(found.user.is_some(), user, "{mode:o}");
            assert_eq!(found.password.is_some(), password, "{mode:o}");
            assert_eq!(found.note.is_some(), note, "{mode:o}");
        }
    }
}
