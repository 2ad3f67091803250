//! Notes in Markdown as HTML: CommonMark, without raw HTML, pictures and links to anything but web and mail.

use std::fmt::Write as _;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::escape::Text;

/// The notes as HTML, every text escaped. Headings are below those of a section.
pub(crate) fn html(markdown: &str) -> String {
    let mut out = String::new();
    let mut links: Vec<bool> = Vec::new();
    let mut in_head = false;
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Start(Tag::Link { dest_url, .. }) => {
                let safe = ["https://", "http://", "mailto:"].iter().any(|s| dest_url.to_lowercase().starts_with(s));
                links.push(safe);
                if safe {
                    let _ = write!(out, "<a href=\"{}\" rel=\"noreferrer\">", Text(&dest_url));
                }
            }
            Event::End(TagEnd::Link) => out.push_str(if links.pop() == Some(true) { "</a>" } else { "" }),
            Event::Start(Tag::List(Some(first))) => {
                let _ = write!(out, "<ol start=\"{first}\">");
            }
            Event::Start(Tag::TableHead) => {
                in_head = true;
                out.push_str("<thead><tr>");
            }
            Event::End(TagEnd::TableHead) => {
                in_head = false;
                out.push_str("</tr></thead>");
            }
            Event::Start(Tag::TableCell) => out.push_str(if in_head { "<th>" } else { "<td>" }),
            Event::End(TagEnd::TableCell) => out.push_str(if in_head { "</th>" } else { "</td>" }),
            Event::Start(tag) => {
                if let Some(name) = name(&tag.to_end()) {
                    let _ = write!(out, "<{name}>");
                }
            }
            Event::End(tag) => {
                if let Some(name) = name(&tag) {
                    let _ = write!(out, "</{name}>");
                }
            }
            Event::Code(text) => {
                let _ = write!(out, "<code>{}</code>", Text(&text));
            }
            // Raw HTML is shown as it was written.
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                let _ = write!(out, "{}", Text(&text));
            }
            Event::SoftBreak => out.push('\n'),
            Event::HardBreak => out.push_str("<br>"),
            Event::Rule => out.push_str("<hr>"),
            _ => {}
        }
    }
    out
}

fn name(tag: &TagEnd) -> Option<&'static str> {
    Some(match tag {
        TagEnd::Paragraph => "p",
        TagEnd::Heading(HeadingLevel::H1 | HeadingLevel::H2) => "h4",
        TagEnd::Heading(_) => "h5",
        TagEnd::BlockQuote(_) => "blockquote",
        TagEnd::CodeBlock | TagEnd::HtmlBlock => "pre",
        TagEnd::List(true) => "ol",
        TagEnd::List(false) => "ul",
        TagEnd::Item => "li",
        TagEnd::Emphasis => "em",
        TagEnd::Strong => "strong",
        TagEnd::Strikethrough => "del",
        TagEnd::Table => "table",
        TagEnd::TableRow => "tr",
        // A picture is its text: a report asks for nothing from the network.
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::html;

    #[test]
    fn markdown_is_html_without_anything_that_runs_or_loads() {
        let page =
            html("# New *disks*\n\n- one\n- `two`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n[site](https://x.example)\n");
        for part in [
            "<h4>New <em>disks</em></h4>",
            "<li>one</li>",
            "<code>two</code>",
            "<th>a</th>",
            "<td>2</td>",
            "href=\"https:&#x2f;&#x2f;x.example\"",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        let bad = html(
            "<script>alert(1)</script>\n\na <img src=x onerror=alert(1)> b\n\n[x](javascript:alert(1)) ![p](https://x/y.png) \
             [y](data:text/html,z) <https://a\"b>\n\n    <b>&\n",
        );
        for part in ["<script", "<img", "javascript:", "data:", "y.png", "<b>"] {
            assert!(!bad.contains(part), "{part}: {bad}");
        }
        assert!(bad.contains("&lt;script&gt;") && bad.contains("&lt;img src=x"));
    }
}
