//! Checks laws: by their formulas, or by functions of their own, which look at all tests of a table, or at one cell alone.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use super::finding::{Figure, Reason, Severity};
use super::header::{is_text, words};
use super::judge::{self, GROUPS, Row, is_most};
use super::law::{Kind, Law, Pair, compile, is_unknown, law};
use super::number::Interval;
use super::sheet::{Column, How, SAMPLE, Sheet};
use crate::stats::median;

pub(crate) fn check(law: &'static Law, sheet: &Sheet<'_>) -> bool {
    let function: fn(&'static Law, &Sheet<'_>) = match law.id.as_str() {
        // Dilution is found with Little's law, and the kilobyte before all laws.
        "dilution" | "kilobyte" => |_, _| {},
        "elapsed" => elapsed,
        "same-work" => same_work,
        "falling-throughput" => falling_throughput,
        "test-numbers" => test_numbers,
        "duplicates" => duplicates,
        "cells" => cells,
        _ => {
            let most = if matches!(law.kind, Kind::Waits | Kind::Jobs) { 1 } else { usize::MAX };
            let is_open = law.values.first().is_some_and(|word| is_unknown(word));
            let pairs = |text: &String| if is_open { with_values(law, text, sheet) } else { compile(text, sheet) };
            let check = |pairs: Vec<Pair<'_>>| pairs.iter().for_each(|pair| judge::check(law, pair));
            return law.formulas.iter().filter_map(pairs).take(most).map(check).count() > 0;
        }
    };
    let has = |id: &&&str| sheet.resolve(id).is_some();
    let applies = law.needed().any(|(least, of)| of.iter().filter(has).count() >= least);
    if applies {
        function(law, sheet);
    }
    applies
}

/// The reading of a formula with the value of its unknown word that most rows have; of several the last, for an upper bound the first.
fn with_values<'a>(law: &'static Law, text: &str, sheet: &'a Sheet<'a>) -> Option<Vec<Pair<'a>>> {
    let (word, values) = law.values.split_first()?;
    let readings = text.split(" or ").flat_map(|reading| values.iter().map(move |value| reading.replace(word, value)));
    let mut found: Vec<(usize, usize, Pair<'_>)> = Vec::new();
    for pair in readings.filter_map(|reading| compile(&reading, sheet)).flatten() {
        let meets = |row| {
            let (left, right) = pair.values(row, false)?;
            Some(left.low <= right.high && (!pair.equal || right.low <= left.high))
        };
        let rows: Vec<bool> = (0..sheet.table.rows()).filter_map(meets).collect();
        found.push((rows.iter().filter(|meets| **meets).count(), rows.len(), pair));
    }
    let (plainest, equal) = found.last().map(|(.., pair)| (pair.columns.len(), pair.equal))?;
    let is_found = |(fits, rows, _): &(usize, usize, Pair<'_>)| *fits > 0 && is_most(*fits, *rows);
    let best = if equal { found.into_iter().max_by_key(|(fits, ..)| *fits) } else { found.into_iter().find(is_found) };
    let Some((fits, rows, pair)) = best.filter(is_found) else { return Some(Vec::new()) };
    let severity = if pair.columns.len() > plainest { Severity::Warning } else { Severity::Info };
    sheet.about(None, (&law.id, severity), &pair.columns, Reason::Fits(pair.text.clone(), fits, rows));
    Some(vec![pair])
}

/// Finds out what the jobs are a product of, if those of the column called so are too few.
pub(crate) fn settle_jobs(sheet: &mut Sheet<'_>) {
    let law = law("little");
    let busy = |sheet: &Sheet<'_>| -> Vec<Interval> {
        let Some(pair) = law.formulas.iter().find_map(|text| compile(text, sheet)?.pop()) else { return Vec::new() };
        (0..sheet.table.rows().min(SAMPLE)).filter_map(|row| Row::read(law, &pair, row)).map(|r| r.ratio).collect()
    };
    let fits = |all: &[Interval]| all.iter().filter(|b| b.holds(1.0) || (b.at - 1.0).abs() < GROUPS).count();
    let alone = busy(sheet);
    if sheet.has("jobs") && alone.iter().all(|b| b.low <= 1.0 + law.slack) {
        return;
    }
    for product in &law.values[1..] {
        sheet.jobs = product.split('*').collect();
        let all = busy(sheet);
        let count = fits(&all);
        if count >= 2 && is_most(count, all.len()) && count > fits(&alone) {
            let why = Reason::Sessions(count, all.len(), sheet.jobs.join(" × "));
            return sheet.about(None, (&law.id, Severity::Info), &sheet.places(&["jobs"]), why);
        }
    }
    sheet.jobs = vec!["jobs"];
}

