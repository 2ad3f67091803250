//! User, password and address from `~/.my.cnf`, the option file of MariaDB's and MySQL's clients.
//!
//! <https://mariadb.com/kb/en/configuring-mariadb-with-option-files/>

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::env::Env;
use crate::secret::Secret;

/// Options of the groups `[client]`, `[client-server]` and `[client-mariadb]`.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    pub(super) user: Option<String>,
    pub(super) password: Option<Secret>,
    pub(super) host: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) socket: Option<String>,
    /// Why the file, or its password, was ignored.
    pub(super) note: Option<String>,
}

/// Reads `~/.my.cnf`. Ignores a file that everybody may write, as the clients do, and the password in one
/// that everybody may read.
pub(super) fn read(env: Env<'_>) -> Options {
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
    let mut options = parse(&text);
    if mode & 0o004 != 0 && options.password.take().is_some() {
        let why = "is ignored because everybody may read it: chmod 600";
        options.note = Some(format!("the password in {} {why}", path.display()));
    }
    options
}

fn parse(text: &str) -> Options {
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

    #[test]
    fn only_the_clients_groups_are_read() {
        let o = parse("[mysqld]\nuser=mysql\n[client]\nuser = ann # me\npassword=\"a # b\"\nport=3310\n[x]\nhost=h\n");
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
