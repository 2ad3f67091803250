//! Where a statement ends. Source: PostgreSQL 15, `src/fe_utils/psqlscan.l`.

use crate::script::value::{is_name, is_name_char};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Semicolon,
    Backslash,
    End,
}

/// The statement at the start of `text`, with its semicolon and without blanks and line comments before it; the bytes that it takes;
/// and what ended it. `\;` and `\:` stand for themselves. `Err`: the byte at which a quote or comment begins that never ends.
pub(crate) fn statement(text: &str) -> Result<(String, usize, Ending), usize> {
    let (mut sql, mut at) = (String::new(), 0);
    let (mut parentheses, mut words) = (0_u32, Words::default());
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let mut taken = c.len_utf8();
        if c.is_ascii_whitespace() || rest.starts_with("--") {
            if rest.starts_with("--") {
                taken = rest.find(['\n', '\r']).unwrap_or(rest.len());
            }
            if sql.is_empty() {
                at += taken;
                continue;
            }
        } else if rest.starts_with("\\;") || rest.starts_with("\\:") {
            at += 1;
            if rest.starts_with("\\;") {
                words.restart();
            }
            sql.push_str(&text[at..=at]);
            at += 1;
            continue;
        } else if c == '\\' {
            return Ok((sql, at, Ending::Backslash));
        } else if c == ';' && parentheses == 0 && words.begins == 0 {
            return Ok((sql + ";", at + 1, Ending::Semicolon));
        } else if rest.starts_with("/*") {
            taken = comment(rest).ok_or(at)?;
        } else if c == '\'' || c == '"' {
            taken = quoted(rest, c, false).ok_or(at)?;
        } else if c == '$' {
            if let Some(tag) = dollar_tag(rest) {
                taken = rest[tag..].find(&rest[..tag]).map(|n| n + 2 * tag).ok_or(at)?;
            }
        } else if is_word_start(c) {
            let word = word(rest);
            taken = word.len();
            if word.eq_ignore_ascii_case("e") && rest[1..].starts_with('\'') {
                taken += quoted(&rest[1..], '\'', true).ok_or(at + 1)?;
            } else {
                words.add(word, parentheses > 0);
            }
        } else if c.is_ascii_digit() && rest[1..].starts_with(is_word_start) {
            // Junk after a number is part of it, but for all that follows its first letter.
            taken += rest[1..].chars().next().map_or(0, char::len_utf8);
        } else if c == '(' {
            parentheses += 1;
        } else if c == ')' {
            parentheses = parentheses.saturating_sub(1);
        }
        sql.push_str(&rest[..taken]);
        at += taken;
    }
    Ok((sql, at, Ending::End))
}

/// The words of a statement, by which BEGIN … END of a routine's body is known: psql does not parse more either.
#[derive(Default)]
struct Words {
    count: usize,
    /// First letters of the first words, if they are those of CREATE OR REPLACE FUNCTION or PROCEDURE.
    first: [u8; 4],
    /// BEGIN and CASE without their END.
    begins: u32,
}

impl Words {
    fn restart(&mut self) {
        (self.count, self.first) = (0, [0; 4]);
    }

    fn add(&mut self, word: &str, in_parentheses: bool) {
        let word = word.to_ascii_lowercase();
        if let (Some(first), "create" | "or" | "replace" | "function" | "procedure") =
            (self.first.get_mut(self.count), word.as_str())
        {
            *first = word.as_bytes()[0];
        }
        self.count += 1;
        let routine = matches!(self.first, [b'c', b'f' | b'p', ..] | [b'c', b'o', b'r', b'f' | b'p']);
        match word.as_str() {
            _ if !routine || in_parentheses => {}
            "begin" => self.begins += 1,
            "case" if self.begins > 0 => self.begins += 1,
            "end" => self.begins = self.begins.saturating_sub(1),
            _ => {}
        }
    }
}

fn is_word_start(c: char) -> bool {
    is_name_char(c) && !c.is_ascii_digit()
}

fn word(text: &str) -> &str {
    let ends = |c: char| !(is_name_char(c) || c == '$');
    &text[..text.find(ends).unwrap_or(text.len())]
}

/// The length of the comment, which may hold others.
fn comment(text: &str) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_u32);
    loop {
        let rest = text.as_bytes().get(at..).filter(|rest| !rest.is_empty())?;
        match rest {
            [b'/', b'*', ..] => (at, depth) = (at + 2, depth + 1),
            [b'*', b'/', ..] if depth == 1 => return Some(at + 2),
            [b'*', b'/', ..] => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
    }
}

/// The length of the quoted text. A doubled quote is two texts side by side, which is the same to us, and so is a text that goes on
/// in another line, unless it has escapes.
fn quoted(text: &str, quote: char, escapes: bool) -> Option<usize> {
    let (mut escaped, mut start) = (false, 0);
    for (at, c) in text.char_indices() {
        if at <= start {
            continue;
        }
        if escaped {
            escaped = false;
        } else if escapes && c == '\\' {
            escaped = true;
        } else if c == quote {
            let end = at + 1;
            let blank = text[end..].len() - text[end..].trim_ascii_start().len();
            let next = end + blank;
            let goes_on = blank == 0 || text[end..next].contains(['\n', '\r']);
            if escapes && goes_on && text[next..].starts_with(quote) {
                // What follows is skipped up to the quote that opens the next one.
                start = next;
                continue;
            }
            return Some(end);
        }
    }
    None
}

fn dollar_tag(text: &str) -> Option<usize> {
    let tag = &text[1..];
    let name = &tag[..tag.find('$')?];
    (name.is_empty() || is_name(name)).then_some(name.len() + 2)
}
