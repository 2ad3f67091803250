//! Stored runs of 2581090b, and what it printed of them: every cell of every table.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::kept::{self, Items};

/// Tables by name: the command that prints each. Runs are folders of the archives.
const TABLES: [(&str, &str); 19] = [
    ("sqlite", "report sqlite --format csv"),
    ("postgres", "report postgres --format csv"),
    ("mariadb", "report mariadb --format csv"),
    ("platforms", "report sqlite postgres mariadb --format csv"),
    ("compared", "compare sqlite postgres --across-drivers --unequal --format csv"),
    ("ab", "compare ab --format csv"),
    ("ab-tests", "report ab --format csv"),
    ("levels", "report levels --format csv"),
    ("nodes", "report nodes --format csv"),
    ("agents", "report agents --format csv"),
    ("scan", "report scan --format csv"),
    ("open", "report open --format csv"),
    ("night", "report night/night1 night/night6 --format csv"),
    ("trend", "trend night --format csv"),
    ("import-pgbench", "report import-pgbench --format csv"),
    ("import-sysbench", "report import-sysbench --format csv"),
    ("export-tests", "export nodes --format csv --table tests"),
    ("export-series", "export nodes --format csv --table series"),
    ("export-histograms", "export open --format csv --table histograms"),
];

/// What the program prints of the archives in `dir`. Exit codes other than 0 are answers of some commands.
fn said(dir: &Path, command: &str) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_loadline")).args(command.split(' ')).current_dir(dir).output().unwrap();
    let why = String::from_utf8_lossy(&out.stderr);
    assert!(!out.stdout.is_empty(), "{command} says nothing, exit {:?}: {why}", out.status.code());
    String::from_utf8(out.stdout).unwrap()
}

fn archive() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in ["golden-1.tar.xz", "golden-2.tar.xz"] {
        let done = Command::new("tar").arg("-xJf").arg(kept::path(name)).arg("-C").arg(dir.path()).output();
        let done = done.expect("tar is missing: apt-get install tar xz-utils");
        assert!(done.status.success(), "{} (apt-get install xz-utils?)", String::from_utf8_lossy(&done.stderr));
    }
    dir
}

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
    let dir = archive();
    let (mut then, mut now) = (Items::new(), Items::new());
    for (name, command) in TABLES {
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
