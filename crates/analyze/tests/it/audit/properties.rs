//! No false error in consistent tables, spoiled cells found, and no text that panics. Tables are made up from a model of queues, forwards:
//! what jobs, CPUs and a log writer do is computed first, then printed with some digits. No formula of the laws is used, so that a law
//! that is wrong finds errors in them.

use std::collections::BTreeSet;

use loadline_analyze::audit::{Audit, Finding, LAWS, Law, Mapping, Reason, Severity, audit, table};
use loadline_analyze::paired::simulated::unit;
use loadline_model::random::Random;
use proptest::prelude::*;

const TABLES: u64 = 10_000;
/// Laws that are equations: a cell in them cannot change alone.
const EQUATIONS: [&str; 7] = ["little", "redo-rate", "rows", "commits", "cpu-parts", "cpu-sum", "syncs"];

fn check(csv: &str) -> Audit {
    audit(&table::read(csv, "made.csv").unwrap(), &Mapping::default(), &[])
}

#[test]
fn consistent_tables_have_no_errors_and_few_warnings_and_wrong_cells_are_found() {
    let (mut random, mut warned, mut rows, mut found, mut all) = (Random::new(7), 0, 0, 0, 0);
    for seed in 0..TABLES {
        let consistent = made(&mut Random::new(seed));
        let audit = check(&consistent.csv());
        assert!(audit.rows == consistent.values.len() && audit.refused.is_empty(), "seed {seed}: {:?}", audit.refused);
        let errors: Vec<_> = audit.findings.iter().filter(|f| f.severity == Severity::Error).collect();
        assert!(errors.is_empty(), "seed {seed}: {errors:#?}\n{}", consistent.csv());
        (rows, warned) = (rows + audit.rows, warned + audit.count(Severity::Warning));
        let mut made = consistent.clone();
        let Some(row) = spoil(&mut made, &mut random) else { continue };
        let is_hit = |f: &Finding| f.severity != Severity::Info && f.row == Some(row + 1);
        found += u32::from(check(&made.csv()).findings.iter().any(is_hit));
        all += 1;
    }
    println!("{warned} warnings in {rows} rows of {TABLES} tables; {found} of {all} wrong cells found");
    assert!(warned * 100 <= rows, "{warned} warnings in {rows} rows");
    assert!(all > 5_000 && f64::from(found) >= 0.95 * f64::from(all), "{found} of {all} wrong cells");
}

/// Spoils one cell that an equation covers by 5 to 105 %; `None` if its digits hide that.
fn spoil(made: &mut Made, random: &mut Random) -> Option<usize> {
    let (up, factor) = (unit(random) < 0.5, 1.05 + unit(random));
    let factor = if up { factor } else { 1.0 / factor };
    let needed = LAWS.iter().filter(|l| EQUATIONS.contains(&&*l.id)).flat_map(Law::needed);
    let places = needed.filter_map(|(_, of)| of.into_iter().map(|id| made.at(id)).collect::<Option<Vec<usize>>>());
    let covered: BTreeSet<usize> = places.flatten().collect();
    let column = *covered.iter().nth(below(random, covered.len().max(1)))?;
    let row = below(random, made.values.len());
    let before = made.values[row][column];
    made.values[row][column] *= factor;
    let moved = made.printed(row, column).parse::<f64>().unwrap() - before;
    // More than its rounding, and that of the two cells beside it.
    let least = if made.columns[column].0.starts_with("cpu_") { 3.0 } else { 2.0 };
    (moved.abs() * 10f64.powi(made.decimals[column] as i32) > least).then_some(row)
}

#[test]
fn broken_rows_beyond_the_first_thousand_are_counted() {
    let found = check(&format!("jobs,tps\n{}{}", "1,2\n".repeat(2000), "1,2,3\n".repeat(1003)));
    assert!(found.findings.iter().any(|f| f.reason == Reason::More(3)));
}

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
            let _ = table::read(&text, "x").map(|tables| audit(&tables, &Mapping::default(), &[]));
        }
    }
}

fn below(random: &mut Random, n: usize) -> usize {
    (random.next() % n as u64) as usize
}

/// Between two values, each order of magnitude as likely.
fn around(random: &mut Random, low: f64, high: f64) -> f64 {
    (low.ln() + (high / low).ln() * unit(random)).exp()
}

