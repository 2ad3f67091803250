//! Checks laws: by their formulas, or by functions of their own, which look at all tests of a table or at one cell alone.

use super::finding::{Figure, Reason, Severity};
use super::formula::{Pair, compile};
use super::interval::Interval;
use super::judge::{GROUPS, Judge, is_most};
use super::law::{Grade, Law, is_unknown, law};
use super::sheet::{Column, How, Sheet};
use super::told::{Claim, is_same};

/// What checks a law that no formula says.
type Function = fn(&'static Law, &Sheet<'_>);

/// Laws with functions of their own. Dilution is found with Little's law.
const FUNCTIONS: [(&str, Function); 4] =
    [("dilution", |_, _| {}), ("elapsed", elapsed), ("test-numbers", test_numbers), ("cells", cells)];

/// Checks a law, and says whether it could be.
pub(crate) fn check(law: &'static Law, sheet: &Sheet<'_>) -> bool {
    if let Some((_, function)) = FUNCTIONS.iter().find(|(id, _)| *id == law.id) {
        let has = |id: &&&str| sheet.resolve(id).is_some();
        let applies = law.needed().any(|(least, of)| of.iter().filter(has).count() >= least);
        if applies {
            function(law, sheet);
        }
        return applies;
    }
    let most = if matches!(law.grade, Grade::Waits | Grade::Jobs) { 1 } else { usize::MAX };
    let pairs = |text: &&'static str| match law.values.split_first() {
        Some((word, values)) if is_unknown(word) => with_values(law, text, (word, values), sheet),
        _ => compile(text, sheet),
    };
    let check = |pairs: Vec<Pair>| pairs.iter().for_each(|pair| Judge::check(law, pair, sheet));
    law.formulas.iter().filter_map(pairs).take(most).map(check).count() > 0
}

/// The reading of a formula and the value of `word` that most rows have; of those that as many have, the last, and for an upper bound the
/// first.
fn with_values(law: &Law, text: &str, (word, values): (&str, &[&str]), sheet: &Sheet<'_>) -> Option<Vec<Pair>> {
    let readings = text.split(" or ").flat_map(|reading| values.iter().map(move |value| reading.replace(word, value)));
    let mut found: Vec<(usize, usize, Pair)> = Vec::new();
    for pair in readings.filter_map(|reading| compile(&reading, sheet)).flatten() {
        let both = |row| pair.values(row, sheet, false);
        let meets =
            |(left, right): (Interval, Interval)| left.low <= right.high && (!pair.equal || right.low <= left.high);
        let rows: Vec<bool> = (0..sheet.rows()).filter_map(both).map(meets).collect();
        found.push((rows.iter().filter(|meets| **meets).count(), rows.len(), pair));
    }
    let (plainest, equal) = found.last().map(|(.., pair)| (pair.columns.len(), pair.equal))?;
    let is_found = |(fits, rows, _): &(usize, usize, Pair)| *fits > 0 && is_most(*fits, *rows);
    let best = if equal { found.into_iter().max_by_key(|(fits, ..)| *fits) } else { found.into_iter().find(is_found) };
    let Some((fits, rows, pair)) = best.filter(is_found) else { return Some(Vec::new()) };
    let severity = if pair.columns.len() > plainest { Severity::Warning } else { Severity::Info };
    sheet.about_table(law.id, severity, &pair.columns, Reason::Fits(pair.text.clone(), fits, rows));
    Some(vec![pair])
}

/// Finds out what the jobs are a product of, if those of the column called so are too few.
pub(crate) fn settle_jobs(sheet: &mut Sheet<'_>) {
    let law = law("little");
    let busy = |sheet: &Sheet<'_>| -> Vec<Interval> {
        let pair = law.formulas.iter().find_map(|text| compile(text, sheet)?.pop());
        pair.map_or_else(Vec::new, |pair| Judge::ratios(law, &pair, sheet))
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
            return sheet.about_table(law.id, Severity::Info, &sheet.places(&["jobs"]), why);
        }
    }
    sheet.jobs = vec!["jobs"];
}

/// Times that tests are set to, s.
const NOMINAL: [f64; 22] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 150.0, 180.0, 240.0, 300.0, 600.0, 900.0, 1200.0,
    1800.0, 2700.0, 3600.0, 7200.0,
];

