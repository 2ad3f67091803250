//! The password file: one `host:port:database:user:password` per line, `*` matches anything, `\` escapes.
//!
//! <https://www.postgresql.org/docs/current/libpq-pgpass.html>

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::secret::Secret;

/// Key of a password in the file.
pub(super) struct Lookup<'a> {
    /// Host name, socket folder, or `localhost` for the default socket folder.
    pub(super) hosts: Vec<String>,
    pub(super) port: u16,
    pub(super) database: &'a str,
    pub(super) user: &'a str,
}

/// Result of a lookup in the password file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PgpassEntry {
    /// The password of the first matching line.
    Password(Secret),
    /// No file, or no matching line.
    Nothing,
    /// The file is not used; the reason.
    Ignored(String),
}

/// Looks up a password in the file at `path`, which must be a plain file that nobody else can read.
pub(super) fn look_up(path: &Path, lookup: &Lookup<'_>) -> PgpassEntry {
    let Ok(meta) = std::fs::metadata(path) else { return PgpassEntry::Nothing };
    let shown = path.display();
    if !meta.is_file() {
        return PgpassEntry::Ignored(format!("the password file '{shown}' is ignored: it is not a plain file"));
    }
    if meta.permissions().mode() & 0o077 != 0 {
        return PgpassEntry::Ignored(format!(
            "the password file '{shown}' is ignored because others can read it: run `chmod 0600 {shown}`"
        ));
    }
    match std::fs::read_to_string(path) {
        Ok(text) => find(&text, lookup).map_or(PgpassEntry::Nothing, PgpassEntry::Password),
        Err(e) => PgpassEntry::Ignored(format!("the password file '{shown}' cannot be read: {e}")),
    }
}

/// The password of the first matching line of `text`.
pub(super) fn find(text: &str, lookup: &Lookup<'_>) -> Option<Secret> {
    let port = lookup.port.to_string();
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let (host, rest) = field(line)?;
        let (given_port, rest) = field(rest)?;
        let (database, rest) = field(rest)?;
        let (user, rest) = field(rest)?;
        // The last field ends with the line, or with an unescaped colon.
        let password = field(rest).map_or_else(|| unescape(rest), |(password, _)| unescape(password));
        let fits = |pattern: &str, value: &str| pattern == "*" || unescape(pattern) == value;
        let host_fits = lookup.hosts.iter().any(|h| fits(host, h)) || host == "*";
        (host_fits && fits(given_port, &port) && fits(database, lookup.database) && fits(user, lookup.user))
            .then(|| Secret::new(password))
    })
}

/// The text before the first unescaped colon, and the rest after it.
fn field(line: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    for (i, c) in line.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ':' => return Some((&line[..i], &line[i + 1..])),
            _ => {}
        }
    }
    None
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(if c == '\\' { chars.next().unwrap_or(c) } else { c });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lookup() -> Lookup<'static> {
        Lookup { hosts: vec!["db.example".into()], port: 5432, database: "shop", user: "ann" }
    }

    fn found(text: &str) -> Option<String> {
        find(text, &lookup()).map(|s| s.expose().to_owned())
    }

    #[test]
    fn the_first_matching_line_wins() {
        let text = "# comment\nother:5432:shop:ann:no\ndb.example:*:*:ann:first\n*:*:*:*:second\n";
        assert_eq!(found(text).as_deref(), Some("first"));
        assert_eq!(found("db.example:5433:shop:ann:no"), None);
        assert_eq!(found("too:few:fields"), None);
    }

    #[test]
    fn escapes_are_read() {
        assert_eq!(found(r"db.example:5432:shop:ann:a\:b\\c").as_deref(), Some(r"a:b\c"));
        let v6 = Lookup { hosts: vec!["::1".into()], ..lookup() };
        assert_eq!(find(r"\:\:1:*:*:*:six", &v6).map(|s| s.expose().to_owned()).as_deref(), Some("six"));
    }

    #[test]
    fn a_file_that_others_can_read_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pgpass");
        std::fs::write(&path, "*:*:*:*:secret\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(look_up(&path, &lookup()), PgpassEntry::Ignored(why) if why.contains("chmod 0600")));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(look_up(&path, &lookup()), PgpassEntry::Password(Secret::new("secret".into())));
        assert_eq!(look_up(&dir.path().join("none"), &lookup()), PgpassEntry::Nothing);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,200}") {
            let _ = find(&text, &lookup());
        }
    }
}