/// A table with the decimals with which its columns are printed.
#[derive(Debug, Clone)]
struct Made {
    /// Ids of the columns, and their headers, which may name other units.
    columns: Vec<(&'static str, &'static str)>,
    /// The workload of each row; a column of their names is printed if there are several.
    works: Vec<usize>,
    values: Vec<Vec<f64>>,
    decimals: Vec<usize>,
}

impl Made {
    /// The place of a column; formulas name some otherwise.
    fn at(&self, id: &str) -> Option<usize> {
        let names = [("tps", "commit_throughput_tps"), ("time_ms", "commit_latency_ms")];
        let real = names.into_iter().find(|(name, _)| *name == id).map_or(id, |(_, real)| real);
        self.columns.iter().position(|(known, _)| *known == real)
    }

    fn printed(&self, row: usize, column: usize) -> String {
        format!("{:.*}", self.decimals[column], self.values[row][column])
    }

    fn csv(&self) -> String {
        let several = self.works.iter().any(|work| *work > 0);
        let first = |name: &str| if several { format!("{name},") } else { String::new() };
        let headers: Vec<&str> = self.columns.iter().map(|(_, header)| *header).collect();
        let mut out = first("workload") + &headers.join(",") + "\n";
        for (row, work) in self.works.iter().enumerate() {
            let cells: Vec<String> = (0..headers.len()).map(|column| self.printed(row, column)).collect();
            out += &(first(["Order", "Payment", "Scan"][*work]) + &cells.join(",") + "\n");
        }
        out
    }
}

/// Time of a transaction of `n` jobs by mean value analysis of a closed network: CPUs, a log writer, a delay.
fn response(n: u32, cpu_s: f64, log_s: f64, delay_s: f64, think_s: f64) -> f64 {
    let (mut at_cpu, mut at_log, mut time) = (0.0, 0.0, 0.0);
    for jobs in 1..=n {
        let (r_cpu, r_log) = (cpu_s * (1.0 + at_cpu), log_s * (1.0 + at_log));
        time = r_cpu + r_log + delay_s;
        let rate = f64::from(jobs) / (time + think_s);
        (at_cpu, at_log) = (rate * r_cpu, rate * r_log);
    }
    time
}

/// One consistent table: one workload, or several, one below the other or side by side at each number of jobs.
fn made(random: &mut Random) -> Made {
    let (test, works) = (1 + below(random, 300), 1 + below(random, 6).saturating_sub(3));
    let cpus = [2.0, 8.0, 24.0, 96.0][below(random, 4)];
    // Bytes of a block of redo, and whether it is padded once for a write, or for each transaction.
    let (block, per_write) = ([512.0, 4096.0, 8192.0][below(random, 3)], below(random, 2) == 0);
    // Share of the idle time that waits for I/O, and time between transactions, s.
    let iowait = if below(random, 2) == 0 { 0.0 } else { 0.3 * unit(random) };
    let think = if below(random, 4) == 0 { around(random, 1e-3, 1e-1) } else { 0.0 };
    let seconds = [60.0, 300.0, 600.0][below(random, 3)];
    let mut rows: Vec<(usize, Vec<f64>)> = Vec::new();
    for work in 0..works {
        let demand = around(random, 2e-5, 2e-3);
        // Jobs that get in each other's way need more CPU time.
        let more = if below(random, 3) == 0 { around(random, 1e-4, 2e-2) } else { 0.0 };
        let (log, delay) = (around(random, 1e-6, 3e-4), around(random, 2e-5, 5e-3));
        let kib = around(random, 0.3, 500.0);
        let rows_per_tx = [1.0, 2.0, 5.0, 10.0, 50.0, 100.0][below(random, 6)];
        let (user, spread) = (0.6 + 0.39 * unit(random), 0.2 + 0.8 * unit(random));
        let (count, step) = (4 + below(random, 9), 1.3 + unit(random));
        let mut jobs = 1 + below(random, 3) as u32;
        for _ in 0..count {
            let demand = demand * (1.0 + more * f64::from(jobs - 1));
            let time = response(jobs, demand / cpus, log, delay, think);
            let rate = f64::from(jobs) / (time + think);
            let busy = (rate * demand / cpus).min(1.0) * 100.0;
            let waiting = (100.0 - busy) * iowait;
            // Commits that meet at the log writer share its writes.
            let group = 1.0 + (f64::from(jobs) - 1.0) * 0.5 * (1.0 - (-rate * log).exp());
            let (writes, bytes) = (rate / group, rate * kib * 1024.0);
            let whole = rate * (kib * 1024.0 / block).ceil() * block;
            let padded = if per_write { bytes + writes * block / 2.0 } else { whole };
            // Log-normal times with this mean.
            let median = time / (spread * spread / 2.0).exp();
            let at = |z: f64| median * (spread * z).exp();
            let cpu = [busy, busy * user, busy * (1.0 - user), 100.0 - busy - waiting, waiting];
            let log = [padded / block, writes, rate, bytes / 1_048_576.0, kib, (log + delay * 0.5) * 1e3, seconds];
            let times = [median * 1e9, at(2.326) * 1e9, at(4.5) * 1e9];
            let counts = [rows_per_tx, rate * rows_per_tx, rate * seconds];
            let row = [&[0.0, f64::from(jobs)][..], &cpu, &[rate, time * 1e3], &log, &times, &counts].concat();
            rows.push((work, row));
            jobs = (f64::from(jobs) * step).ceil() as u32 + 1;
        }
    }
    if below(random, 2) == 0 {
        rows.sort_by(|a, b| a.1[1].total_cmp(&b.1[1]));
    }
    rows.iter_mut().enumerate().for_each(|(i, (_, row))| row[0] = (test + i) as f64);
    print(random, rows)
}

