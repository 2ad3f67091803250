//! A document as GitHub's Markdown.

use std::fmt::Write as _;

use crate::doc::{Block, Document, Table};
use crate::text::{clean, remark};

/// The whole document.
pub(crate) fn render(document: &Document) -> String {
    let mut out =
        format!("# {}\n\n{}\n\n**{}**\n", line(&document.title), line(&document.subtitle), line(&document.verdict));
    if !document.remarks.is_empty() {
        out.push('\n');
        for remark in &document.remarks {
            let _ = writeln!(out, "- {}", line(remark));
        }
    }
    for section in &document.sections {
        if section.blocks.iter().all(|b| matches!(b, Block::Charts { .. } | Block::Legend { .. } | Block::Para { .. }))
        {
            // Without charts only the legend would be left.
            continue;
        }
        let _ = write!(out, "\n## {}\n", line(&section.title));
        blocks(&mut out, &section.blocks);
    }
    out
}

fn blocks(out: &mut String, all: &[Block]) {
    for block in all {
        match block {
            Block::Heading { text, .. } => {
                let _ = write!(out, "\n### {}\n", line(text));
            }
            Block::Para { text } => {
                let _ = write!(out, "\n{}\n", line(text));
            }
            Block::Table(t) => table(out, t),
            Block::Notes { markdown } => {
                // Quoted, so that its headings are not those of the report; without raw HTML.
                out.push('\n');
                for l in markdown.lines() {
                    let _ = writeln!(out, "> {}", clean(l).replace('<', "&lt;"));
                }
            }
            Block::Charts { .. } | Block::Legend { .. } => {}
            Block::Code { text } => {
                // Indented code has no fence that the text could close.
                out.push('\n');
                for l in text.lines() {
                    let _ = writeln!(out, "    {}", clean(l));
                }
            }
            Block::List { items } => {
                out.push('\n');
                for item in items {
                    let _ = writeln!(out, "- {}", line(item));
                }
            }
            Block::Links { items } => {
                let links = items.iter().map(|(text, address)| format!("[{}]({address})", line(text)));
                let _ = write!(out, "\n{}\n", links.collect::<Vec<_>>().join(" · "));
            }
            Block::Details { summary, blocks: inside } => {
                let _ = write!(out, "\n<details><summary>{}</summary>\n", line(summary));
                blocks(out, inside);
                out.push_str("\n</details>\n");
            }
        }
    }
}

fn table(out: &mut String, t: &Table) {
    if !t.caption.is_empty() {
        let sub = if t.sub.is_empty() { String::new() } else { format!(" ({})", line(&t.sub)) };
        let _ = write!(out, "\n**{}**{sub}\n", line(&t.caption));
    }
    let head = t.head.iter().map(|h| match h.unit.as_str() {
        "" => line(&h.title),
        unit => format!("{} [{}]", line(&h.title), line(unit)),
    });
    let _ = write!(out, "\n{}", row(head));
    let _ = write!(out, "{}", row(t.head.iter().map(|h| if h.numeric { "---:" } else { "---" }.to_owned())));
    for r in &t.rows {
        if !r.title.is_empty() {
            out.push_str(&row(std::iter::once(format!("**{}**", line(&r.title)))));
            continue;
        }
        out.push_str(&row(r.cells.iter().enumerate().map(|(i, c)| {
            let mark = if c.marks.is_empty() { String::new() } else { format!("<sup>{}</sup>", c.shown_marks()) };
            format!("{}{}{mark}", if r.invalid && i == 0 { "✗ " } else { "" }, line(&c.text))
        })));
    }
    let remarks = t.rows.iter().filter(|r| !r.remark.is_empty()).map(|r| format!("- {}", remark(r, line)));
    let notes = t.notes.iter().zip(1..).map(|(note, number)| format!("- <sup>{number}</sup> {}", line(note)));
    let below: Vec<String> = remarks.chain(notes).collect();
    if !below.is_empty() {
        let _ = write!(out, "\n{}\n", below.join("\n"));
    }
}

fn row(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

/// `text` on one line, with Markdown and HTML syntax escaped.
fn line(text: &str) -> String {
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
