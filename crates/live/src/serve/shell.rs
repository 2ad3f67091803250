//! What every page has around it: the way back to the list, and the style of reports.

use loadline_report::Text;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::http::Answer;

/// A page that says why there is none.
pub(super) fn problem(status: u16, text: &str) -> Answer {
    Answer::html(status, shell("loadline", &format!("<p role=\"alert\">{}</p>", Text(text))))
}

/// `text` as a part of an address.
pub(super) fn address(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// The way back to the list.
const BACK: &str = "<nav aria-label=\"loadline\"><a href=\"/\">All runs</a>";

/// A page of ours with `body`, in the style of reports.
pub(super) fn shell(title: &str, body: &str) -> String {
    let title = Text(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} – loadline</title>\n<style>{}</style>\n\
         <link rel=\"stylesheet\" href=\"/serve.css\">\n</head>\n<body>\n{BACK}</nav>\n<main>\n<h1>{title}</h1>\n{body}</main>\n\
         <script src=\"/serve.js\"></script>\n</body>\n</html>\n",
        loadline_report::STYLE
    )
}

/// A page of crate `report` with a way back to the list, and `links` beside it (escaped).
pub(super) fn linked(page: &[u8], links: &str) -> String {
    let page = String::from_utf8_lossy(page);
    let page = page.replacen("</style>\n", "</style>\n<link rel=\"stylesheet\" href=\"/serve.css\">\n", 1);
    page.replacen("<body>\n", &format!("<body>\n{BACK}{links}</nav>\n"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_the_report_gets_a_way_back_and_keeps_its_style() {
        let page = "<style>x</style>\n</head>\n<body>\n<p>body</p>";
        let html = linked(page.as_bytes(), "<a href=\"live\">l</a>");
        assert!(html.contains(
            "<body>\n<nav aria-label=\"loadline\"><a href=\"/\">All runs</a><a href=\"live\">l</a></nav>\n<p>"
        ));
        assert!(html.contains("<style>x</style>\n<link"));
    }
}
