//! A document as one self-contained HTML page: style and charts are inside, no script, no network.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use crate::doc::{Block, Document};
use crate::templates;
use crate::text::is_unseen;
use crate::words::cut;

/// The content of the `style` element of every page.
pub const STYLE: &str = concat!("\n", include_str!("templates/report.css"), "\n");

#[derive(Serialize)]
struct Page<'a> {
    #[serde(flatten)]
    document: &'a Document,
    /// Whether it is for paper: with footers, and nothing folded.
    paper: bool,
    style: &'static str,
    /// What each printed page says of the report.
    footer: String,
}

#[derive(Serialize)]
struct Part<'a> {
    blocks: &'a [Block],
}

/// The whole page for a screen.
pub(crate) fn render(document: &Document) -> String {
    render_for(document, false)
}

/// The page for a screen, or for paper: with footers, and nothing folded.
pub(crate) fn render_for(document: &Document, paper: bool) -> String {
    let of = if document.customer.is_empty() { String::new() } else { format!(" – {}", document.customer) };
    let footer = cut(&format!("{}{of}", document.title), 110);
    templates::render("page.html", Page { document, paper, style: STYLE, footer })
}

/// `blocks` as a part of a page.
pub(crate) fn part(blocks: &[Block]) -> String {
    templates::render("blocks.html", Part { blocks })
}

/// `text` as a string of CSS: every character that is not a letter, digit or space is a code.
pub(crate) fn css_string(text: &str) -> String {
    let one = |c: char| {
        if c.is_alphanumeric() || c == ' ' { c.to_string() } else { format!("\\{:x} ", u32::from(c)) }
    };
    format!("\"{}\"", text.chars().map(one).collect::<String>())
}

/// Text, escaped for elements and quoted attributes when written.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a>(pub &'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let unseen = |c| is_unseen(c) && c != '\n' && c != '\t';
        for part in self.0.split_inclusive(|c| matches!(c, '&' | '<' | '>' | '"' | '\'' | '/') || unseen(c)) {
            let mut chars = part.chars();
            let escaped = match chars.next_back() {
                Some(c) if unseen(c) => " ",
                Some('&') => "&amp;",
                Some('<') => "&lt;",
                Some('>') => "&gt;",
                Some('"') => "&quot;",
                Some('\'') => "&#x27;",
                Some('/') => "&#x2f;",
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
