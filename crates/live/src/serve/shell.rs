//! Frame of every page: the way back to the list, and the style of reports.

use loadline_report::{STYLE, filled};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::http::Answer;

pub(super) fn problem(status: u16, text: &str) -> Answer {
    Answer::html(status, shell("loadline", "<p role=\"alert\">{{ text }}</p>", json!({ "text": text })))
}

/// `text` as a part of an address.
pub(super) fn address(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// The way back to the list, and links beside it: address and text.
fn way_back(links: &[(String, &str)]) -> String {
    let nav = "<nav aria-label=\"loadline\"><a href=\"/\">All runs</a>{% for address, text in links %}<a href=\"{{ address|safe }}\">\
               {{ text }}</a>{% endfor %}</nav>";
    filled(nav, json!({ "links": links })) + "\n"
}

/// A page of ours with what `template` makes of `context`, in the style of reports.
pub(super) fn shell(title: &str, template: &str, context: Value) -> String {
    framed(title, &way_back(&[]), &filled(template, context))
}

/// The page to which the way back leads.
pub(super) fn front(template: &str, context: Value) -> String {
    framed("Runs", "", &filled(template, context))
}

fn framed(title: &str, back: &str, body: &str) -> String {
    filled(include_str!("shell.html"), json!({ "title": title, "style": STYLE, "back": back, "body": body }))
}

/// A page of crate `report` with a way back to the list, and `links` beside it.
pub(super) fn linked(page: &[u8], links: &[(String, &str)]) -> String {
    let page = String::from_utf8_lossy(page);
    let page = page.replacen("</style>\n", "</style>\n<link rel=\"stylesheet\" href=\"/serve.css\">\n", 1);
    page.replacen("<body>\n", &format!("<body>\n{}", way_back(links)), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_the_report_gets_a_way_back_and_keeps_its_style() {
        let page = "<style>x</style>\n</head>\n<body>\n<p>body</p>";
        let html = linked(page.as_bytes(), &[("live".to_owned(), "l")]);
        assert!(html.contains(
            "<body>\n<nav aria-label=\"loadline\"><a href=\"/\">All runs</a><a href=\"live\">l</a></nav>\n<p>"
        ));
        assert!(html.contains("<style>x</style>\n<link"));
    }
}
