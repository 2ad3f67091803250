//! Files that pgbench, sysbench and fio wrote are read, and what is wrong with others is said with file and line.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bad;
mod expected;
mod exported;

use std::io::BufReader;
use std::path::Path;

use loadline_exchange::{Group, ImportError, ImportedTest, Source, Tool, import};
use loadline_model::column::COLUMNS;
use loadline_model::{Column, Latencies};

fn contents(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/data").join(name);
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

/// The only test of files, to which all of them belong.
fn one(tool: Tool, names: &[&str]) -> ImportedTest {
    let texts: Vec<String> = names.iter().map(|name| contents(name)).collect();
    let files: Vec<(&str, &str)> = names.iter().copied().zip(texts.iter().map(String::as_str)).collect();
    let mut groups = read(tool, &files).unwrap();
    assert_eq!((groups.len(), groups[0].tests.len()), (1, 1));
    assert_eq!(groups[0].files, (0..names.len()).collect::<Vec<_>>());
    let test = groups.remove(0).tests.remove(0);
    for column in COLUMNS.iter().filter(|c| c.is_figure()) {
        let (figure, why) = (test.record.figure(column), test.absent.get(column.id).map(ToString::to_string));
        assert!(figure.is_some() != why.is_some(), "{column}: {figure:?}, {why:?}");
        assert_eq!(test.record.why_absent(column), why.as_deref(), "{column}");
    }
    test
}

fn figure(test: &ImportedTest, column: &Column) -> f64 {
    test.record.figure(column).unwrap_or_else(|| panic!("{column}: {:?}", test.record.why_absent(column)))
}

fn near(a: f64, b: f64, share: f64) -> bool {
    (a - b).abs() <= share * b.abs()
}

fn latencies<'a>(test: &'a ImportedTest, kind: &str) -> &'a Latencies {
    &test.histograms.iter().find(|(known, _)| known == kind).unwrap_or_else(|| panic!("no {kind}")).1
}