/// Finds out which kilobyte was meant, where headers leave it open: that with which throughput × redo per transaction is the redo rate.
pub(crate) fn settle_kilobyte(sheet: &mut Sheet<'_>) {
    const SIZES: [&str; 2] = ["redo_kib_per_tx", "redo_mib_per_s"];
    let law = law("kilobyte");
    let Some(pairs) = compile(&law.formulas[0], sheet) else { return };
    let ratio = |row| pairs[0].values(row, false).map(|(left, right)| left.over(right));
    let all = (0..sheet.table.rows().min(SAMPLE)).filter_map(ratio).filter(|i| i.high.is_finite());
    let all: Vec<Interval> = all.collect();
    let open = SIZES.map(|id| sheet.column(id).and_then(|c| c.other));
    let [small, large] = open.map(|other| other.unwrap_or(1.0));
    let readings = [[1.0, 1.0], [small, large], [1.0, large], [small, 1.0]];
    let count = |[small, large]: [f64; 2]| all.iter().filter(|i| i.holds(large / small)).count();
    let fits = readings.into_iter().map(count).max().unwrap_or(0);
    // Where several fit alike, it is as printed; if it cannot be, both are the others.
    let mut alike = readings.into_iter().filter(|factors| count(*factors) == fits);
    let (Some(factors), true) = (alike.next(), fits > 0 && is_most(fits, all.len())) else { return };
    if factors == readings[0] && alike.any(|other| other != factors) {
        return;
    }
    let size = |i: usize| if open[i].is_none() == (factors[i] == 1.0) { 1024 } else { 1000 };
    let why = Reason::Kilobyte(fits, all.len(), size(0), size(1));
    sheet.about(None, (&law.id, Severity::Info), &sheet.places(&["tps", SIZES[0], SIZES[1]]), why);
    for (id, factor) in SIZES.into_iter().zip(factors) {
        sheet.columns.iter_mut().filter(|c| c.id == id).for_each(|c| c.scale(factor));
    }
}

fn elapsed(law: &'static Law, sheet: &Sheet<'_>) {
    let figure = |row| Some((row, sheet.column("elapsed_s")?.interval(row, false)?));
    let all: Vec<(usize, Interval)> = (0..sheet.table.rows()).filter_map(figure).collect();
    let least = all.iter().map(|(_, e)| e.high).filter(|s| *s > 0.0).fold(f64::INFINITY, f64::min);
    let mut nominal = law.values.iter().rev().filter_map(|seconds| seconds.parse::<f64>().ok());
    let Some(nominal) = nominal.find(|n| *n <= least && least <= n * 1.1) else { return };
    // Where most took quite another time, it is not one that was set.
    if !is_most(all.iter().filter(|(_, e)| e.low <= nominal * 1.1).count(), all.len()) {
        return;
    }
    let rate = if sheet.resolve("tps").is_some() { "tps" } else { "rows_per_s" };
    let columns = sheet.places(&[rate, "elapsed_s"]);
    for (row, time) in all.iter().filter(|(_, e)| e.low > nominal * 1.002) {
        let share = time.at / nominal - 1.0;
        // Little's law may show that the average is not diluted.
        let value = |id| sheet.value(id, *row).unwrap_or(f64::NAN);
        if value("tps") * value("commit_latency_ms") / 1e3 > value("jobs") * (1.0 - share / 2.0) {
            continue;
        }
        let graded = (&*law.id, if share > 0.0101 { Severity::Warning } else { Severity::Info });
        let rate = sheet.value(rate, *row).map_or(f64::INFINITY, |r| r * (1.0 + share));
        let why = Reason::Elapsed(Figure(time.at), Figure(nominal), Figure(rate));
        sheet.find(graded, *row, &columns, Some(nominal), why);
    }
}

