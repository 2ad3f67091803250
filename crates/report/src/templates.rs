//! The templates of pages, and the escaping of every text in them.

use std::sync::OnceLock;

use loadline_analyze::paired::percent as confidence;
use loadline_model::format::{ABSENT, bytes, counted, duration_ns, duration_s, number, parse_bytes, whole};
use loadline_model::probe::Operation;
use minijinja::{AutoEscape, Environment, Error, Output, State, Value, context};
use serde::Serialize;

use crate::doc::Document;
use crate::escape::{self, Text};
use crate::words::{cut, millis, percent, place, ratio, signed, spans, stop, tests_named, when};
use crate::{Format, ReportError, text};

/// Names of the templates, whose ends decide how texts are escaped, and the templates.
const TEMPLATES: [(&str, &str); 6] = [
    ("page.html", include_str!("templates/page.html")),
    ("blocks.html", include_str!("templates/blocks.html")),
    ("table.html", include_str!("templates/table.html")),
    ("report.markdown", include_str!("templates/report.markdown")),
    ("blocks.markdown", include_str!("templates/blocks.markdown")),
    ("table.markdown", include_str!("templates/table.markdown")),
];

/// The content of the `style` element of every page.
pub const STYLE: &str = concat!("\n", include_str!("templates/report.css"), "\n");

/// The content of the `script` element of every page: sorts, searches, and shows and saves what charts are of.
pub const SCRIPT: &str = concat!("\n", include_str!("templates/report.js"));

/// Explanations, sentences, facts and tables: names after `==`, and a template each. A line that begins with a dash begins an item, and ` := `
/// stands between its parts, such as the name and the value of a fact.
const PROSE: &str = concat!(
    "\n",
    include_str!("templates/prose.txt"),
    include_str!("templates/facts.txt"),
    include_str!("templates/tables.txt")
);
/// Rendered forms of these. No text of a run holds them then.
const ITEM: char = '\u{1e}';
const VALUE: char = '\u{1f}';

