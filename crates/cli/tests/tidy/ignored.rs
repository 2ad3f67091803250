//! Tests that `./test` leaves out, and the page that says why.

use std::collections::BTreeSet;

use crate::tree::Tree;

pub(crate) const PAGE: &str = "docs/testing.md";

/// First column's heading, which no other table has.
const HEADING: &str = "| Left out of `./test` |";

/// A row of the page: the file, the test and the cause.
type Row = (String, String, String);

/// Rows that differ from the tests, with what is wrong: (file of the test, what).
pub(crate) fn differences(tree: &Tree) -> Vec<(String, String)> {
    let told = tree.files.get(PAGE).map(|text| rows(text)).unwrap_or_default();
    let ignored: BTreeSet<Row> = tree.rust().flat_map(|(path, text)| ignored(path, text)).collect();
    let row = |(path, name, why): &Row| format!("| `{path}` | `{name}` | {why} |");
    let missing = ignored.difference(&told).map(|r| (r.0.clone(), format!("{PAGE} has no row {}", row(r))));
    let superfluous = told.difference(&ignored).map(|r| (PAGE.to_owned(), format!("no such test: {}", row(r))));
    missing.chain(superfluous).collect()
}

/// The ignored tests of a file. One without a cause has an empty one, which no row of the page has.
fn ignored(path: &str, text: &str) -> Vec<Row> {
    let mut found = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let Some(rest) = line.strip_prefix("#[ignore") else { continue };
        let why = rest.strip_prefix(" = \"").and_then(|rest| rest.strip_suffix("\"]")).unwrap_or_default();
        let name = lines.by_ref().find_map(|line| line.strip_prefix("fn ")?.split('(').next()).unwrap_or_default();
        found.push((path.to_owned(), name.to_owned(), why.to_owned()));
    }
    found
}

fn rows(text: &str) -> BTreeSet<Row> {
    let table = text.lines().skip_while(|line| !line.starts_with(HEADING)).skip(2);
    let cells = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(|cell| cell.trim().trim_matches('`')).collect();
        <[&str; 3]>::try_from(cells).ok().map(|[path, name, why]| (path.to_owned(), name.to_owned(), why.to_owned()))
    };
    table.take_while(|line| line.starts_with('|')).filter_map(cells).collect()
}
