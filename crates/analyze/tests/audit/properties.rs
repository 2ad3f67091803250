//! No false error in consistent tables, and spoiled cells found.

use std::collections::BTreeMap;

use loadline_analyze::audit::{Audit, LAWS, Law, Options, Severity, audit, table};
use proptest::prelude::*;

use crate::made_up::{Made, Random, noisy, table as made};

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
        let made = made(&mut Random::new(seed));
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

/// Spoils one cell of a column that one of `laws` covers by `factor`; `None` if its digits hide that.
fn spoil(made: &Made, random: &mut Random, factor: f64, laws: &[&Law]) -> Option<(usize, &'static str, String)> {
    let has = |id: &&str| made.columns.contains(&real(id));
    let complete: Vec<Vec<&str>> = laws.iter().flat_map(|l| l.sets()).filter(|set| set.iter().all(has)).collect();
    let covered = |id: &str| complete.iter().any(|set| set.iter().any(|of| real(of) == id));
    let candidates: Vec<usize> = (0..made.columns.len()).filter(|c| covered(made.columns[*c])).collect();
    let column = *candidates.get(random.below(candidates.len().max(1)))?;
    let row = random.below(made.rows.len());
    let (value, decimals) = (made.values[row][column], made.decimals[column]);
    let spoiled = format!("{:.*}", decimals, value * factor);
    let unit = 10f64.powi(-(decimals as i32));
    let moved = (spoiled.parse::<f64>().unwrap() - value).abs();
    // More than its rounding, and that of the two cells beside it.
    if moved <= if made.columns[column].starts_with("cpu_") { 3.0 * unit } else { 2.0 * unit } {
        return None;
    }
    let mut copy = made.clone();
    copy.rows[row][column] = spoiled;
    Some((row, made.columns[column], copy.csv()))
}

fn real(id: &str) -> &str {
    if id == "tps" { "commit_throughput_tps" } else { id }
}

/// Spoils a cell in each table; the share that is found, and what of each column was missed.
fn found_share(laws: &[&Law]) -> (u32, f64, String) {
    let mut random = Random::new(7);
    let (mut spoiled, mut found) = (0u32, 0u32);
    let mut by_column: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for seed in 0..TABLES {
        let made = made(&mut Random::new(seed));
        let up = random.unit() < 0.5;
        let factor = 1.05 + random.unit();
        let factor = if up { factor } else { 1.0 / factor };
        let Some((row, column, csv)) = spoil(&made, &mut random, factor, laws) else { continue };
        let hit = check(&csv).findings.iter().any(|f| f.severity != Severity::Info && f.row == Some(row + 1));
        let (of, all) = by_column.entry(column).or_default();
        (spoiled, found) = (spoiled + 1, found + u32::from(hit));
        (*of, *all) = (*of + u32::from(hit), *all + 1);
    }
    (spoiled, f64::from(found) / f64::from(spoiled), format!("{by_column:?}"))
}

/// Platforms are not the same from test to test: warnings of that noise, and what is still found.
#[test]
fn noise_is_no_outlier() {
    for noise in [0.0, 0.03, 0.05, 0.1] {
        let (mut rows, mut cried, mut random) = (0, 0, Random::new(9));
        let mut found = [(0u32, 0u32); 4];
        for seed in 0..TABLES / 5 {
            let made = noisy(&mut Random::new(seed), noise);
            let honest = check(&made.csv());
            assert_eq!(honest.count(Severity::Error), 0, "seed {seed}: {:#?}\n{}", honest.findings, made.csv());
            (rows, cried) = (rows + made.rows.len(), cried + named(&honest).len());
            for (count, factor) in found.iter_mut().zip([1.05, 1.2, 1.5, 2.0]) {
                let factor = if random.unit() < 0.5 { factor } else { 1.0 / factor };
                let Some((row, _, csv)) = spoil(&made, &mut random, factor, LAWS) else { continue };
                let hit = check(&csv).findings.iter().any(|f| f.severity != Severity::Info && f.row == Some(row + 1));
                *count = (count.0 + u32::from(hit), count.1 + 1);
            }
        }
        println!("noise {noise}: {cried} warnings of neighbours in {rows} rows; found by 5, 20, 50, 100 %: {found:?}");
        assert!(cried * 100 <= rows, "noise {noise}: {cried} warnings of neighbours in {rows} rows");
    }
}

fn named(found: &Audit) -> Vec<&loadline_analyze::audit::Finding> {
    found.findings.iter().filter(|f| f.law == "neighbours").collect()
}

/// Laws that are equations: a cell in them cannot change alone.
const EQUATIONS: [&str; 7] = ["little", "redo-rate", "rows", "commits", "cpu-parts", "cpu-sum", "syncs"];

#[test]
fn spoiled_cells_of_equations_are_found() {
    let laws: Vec<&Law> = LAWS.iter().copied().filter(|l| EQUATIONS.contains(&l.id)).collect();
    let (spoiled, share, by_column) = found_share(&laws);
    println!("{share:.4} of {spoiled} spoiled cells of equations found: {by_column}");
    assert!(spoiled > 5_000 && share >= 0.98, "{share} of {spoiled}: {by_column}");
}

#[test]
fn most_spoiled_cells_of_any_law_are_found() {
    let (spoiled, share, by_column) = found_share(LAWS);
    println!("{share:.4} of {spoiled} spoiled cells of any law found: {by_column}");
    assert!(spoiled > 5_000 && share >= 0.95, "{share} of {spoiled}: {by_column}");
}

proptest! {
    #[test]
    fn nothing_panics(text in "[a-z,;|\\-#<>/ \"\n0-9.%]{0,300}") {
        let _ = table::read(&text, "x").map(|tables| audit(&tables, &Options::default()));
    }

    #[test]
    fn no_cell_panics(cell in "\\PC{0,12}", at in 0usize..200) {
        let mut made = made(&mut Random::new(3));
        let (row, column) = (at % made.rows.len(), at % made.columns.len());
        made.rows[row][column] = cell.replace([',', '"', '\n'], "");
        let _ = check(&made.csv());
    }
}
