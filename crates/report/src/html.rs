//! A document as one self-contained HTML page: style and charts are inside, no script, no network.

use std::fmt::{self, Arguments, Display, Formatter, Write as _};

use crate::doc::{Block, Document, Head, Row, Section, Table};

/// The whole page. Escapes every text except charts, which `svg` has escaped.
pub(crate) fn render(document: &Document) -> String {
    let mut page = Page(String::new());
    page.document(document);
    page.0
}

/// Text, escaped when written.
struct Text<'a>(&'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for part in self.0.split_inclusive(['&', '<', '>', '"', '\'', '/']) {
            let mut chars = part.chars();
            let escaped = match chars.next_back() {
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

/// A page under construction.
struct Page(String);

impl Page {
    fn put(&mut self, text: Arguments<'_>) {
        // Writing to a `String` does not fail.
        let _ = self.0.write_fmt(text);
    }

    fn line(&mut self, text: Arguments<'_>) {
        self.put(text);
        self.0.push('\n');
    }

    fn document(&mut self, d: &Document) {
        let title = Text(&d.title);
        self.put(format_args!(
            "\n<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} – loadline report</title>\n\
             <style>\n{}\n</style>\n</head>\n<body>\n<header>\n<p class=\"brand\">loadline report</p>\n\
             <h1>{title}</h1>\n<p class=\"sub\">{}</p>\n<p class=\"verdict {}\">{}</p>\n",
            include_str!("report.css"),
            Text(&d.subtitle),
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
                Block::Para { text } | Block::Legend { text } => {
                    self.line(format_args!("<p class=\"note\">{}</p>", Text(text)));
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
                Block::List { items } => self.list("", items),
                Block::Details { summary, blocks } => {
                    self.line(format_args!("<details><summary>{}</summary>", Text(summary)));
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
            for note in &t.notes {
                self.line(format_args!("<li><sup>{}</sup> {}</li>", Text(&note.mark), Text(&note.text)));
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
            let mark = Around("<sup>", &cell.mark, "</sup>");
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
