//! No false error in consistent tables, and spoiled cells found.

use std::collections::BTreeMap;

use loadline_audit::{Audit, LAWS, Options, Severity, audit, table};
use proptest::prelude::*;

use crate::made_up::{Made, Random, table as made};

/// Tables of the generator.
const TABLES: u64 = 10_000;

fn check(csv: &str) -> Audit {
    audit(&table::read(csv, "made.csv").unwrap(), &Options::default())
}

#[test]
fn consistent_tables_have_no_errors_and_few_warnings() {
    let (mut warned, mut rows) = (0, 0);
    let mut by_law: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..TABLES {
        let made = made(&mut Random(seed));
        let csv = made.csv();
        let found = check(&csv);
        let errors: Vec<_> = found.findings.iter().filter(|f| f.severity == Severity::Error).collect();
        assert!(errors.is_empty(), "seed {seed}: {errors:#?}\n{csv}");
        rows += made.rows.len();
        for f in found.findings.iter().filter(|f| f.severity == Severity::Warning) {
            warned += 1;
            let about = if f.law == "neighbours" { f.columns.last().copied().unwrap_or("") } else { "" };
            *by_law.entry(format!("{} {about}", f.law).trim().to_owned()).or_default() += 1;
        }
    }
    println!("{warned} warnings in {rows} rows of {TABLES} tables: {by_law:?}");
    assert!(warned * 100 <= rows, "{warned} warnings in {rows} rows: {by_law:?}");
}

/// Spoils one cell of a column that a law covers by `factor`; `None` if its digits hide that, or the table is too small.
fn spoil(made: &Made, random: &mut Random, factor: f64) -> Option<(usize, &'static str, String)> {
    let covered = |id: &str| {
        let sets = LAWS.iter().filter(|l| EQUATIONS.contains(&l.id)).flat_map(|l| l.needs);
        sets.filter(|set| set.iter().all(|n| made.columns.contains(&real(n))))
            .any(|set| set.iter().any(|n| real(n) == id))
    };
    let candidates: Vec<usize> = (0..made.columns.len()).filter(|c| covered(made.columns[*c])).collect();
    let column = *candidates.get(random.below(candidates.len().max(1)))?;
    let row = random.below(made.rows.len());
    let (value, decimals) = (made.values[row][column], made.decimals[column]);
    let spoiled = format!("{:.*}", decimals, value * factor);
    let unit = 10f64.powi(-(decimals as i32));
    let moved = (spoiled.parse::<f64>().unwrap() - value).abs();
    // More than its rounding, and visibly so.
    if moved <= 2.0 * unit || (made.columns[column].starts_with("cpu_") && moved < 3.0 * unit) {
        return None;
    }
    let mut copy = made.clone();
    copy.rows[row][column] = spoiled;
    Some((row, made.columns[column], copy.csv()))
}

fn real(id: &'static str) -> &'static str {
    if id == "tps" { "commit_throughput_tps" } else { id }
}

/// Laws that are equations: a cell in them cannot change alone.
const EQUATIONS: [&str; 6] = ["little", "redo-rate", "rows", "commits", "cpu-parts", "cpu-sum"];

#[test]
fn spoiled_cells_are_found() {
    let mut random = Random(7);
    let (mut spoiled, mut found) = (0u32, 0u32);
    let mut missed: BTreeMap<&str, u32> = BTreeMap::new();
    let mut total: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..TABLES {
        let made = made(&mut Random(seed));
        let up = random.unit() < 0.5;
        let factor = 1.05 + random.unit();
        let Some((row, column, csv)) = spoil(&made, &mut random, if up { factor } else { 1.0 / factor }) else {
            continue;
        };
        spoiled += 1;
        *total.entry(column).or_default() += 1;
        let hit = check(&csv).findings.iter().any(|f| f.severity != Severity::Info && f.row == Some(row + 1));
        if hit {
            found += 1;
        } else {
            *missed.entry(column).or_default() += 1;
        }
    }
    let share = f64::from(found) / f64::from(spoiled);
    println!("{found} of {spoiled} spoiled cells found ({share:.4}); missed {missed:?} of {total:?}");
    assert!(spoiled > 5_000 && share >= 0.95, "{found} of {spoiled}; missed {missed:?} of {total:?}");
}

proptest! {
    #[test]
    fn nothing_panics(text in "[a-z,;|\\-#<>/ \"\n0-9.%]{0,300}") {
        let _ = table::read(&text, "x").map(|tables| audit(&tables, &Options::default()));
    }

    #[test]
    fn no_cell_panics(cell in "\\PC{0,12}", at in 0usize..200) {
        let mut made = made(&mut Random(3));
        let (row, column) = (at % made.rows.len(), at % made.columns.len());
        made.rows[row][column] = cell.replace([',', '"', '\n'], "");
        let _ = check(&made.csv());
    }
}
