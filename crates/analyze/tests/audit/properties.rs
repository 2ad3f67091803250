//! No false error in consistent tables, spoiled cells found, and no text that panics.

use std::collections::BTreeMap;

use loadline_analyze::audit::{Audit, Finding, LAWS, Law, Mapping, Options, Reason, Severity, audit, table};
use loadline_model::random::Random;
use proptest::prelude::*;

use crate::made_up::{Made, below, table as made, unit};

/// Tables of the generator.
const TABLES: u64 = 10_000;
/// Laws that are equations: a cell in them cannot change alone.
const EQUATIONS: [&str; 7] = ["little", "redo-rate", "rows", "commits", "cpu-parts", "cpu-sum", "syncs"];

fn check(csv: &str) -> Audit {
    audit(&table::read(csv, "made.csv").unwrap(), &Options::default())
}

#[test]
fn consistent_tables_have_no_errors_and_few_warnings_and_spoiled_cells_of_equations_are_found() {
    let (mut random, mut warned, mut rows) = (Random::new(7), 0, 0);
    let mut by_column: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for seed in 0..TABLES {
        let made = made(&mut Random::new(seed));
        let audit = check(&made.csv());
        assert!(audit.rows == made.values.len() && audit.refused.is_empty(), "seed {seed}: {:?}", audit.refused);
        let errors: Vec<_> = audit.findings.iter().filter(|f| f.severity == Severity::Error).collect();
        assert!(errors.is_empty(), "seed {seed}: {errors:#?}\n{}", made.csv());
        (rows, warned) = (rows + audit.rows, warned + audit.count(Severity::Warning));
        let Some((row, column, csv)) = spoil(&made, &mut random) else { continue };
        let is_hit = |f: &Finding| f.severity != Severity::Info && f.row == Some(row + 1);
        let (found, all) = by_column.entry(column).or_default();
        (*found, *all) = (*found + u32::from(check(&csv).findings.iter().any(is_hit)), *all + 1);
    }
    let (found, all) = by_column.values().fold((0, 0), |(f, a), (g, b)| (f + g, a + b));
    let share = f64::from(found) / f64::from(all);
    println!(
        "{warned} warnings in {rows} rows of {TABLES} tables; {share:.4} of {all} spoiled cells found: {by_column:?}"
    );
    assert!(warned * 100 <= rows && all > 5_000 && share >= 0.95, "{warned} in {rows}, {share} of {all}");
}

/// Spoils one cell that an equation covers by 5 to 105 %; `None` if its digits hide that.
fn spoil(made: &Made, random: &mut Random) -> Option<(usize, &'static str, String)> {
    let (up, factor) = (unit(random) < 0.5, 1.05 + unit(random));
    let factor = if up { factor } else { 1.0 / factor };
    let real = |id: &'static str| match id {
        "tps" => "commit_throughput_tps",
        "time_ms" => "commit_latency_ms",
        id => id,
    };
    let needed = LAWS.iter().filter(|l| EQUATIONS.contains(&l.id)).flat_map(Law::needed).map(|(_, of)| of);
    let complete: Vec<Vec<&str>> = needed.filter(|of| of.iter().all(|id| made.at(real(id)).is_some())).collect();
    let covered = |id: &str| complete.iter().flatten().any(|of| real(of) == id);
    let candidates: Vec<usize> = (0..made.columns.len()).filter(|c| covered(made.columns[*c].0)).collect();
    let column = *candidates.get(below(random, candidates.len().max(1)))?;
    let row = below(random, made.values.len());
    let (value, decimals) = (made.values[row][column], made.decimals[column]);
    let spoiled = format!("{:.*}", decimals, value * factor);
    let moved = (spoiled.parse::<f64>().unwrap() - value).abs() * 10f64.powi(decimals as i32);
    // More than its rounding, and that of the two cells beside it.
    if moved <= if made.columns[column].0.starts_with("cpu_") { 3.0 } else { 2.0 } {
        return None;
    }
    let mut copy = made.clone();
    copy.values[row][column] *= factor;
    Some((row, made.columns[column].0, copy.csv()))
}

/// Makes rows wrong that no equation shows; `None` if the table cannot have this fault. Returns the rows that are found then.
type Fault = fn(&mut Made, &mut Random) -> Option<Vec<usize>>;

