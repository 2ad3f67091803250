//! A document as one self-contained HTML page: style and charts are inside, no script, no network.

use std::fmt::{self, Arguments, Display, Formatter, Write as _};

use crate::doc::{Block, Document, Head, Row, Section, Table};
use crate::text::is_unseen;
use crate::words::cut;

/// The whole page. Escapes every text except charts, which `svg` has escaped.
pub(crate) fn render(document: &Document) -> String {
    render_for(document, false)
}

/// The page for a screen, or for paper: with footers, and nothing folded.
pub(crate) fn render_for(document: &Document, paper: bool) -> String {
    let mut page = Page { text: String::new(), paper };
    page.document(document);
    page.text
}

/// `text` as a string of CSS: every character that is not a letter, digit or space is a code.
fn css_string(text: &str) -> String {
    let one = |c: char| {
        if c.is_alphanumeric() || c == ' ' { c.to_string() } else { format!("\\{:x} ", u32::from(c)) }
    };
    format!("\"{}\"", text.chars().map(one).collect::<String>())
}

/// The content of the `style` element of every page.
pub const STYLE: &str = concat!("\n", include_str!("report.css"), "\n");

/// `blocks` as a part of a page.
pub(crate) fn part(blocks: &[Block]) -> String {
    let mut page = Page { text: String::new(), paper: false };
    page.blocks(blocks);
    page.text
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

/// `text` if `when`, else empty.
fn only(when: bool, text: &str) -> &str {
    if when { text } else { "" }
}

/// `before`, the text and `after`; empty without a text.
struct Around<'a>(&'a str, &'a str, &'a str);

impl Display for Around<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Around(before, text, after) = self;
        if text.is_empty() { Ok(()) } else { write!(f, "{before}{}{after}", Text(text)) }
    }
}

/// A paragraph of a class for each line.
struct Lines<'a>(&'a str, &'a [String]);

impl Display for Lines<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.1.iter().try_for_each(|line| writeln!(f, "<p class=\"{}\">{}</p>", self.0, Text(line)))
    }
}

/// Footers of printed pages: the title, and page n of m. No page may ask for anything from the network.
fn footers(d: &Document) -> String {
    let title = if d.customer.is_empty() { d.title.clone() } else { format!("{} – {}", d.title, d.customer) };
    format!(
        "@page {{ margin: 11mm 11mm 15mm; @bottom-left {{ content: {}; font: 7pt sans-serif; color: #444c59; }} \
         @bottom-right {{ content: \"Page \" counter(page) \" of \" counter(pages); font: 7pt sans-serif; color: #444c59; }} }}\n",
        css_string(&cut(&title, 110))
    )
}

/// A page under construction.
struct Page {
    text: String,
    /// Whether it is for paper.
    paper: bool,
}

impl Page {
    fn put(&mut self, text: Arguments<'_>) {
        // Writing to a `String` does not fail.
        let _ = self.text.write_fmt(text);
    }

    fn line(&mut self, text: Arguments<'_>) {
        self.put(text);
        self.text.push('\n');
    }

    fn document(&mut self, d: &Document) {
        let title = Text(&d.title);
        self.put(format_args!(
            "\n<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} – loadline report</title>\n\
             <style>{STYLE}{}</style>\n</head>\n<body>\n<header>\n<p class=\"brand\">loadline report</p>\n\
             <h1>{title}</h1>\n{}<p class=\"sub\">{}</p>\n{}<p class=\"verdict {}\">{}</p>\n",
            if self.paper { footers(d) } else { String::new() },
            Around("<p class=\"customer\">for ", &d.customer, "</p>\n"),
            Text(&d.subtitle),
            Lines("platform", &d.platforms),
            if d.all_well { "well" } else { "unwell" },
            Text(&d.verdict),
        ));
        if !d.remarks.is_empty() {
            self.list(" class=\"remarks\"", &d.remarks);
        }
        self.line(format_args!("<nav>"));
        for Section { id, title, .. } in &d.sections {
            self.line(format_args!("<a href=\"#{id}\">{}</a>", Text(title)));
        }
        self.line(format_args!("</nav>\n</header>\n<main>"));
        for Section { id, title, group, blocks, .. } in &d.sections {
            let class = only(*group, " class=\"group\"");
            self.line(format_args!("<section id=\"{id}\"{class}>\n<h2>{}</h2>", Text(title)));
            self.blocks(blocks);
            self.line(format_args!("\n</section>"));
        }
        self.put(format_args!("</main>\n</body>\n</html>"));
    }

