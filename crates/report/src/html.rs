//! A document as one self-contained HTML page: style and charts are inside, no script, no network.

use serde::Serialize;

use crate::doc::{Block, Document};
use crate::templates;
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
