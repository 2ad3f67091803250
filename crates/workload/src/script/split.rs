//! Where a statement ends. Source: PostgreSQL 15, `src/fe_utils/psqlscan.l`.

/// What ends a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Semicolon,
    Backslash,
    End,
}

/// The statement at the start of `text`, without line comments before it and with `\;` as `;`; the bytes that it takes, without
/// what ended it; and what did. `Err`: the byte at which a quote or comment begins that never ends.
pub(crate) fn statement(text: &str) -> Result<(String, usize, Ending), usize> {
    let mut sql = String::new();
    let (mut at, mut parentheses) = (0, 0_u32);
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let taken = if rest.starts_with("--") {
            let length = rest.find('\n').unwrap_or(rest.len());
            // Sent as part of a statement, as pgbench does from version 15 on, but not before it.
            if !sql.trim_start().is_empty() {
                sql.push_str(&rest[..length]);
            }
            at += length;
            continue;
        } else if rest.starts_with("\\;") {
            sql.push(';');
            at += 2;
            continue;
        } else if c == '\\' {
            return Ok((sql, at, Ending::Backslash));
        } else if c == ';' && parentheses == 0 {
            return Ok((sql, at, Ending::Semicolon));
        } else if rest.starts_with("/*") {
            comment(rest).ok_or(at)?
        } else if c == '\'' || c == '"' {
            let before = sql.chars().rev().take(2).collect::<Vec<_>>();
            let escapes = c == '\''
                && matches!(before.first(), Some('e' | 'E'))
                && !before.get(1).is_some_and(|b| b.is_alphanumeric() || *b == '_');
            quoted(rest, c, escapes).ok_or(at)?
        } else if let Some(tag) = dollar_tag(rest, sql.chars().next_back()) {
            rest[tag..].find(&rest[..tag]).map(|n| n + 2 * tag).ok_or(at)?
        } else {
            match c {
                '(' => parentheses += 1,
                ')' => parentheses = parentheses.saturating_sub(1),
                _ => {}
            }
            c.len_utf8()
        };
        sql.push_str(&rest[..taken]);
        at += taken;
    }
    Ok((sql, at, Ending::End))
}

/// The length of the comment, which may hold others.
fn comment(text: &str) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_u32);
    while at < text.len() {
        let rest = text.as_bytes().get(at..)?;
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += 1;
        }
    }
    None
}

/// The length of the quoted text. A doubled quote is two texts side by side, which is the same to us.
fn quoted(text: &str, quote: char, escapes: bool) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if escapes && c == '\\' {
            escaped = true;
        } else if c == quote {
            return Some(at + 1);
        }
    }
    None
}

/// The length of `$tag$` at the start of `text`; none within a name.
fn dollar_tag(text: &str, before: Option<char>) -> Option<usize> {
    let tag = text.strip_prefix('$')?;
    if before.is_some_and(|b| b.is_alphanumeric() || b == '_' || b == '$') {
        return None;
    }
    let end = tag.find('$')?;
    let name = &tag[..end];
    let fits = name.chars().all(|c| c.is_alphanumeric() || c == '_') && !name.starts_with(|c: char| c.is_ascii_digit());
    fits.then_some(end + 2)
}