fn elapsed(law: &'static Law, sheet: &Sheet<'_>) {
    let figure = |row| Some((row, sheet.interval("elapsed_s", row)?));
    let all: Vec<(usize, Interval)> = (0..sheet.rows()).filter_map(figure).collect();
    let least = all.iter().map(|(_, e)| e.high).filter(|s| *s > 0.0).fold(f64::INFINITY, f64::min);
    let Some(nominal) = NOMINAL.into_iter().rev().find(|n| *n <= least && least <= n * 1.1) else { return };
    // Where most took quite another time, it is not one that was set.
    if !is_most(all.iter().filter(|(_, e)| e.low <= nominal * 1.1).count(), all.len()) {
        return;
    }
    let rate = if sheet.throughput().is_some() { "tps" } else { "rows_per_s" };
    for (row, time) in all.into_iter().filter(|(_, e)| e.low > nominal * 1.002) {
        let share = time.at / nominal - 1.0;
        // Little's law may show that the average is not diluted.
        let value = |id| sheet.value(id, row).unwrap_or(f64::NAN);
        if value("tps") * value("commit_latency_ms") / 1e3 > value("jobs") * (1.0 - share / 2.0) {
            continue;
        }
        let severity = if share > 0.0101 { Severity::Warning } else { Severity::Info };
        let why = Reason::Elapsed(Figure(time.at), Figure(nominal), Figure(value(rate) * (1.0 + share)));
        sheet.find((law.id, severity), row, &sheet.places(&[rate, "elapsed_s"]), Some(nominal), why);
    }
}

/// Finds gaps between tests that are numbered one after another.
fn test_numbers(law: &'static Law, sheet: &Sheet<'_>) {
    let number = |row| Some((row, sheet.value("test", row)?));
    let tests: Vec<(usize, f64)> = (0..sheet.rows()).filter_map(number).collect();
    let steps =
        || tests.windows(2).filter(|w| sheet.is_series([w[0].0, w[1].0])).map(|w| (w[1].0, w[0].1 + 1.0, w[1].1));
    let ones = steps().filter(|(_, next, test)| next == test).count();
    let is_numbered = ones >= 2 && ones * 2 >= steps().count();
    for (row, next, test) in steps().filter(|(_, next, test)| is_numbered && test > next) {
        let why = Reason::Gap(next, test - 1.0);
        sheet.find((law.id, Severity::Info), row, &sheet.places(&["test"]), Some(next), why);
    }
}

/// Finds cells that hold no figure, or one that cannot be.
fn cells(law: &'static Law, sheet: &Sheet<'_>) {
    let table = sheet.table;
    for (place, column) in sheet.columns.iter().enumerate() {
        let say = |severity, row, why| sheet.find((law.id, severity), row, &[place], None, why);
        column.broken.iter().for_each(|row| say(Severity::Warning, *row, Reason::NotANumber));
        // A column of names is none of ours, and a row of nothing but a name is a heading.
        let heading = |row: usize| (0..table.headers.len()).filter(|c| !table.cell(row, *c).is_empty()).count() == 1;
        let few = column.unread.len() * 2 <= sheet.rows();
        for row in column.unread.iter().filter(|row| few && !heading(**row)) {
            let figure = table.cell(*row, column.index).contains(|c: char| c.is_ascii_digit());
            say(if figure { Severity::Warning } else { Severity::Info }, *row, Reason::Unread);
        }
        for row in 0..sheet.rows() {
            if let Some((severity, why)) = impossible(sheet, column, row) {
                say(severity, row, why);
            }
        }
    }
}

/// What is wrong with a figure alone.
fn impossible(sheet: &Sheet<'_>, column: &Column, row: usize) -> Option<(Severity, Reason)> {
    let value = column.value(row).filter(|v| *v <= 0.0)?;
    let graver = |sure: bool| if sure { Severity::Error } else { Severity::Warning };
    if value < 0.0 {
        return Some((graver(column.how <= How::Id), Reason::Negative));
    }
    let has = |id| sheet.value(id, row).is_some_and(|v| v > 0.0);
    if ["jobs", "nodes", "elapsed_s", "threads"].contains(&column.id) {
        let exact = column.interval(row, false).is_some_and(|i| i.high < 0.5);
        return Some((graver(has("tps") && exact && (column.how <= How::Id || column.id == "jobs")), Reason::NoJobs));
    }
    let is_rate = sheet.throughput() == Some(column.id);
    (is_rate && has("jobs")).then_some((Severity::Warning, Reason::NoWork))
}

/// Holds a claim against a table, if that has its column and rows.
pub(crate) fn check_claim(claim: &Claim, sheet: &Sheet<'_>) -> Option<()> {
    let (table, columns) = (sheet.table, &sheet.columns);
    let is_named = |name: &str| is_same(name, &claim.column);
    let place = columns.iter().position(|c| is_named(c.id) || is_named(&table.headers[c.index]))?;
    // A cell of the first column counts before the number of a row.
    let row = |name: &str| {
        let number = || name.parse::<usize>().ok()?.checked_sub(1).filter(|row| *row < table.rows());
        table.cells(0, usize::MAX).position(|cell| is_same(cell, name)).or_else(number)
    };
    let [above, below] = [row(&claim.rows[0])?, row(&claim.rows[1])?];
    let base = columns[place].value(below).filter(|b| *b != 0.0)?;
    let ratio = columns[place].value(above)? / base;
    let holds = (ratio - claim.factor).abs() <= claim.tolerance;
    let severity = if holds { Severity::Info } else { Severity::Error };
    let why = Reason::Claim(Figure(claim.factor), Figure(ratio));
    sheet.find(("claim", severity), above, &[place], Some(base * claim.factor), why);
    Some(())
}