    fn blocks(&mut self, blocks: &[Block]) {
        for block in blocks {
            match block {
                Block::Heading { text, page } => {
                    self.line(format_args!("<h3{}>{}</h3>", only(*page, " class=\"page\""), Text(text)));
                }
                Block::Para { text } => self.line(format_args!("<p class=\"note\">{}</p>", Text(text))),
                Block::Legend { text } => {
                    let more = only(!self.paper, " Point at a marker for its figures.");
                    self.line(format_args!("<p class=\"note\">{}{more}</p>", Text(text)));
                }
                Block::Table(table) => self.table(table),
                Block::Charts { charts, per_row } => {
                    self.line(format_args!("<div class=\"charts per{per_row}\">"));
                    for chart in charts {
                        self.line(format_args!("<div class=\"chart\">{}</div>", chart.svg));
                    }
                    self.line(format_args!("</div>"));
                }
                Block::Code { text } => self.line(format_args!("<pre>{}</pre>", Text(text))),
                Block::Links { items } => {
                    self.put(format_args!("<p class=\"links\">"));
                    for (text, address) in items {
                        self.line(format_args!("<a href=\"{}\">{}</a>", Text(address), Text(text)));
                    }
                    self.line(format_args!("</p>"));
                }
                Block::Notes { markdown } => {
                    self.line(format_args!("<div class=\"user\">{}</div>", crate::notes::html(markdown)));
                }
                Block::List { items } => self.list("", items),
                Block::Details { summary, blocks } => {
                    let open = only(self.paper, " open");
                    self.line(format_args!("<details{open}><summary>{}</summary>", Text(summary)));
                    self.blocks(blocks);
                    self.line(format_args!("\n</details>"));
                }
            }
        }
    }

    fn list(&mut self, class: &str, items: &[String]) {
        self.line(format_args!("<ul{class}>"));
        for item in items {
            self.line(format_args!("<li>{}</li>", Text(item)));
        }
        self.line(format_args!("</ul>"));
    }

    fn table(&mut self, t: &Table) {
        self.line(format_args!("<figure class=\"table {}\">", t.class));
        if !t.caption.is_empty() {
            let sub = Around(" <small>", &t.sub, "</small>");
            self.line(format_args!("<figcaption>{}{sub}</figcaption>", Text(&t.caption)));
        }
        self.line(format_args!("<div class=\"scroll\"><table>\n<thead><tr>"));
        for Head { title, unit, numeric, tip } in &t.head {
            let (class, tip) = (only(*numeric, " class=\"n\""), Around(" title=\"", tip, "\""));
            let unit = Around(" <i>", unit, "</i>");
            self.line(format_args!("<th scope=\"col\"{class}{tip}>{}{unit}</th>", Text(title)));
        }
        self.line(format_args!("</tr></thead>\n<tbody>"));
        for row in &t.rows {
            self.row(t, row);
        }
        self.line(format_args!("</tbody></table></div>"));
        if !t.notes.is_empty() {
            self.line(format_args!("<ol class=\"notes\">"));
            for (note, number) in t.notes.iter().zip(1..) {
                self.line(format_args!("<li><sup>{number}</sup> {}</li>", Text(note)));
            }
            self.line(format_args!("</ol>"));
        }
        self.line(format_args!("</figure>\n"));
    }

    fn row(&mut self, t: &Table, row: &Row) {
        let columns = t.head.len();
        if !row.title.is_empty() {
            let title = Text(&row.title);
            self.line(format_args!(
                "<tr class=\"title\"><th scope=\"rowgroup\" colspan=\"{columns}\">{title}</th></tr>"
            ));
            return;
        }
        let class = match (row.invalid, row.first) {
            (true, true) => " class=\"bad first\"",
            (true, false) => " class=\"bad\"",
            (false, true) => " class=\" first\"",
            (false, false) => "",
        };
        self.put(format_args!("<tr{class}>"));
        for (i, cell) in row.cells.iter().enumerate() {
            let class = if t.head.get(i).is_some_and(|h| h.numeric) {
                " class=\"n\""
            } else {
                only(t.class == "key" && cell.text.chars().count() <= 16, " class=\"w\"")
            };
            let cross = only(row.invalid && i == 0, "<b class=\"cross\" title=\"invalid\">✗</b> ");
            let marks = cell.shown_marks();
            let mark = Around("<sup>", &marks, "</sup>");
            self.put(format_args!("<td{class}>{cross}{}{mark}</td>", Text(&cell.text)));
        }
        self.line(format_args!("</tr>"));
        if !row.remark.is_empty() {
            let bad = only(row.invalid, " bad");
            let remark = Text(&row.remark);
            self.line(format_args!("<tr class=\"remark{bad}\"><td colspan=\"{columns}\">{remark}</td></tr>"));
        }
    }
}