fn same_work(law: &'static Law, sheet: &Sheet<'_>) {
    if sheet.swept.is_some_and(|id| id != "jobs") {
        return;
    }
    for pair in law.formulas.iter().filter_map(|text| compile(text, sheet)).flatten() {
        let named = &sheet.columns[pair.columns[pair.columns.len() - 1]];
        let what = pair.text.split(" = ").next().unwrap_or_default();
        for series in &sheet.series {
            let left = |row: &usize| Some((*row, pair.values(*row, false)?.0)).filter(|(_, i)| i.high.is_finite());
            let all: Vec<(usize, Interval)> = series.iter().filter_map(left).collect();
            let figures: Vec<f64> = all.iter().map(|(_, left)| left.at).collect();
            let usual = median(&figures).unwrap_or(0.0);
            let distances: Vec<f64> = figures.iter().map(|figure| (figure - usual).abs()).collect();
            let spread = median(&distances).unwrap_or(0.0);
            let far = (6.0 * spread).max(law.slack * usual.abs());
            let is_far = |left: Interval| left.low > usual + far || left.high < usual - far;
            for (row, left) in all.iter().filter(|(_, left)| all.len() >= 4 && usual > 0.0 && is_far(*left)) {
                let recomputed = named.value(*row).map(|printed| printed * usual / left.at).filter(|r| r.is_finite());
                let why = Reason::Usual(what.to_owned(), Figure(usual));
                sheet.find((&law.id, Severity::Warning), *row, &pair.columns, recomputed, why);
            }
        }
    }
}

fn falling_throughput(law: &'static Law, sheet: &Sheet<'_>) {
    let columns = sheet.places(&["jobs", "tps"]);
    let swept = if sheet.swept == Some("jobs") { &sheet.series[..] } else { &[] };
    for series in swept {
        let figure = |row: &usize| Some((*row, sheet.value("jobs", *row)?, sheet.value("tps", *row)?));
        let mut rows: Vec<(usize, f64, f64)> = series.iter().filter_map(figure).collect();
        rows.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (mut most, mut at) = (0.0, 0.0);
        for (row, jobs, tps) in rows {
            if tps >= most {
                (most, at) = (tps, jobs);
            } else if jobs > at && tps < most * (1.0 - law.slack) {
                let why = Reason::Peak(Figure(most), Figure(at));
                sheet.find((&law.id, Severity::Info), row, &columns, Some(most), why);
            }
        }
    }
}

fn test_numbers(law: &'static Law, sheet: &Sheet<'_>) {
    let number = |row: &usize| Some((*row, sheet.value("test", *row)?));
    let numbers = |rows: &Vec<usize>| rows.iter().filter_map(number).collect();
    let all: Vec<Vec<(usize, f64)>> = sheet.series.iter().map(numbers).collect();
    let ones = |tests: &[(usize, f64)]| tests.windows(2).filter(|w| w[1].1 - w[0].1 == 1.0).count();
    let (found, steps) = all.iter().fold((0, 0), |(f, s), tests| (f + ones(tests), s + tests.len().saturating_sub(1)));
    if found < 2 || found * 2 < steps {
        return;
    }
    for tests in &all {
        for (at, w) in tests.windows(2).enumerate() {
            // Between two that have room for one, or at an end where all others follow each other, a digit may be wrong.
            let room = tests.get(at + 2).is_some_and(|next| next.1 - w[0].1 == 2.0);
            let end = tests.len() > 3 && (at == 0 || at + 2 == tests.len()) && ones(tests) + 2 == tests.len();
            let graded = (&*law.id, if room || end { Severity::Warning } else { Severity::Info });
            let row = if end && at == 0 { w[0].0 } else { w[1].0 };
            let (first, last) = (w[0].1 + 1.0, if room { w[0].1 + 1.0 } else { w[1].1 - 1.0 });
            if w[1].1 != first && (room || last >= first) {
                sheet.find(graded, row, &sheet.places(&["test"]), Some(first), Reason::Gap(first, last));
            }
        }
    }
}

