//! What a text holds that tells whose platform it is, found by its form: URLs, addresses, paths, names of hosts, identifiers.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Ends a token.
const ENDS: &str = "\"'`<>(){}|,;";
/// Kinds of targets and their aliases, after which a colon begins a path and no host.
const KINDS: &[&str] = &[
    "sqlite", "wal", "null", "postgres", "mysql", "mariadb", "oracle", "postgres-temp", "mariadb-temp", "mysql-temp",
    "galera-temp", "file",
];
/// Folders of paths that every machine has.
const EVERYWHERE: &[&str] = &["/proc/", "/sys/", "/usr/", "/bin/", "/sbin/"];
/// Ends of host names that are no ends of file names.
const DOMAINS: &[&str] = &[
    "com", "net", "org", "local", "internal", "lan", "corp", "intern", "cloud", "example", "invalid", "arpa", "gov",
    "edu", "mil", "home", "localdomain", "svc", "private",
];
/// Words before a name in quotes, as in `user "bob"`.
const BEFORE_NAME: &[&str] = &[
    "user", "role", "host", "database", "schema", "server", "cluster", "relation", "table", "column", "index", "view",
    "sequence", "function", "procedure", "type", "constraint",
];
/// Begins of identifiers that clouds give.
const CLOUD: &[&str] = &[
    "i-", "vol-", "ami-", "vpc-", "subnet-", "sg-", "eni-", "snap-", "fs-", "fsvol-", "db-", "cluster-", "rtb-", "acl-",
];

/// `text` with everything found replaced by what `with` gives for its kind and text.
pub(super) fn replace(text: &str, version: &str, with: &mut dyn FnMut(&'static str, &str) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() || ENDS.contains(first) {
            // A name in quotes after a word that announces one.
            if let Some(name) = quoted(rest, first).filter(|_| BEFORE_NAME.contains(&before.to_lowercase().as_str())) {
                out.push(first);
                out.push_str(&with("name", name));
                rest = &rest[first.len_utf8() + name.len()..];
            } else {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
            continue;
        }
        let end = rest.find(|c: char| c.is_whitespace() || ENDS.contains(c)).unwrap_or(rest.len());
        let token = &rest[..end];
        // `</b>` in a note is no path.
        if out.ends_with('<') && token.starts_with('/') && token.len() < 12 && rest[end..].starts_with('>') {
            out.push_str(token);
        } else {
            out.push_str(&token_without(token, version, with));
        }
        before = token.to_owned();
        rest = &rest[end..];
    }
    out
}

/// The text between `quote` and the next one.
fn quoted(rest: &str, quote: char) -> Option<&str> {
    let inside = rest.strip_prefix(quote).filter(|_| "\"'`".contains(quote))?;
    inside.split_once(quote).map(|(name, _)| name).filter(|name| !name.is_empty())
}

