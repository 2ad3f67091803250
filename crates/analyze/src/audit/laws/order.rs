//! Order of tests: rising jobs, numbers without gaps, no test twice.

use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::hash::{Hash, Hasher};

use crate::audit::context::Context;
use crate::audit::finding::{Findings, Severity};
use crate::audit::names::{SETTINGS, is_text};
use crate::audit::sheet::Bound;

pub(super) fn job_order(context: &Context<'_>, findings: &mut Findings) {
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
            // Either the row above is too large, or this one too small; where both may be, both are named.
            let above = at >= 2 && rises(at - 2, at) == Some(true) || at == 1 && rises(at, at + 1) == Some(true);
            let below = rises(at - 1, at + 1).unwrap_or(true);
            for (row, _) in [(at - 1, above), (at, below || !above)]
                .iter()
                .filter(|(_, may)| *may)
                .filter_map(|(i, _)| jobs.get(*i))
            {
                let text = "the jobs do not follow the order of the other rows".to_owned();
                context.warn(findings, ("job-order", *row), (&["jobs"], "jobs"), None, text);
            }
        }
    }
}

pub(super) fn gaps(context: &Context<'_>, findings: &mut Findings) {
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
        // One at an end, apart from all others.
        let steps: Vec<f64> = tests.windows(2).map(|w| w[1].1 - w[0].1).collect();
        let ones = steps.iter().filter(|s| **s == 1.0).count();
        for (step, at, next) in [(steps.first(), 0, 1.0), (steps.last(), tests.len().saturating_sub(1), -1.0)] {
            let alone = step.is_some_and(|s| *s != 1.0) && steps.len() > 2 && ones + 1 == steps.len();
            if let (true, Some((row, _)), Some((_, beside))) =
                (alone, tests.get(at), tests.get(if at == 0 { 1 } else { at - 1 }))
            {
                let text =
                    "all other tests follow each other: tests between were left out, or a digit is wrong".to_owned();
                let expected = Some(beside - next);
                context.warn(findings, ("test-numbers", *row), (&["test"], "test"), expected, text);
            }
        }
        for w in tests.windows(3) {
            // Between two that have room for one.
            if let [(_, a), (row, x), (_, c)] = *w
                && c - a == 2.0
                && x != a + 1.0
            {
                let text = "the tests above and below it follow each other with one between them".to_owned();
                let severity = Severity::Warning;
                findings.push(context.about_row("test-numbers", severity, row, &["test"], "test", Some(a + 1.0), text));
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
        if findings.wants("test-numbers", Severity::Info) {
            findings.push(context.about_row(
                "test-numbers",
                Severity::Info,
                row,
                &["test"],
                "test",
                Some(before + 1.0),
                text,
            ));
        }
    }
}

pub(super) fn duplicates(context: &Context<'_>, findings: &mut Findings) {
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
        if findings.wants("duplicates", severity) {
            let columns = ["platform", "workload", "run", "test", "jobs"];
            let text = format!("{text} row {}", first + 1);
            findings.push(context.about_row("duplicates", severity, row, &columns, "test", None, text));
        }
    }
}

/// Whether nearly all tests of a series have numbers of their own.
fn numbers_are_names(context: &Context<'_>) -> bool {
    let same = |series: &crate::audit::sheet::Series| {
        let tests = series.rows.windows(2);
        tests.filter(|w| matches!(w, [a, b] if context.value("test", *a) == context.value("test", *b))).count()
    };
    context.series.iter().map(same).sum::<usize>() * 4 <= context.rows().len()
}
