//! Tables for scripts, and for people who list what there is: rows of values under the ids of their columns. And one table with all tests
//! of all runs.

use loadline_model::Column;
use loadline_model::column::{self, Cell};
use loadline_model::format::csv_line;
use minijinja::{Environment, Expression, UndefinedBehavior};
use serde_json::{Map, Value};

use crate::doc::{Document, Head};
use crate::templates::{defect, lacking, stored};
use crate::words::columns_of_files;
use crate::{Format, ReportError, RunData, templates, text};

/// Tables for scripts by name: the id of each column, and what it is of the values of a row.
const LISTINGS: &str = concat!("\n", include_str!("templates/listings.txt"));

/// A table from which each format follows.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    pub columns: Vec<&'static str>,
    /// Rows with a value for each column; a missing one is null.
    pub rows: Vec<Vec<Value>>,
}

impl Listing {
    /// The table `name` of `rows`. What is unknown of a row is null.
    pub(crate) fn new(name: &str, rows: impl IntoIterator<Item = minijinja::Value>) -> Listing {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Chainable);
        let all = LISTINGS.split("\n== ").filter_map(|part| part.split_once('\n'));
        let lines = all.filter(|(of, _)| *of == name).flat_map(|(_, lines)| lines.lines());
        let (columns, cells): (Vec<&str>, Vec<&str>) = lines.filter_map(|line| line.split_once(" := ")).unzip();
        let cells: Vec<_> = cells.into_iter().map(|cell| environment.compile_expression(cell)).collect();
        let cell = |row: &minijinja::Value, cell: &Result<Expression<'_, '_>, minijinja::Error>| {
            let failed = |error: &minijinja::Error| Value::from(defect(error));
            let value = cell.as_ref().map(|cell| cell.eval(row).map_or_else(|error| failed(&error), |of| stored(&of)));
            value.unwrap_or_else(failed)
        };
        let rows: Vec<minijinja::Value> = rows.into_iter().collect();
        let asked = cells.iter().flatten().flat_map(|cell| cell.undeclared_variables(false));
        debug_assert_eq!(lacking(asked, &rows), None, "'{name}' asks for what a row lacks");
        let row = |row: minijinja::Value| cells.iter().map(|of| cell(&row, of)).collect();
        let rows = rows.into_iter().map(row).collect();
        Listing { columns, rows }
    }

    /// The table itself. There is no page of it: instead of HTML it is JSON.
    pub fn render(&self, format: Format) -> Result<String, ReportError> {
        Ok(match format {
            Format::Csv => self.csv(),
            Format::Json | Format::Html => self.json()?,
            Format::Markdown => self.markdown(),
            Format::Text => self.text(),
        })
    }

    /// For scripts the table, for people the document.
    pub(crate) fn or(&self, document: impl FnOnce() -> Document, format: Format) -> Result<String, ReportError> {
        match format {
            Format::Csv => Ok(self.csv()),
            Format::Json => self.json(),
            Format::Html | Format::Markdown | Format::Text => templates::page(&document(), format, false),
        }
    }

    pub(crate) fn csv(&self) -> String {
        csv_line(&self.columns) + &self.rows.iter().map(|row| csv_line(row.iter().map(cell))).collect::<String>()
    }

    pub(crate) fn objects(&self) -> Vec<Map<String, Value>> {
        let object = |row: &Vec<Value>| self.columns.iter().map(|id| (*id).to_owned()).zip(row.clone()).collect();
        self.rows.iter().map(object).collect()
    }

    fn json(&self) -> Result<String, ReportError> {
        Ok(serde_json::to_string_pretty(&self.objects())? + "\n")
    }

    /// The ids as headings.
    fn titles(&self) -> impl Iterator<Item = String> {
        self.columns.iter().map(|id| id.replace('_', " "))
    }

    /// Texts may be Markdown.
    fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let row = |row: &Vec<Value>| line(row.iter().map(|of| markdown_cell(&cell(of))).collect());
        let head = line(self.titles().collect()) + &line(vec!["---".to_owned(); self.columns.len()]);
        head + &self.rows.iter().map(row).collect::<String>()
    }

    fn text(&self) -> String {
        let head: Vec<Head> = self.titles().map(|title| Head::text(&title)).collect();
        let row = |row: &Vec<Value>| row.iter().map(|of| text::clean(&cell(of))).collect();
        text::grid(&head, &self.rows.iter().map(row).collect::<Vec<Vec<String>>>())
    }
}

/// A value as text; a missing one is empty.
pub(crate) fn cell(cell: &Value) -> String {
    match cell {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        cell => cell.as_f64().map_or_else(|| cell.to_string(), |n| n.to_string()),
    }
}

pub fn markdown_cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// One line per test. A missing figure is an empty cell, and so is the validity of published tests, which nobody has checked.
pub(crate) fn all_tests(runs: &[RunData], chosen: Option<&[&'static Column]>) -> String {
    let records = || runs.iter().flat_map(|run| run.records.iter().map(move |r| (run, r)));
    let columns = chosen.map_or_else(|| columns_of_files(records().map(|(_, r)| r)), <[_]>::to_vec);
    let mut out = csv_line(columns.iter().map(|c| c.id));
    for (run, record) in records() {
        out.push_str(&csv_line(columns.iter().map(|c| match c.cell(record) {
            Cell::Number(n) if !n.is_finite() => String::new(),
            _ if *c == column::VALID && run.published.is_some() => String::new(),
            _ => c.plain(record),
        })));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_keeps_every_cell() {
        let list = Listing { columns: vec!["a", "b_c"], rows: vec![vec!["x, \"y\"".into(), "1|2".into()]] };
        assert_eq!(list.csv(), "a,b_c\n\"x, \"\"y\"\"\",1|2\n");
        assert_eq!(list.markdown(), "| a | b c |\n| --- | --- |\n| x, \"y\" | 1\\|2 |\n");
        assert_eq!(list.text(), "a       b c\n──────  ───\nx, \"y\"  1|2\n");
        let json: Value = serde_json::from_str(&list.json().unwrap()).unwrap();
        assert_eq!(json[0]["b_c"], "1|2");
    }
}
