//! A document as one self-contained HTML page: style, charts and all inside, no script, no network.

use minijinja::{Environment, context};

use crate::ReportError;
use crate::doc::Document;

/// The whole page. The template's name ends in `.html`, so every value is escaped but the charts,
/// which `svg` has escaped itself.
pub(crate) fn render(document: &Document) -> Result<String, ReportError> {
    let mut env = Environment::new();
    env.set_trim_blocks(true);
    env.set_lstrip_blocks(true);
    let page = concat!(include_str!("templates/blocks.html"), include_str!("templates/report.html"));
    env.add_template("report.html", page)?;
    let style = include_str!("templates/report.css");
    Ok(env.get_template("report.html")?.render(context! { document, style })?)
}
