//! Statements without what may be a secret: databases keep those that they do not normalise with their literals and comments.

/// Words after which a secret may follow without quotes.
const SECRET: [&str; 3] = ["password", "identified", "secret"];
/// Values that may follow such a word: a parameter, a literal that was replaced, or a mark.
const HARMLESS: [&str; 7] = ["$", "?", "'…", "=", ",", ")", ";"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DoubleQuotes {
    /// A name, as in the standard.
    Name,
    /// A literal, as in MySQL and MariaDB; `#` begins a comment there.
    Literal,
}

/// `sql` on one line without its comments; `…` stands for numbers, the content of literals, and for the rest after one whose end is
/// unknown or after a word that may introduce a secret.
pub(crate) fn without_secrets(sql: &str, quotes: DoubleQuotes) -> String {
    let line = without_literals(sql, quotes).split_whitespace().collect::<Vec<_>>().join(" ");
    match secret_at(&line).and_then(|end| line.get(..end)) {
        Some(kept) => format!("{kept}…"),
        None => line,
    }
}

fn without_literals(sql: &str, quotes: DoubleQuotes) -> String {
    let mut out = String::new();
    let mut rest = sql;
    loop {
        let mut chars = rest.chars();
        let Some(first) = chars.next() else { return out };
        let after = chars.as_str();
        let in_word = out.ends_with(is_word);
        let next = match first {
            '\'' => literal(after, '\'', &mut out),
            '"' if quotes == DoubleQuotes::Literal => literal(after, '"', &mut out),
            '"' | '`' => name(after, first, &mut out),
            '$' if !in_word && dollar_tag(after).is_some() => {
                out.push_str("$…");
                let closed = dollar_tag(after).and_then(|(tag, body)| body.split_once(&format!("${tag}$")));
                closed.map(|(_, next)| next).inspect(|_| out.push('$'))
            }
            '/' if after.starts_with('*') => {
                out.push(' ');
                let next = after_comment(after);
                if next.is_none() {
                    out.push('…');
                }
                next
            }
            '-' if after.starts_with('-') => Some(next_line(after)),
            '#' if quotes == DoubleQuotes::Literal => Some(next_line(after)),
            '0'..='9' if !in_word => {
                out.push('…');
                Some(after_number(after))
            }
            _ => {
                out.push(first);
                Some(after)
            }
        };
        let Some(next) = next else { return out };
        rest = next;
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// Position of the first `quote` in `text` that is not doubled.
fn closing(text: &str, quote: char) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.find(quote)?;
        if !text.get(at + 1..)?.starts_with(quote) {
            return Some(at);
        }
        from = at + 2;
    }
}

/// Adds the literal whose content begins with `text`. Returns what follows it, if its end is certain: a quote after a backslash
/// may belong to it, and so may all quotes in Oracle's `q'[…]'`.
fn literal<'a>(text: &'a str, quote: char, out: &mut String) -> Option<&'a str> {
    let own_quotes = out.ends_with(['q', 'Q']);
    out.push(quote);
    out.push('…');
    let (inside, next) = text.split_at_checked(closing(text, quote)?)?;
    let certain = !own_quotes && !inside.ends_with('\\') && !inside.contains(&format!("\\{quote}"));
    certain.then(|| out.push(quote)).and(next.get(1..))
}

/// Adds the quoted name that begins with `text`, unless it may hold a literal. Returns what follows it.
fn name<'a>(text: &'a str, quote: char, out: &mut String) -> Option<&'a str> {
    out.push(quote);
    let Some((inside, next)) = closing(text, quote).and_then(|end| text.split_at_checked(end)) else {
        out.push('…');
        return None;
    };
    out.push_str(if quote == '`' && inside.contains('\'') { "…" } else { inside });
    out.push(quote);
    next.get(1..)
}

/// The tag of a dollar quote whose first `$` precedes `text`, and what follows its second.
fn dollar_tag(text: &str) -> Option<(&str, &str)> {
    let (tag, body) = text.split_once('$')?;
    let is_tag = tag.chars().all(is_word) && !tag.starts_with(|c: char| c.is_ascii_digit());
    is_tag.then_some((tag, body))
}

/// Text after the comment whose `/` precedes `text`; comments may be nested.
fn after_comment(text: &str) -> Option<&str> {
    let (mut depth, mut rest) = (1, text.strip_prefix('*')?);
    while depth > 0 {
        let mark = rest.find(['/', '*'])?;
        rest = rest.get(mark..)?;
        if let Some(next) = rest.strip_prefix("*/") {
            (depth, rest) = (depth - 1, next);
        } else if let Some(next) = rest.strip_prefix("/*") {
            (depth, rest) = (depth + 1, next);
        } else {
            rest = rest.get(1..)?;
        }
    }
    Some(rest)
}

/// Text after the number whose first digit precedes `text`: `2`, `0x1F`, `1_000.5e-7`.
fn after_number(text: &str) -> &str {
    let mut before = ' ';
    let inside = |c: char| {
        let exponent = "+-".contains(c) && "eE".contains(std::mem::replace(&mut before, c));
        before = c;
        exponent || c == '.' || is_word(c)
    };
    text.trim_start_matches(inside)
}

fn next_line(text: &str) -> &str {
    text.find(['\n', '\r']).and_then(|at| text.get(at..)).unwrap_or("")
}

/// End of the first word in `line` that may introduce a secret.
fn secret_at(line: &str) -> Option<usize> {
    let lower = line.to_ascii_lowercase();
    let introduces = |(at, word): (usize, &str)| {
        let end = at + word.len();
        let (before, after) = (lower.get(..at)?, lower.get(end..)?);
        let follows = after.trim_start_matches(['"', '`']).trim_start();
        let whole = !before.ends_with(is_word) && !after.starts_with(is_word);
        (whole && !follows.is_empty() && !HARMLESS.iter().any(|mark| follows.starts_with(mark))).then_some(end)
    };
    SECRET.iter().flat_map(|word| lower.match_indices(word)).filter_map(introduces).min()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cases::cases;

    fn plain(sql: &str) -> String {
        without_secrets(sql, DoubleQuotes::Name)
    }

    #[test]
    fn literals_and_comments_are_hidden() {
        for (sql, shown) in cases::<(String, String)>("literals-hidden") {
            assert_eq!(plain(&sql), shown);
        }
        let mysql = |sql| without_secrets(sql, DoubleQuotes::Literal);
        assert_eq!(mysql("SELECT \"SEKRET\", `a` # SEKRET"), "SELECT \"…\", `a`");
        assert_eq!(mysql("SELECT \"a\\\"SEKRET\" x"), "SELECT \"…");
    }

    #[test]
    fn what_may_be_a_secret_without_quotes_is_cut_off() {
        for (sql, shown) in cases::<(String, String)>("secrets-cut-off") {
            assert_eq!(plain(&sql), shown);
        }
        let update = |column: &str| plain(&format!("UPDATE users SET password = $1 WHERE {column} = $2"));
        assert_ne!(update("id"), update("name"));
    }

    proptest! {
        #[test]
        fn any_text_is_taken(sql in "\\PC*|[a$'\"`/*#\\\\ \n-]*", double in any::<bool>()) {
            let quotes = if double { DoubleQuotes::Literal } else { DoubleQuotes::Name };
            let once = without_secrets(&sql, quotes);
            prop_assert!(!once.contains('\n'));
        }

        #[test]
        fn no_content_of_a_literal_is_left(content in "[^\\\\]*") {
            let sql = format!("SELECT '{}' FROM t", content.replace('\'', "''"));
            prop_assert_eq!(plain(&sql), "SELECT '…' FROM t");
        }
    }
}
