//! Notes in Markdown as HTML: CommonMark, without raw HTML, pictures and links to anything but web and mail.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::escape::Text;

/// The notes as HTML, every text escaped. Headings are below those of a section.
pub(crate) fn html(markdown: &str) -> String {
    let mut out = String::new();
    let mut links: Vec<bool> = Vec::new();
    let mut cell = "td";
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        out += &match event {
            Event::Start(Tag::Link { dest_url, .. }) => {
                let safe = ["https://", "http://", "mailto:"].iter().any(|s| dest_url.to_lowercase().starts_with(s));
                links.push(safe);
                if safe { format!("<a href=\"{}\" rel=\"noreferrer\">", Text(&dest_url)) } else { String::new() }
            }
            Event::End(TagEnd::Link) if links.pop() == Some(true) => "</a>".to_owned(),
            Event::Start(Tag::List(Some(first))) => format!("<ol start=\"{first}\">"),
            Event::Start(Tag::TableHead) => {
                cell = "th";
                "<thead><tr>".to_owned()
            }
            Event::End(TagEnd::TableHead) => {
                cell = "td";
                "</tr></thead>".to_owned()
            }
            Event::Start(tag) => name(&tag.to_end(), cell).map_or_else(String::new, |name| format!("<{name}>")),
            Event::End(tag) => name(&tag, cell).map_or_else(String::new, |name| format!("</{name}>")),
            Event::Code(text) => format!("<code>{}</code>", Text(&text)),
            // Raw HTML is shown as it was written.
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => Text(&text).to_string(),
            Event::SoftBreak => "\n".to_owned(),
            Event::HardBreak => "<br>".to_owned(),
            Event::Rule => "<hr>".to_owned(),
            _ => String::new(),
        };
    }
    out
}

fn name(tag: &TagEnd, cell: &'static str) -> Option<&'static str> {
    Some(match tag {
        TagEnd::TableCell => cell,
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
            "<h4>New <em>disks</em></h4>", "<li>one</li>", "<code>two</code>", "<th>a</th>", "<td>2</td>",
            "href=\"https://x.example\"",
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
