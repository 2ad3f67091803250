//! Order of tests: throughput over rising jobs, numbers without gaps, no test twice.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::audit::context::Context;
use crate::audit::finding::{Findings, Severity};
use crate::audit::reason::reason;
use crate::audit::sheet::SETTINGS;
use crate::audit::words::is_text;

pub(super) fn falling(context: &Context<'_>, findings: &mut Findings) {
    if context.sheet.swept() != Some("jobs") {
        return;
    }
    let columns = context.places(&["jobs", "tps"]);
    for series in &context.series {
        let figure = |row: &usize| Some((*row, context.value("jobs", *row)?, context.value("tps", *row)?));
        let mut rows: Vec<(usize, f64, f64)> = series.rows.iter().filter_map(figure).collect();
        rows.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (mut most, mut at) = (0.0, 0.0);
        for (row, jobs, tps) in rows {
            if tps >= most {
                (most, at) = (tps, jobs);
            } else if jobs > at && tps < most * 0.995 {
                let why = (Some(most), reason!(Peak, most, at));
                context.find(findings, ("falling-throughput", Severity::Info), row, &columns, why);
            }
        }
    }
}

pub(super) fn tests(context: &Context<'_>, findings: &mut Findings) {
    let columns = context.places(&["test"]);
    let number = |r: &usize| Some((*r, context.value("test", *r)?));
    let numbers = |rows: &Vec<usize>| rows.iter().filter_map(number).collect::<Vec<(usize, f64)>>();
    let all: Vec<Vec<(usize, f64)>> = context.series.iter().map(|s| numbers(&s.rows)).collect();
    let ones = |tests: &[(usize, f64)]| tests.windows(2).filter(|w| w[1].1 - w[0].1 == 1.0).count();
    let (found, steps) = all.iter().fold((0, 0), |(f, s), tests| (f + ones(tests), s + tests.len().saturating_sub(1)));
    if found < 2 || found * 2 < steps {
        return;
    }
    for tests in &all {
        let mut gap = |severity, row, first: f64, last: f64| {
            let why = (Some(first), reason!(Gap, format!("{first}"), format!("{last}")));
            context.find(findings, ("test-numbers", severity), row, &columns, why);
        };
        // Between two that have room for one.
        for w in tests.windows(3).filter(|w| w[2].1 - w[0].1 == 2.0 && w[1].1 != w[0].1 + 1.0) {
            gap(Severity::Warning, w[1].0, w[0].1 + 1.0, w[0].1 + 1.0);
        }
        for w in tests.windows(2).filter(|w| w[1].1 - w[0].1 > 1.0 && w[0].1.fract() == 0.0 && w[1].1.fract() == 0.0) {
            // At an end, one number may stand apart from all others.
            let (first, last) = (w[0].0 == tests[0].0, w[1].0 == tests[tests.len() - 1].0);
            let alone = tests.len() > 3 && (first || last) && ones(tests) + 2 == tests.len();
            let severity = if alone { Severity::Warning } else { Severity::Info };
            gap(severity, if alone && first { w[0].0 } else { w[1].0 }, w[0].1 + 1.0, w[1].1 - 1.0);
        }
    }
}

pub(super) fn duplicates(context: &Context<'_>, findings: &mut Findings) {
    let table = context.sheet.table;
    let hash = |row: usize, columns: &[usize]| {
        let mut hasher = DefaultHasher::new();
        columns.iter().for_each(|c| table.cell(row, *c).hash(&mut hasher));
        hasher.finish()
    };
    // All but the figures says which test it is.
    let is_key = |index: &usize| {
        let column = context.sheet.columns.iter().find(|c| c.index == *index);
        column.is_none_or(|c| is_text(c.id) || SETTINGS.contains(&c.id) || c.id == "test" || c.id == "run")
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
        let first = *seen.entry(hash(row, &whole)).or_insert(row) + 1;
        let test = if numbered && first > row { *tests.entry(hash(row, &keys)).or_insert(row) + 1 } else { row + 1 };
        if first <= row {
            context.find(findings, ("duplicates", Severity::Warning), row, &columns, (None, reason!(Copy, first)));
        } else if test <= row {
            context.find(findings, ("duplicates", Severity::Error), row, &columns, (None, reason!(Again, test)));
        }
    }
}
