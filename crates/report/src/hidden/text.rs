//! Texts that loadline, a server or a user wrote. What stays of them is on a list of forms: words, figures, versions, codes. Every
//! other token (a path, an address, a URL, the name of a host, an identifier) is replaced.

use std::collections::BTreeMap;

/// Ends a token.
const ENDS: &str = "\"'`<>(){}[]|,;=?&#";
/// Kinds of targets and their aliases: what stays of a URL.
const KINDS: &[&str] = &[
    "sqlite", "wal", "null", "postgres", "postgresql", "mysql", "mariadb", "oracle", "postgres-temp", "mariadb-temp",
    "mysql-temp", "galera-temp", "nats", "http", "https", "file", "builtin", "reference",
];
/// Folders of paths that every machine has.
const EVERYWHERE: &[&str] = &["/proc/", "/sys/", "/usr/", "/bin/", "/sbin/"];
/// Ends of names with dots that are no hosts: files that every server has, and encodings.
const FILES: &[&str] = &["conf", "cnf", "csv", "json", "jsonl", "md", "ora", "so", "toml", "utf", "utf8", "g", "e"];
/// Begins of names with dots that every server of a product has.
const CATALOGUES: &[&str] = &["pg_stat", "pg_catalog.", "v$", "dba_hist", "performance_schema.", "information_schema."];
/// Words before a name in quotes, as in `user "bob"`.
const BEFORE_NAME: &[&str] = &[
    "user", "role", "host", "database", "schema", "server", "cluster", "relation", "table", "column", "index", "view",
    "sequence", "function", "procedure", "type", "constraint",
];

/// `text` with each token that may not stay replaced by what `with` gives for its kind and text. `version` stays.
pub(super) fn replace(text: &str, version: &str, with: &mut dyn FnMut(&'static str, &str) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = "";
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() || ENDS.contains(first) {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            // A name in quotes after a word that announces one.
            let quoted = rest.split_once(first).filter(|_| "\"'`".contains(first)).map_or("", |(name, _)| name);
            if !quoted.is_empty() && BEFORE_NAME.contains(&before.to_lowercase().as_str()) {
                out.push_str(&with("name", quoted));
                rest = &rest[quoted.len()..];
            }
            continue;
        }
        let end = rest.find(|c: char| c.is_whitespace() || ENDS.contains(c)).unwrap_or(rest.len());
        let (token, after) = rest.split_at(end);
        // `</b>` in a note is no path.
        if out.ends_with('<') && token.starts_with('/') && token.len() < 12 && after.starts_with('>') {
            out.push_str(token);
        } else {
            out.push_str(&token_without(token, version, with));
        }
        (before, rest) = (token, after);
    }
    out
}

