//! Files that pgbench, sysbench, fio and HammerDB wrote are read, and what is wrong with others is said with file and line.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bad;
mod exported;
mod files;

use std::io::BufReader;
use std::path::Path;

use loadline_exchange::{Group, ImportError, ImportedTest, Source, Tool, import};
use loadline_model::{Column, Latencies};

/// The contents of a file in `tests/files`.
fn contents(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Imports texts under names. The buffer is small, so that lines span several of its fills.
fn read(tool: Tool, texts: &[(&str, &str)]) -> Result<Vec<Group>, ImportError> {
    let source = |(name, text): &(&str, &str)| Source {
        name: (*name).to_owned(),
        input: Box::new(BufReader::with_capacity(7, std::io::Cursor::new(text.to_string().into_bytes()))),
    };
    import(tool, &mut texts.iter().map(source).collect::<Vec<_>>())
}

fn files(tool: Tool, names: &[&str]) -> Vec<Group> {
    let texts: Vec<(&str, String)> = names.iter().map(|name| (*name, contents(name))).collect();
    read(tool, &texts.iter().map(|(name, text)| (*name, text.as_str())).collect::<Vec<_>>()).unwrap()
}

/// The only test of files.
fn one(tool: Tool, names: &[&str]) -> ImportedTest {
    let groups = files(tool, names);
    let [group] = groups.as_slice() else { panic!("{} groups", groups.len()) };
    let [test] = group.tests.as_slice() else { panic!("{} tests", group.tests.len()) };
    assert_eq!(group.files, (0..names.len()).collect::<Vec<_>>(), "all files are of the one test");
    for column in loadline_model::column::COLUMNS.iter().filter(|c| c.is_figure()) {
        let (figure, why) = (test.record.figure(column), test.record.why_absent(column));
        assert!(figure.is_some() != why.is_some(), "{column}: {figure:?}, {why:?}");
    }
    test.clone()
}

fn figure(test: &ImportedTest, column: &Column) -> f64 {
    test.record.figure(column).unwrap_or_else(|| panic!("{column}: {:?}", test.record.why_absent(column)))
}

fn notes(test: &ImportedTest) -> String {
    test.record.notes.join("\n")
}

/// The `q` quantile of `values` by definition: the smallest that at least this share is not above.
fn quantile(values: &mut [u64], q: f64) -> u64 {
    values.sort_unstable();
    values[((values.len() as f64 * q).ceil() as usize).clamp(1, values.len()) - 1]
}

fn latencies<'a>(test: &'a ImportedTest, kind: &str) -> &'a Latencies {
    &test.histograms.iter().find(|(known, _)| known == kind).unwrap_or_else(|| panic!("no {kind}")).1
}
