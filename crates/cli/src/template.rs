//! Fills templates, which hold the words of pages about workloads and of plans.

use loadline_model::format::{bytes, counted};
use loadline_report::markdown_cell;
use minijinja::{Environment, Value};

use crate::exit::Failure;

pub(crate) fn filled(template: &str, context: Value) -> Result<String, Failure> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_keep_trailing_newline(true);
    environment.add_filter("bytes", bytes);
    environment.add_filter("cell", |text: &str| markdown_cell(text));
    environment.add_filter("count", |n: usize, what: &str| counted(n, what));
    // 2, not 2.0.
    environment.add_filter("plain", |n: f64| n.to_string());
    let filled = environment.render_str(template, context);
    filled.map_err(|e| Failure::failed(format!("internal error in a template, please report it: {e:#}")))
}