fn duplicates(law: &'static Law, sheet: &Sheet<'_>) {
    let (table, has) = (sheet.table, |id| sheet.has(id));
    // All but the figures says which test it is.
    let is_key_id = |id| is_text(id) || words("setting").chain(["test", "run"]).any(|key| key == id);
    let is_key = |index: &usize| sheet.at(*index).is_none_or(|column| is_key_id(column.id));
    let whole: Vec<usize> = (0..table.headers.len()).collect();
    let keys: Vec<usize> = whole.iter().copied().filter(is_key).collect();
    let repeats = |w: &&[usize]| sheet.value("test", w[0]) == sheet.value("test", w[1]);
    let repeated: usize = sheet.series.iter().map(|rows| rows.windows(2).filter(repeats).count()).sum();
    let numbered = has("test") && has("jobs") && keys.len() < whole.len() && repeated * 4 <= table.rows();
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let hash = |row: usize, of: &[usize]| hasher.hash_one(of.iter().map(|c| table.cell(row, *c)).collect::<Vec<_>>());
    let (mut seen, mut tests): (HashMap<u64, usize>, HashMap<u64, usize>) = Default::default();
    let columns = sheet.places(&["platform", "workload", "run", "jobs", "test"]);
    for row in (0..table.rows()).filter(|row| whole.iter().any(|c| !table.cell(*row, *c).is_empty())) {
        let first = *seen.entry(hash(row, &whole)).or_insert(row);
        let test = if numbered && first == row { *tests.entry(hash(row, &keys)).or_insert(row) } else { row };
        if first < row {
            sheet.find((&law.id, Severity::Warning), row, &columns, None, Reason::Copy(first + 1));
        } else if test < row {
            sheet.find((&law.id, Severity::Error), row, &columns, None, Reason::Again(test + 1));
        }
    }
}

fn cells(law: &'static Law, sheet: &Sheet<'_>) {
    let table = sheet.table;
    for (place, column) in sheet.columns.iter().enumerate() {
        let say = |severity, row, why| sheet.find((&law.id, severity), row, &[place], None, why);
        column.broken.iter().for_each(|row| say(Severity::Warning, *row, Reason::NotANumber));
        // A column of names is none of ours.
        let few = column.unread.len() * 2 <= sheet.table.rows();
        for row in column.unread.iter().filter(|row| few && table.heading(**row).is_none()) {
            let figure = table.cell(*row, column.index).contains(|c: char| c.is_ascii_digit());
            say(if figure { Severity::Warning } else { Severity::Info }, *row, Reason::Unread);
        }
        let found = |row| Some((row, impossible(sheet, column, row)?));
        (0..sheet.table.rows()).filter_map(found).for_each(|(row, (severity, why))| say(severity, row, why));
    }
}

/// Fault of a figure by itself: negative, 0 where there is work, all nines.
fn impossible(sheet: &Sheet<'_>, column: &Column, row: usize) -> Option<(Severity, Reason)> {
    let value = column.value(row).filter(|v| *v <= 0.0 || *v / column.factor > 9998.5)?;
    let graver = |sure: bool| if sure { Severity::Error } else { Severity::Warning };
    let is_positive = |id| sheet.value(id, row).is_some_and(|v| v > 0.0);
    if value < 0.0 {
        Some((graver(column.how <= How::Id), Reason::Negative))
    } else if value == 0.0 && ["jobs", "nodes", "elapsed_s", "threads"].contains(&column.id) {
        let exact = column.interval(row, false).is_some_and(|i| i.high < 0.5);
        let sure = is_positive("tps") && exact && (column.how <= How::Id || column.id == "jobs");
        Some((graver(sure), Reason::NoJobs))
    } else if value == 0.0 {
        let is_rate = sheet.throughput() == Some(column.id);
        (is_rate && is_positive("jobs")).then_some((Severity::Warning, Reason::NoWork))
    } else {
        let digits = || sheet.table.cell(row, column.index).bytes().filter(|b| *b != b'.');
        let nines = value <= 1e15 && digits().count() >= 4 && digits().all(|b| b == b'9');
        nines.then_some((Severity::Warning, Reason::Nines))
    }
}
