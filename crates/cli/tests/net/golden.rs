//! Stored runs of 2581090b, and what it printed of them: every cell of every table, and the key figures of text and page.

use std::collections::BTreeSet;

use crate::kept::{self, Items};
use crate::said;

/// Tables by name: the command that prints each. Runs are folders of the archives.
const TABLES: &str = include_str!("golden.txt");

/// Records of a CSV text; fields may be quoted.
fn records(text: &str) -> Vec<Vec<String>> {
    let mut records = vec![vec![String::new()]];
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let record = records.last_mut().unwrap();
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                record.last_mut().unwrap().push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => record.push(String::new()),
            '\n' if !quoted => records.push(vec![String::new()]),
            c => record.last_mut().unwrap().push(c),
        }
    }
    records.retain(|record| record.len() > 1 || !record[0].is_empty());
    records
}

/// The cells of a table: `name row column` and value. The order of the columns is an item as well.
fn cells(name: &str, text: &str, all: &mut Items) {
    let records = records(text);
    let head = &records[0];
    let distinct: BTreeSet<&String> = head.iter().collect();
    assert_eq!(distinct.len(), head.len(), "{name}: a column twice");
    all.insert(format!("{name} columns"), head.join(","));
    for (number, record) in records.iter().enumerate().skip(1) {
        assert_eq!(record.len(), head.len(), "{name}: row {number}");
        all.extend(head.iter().zip(record).map(|(column, cell)| (format!("{name} {number} {column}"), cell.clone())));
    }
}

#[test]
fn every_cell_of_stored_runs_is_what_it_was() {
    let dir = kept::runs();
    let (mut then, mut now) = (Items::new(), Items::new());
    for (name, command) in TABLES.lines().filter_map(|line| line.split_once(": ")) {
        let file = format!("{name}.csv");
        let anew = kept::path("anew").join(&file);
        let kept = if anew.exists() { anew } else { dir.path().join("printed").join(&file) };
        let kept = std::fs::read_to_string(kept).unwrap();
        cells(name, &kept, &mut then);
        cells(name, &said(dir.path(), command), &mut now);
    }
    assert!(then.len() > 10_000, "{}", then.len());
    kept::compare("golden", &then, &now);
}

/// A cell without the mark of its footnote.
fn plain(cell: &str) -> String {
    cell.trim().trim_end_matches(|c| "⁰¹²³⁴⁵⁶⁷⁸⁹".contains(c)).to_owned()
}

/// The cells of each line of a text, and of each table row of a page.
fn rows(text: &str, page: &str) -> [Vec<BTreeSet<String>>; 2] {
    let of_text = text.lines().map(|line| line.split("  ").map(plain).collect()).collect();
    // Of a cell, what stands outside of tags.
    let cell = |td: &str| {
        let inner = td.split("<sup").next().unwrap_or_default().split("</td>").next().unwrap_or_default();
        let bare: String = inner.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text).collect();
        let named = [("&#x2f;", "/"), ("&#x27;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")];
        plain(&named.iter().fold(bare, |text, (from, to)| text.replace(from, to)))
    };
    let of_page = page.split("<tr").map(|row| row.split("<td").skip(1).map(cell).collect()).collect();
    [of_text, of_page]
}

/// `keys.txt` has a line per workload of a run: the run, then what its row of key figures must hold.
#[test]
fn the_key_figures_of_stored_runs_are_what_they_were() {
    let dir = kept::runs();
    let keys = std::fs::read_to_string(dir.path().join("printed/keys.txt")).unwrap();
    let lines: Vec<(&str, &str)> = keys.lines().filter_map(|line| line.split_once('\t')).collect();
    let runs: BTreeSet<&str> = lines.iter().map(|(run, _)| *run).collect();
    assert_eq!(runs, ["sqlite", "postgres", "mariadb", "scan"].into());
    for run in runs {
        let text = said(dir.path(), &format!("report {run} --format text"));
        let page = said(dir.path(), &format!("report {run} --format html --output -"));
        let of_run = lines.iter().filter(|line| line.0 == run);
        for cells in of_run.map(|(_, cells)| cells.split('\t').map(str::to_owned).collect::<BTreeSet<String>>()) {
            for (rows, where_) in rows(&text, &page).iter().zip(["text", "page"]) {
                let found = rows.iter().any(|row| cells.is_subset(row));
                assert!(found, "the {where_} of {run} has no row with {cells:?}");
            }
        }
    }
}