fn token_without(token: &str, version: &str, with: &mut dyn FnMut(&'static str, &str) -> String) -> String {
    if !version.is_empty() && version.split([' ', '(', ')']).any(|part| part == token.trim_end_matches(['.', ':'])) {
        return token.to_owned();
    }
    if let Some((scheme, rest)) = token.split_once("://").filter(|(_, rest)| !rest.is_empty()) {
        // Between other characters, as in `--target=postgres://…`.
        let begin = scheme.rfind(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).map_or(0, |at| at + 1);
        let (lead, scheme) = scheme.split_at(begin);
        return format!("{lead}{scheme}://{}", with("address", rest));
    }
    // Sentences end with these.
    let core = token.trim_end_matches(['.', ':', '!', '?', ')', ']']);
    let tail = &token[core.len()..];
    let lower = core.to_lowercase();
    if lower.starts_with("arn:") || lower.starts_with("ocid1.") || lower.starts_with("projects/") {
        return with("id", core) + tail;
    }
    // `host:/export`, but not `sqlite:/file`.
    if let Some((host, path)) = core.split_once(":/").filter(|(host, _)| !host.is_empty() && !host.contains(['/', '=']))
    {
        let kind = KINDS.contains(&host.to_lowercase().as_str());
        let host = if kind { host.to_owned() } else { with("host", host) };
        return format!("{host}:{}{tail}", path_without(&format!("/{path}"), with));
    }
    if core.contains('@') && !core.starts_with('@') && !core.ends_with('@') {
        return with("user", core) + tail;
    }
    // name=value, in options and connection strings
    if let Some((name, value)) = core.split_once('=').filter(|(_, value)| !value.is_empty()) {
        return format!("{name}={}{tail}", token_without(value, version, with));
    }
    if core.starts_with('/') || core.starts_with("~/") || core.contains(":/") {
        return path_without(core, with) + tail;
    }
    if let Some(kind) = form(core) {
        return with(kind, core) + tail;
    }
    // address:port and address/mask
    for between in [':', '/'] {
        if let Some((place, more)) =
            core.rsplit_once(between).filter(|(_, m)| !m.is_empty() && m.chars().all(|c| c.is_ascii_digit()))
            && let Some(kind) = form(place.trim_matches(['[', ']']))
        {
            return format!("{}{between}{more}{tail}", with(kind, place));
        }
    }
    // Parts of larger texts: `log/10.0.0.1-slow`, `[10.0.0.1]`
    for between in ['[', ']', '-', '/', '+', '#', '&', '?', '*'] {
        if core.contains(between) && core.split(between).any(|part| form(part).is_some()) {
            let parts =
                core.split(between).map(|part| form(part).map_or_else(|| part.to_owned(), |kind| with(kind, part)));
            return parts.collect::<Vec<_>>().join(&between.to_string()) + tail;
        }
    }
    token.to_owned()
}

/// A path, and paths after colons in it, unless every machine has it.
fn path_without(path: &str, with: &mut dyn FnMut(&'static str, &str) -> String) -> String {
    let one = |part: &str, with: &mut dyn FnMut(&'static str, &str) -> String| {
        let device =
            part.strip_prefix("/dev/").is_some_and(|d| !d.contains('/') && d.len() < 16 && !d.contains(['-', '_']));
        let common = EVERYWHERE.iter().any(|folder| part.starts_with(folder));
        let told = part.starts_with('/') || part.starts_with("~/");
        if !told || part == "/" || device || common { part.to_owned() } else { with("path", part) }
    };
    // A query of a target's URL: `/dir?device=dsync&mirror=/dir2`.
    let (place, query) = path.split_once('?').unwrap_or((path, ""));
    let mut out = place.split(':').map(|part| one(part, with)).collect::<Vec<_>>().join(":");
    if !query.is_empty() {
        let pairs = query.split('&').map(|pair| match pair.split_once('=') {
            Some((name, value)) => format!("{name}={}", one(value, with)),
            None => pair.to_owned(),
        });
        let pairs: Vec<String> = pairs.collect();
        out.push('?');
        out.push_str(&pairs.join("&"));
    }
    out
}

/// What `text` as a whole is, by its form.
fn form(text: &str) -> Option<&'static str> {
    if let Ok(address) = text.parse::<IpAddr>() {
        let common = match address {
            IpAddr::V4(v4) => v4.is_loopback() || v4 == Ipv4Addr::UNSPECIFIED,
            IpAddr::V6(v6) => v6.is_loopback() || v6 == Ipv6Addr::UNSPECIFIED,
        };
        return (!common).then_some("address");
    }
    let hex = |part: &str, len: usize| part.len() == len && part.chars().all(|c| c.is_ascii_hexdigit());
    let groups = |by: char, lengths: &[usize]| {
        let parts: Vec<&str> = text.split(by).collect();
        parts.len() == lengths.len() && parts.iter().zip(lengths).all(|(part, len)| hex(part, *len))
    };
    if groups(':', &[2; 6]) || groups('-', &[8, 4, 4, 4, 12]) {
        return Some("id");
    }
    let lower = text.to_lowercase();
    let cloud = CLOUD.iter().filter_map(|begin| lower.strip_prefix(begin)).any(|id| id.len() >= 8 && hex(id, id.len()));
    if cloud {
        return Some("id");
    }
    let labels: Vec<&str> = lower.split('.').collect();
    let label = |l: &&str| !l.is_empty() && l.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let last = labels.last()?;
    let country = labels.len() > 2 && last.len() == 2 && last.chars().all(|c| c.is_ascii_lowercase());
    let host = labels.len() > 1 && labels.iter().all(label) && (DOMAINS.contains(last) || country);
    (host && labels.iter().any(|l| l.len() > 1)).then_some("host")
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
    // Positions must be the same in both: a letter whose small form is longer or shorter stays.
    let small = |c: char| {
        let mut lower = c.to_lowercase();
        match (lower.next(), lower.next()) {
            (Some(one), None) if one.len_utf8() == c.len_utf8() => one,
            _ => c,
        }
    };
    let lower: String = text.chars().map(small).collect();
    if words.is_empty() || !words.keys().any(|word| lower.contains(word.as_str())) {
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
