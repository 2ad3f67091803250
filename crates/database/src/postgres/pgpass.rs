//! The password file: one `host:port:database:user:password` per line, `*` matches anything, `\` escapes.
//!
//! <https://www.postgresql.org/docs/current/libpq-pgpass.html>

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::secret::Secret;

/// The password of the first line in the file at `path` for one of `hosts` (a host name, a socket folder, or `localhost` for the
/// default one) and this port, database and user. The file must be a plain one that nobody else can read.
///
/// # Errors
/// Why the file is not used.
pub(super) fn look_up(path: &Path, hosts: &[String], of: [&str; 3]) -> Result<Option<Secret>, String> {
    let Ok(meta) = std::fs::metadata(path) else { return Ok(None) };
    let shown = path.display();
    if !meta.is_file() {
        return Err(format!("the password file '{shown}' is ignored: it is not a plain file"));
    }
    if meta.permissions().mode() & 0o077 != 0 {
        return Err(format!(
            "the password file '{shown}' is ignored because others can read it: run `chmod 0600 {shown}`"
        ));
    }
    let text = std::fs::read_to_string(path).map_err(|e| format!("the password file '{shown}' cannot be read: {e}"))?;
    Ok(find(&text, hosts, of))
}

fn find(text: &str, hosts: &[String], of: [&str; 3]) -> Option<Secret> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let mut escaped = false;
        let ends_field = |c: char| {
            let ends = c == ':' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        };
        let fields: Vec<&str> = line.split(ends_field).collect();
        // The last field ends with the line, or with an unescaped colon.
        let [host, port, database, user, password, ..] = fields[..] else { return None };
        let fits = |pattern: &str, value: &str| pattern == "*" || unescape(pattern) == value;
        let is_wanted = hosts.iter().any(|value| fits(host, value))
            && [port, database, user].iter().zip(of).all(|(pattern, value)| fits(pattern, value));
        is_wanted.then(|| Secret::new(unescape(password)))
    })
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

    fn found(text: &str, host: &str) -> Option<String> {
        find(text, &[host.to_owned()], ["5432", "shop", "ann"]).map(|s| s.expose().to_owned())
    }

    #[test]
    fn the_first_matching_line_wins_and_escapes_are_read() {
        let several = "# comment\nother:5432:shop:ann:no\ndb:*:*:ann:first\n*:*:*:*:second\n";
        for (text, host, password) in [
            (several, "db", Some("first")),
            ("db:5433:shop:ann:no", "db", None),
            ("too:few:fields", "db", None),
            (r"db:5432:shop:ann:a\:b\\c", "db", Some(r"a:b\c")),
            (r"\:\:1:*:*:*:six", "::1", Some("six")),
        ] {
            assert_eq!(found(text, host).as_deref(), password, "{text}");
        }
    }

    #[test]
    fn a_file_that_others_can_read_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pgpass");
        let look_up = |path: &Path| look_up(path, &["h".to_owned()], ["5432", "shop", "ann"]);
        std::fs::write(&path, "*:*:*:*:secret\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(look_up(&path).unwrap_err().contains("chmod 0600"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(look_up(&path), Ok(Some(Secret::new("secret".into()))));
        assert_eq!(look_up(&dir.path().join("none")), Ok(None));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,200}") {
            let _ = found(&text, "db.example");
        }
    }
}
