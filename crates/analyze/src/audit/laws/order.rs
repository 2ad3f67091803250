//! Order of tests: throughput over rising jobs, numbers without gaps, no test twice.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::audit::context::Context;
use crate::audit::finding::Severity;
use crate::audit::law::Law;
use crate::audit::reason::{Figure, Reason};
use crate::audit::sheet::SETTINGS;
use crate::audit::words::is_text;

pub(super) fn falling(law: &'static Law, context: &Context<'_>) {
    let columns = context.places(&["jobs", "tps"]);
    for series in context.series.iter().filter(|_| context.swept == Some("jobs")) {
        let figure = |row: &usize| Some((*row, context.value("jobs", *row)?, context.value("tps", *row)?));
        let mut rows: Vec<(usize, f64, f64)> = series.rows.iter().filter_map(figure).collect();
        rows.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (mut most, mut at) = (0.0, 0.0);
        for (row, jobs, tps) in rows {
            if tps >= most {
                (most, at) = (tps, jobs);
            } else if jobs > at && tps < most * (1.0 - law.slack) {
                let why = Reason::Peak(Figure(most), Figure(at));
                context.find((law.id, Severity::Info), row, &columns, Some(most), why);
            }
        }
    }
}

pub(super) fn tests(law: &'static Law, context: &Context<'_>) {
    let columns = context.places(&["test"]);
    let number = |row: &usize| Some((*row, context.value("test", *row)?));
    let numbers = |rows: &[usize]| rows.iter().filter_map(number).collect::<Vec<(usize, f64)>>();
    let all: Vec<Vec<(usize, f64)>> = context.series.iter().map(|s| numbers(&s.rows)).collect();
    let ones = |tests: &[(usize, f64)]| tests.windows(2).filter(|w| w[1].1 - w[0].1 == 1.0).count();
    let (found, steps) = all.iter().fold((0, 0), |(f, s), tests| (f + ones(tests), s + tests.len().saturating_sub(1)));
    if found < 2 || found * 2 < steps {
        return;
    }
    for tests in &all {
        for (at, w) in tests.windows(2).enumerate().filter(|(_, w)| w[1].1 - w[0].1 != 1.0) {
            // Between two that have room for one, or at an end where all others follow each other, a digit may be wrong.
            let room = tests.get(at + 2).is_some_and(|next| next.1 - w[0].1 == 2.0);
            if !room && w[1].1 < w[0].1 + 2.0 {
                continue;
            }
            let end = tests.len() > 3 && (at == 0 || at + 2 == tests.len()) && ones(tests) + 2 == tests.len();
            let severity = if room || end { Severity::Warning } else { Severity::Info };
            let row = if end && at == 0 { w[0].0 } else { w[1].0 };
            let (first, last) = (w[0].1 + 1.0, if room { w[0].1 + 1.0 } else { w[1].1 - 1.0 });
            context.find((law.id, severity), row, &columns, Some(first), Reason::Gap(first, last));
        }
    }
}

pub(super) fn duplicates(law: &'static Law, context: &Context<'_>) {
    let table = context.sheet.table;
    let hash = |row: usize, columns: &[usize]| {
        let mut hasher = DefaultHasher::new();
        columns.iter().for_each(|c| table.cell(row, *c).hash(&mut hasher));
        hasher.finish()
    };
    // All but the figures says which test it is.
    let is_key = |index: &usize| {
        let is_key = |id| is_text(id) || SETTINGS.contains(&id) || id == "test" || id == "run";
        context.sheet.at(*index).is_none_or(|column| is_key(column.id))
    };
    let whole: Vec<usize> = (0..table.headers.len()).collect();
    let keys: Vec<usize> = whole.iter().copied().filter(is_key).collect();
    let repeats = |w: &&[usize]| context.value("test", w[0]) == context.value("test", w[1]);
    let repeated: usize = context.series.iter().map(|s| s.rows.windows(2).filter(repeats).count()).sum();
    let has = |id| context.sheet.has(id);
    let numbered = has("test") && has("jobs") && keys.len() < whole.len() && repeated * 4 <= table.rows();
    let (mut seen, mut tests): (HashMap<u64, usize>, HashMap<u64, usize>) = (HashMap::new(), HashMap::new());
    let columns = context.places(&["platform", "workload", "run", "jobs", "test"]);
    for row in (0..table.rows()).filter(|row| whole.iter().any(|c| !table.cell(*row, *c).is_empty())) {
        let first = *seen.entry(hash(row, &whole)).or_insert(row);
        let test = if numbered && first == row { *tests.entry(hash(row, &keys)).or_insert(row) } else { row };
        if first < row {
            context.find((law.id, Severity::Warning), row, &columns, None, Reason::Copy(first + 1));
        } else if test < row {
            context.find((law.id, Severity::Error), row, &columns, None, Reason::Again(test + 1));
        }
    }
}
