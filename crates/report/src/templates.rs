//! The templates of pages, and the escaping of every text in them.

use std::sync::OnceLock;

use minijinja::{AutoEscape, Environment, Error, Output, State, Value};
use serde::Serialize;

use crate::doc::Document;
use crate::escape::{self, Text};
use crate::{notes, text};

/// Names of the templates, whose ends decide how texts are escaped, and the templates.
const TEMPLATES: [(&str, &str); 6] = [
    ("page.html", include_str!("templates/page.html")),
    ("blocks.html", include_str!("templates/blocks.html")),
    ("table.html", include_str!("templates/table.html")),
    ("report.markdown", include_str!("templates/report.markdown")),
    ("blocks.markdown", include_str!("templates/blocks.markdown")),
    ("table.markdown", include_str!("templates/table.markdown")),
];

/// Explanations: names after `==`, and a template each.
const PROSE: &str = include_str!("templates/prose.txt");

/// The explanation `name` with the values of `context`.
pub(crate) fn prose(name: &str, context: impl Serialize) -> String {
    render(name, context).trim_end().to_owned()
}

/// The whole document as GitHub's Markdown.
pub(crate) fn markdown(document: &Document) -> String {
    let mut page = render("report.markdown", document).trim().to_owned() + "\n";
    while page.contains("\n\n\n") {
        page = page.replace("\n\n\n", "\n\n");
    }
    page
}

/// What the template `name` makes of `context`.
pub(crate) fn render(name: &str, context: impl Serialize) -> String {
    static ENVIRONMENT: OnceLock<Result<Environment<'static>, Error>> = OnceLock::new();
    let rendered = match ENVIRONMENT.get_or_init(environment) {
        Ok(environment) => environment.get_template(name).and_then(|template| template.render(context)),
        Err(error) => return defect(error),
    };
    rendered.unwrap_or_else(|error| defect(&error))
}

fn defect(error: &Error) -> String {
    format!("internal error in a template, please report it: {error:#}\n")
}

fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|name| match name.rsplit_once('.') {
        Some((_, "html")) => AutoEscape::Html,
        Some(_) => AutoEscape::Custom("md"),
        None => AutoEscape::None,
    });
    environment.set_formatter(escaped);
    environment.add_filter("css", escape::css_string);
    environment.add_filter("notes", |markdown: &str| notes::html(markdown));
    environment.add_filter("plain_lines", |text: &str| text.lines().map(text::clean).collect::<Vec<_>>());
    for (name, template) in TEMPLATES {
        environment.add_template(name, template)?;
    }
    for (name, template) in PROSE.split("== ").filter_map(|part| part.split_once('\n')) {
        environment.add_template(name, template)?;
    }
    Ok(environment)
}

/// Writes `value`, whose text is escaped unless the template calls it safe.
fn escaped(out: &mut Output<'_>, state: &State<'_, '_>, value: &Value) -> Result<(), Error> {
    let written = match value.as_str().filter(|_| !value.is_safe()) {
        None => write!(out, "{value}"),
        Some(text) => match state.auto_escape() {
            AutoEscape::Html => write!(out, "{}", Text(text)),
            AutoEscape::None => write!(out, "{text}"),
            _ => write!(out, "{}", escape::markdown(text)),
        },
    };
    written.map_err(Error::from)
}