/// A stored value for a context, as JSON: no second serialiser of its large type is compiled.
pub(crate) fn stored(value: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// The explanation `name` with the values of `context`.
pub(crate) fn prose(name: &str, context: impl Serialize) -> String {
    render(name, context).trim().to_owned()
}

/// The items that the template `name` makes of `context`. Text before the first is one too: it says that the template failed.
pub(crate) fn items(name: &str, context: impl Serialize) -> Vec<String> {
    let text = prose(name, context);
    let (error, items) = text.split_once(ITEM).unwrap_or((&text, ""));
    let items = [error].into_iter().chain(items.split(ITEM)).map(str::trim);
    items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// The parts of the items that the template `name` makes of `context`; missing ones are empty, and so is the first of an item that is one
/// text: it is no heading, but says that the template failed.
pub(crate) fn parts<const N: usize>(name: &str, context: impl Serialize) -> Vec<[String; N]> {
    let parts = |item: String| {
        let item = if item.contains(VALUE) { item } else { format!("{VALUE}{item}") };
        let mut parts = item.split(VALUE).map(|part| part.trim().to_owned());
        std::array::from_fn(|_| parts.next().unwrap_or_default())
    };
    items(name, context).into_iter().map(parts).collect()
}

/// The names that the template `name` asks its context for.
pub(crate) fn asked(name: &str) -> Vec<String> {
    let template = shared().as_ref().ok().and_then(|environment| environment.get_template(name).ok());
    template.map_or_else(Vec::new, |template| template.undeclared_variables(false).into_iter().collect())
}

/// The first of `names` that a row lacks: misspelt it would print nothing, so what is unknown of a row is none.
pub(crate) fn lacking(names: impl IntoIterator<Item = String>, rows: &[Value]) -> Option<String> {
    let is_lacking = |name: &String| rows.iter().any(|row| row.get_attr(name).is_ok_and(|of| of.is_undefined()));
    names.into_iter().find(is_lacking)
}

pub(crate) fn page(document: &Document, format: Format, paper: bool) -> Result<String, ReportError> {
    match format {
        Format::Html => Ok(html(document, paper)),
        Format::Markdown => Ok(markdown(document)),
        Format::Text => Ok(text::render(document)),
        Format::Csv | Format::Json => Err(ReportError::NoPage),
    }
}

/// The document as one self-contained page: style, script and charts are inside, no network. For paper with footers, and nothing folded.
pub(crate) fn html(document: &Document, paper: bool) -> String {
    let of = if document.customer.is_empty() { String::new() } else { format!(" – {}", document.customer) };
    let footer = cut(&format!("{}{of}", document.title), 110);
    render("page.html", context! { paper, style => STYLE, script => SCRIPT, footer, ..Value::from_serialize(document) })
}

/// The whole document as GitHub's Markdown.
fn markdown(document: &Document) -> String {
    let mut page = render("report.markdown", document).trim().to_owned() + "\n";
    while page.contains("\n\n\n") {
        page = page.replace("\n\n\n", "\n\n");
    }
    page
}

pub(crate) fn render(name: &str, context: impl Serialize) -> String {
    with(|environment| environment.get_template(name)?.render(context))
}

/// HTML of `template` with `context`, in which every text is escaped as in a report.
pub fn filled(template: &str, context: impl Serialize) -> String {
    with(|environment| environment.render_named_str("part.html", template, context))
}

fn with(rendered: impl FnOnce(&Environment<'static>) -> Result<String, Error>) -> String {
    shared().as_ref().map_or_else(defect, |environment| rendered(environment).unwrap_or_else(|error| defect(&error)))
}

/// The templates of loadline, read once.
fn shared() -> &'static Result<Environment<'static>, Error> {
    static ENVIRONMENT: OnceLock<Result<Environment<'static>, Error>> = OnceLock::new();
    ENVIRONMENT.get_or_init(environment)
}

pub(crate) fn defect(error: &Error) -> String {
    // Tests render most of what there is: one that meets a defect fails.
    debug_assert!(false, "a template fails: {error:#}");
    format!("internal error in a template, please report it: {error:#}")
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
    environment.add_filter("notes", |markdown: &str| escape::notes_as_html(markdown));
    environment.add_filter("plain_lines", |text: &str| text.lines().map(text::clean).collect::<Vec<_>>());
    environment.add_filter("bytes", bytes);
    environment.add_filter("confidence", confidence);
    environment.add_filter("counted", |n: usize, what: &str| counted(n, what));
    environment.add_filter("cut", |text: &str, most: usize| cut(text, most));
    environment.add_filter("duration_ns", duration_ns);
    environment.add_filter("fixed", |n: f64, decimals: usize| format!("{n:.decimals$}"));
    environment.add_filter("mib", |bytes: f64| number(bytes / 1_048_576.0, 3));
    // Figures that may be absent.
    let or_absent = |text: Option<String>| text.unwrap_or_else(|| ABSENT.to_owned());
    environment.add_filter("known", move |n: Option<f64>, decimals: usize| or_absent(n.map(|n| number(n, decimals))));
    environment
        .add_filter("known_fixed", move |n: Option<f64>, digits: usize| or_absent(n.map(|n| format!("{n:.digits$}"))));
    environment.add_filter("known_whole", move |n: Option<f64>| or_absent(n.map(whole)));
    environment.add_filter("ms", move |ns: Option<f64>| or_absent(ns.map(|ns| number(ns / 1e6, 3))));
    environment.add_filter("millis", move |ms: Option<f64>| or_absent(ms.map(millis)));
    environment.add_filter("signed", move |ms: Option<f64>| or_absent(ms.map(signed)));
    environment.add_filter("time", move |ns: Option<f64>| or_absent(ns.map(duration_ns)));
    let rate = |per_s: f64| number(per_s, if per_s < 100.0 { 1 } else { 0 });
    environment.add_filter("rate", move |per_s: Option<f64>| or_absent(per_s.map(rate)));
    environment.add_filter("number", number);
    environment.add_filter("operation", |id: &str| {
        Operation::ALL.into_iter().find(|o| o.id() == id).map_or("", Operation::title)
    });
    environment.add_filter("percent", percent);
    environment.add_filter("place", |at: u32, over: &str| place(over, at));
    environment.add_filter("ratio", ratio);
    environment.add_filter("whole", whole);
    environment.add_filter("left", |text: String, wide: usize| format!("{text:<wide$}"));
    environment.add_filter("right", |text: String, wide: usize| format!("{text:>wide$}"));
    // Short times with decimals, long ones in minutes or hours.
    let seconds = |s: f64| if s < 60.0 && s.fract() != 0.0 { format!("{s} s") } else { duration_s(s) };
    environment.add_filter("seconds", seconds);
    environment.add_filter("spans", |tests: Vec<u32>| spans(&tests));
    environment.add_filter("size", |text: Option<&str>| text.and_then(|text| parse_bytes(text).ok()));
    environment.add_filter("decimal", |text: Option<&str>| text.and_then(|text| text.trim().parse::<f64>().ok()));
    environment.add_filter("stop", |text: &str| stop(text).to_owned());
    environment.add_filter("tests_named", |tests: Vec<u32>| tests_named(&tests));
    environment.add_filter("when", |time: &str| when(time));
    for (name, template) in TEMPLATES {
        environment.add_template(name, template)?;
    }
    for (name, template) in PROSE.split("\n== ").filter_map(|part| part.split_once('\n')) {
        let template =
            format!("\n{template}").replace("\n- ", &format!("\n{ITEM}")).replace(" := ", &VALUE.to_string());
        // Made once, and needed to the end.
        environment.add_template(name, template.leak())?;
    }
    Ok(environment)
}

/// Writes `value`, whose text is escaped unless the template calls it safe; what is none is nothing.
fn escaped(out: &mut Output<'_>, state: &State<'_, '_>, value: &Value) -> Result<(), Error> {
    let unsafe_text = if value.is_safe() { None } else { value.as_str() };
    let written = match unsafe_text {
        None if value.is_none() => Ok(()),
        None => write!(out, "{value}"),
        Some(text) => match state.auto_escape() {
            AutoEscape::Html => write!(out, "{}", Text(text)),
            AutoEscape::None => write!(out, "{}", text.replace([ITEM, VALUE], " ")),
            _ => write!(out, "{}", escape::markdown(text)),
        },
    };
    written.map_err(Error::from)
}