fn token_without(token: &str, version: &str, with: &mut dyn FnMut(&'static str, &str) -> String) -> String {
    // Sentences end with these.
    let core = token.trim_end_matches(['.', ':', '!']);
    let tail = &token[core.len()..];
    if stays(core) || version.split([' ', '(', ')']).any(|part| part == core) {
        return token.to_owned();
    }
    if let Some((kind, place)) = core.split_once(':').filter(|(kind, _)| KINDS.contains(&kind.to_lowercase().as_str()))
    {
        let bare = place.trim_start_matches("//");
        let lead = &place[..place.len() - bare.len()];
        let bare = if stays(bare) && lead.is_empty() { bare.to_owned() } else { with("address", bare) };
        return format!("{kind}:{lead}{bare}{tail}");
    }
    let kind = match core {
        _ if core.contains('/') => "path",
        _ if core.contains('@') => "user",
        _ if core.chars().all(|c| c.is_ascii_hexdigit() || ".:/".contains(c)) => "address",
        _ => "name",
    };
    with(kind, core) + tail
}

/// Whether a token has a form that tells nothing.
fn stays(token: &str) -> bool {
    let device = token.strip_prefix("/dev/").is_some_and(|d| d.len() < 16 && !d.contains(['/', '-', '_']));
    if device || !token.contains(char::is_alphanumeric) || EVERYWHERE.iter().any(|folder| token.starts_with(folder)) {
        return true;
    }
    // `tps/job`, `wait/io/file`, `1/s`
    let time = |c: char| c.is_ascii_digit() || "-+:.TZ".contains(c);
    let relative = token.split('/').all(|part| !part.is_empty()) && (!token.contains('/') || !token.contains('.'));
    let part_stays = |part: &str| {
        let parts: Vec<&str> = part.split(':').collect();
        let Some((first, more)) = parts.split_first() else { return true };
        let number = |part: &str| (1..4).contains(&part.len()) && part.chars().all(|c| c.is_ascii_digit());
        let letters = |part: &str| !part.is_empty() && part.chars().all(char::is_alphabetic);
        // `IO:WALSync`; a place such as `script-1:2:1`, or a time
        word(first) && (more.len() < 3 && more.iter().all(|part| number(part)) || more.iter().all(|part| letters(part)))
    };
    token.contains('T') && token.chars().all(time) || relative && token.split('/').all(part_stays)
}

/// Words, figures with their unit, versions and codes, joined by `-`, `_` and `+`.
fn word(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_$.".contains(c);
    if CATALOGUES.iter().any(|begin| text.to_lowercase().starts_with(begin)) && text.chars().all(plain) {
        return true;
    }
    let allowed = |c: char| c.is_alphanumeric() || !c.is_ascii() || "$%*.".contains(c);
    let joined: Vec<&str> = text.split(['-', '_', '+']).collect();
    joined.iter().all(|part| part.chars().all(allowed) && simple(part, joined.len() == 1))
}

/// A part of a word, or all of it if `alone`: not what an identifier is made of.
fn simple(part: &str, alone: bool) -> bool {
    if part.contains('.') {
        return figure(part) || dotted(part);
    }
    let has = |of: fn(&char) -> bool| part.chars().filter(of).count();
    let digits = has(char::is_ascii_digit);
    let code = part.len() < 9 && has(char::is_ascii_uppercase) > 0 && has(char::is_ascii_lowercase) == 0;
    let short = part.len() <= 5 || alone && part.starts_with(|c: char| c.is_ascii_alphabetic());
    digits == 0 || code || short || figure(part) && (alone || digits < 7)
}

/// `±99.9`, `p99.9`, `64MB`: digits, with dots as a version has them, then the unit.
fn figure(part: &str) -> bool {
    let digit = |c: char| c.is_ascii_digit() || c == '.';
    let unit = part.trim_start_matches(|c: char| !c.is_ascii() || c == 'p').trim_start_matches(digit);
    !unit.contains(digit) && part.matches('.').count() < 3
}

/// A version such as `1160.el7.x86`, or a file that every server has.
fn dotted(text: &str) -> bool {
    let labels: Vec<&str> = text.split('.').collect();
    let last = labels.last().copied().unwrap_or_default();
    let numbers = labels.iter().all(|label| label.chars().all(|c| c.is_ascii_digit()));
    let version = text.starts_with(|c: char| c.is_ascii_digit())
        && last.contains(|c: char| c.is_ascii_digit())
        && labels.iter().all(|label| label.len() < 4 || label.chars().all(|c| c.is_ascii_digit()));
    let file = FILES.contains(&last.to_lowercase().as_str()) && labels.len() < 3;
    version && !(numbers && labels.len() > 3) || file
}

/// `text` without the names of other processes, which checks list as `(most: NAME 0.87 CPUs, …)`.
pub(super) fn without_processes(text: &str) -> String {
    const BEGIN: &str = "(most: ";
    let mut parts = text.split(BEGIN);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // Names may hold brackets: the list ends where figures do.
        let end = part.rfind(" CPUs)").map_or_else(|| part.find(')').unwrap_or(part.len()), |at| at + " CPUs".len());
        out.push_str("(most: redacted");
        out.push_str(&part[end..]);
    }
    out
}

/// `text` with every whole word of `words` (in lower case) replaced. A word ends where no letter or digit follows.
pub(super) fn replace_words(text: &str, words: &BTreeMap<String, String>) -> String {
    let lower = text.to_lowercase();
    // Positions must be the same in both.
    if words.is_empty() || lower.len() != text.len() || !words.keys().any(|word| lower.contains(word.as_str())) {
        return text.to_owned();
    }
    let mut by_length: Vec<(&String, &String)> = words.iter().collect();
    by_length.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let free = !lower[..at].ends_with(char::is_alphanumeric);
        let here = by_length.iter().find(|(word, _)| {
            free && lower[at..].strip_prefix(word.as_str()).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        });
        match here {
            Some((word, replacement)) => {
                out.push_str(replacement);
                at += word.len();
            }
            None => {
                let next = text[at..].chars().next().map_or(1, char::len_utf8);
                out.push_str(&text[at..at + next]);
                at += next;
            }
        }
    }
    out
}
