//! Order of tests: rising jobs, numbers without gaps, no test twice.

use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::hash::{Hash, Hasher};

use super::{Check, Law};
use crate::context::Context;
use crate::finding::{Findings, Severity};
use crate::sheet::{Bound, SETTINGS, is_text};

pub(crate) static JOB_ORDER: Law = Law {
    id: "job-order",
    name: "Jobs rise in a sweep",
    formula: "jobs of a row ≥ jobs of the row above, in a series that rises everywhere else",
    needs: &[&["jobs"]],
    tolerance: "always a warning",
    meaning: "A wrong digit, or a test of another sweep",
    check: Check::Own(job_order),
};

pub(crate) static GAPS: Law = Law {
    id: "test-numbers",
    name: "No test is missing",
    formula: "test of a row = test of the row above + 1, where most tests follow each other",
    needs: &[&["test"]],
    tolerance: "an info; a warning where one number does not fit between its neighbours",
    meaning: "A test was made and left out",
    check: Check::Own(gaps),
};

pub(crate) static DUPLICATES: Law = Law {
    id: "duplicates",
    name: "No test twice",
    formula: "two rows differ; one test has one result",
    needs: &[&["jobs"], &["test"], &["tps"]],
    tolerance: "equal rows are a warning, one test with two results an error",
    meaning: "A row was copied, or a test was numbered twice",
    check: Check::Own(duplicates),
};

fn job_order(context: &Context<'_>, findings: &mut Findings) {
    for series in &context.series {
        let jobs: Vec<(usize, f64)> =
            series.rows.iter().filter_map(|r| Some((*r, context.value("jobs", *r)?))).collect();
        let steps = || jobs.windows(2).filter_map(|w| Some(w.get(1)?.1 - w.first()?.1));
        let (up, down) = (steps().filter(|s| *s > 0.0).count(), steps().filter(|s| *s < 0.0).count());
        // Falling everywhere is an order, too; several sweeps below each other are none of ours.
        let wrong = up.min(down);
        if wrong == 0 || up + down < 4 || wrong * 4 > up + down {
            continue;
        }
        let sign = if up > down { 1.0 } else { -1.0 };
        let rises = |a: usize, b: usize| Some((jobs.get(b)?.1 - jobs.get(a)?.1) * sign >= 0.0);
        for at in (1..jobs.len()).filter(|at| rises(at - 1, *at) == Some(false)) {
            // Either the row above is too large, or this one too small.
            let above = at >= 2 && rises(at - 2, at) == Some(true) || at == 1 && rises(at, at + 1) == Some(true);
            let Some((row, _)) = jobs.get(if above { at - 1 } else { at }) else { continue };
            let text = "the jobs do not follow the order of the other rows".to_owned();
            findings.push(context.about_row(JOB_ORDER.id, Severity::Warning, *row, &["jobs"], "jobs", None, text));
        }
    }
}

fn gaps(context: &Context<'_>, findings: &mut Findings) {
    let steps = |rows: &[usize]| -> Vec<(usize, f64, f64)> {
        let tests: Vec<(usize, f64)> = rows.iter().filter_map(|r| Some((*r, context.value("test", *r)?))).collect();
        let step = |w: &[(usize, f64)]| Some((w.get(1)?.0, w.first()?.1, w.get(1)?.1));
        tests.windows(2).filter_map(step).collect()
    };
    let all: Vec<(usize, f64, f64)> = context.series.iter().flat_map(|s| steps(&s.rows)).collect();
    let ones = all.iter().filter(|(_, a, b)| b - a == 1.0).count();
    if ones < 2 || ones * 2 < all.len() {
        return;
    }
    for series in &context.series {
        let tests: Vec<(usize, f64)> =
            series.rows.iter().filter_map(|r| Some((*r, context.value("test", *r)?))).collect();
        for w in tests.windows(3) {
            // Between two that have room for one.
            if let [(_, a), (row, x), (_, c)] = *w
                && c - a == 2.0
                && x != a + 1.0
            {
                let text = "the tests above and below it follow each other with one between them".to_owned();
                let severity = Severity::Warning;
                findings.push(context.about_row(GAPS.id, severity, row, &["test"], "test", Some(a + 1.0), text));
            }
        }
    }
    for (row, before, after) in all.into_iter().filter(|(_, a, b)| b - a > 1.0 && a.fract() == 0.0 && b.fract() == 0.0)
    {
        let missing = if after - before == 2.0 {
            format!("test {} is", before + 1.0)
        } else {
            format!("tests {} to {} are", before + 1.0, after - 1.0)
        };
        let text = format!("{missing} missing: most tests of this table follow each other");
        if findings.wants(GAPS.id, Severity::Info) {
            findings.push(context.about_row(GAPS.id, Severity::Info, row, &["test"], "test", Some(before + 1.0), text));
        }
    }
}

fn duplicates(context: &Context<'_>, findings: &mut Findings) {
    let table = context.sheet.table;
    let hash = |cells: &mut dyn Iterator<Item = &str>| {
        let mut hasher = DefaultHasher::new();
        cells.for_each(|cell| cell.hash(&mut hasher));
        hasher.finish()
    };
    // All but the figures says which test it is.
    let figure = |index: usize| {
        let of = |c: &&Bound| c.index == index && !is_text(c.id) && !SETTINGS.contains(&c.id) && c.id != "test";
        context.sheet.columns.iter().find(of).is_some()
    };
    let keys: Vec<usize> = (0..table.headers.len()).filter(|index| !figure(*index)).collect();
    let numbered = context.has("test") && context.has("jobs") && keys.len() < table.headers.len();
    let numbered = numbered && numbers_are_names(context);
    let (mut whole, mut tests): (HashMap<u64, usize>, HashMap<u64, usize>) = (HashMap::new(), HashMap::new());
    for row in context.rows() {
        let all = hash(&mut (0..table.headers.len()).map(|c| table.cell(row, c)));
        if (0..table.headers.len()).all(|c| table.cell(row, c).is_empty()) {
            continue;
        }
        let first = match whole.entry(all) {
            Entry::Occupied(first) => Some(*first.get()),
            Entry::Vacant(place) => {
                place.insert(row);
                None
            }
        };
        let (severity, first, text) = match first {
            Some(first) => (Severity::Warning, first, "it is the same as"),
            None if numbered && !context.sheet.text("test", row).is_empty() => {
                match tests.entry(hash(&mut keys.iter().map(|c| table.cell(row, *c)))) {
                    Entry::Occupied(first) => {
                        (Severity::Error, *first.get(), "it is the same test with other figures as")
                    }
                    Entry::Vacant(place) => {
                        place.insert(row);
                        continue;
                    }
                }
            }
            None => continue,
        };
        if findings.wants(DUPLICATES.id, severity) {
            let columns = ["platform", "workload", "run", "test", "jobs"];
            let text = format!("{text} row {}", first + 1);
            findings.push(context.about_row(DUPLICATES.id, severity, row, &columns, "test", None, text));
        }
    }
}

/// Whether nearly all tests of a series have numbers of their own.
fn numbers_are_names(context: &Context<'_>) -> bool {
    let same = |series: &crate::sheet::Series| {
        let tests = series.rows.windows(2);
        tests.filter(|w| matches!(w, [a, b] if context.value("test", *a) == context.value("test", *b))).count()
    };
    context.series.iter().map(same).sum::<usize>() * 4 <= context.rows().len()
}