const COLUMNS: [&str; 22] = [
    "test", "jobs", "cpu_busy_pct", "cpu_user_pct", "cpu_sys_pct", "cpu_idle_pct", "cpu_iowait_pct",
    "commit_throughput_tps", "commit_latency_ms", "redo_blocks_per_s", "redo_writes_per_s", "redo_sync_writes_per_s",
    "redo_mib_per_s", "redo_kib_per_tx", "log_file_sync_ms", "elapsed_s", "transaction_time_ns_p50",
    "transaction_time_ns_p99", "transaction_time_ns_max", "rows_per_tx", "rows_per_s", "commits",
];

/// Columns as others head them, and what their figures are then in units with a factor of 1000, and in others.
const HEADERS: [(&str, &str, [f64; 2]); 5] = [
    ("redo_mib_per_s", "Redo [MB/s]", [1.048576, 1.0]),
    ("redo_kib_per_tx", "Redo [kB/tx]", [1.024, 1.0]),
    ("commit_throughput_tps", "Throughput [ktps]", [1e-3, 1e-3]),
    ("commit_latency_ms", "Latency [us]", [1e3, 1e3]),
    ("rows_per_s", "Rows [krows/s]", [1e-3, 1e-3]),
];

/// Prints some of the columns with some digits: as many decimals as leave the smallest value of a column 2 to 5 digits.
fn print(random: &mut Random, rows: Vec<(usize, Vec<f64>)>) -> Made {
    let (works, mut values): (Vec<usize>, Vec<Vec<f64>>) = rows.into_iter().unzip();
    let mut columns = COLUMNS.map(|id| (id, id));
    let units = below(random, 4);
    let headers = if units < 2 { &HEADERS[..] } else { &[] };
    for (id, header, factors) in headers {
        for c in (0..COLUMNS.len()).filter(|c| COLUMNS[*c] == *id) {
            columns[c].1 = header;
            values.iter_mut().for_each(|row| row[c] *= factors[units]);
        }
    }
    let mut kept: Vec<usize> = (0..COLUMNS.len()).collect();
    kept.retain(|_| unit(random) < 0.8);
    if kept.len() < 2 {
        kept = (0..COLUMNS.len()).collect();
    }
    let mut decimals = |c: &usize| match COLUMNS[*c] {
        "test" | "jobs" | "elapsed_s" | "rows_per_tx" | "commits" => 0,
        id if id.starts_with("cpu_") => below(random, 2),
        _ => {
            let least = values.iter().map(|row| row[*c]).filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
            let digits = 2 + below(random, 4) as i32;
            usize::try_from(digits - 1 - least.log10().floor() as i32).unwrap_or(0).min(9)
        }
    };
    let decimals: Vec<usize> = kept.iter().map(&mut decimals).collect();
    let columns = kept.iter().map(|c| columns[*c]).collect();
    Made { columns, works, values: values.iter().map(|row| kept.iter().map(|c| row[*c]).collect()).collect(), decimals }
}
