//! How a text is written so that it says nothing to a browser: in HTML, in CSS and in Markdown, and a user's notes.

use std::fmt::{self, Display, Formatter};

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

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

/// Notes in Markdown (CommonMark) as HTML, every text escaped: without raw HTML, pictures, and links to anything but web and mail.
pub(crate) fn notes_as_html(markdown: &str) -> String {
    let below = |level| if level < HeadingLevel::H3 { HeadingLevel::H4 } else { HeadingLevel::H5 };
    let mut links: Vec<bool> = Vec::new();
    let events = Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    let safe = events.filter_map(|event| {
        let html = match event {
            Event::Start(Tag::Link { dest_url, .. }) => {
                let safe = ["https://", "http://", "mailto:"].iter().any(|s| dest_url.to_lowercase().starts_with(s));
                links.push(safe);
                safe.then(|| format!("<a href=\"{}\" rel=\"noreferrer\">", Text(&dest_url)))?
            }
            Event::End(TagEnd::Link) => links.pop().filter(|safe| *safe).map(|_| "</a>".to_owned())?,
            // A picture is its text: a report asks for nothing from the network.
            Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => return None,
            Event::Start(Tag::Heading { level, .. }) => format!("<{}>", below(level)),
            Event::End(TagEnd::Heading(level)) => format!("</{}>\n", below(level)),
            Event::Code(text) => format!("<code>{}</code>", Text(&text)),
            // Raw HTML is shown as it was written.
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => Text(&text).to_string(),
            other => return Some(other),
        };
        Some(Event::InlineHtml(html.into()))
    });
    let mut out = String::new();
    html::push_html(&mut out, safe);
    out
}

#[cfg(test)]
mod tests {
    use super::notes_as_html as html;

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
