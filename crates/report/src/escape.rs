//! How a text is written so that it says nothing to a browser: in HTML, in CSS and in Markdown.

use std::fmt::{self, Display, Formatter};

use crate::text::is_unseen;

/// Text, escaped for elements and quoted attributes when written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let unseen = |c| is_unseen(c) && c != '\n' && c != '\t';
        for part in self.0.split_inclusive(|c| matches!(c, '&' | '<' | '>' | '"' | '\'') || unseen(c)) {
            let mut chars = part.chars();
            let escaped = match chars.next_back() {
                Some(c) if unseen(c) => " ",
                Some('&') => "&amp;",
                Some('<') => "&lt;",
                Some('>') => "&gt;",
                Some('"') => "&quot;",
                Some('\'') => "&#x27;",
                _ => {
                    f.write_str(part)?;
                    continue;
                }
            };
            f.write_str(chars.as_str())?;
            f.write_str(escaped)?;
        }
        Ok(())
    }
}

/// `text` as a string of CSS: every character that is not a letter, digit or space is a code.
pub(crate) fn css_string(text: &str) -> String {
    let one = |c: char| {
        if c.is_alphanumeric() || c == ' ' { c.to_string() } else { format!("\\{:x} ", u32::from(c)) }
    };
    format!("\"{}\"", text.chars().map(one).collect::<String>())
}

/// `text` on one line, with Markdown and HTML syntax escaped.
pub(crate) fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.trim().chars() {
        match c {
            '\n' => out.push_str("<br>"),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '|' | '*' | '_' | '`' | '\\' | '[' | ']' | '#' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