/// Faults by the law that finds them.
const FAULTS: [(&str, Fault); 6] = [
    ("duplicates", copied_row),
    ("duplicates", |made, random| {
        let (rate, _, _) = (made.at("commit_throughput_tps")?, made.at("test")?, made.at("jobs")?);
        let row = copied_row(made, random)?[0];
        made.values[row][rate] *= 1.5;
        Some(vec![row])
    }),
    // The number of a test between two of its series is that of the one before.
    ("test-numbers", |made, random| {
        let (test, row) = (made.at("test")?, 1 + below(random, made.values.len() - 2));
        let is_series = made.works[row - 1..=row + 1].iter().all(|work| *work == made.works[row]);
        let is_told = made.works.windows(2).filter(|w| w[0] == w[1]).count() * 2 > made.works.len() + 6;
        made.values[row][test] -= 1.0;
        (is_series && is_told).then(|| vec![row])
    }),
    // Rows below a peak of their workload, which many tables have.
    ("falling-throughput", |made, _| {
        let (jobs, rate) = (made.at("jobs")?, made.at("commit_throughput_tps")?);
        let printed =
            |row: usize| format!("{:.*}", made.decimals[rate], made.values[row][rate]).parse::<f64>().unwrap();
        let is_below = |row: &usize| {
            let before = (0..made.works.len()).filter(|r| made.works[*r] == made.works[*row]);
            let before = before.filter(|r| made.values[*r][jobs] < made.values[*row][jobs]);
            printed(*row) < 0.995 * before.map(printed).fold(0.0, f64::max)
        };
        Some((0..made.values.len()).filter(is_below).collect())
    }),
    ("cells", |made, random| {
        let (row, columns) = (below(random, made.values.len()), made.columns.len());
        let column = (0..columns).find(|c| made.decimals[*c] == 0 && made.values[row][*c] > 1e4)?;
        made.values[row][column] = 99999.0;
        Some(vec![row])
    }),
    // A test with more redo per transaction, and all that follows from it.
    ("same-work", |made, random| {
        made.at("jobs")?;
        made.at("redo_kib_per_tx").or(made.at("redo_mib_per_s").and(made.at("commit_throughput_tps")))?;
        let row = below(random, made.values.len());
        for id in ["redo_kib_per_tx", "redo_mib_per_s", "redo_blocks_per_s"] {
            made.at(id).into_iter().for_each(|c| made.values[row][c] *= 1.5);
        }
        Some(vec![row])
    }),
];

fn copied_row(made: &mut Made, random: &mut Random) -> Option<Vec<usize>> {
    ["jobs", "test", "commit_throughput_tps"].iter().find_map(|id| made.at(id))?;
    let of = below(random, made.values.len());
    let to = of + 1 + below(random, made.values.len() - of);
    made.works.insert(to, made.works[of]);
    made.values.insert(to, made.values[of].clone());
    Some(vec![to])
}

#[test]
fn faults_that_no_equation_shows_are_found() {
    let (mut random, mut counts) = (Random::new(11), [(0, 0); FAULTS.len()]);
    for seed in 0..TABLES / 5 {
        for ((law, fault), (found, all)) in FAULTS.iter().zip(&mut counts) {
            let mut made = made(&mut Random::new(seed));
            let Some(rows) = fault(&mut made, &mut random) else { continue };
            let of_law = check(&made.csv()).findings.into_iter().filter(|f| f.law == *law && f.row.is_some());
            let (severity, seen): (Vec<_>, Vec<_>) = of_law.map(|f| (f.severity, f.row.unwrap() - 1)).unzip();
            // A peak is no fault, but each row below it is named, and no other is.
            let is_peak = *law == "falling-throughput";
            let is_right = rows.iter().all(|row| seen.contains(row)) && (!is_peak || seen == rows);
            *found += u32::from(is_right && severity.iter().any(|s| *s != Severity::Info) != is_peak);
            *all += 1;
        }
    }
    println!("found: {counts:?}");
    assert!(counts.iter().all(|(found, all)| *all > 300 && found == all), "{counts:?}");
}

#[test]
fn broken_rows_beyond_the_first_hundred_are_counted() {
    let found = check(&format!("jobs,tps\n{}{}", "1,2\n".repeat(200), "1,2,3\n".repeat(103)));
    assert!(found.findings.iter().any(|f| f.reason == Reason::More(3)));
}

#[test]
fn laws_need_columns_that_exist() {
    let ids = LAWS.iter().flat_map(Law::needed).flat_map(|(_, of)| of).filter(|id| !["tps", "time_ms"].contains(id));
    let unknown = ids.filter(|id| Mapping::parse(&format!("x={id}")).is_err());
    assert_eq!(unknown.collect::<Vec<_>>(), Vec::<&str>::new());
}

/// A million rows take seconds.
#[test]
#[ignore = "nightly: asserts seconds"]
fn a_million_rows_are_audited_in_time() {
    let ids = "jobs,commit_throughput_tps,commit_latency_ms,redo_kib_per_tx,redo_mib_per_s,cpu_busy_pct,cpu_user_pct,cpu_sys_pct";
    let mut text = format!("{ids}\n");
    for row in 0..1_000_000u32 {
        let (jobs, ms) = (1 + row % 64, 1.0 + f64::from(row % 7) / 10.0);
        let tps = f64::from(jobs) / ms * 1e3;
        text += &format!("{jobs},{tps:.1},{ms:.3},2.00,{:.2},40,30,10\n", tps * 2.0 / 1024.0);
    }
    let start = std::time::Instant::now();
    let found = check(&text);
    let seconds = start.elapsed().as_secs_f64();
    println!("1,000,000 rows in {seconds:.1} s");
    assert_eq!((found.rows, found.count(Severity::Error)), (1_000_000, 0), "{:#?}", found.findings.first());
    assert!(seconds < 30.0, "{seconds} s");
}

proptest! {
    #[test]
    fn nothing_panics(text in "[a-zµ,;|\\-+#<>/ │═\"\n0-9.%()±→]{0,300}", cell in "\\PC{0,12}", at in 0usize..200) {
        let csv = made(&mut Random::new(3)).csv();
        let spoiled: Vec<&str> = csv.split(',').enumerate().map(|(i, old)| if i == at { &cell } else { old }).collect();
        for text in [text, spoiled.join(","), csv.replacen("test", &cell, 1)] {
            let _ = table::read(&text, "x").map(|tables| audit(&tables, &Options::default()));
        }
    }
}
