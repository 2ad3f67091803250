//! Marks and remarks for tests that are valid only by `--allow-cached`, `--allow-disturbed` or `--force`.

use loadline_analyze::{Sweep, SweepPoint};
use loadline_model::TestRecord;

use super::stop;
use crate::doc::Notes;
use crate::words::cut;

/// Most characters of a reason; the test's own table has it in full.
const MAX_REASON: usize = 200;

/// The mark for figures of `point` that are valid by an option only; empty for others.
pub(crate) fn mark(point: &SweepPoint, notes: &mut Notes) -> String {
    point.kept().map_or(String::new(), |kept| notes.mark(&cut(&kept, MAX_REASON), ""))
}

/// Adds `mark` to the marks of a cell.
pub(crate) fn with_mark(before: &str, mark: &str) -> String {
    if before.split(' ').any(|m| m == mark) { before.to_owned() } else { format!("{before} {mark}").trim().to_owned() }
}

/// The tests of `sweep` that are valid by an option only, and those left out of the means; a sentence, or empty.
pub(crate) fn remark(sweep: &Sweep) -> String {
    let mut pooled: Vec<(String, Vec<u32>)> = Vec::new();
    let mut aside: Vec<(String, Vec<u32>)> = Vec::new();
    let add =
        |all: &mut Vec<(String, Vec<u32>)>, why: String, tests: &[u32]| match all.iter_mut().find(|(w, _)| *w == why) {
            Some((_, known)) => known.extend(tests),
            None => all.push((why, tests.to_vec())),
        };
    for point in &sweep.points {
        if let Some(why) = point.kept() {
            add(&mut pooled, why, &point.tests);
        }
        for test in &point.set_aside {
            add(&mut aside, test.kept().unwrap_or_else(|| "its blocks have another source".to_owned()), &[test.test]);
        }
    }
    let left_out = |why: String| {
        format!(
            "{why}; not part of the mean, as other tests of the same point need fewer options or are closer to device figures"
        )
    };
    let all = pooled.into_iter().chain(aside.into_iter().map(|(why, tests)| (left_out(why), tests)));
    let said: Vec<String> = all
        .map(|(why, mut tests)| {
            tests.sort_unstable();
            let (word, are) = if tests.len() == 1 { ("test", "is") } else { ("tests", "are") };
            let numbers: Vec<String> = tests.iter().map(u32::to_string).collect();
            format!("{word} {} {are} {}", numbers.join(", "), cut(stop(&why), MAX_REASON))
        })
        .collect();
    said.join("; ")
}

/// Number of `records` that are valid by an option only, and the option; `None` if there are none.
pub(crate) fn counted<'a>(records: impl Iterator<Item = &'a TestRecord>) -> Option<(usize, String)> {
    let options: Vec<String> = records.filter(|r| r.valid).filter_map(TestRecord::kept_by).collect();
    let mut different: Vec<&str> = options.iter().map(String::as_str).collect();
    if different.iter().any(|o| Some(o) != different.first()) {
        different = different.iter().flat_map(|o| o.split(" and ")).collect();
        different.sort_unstable();
        different.dedup();
    } else {
        different.truncate(1);
    }
    (!options.is_empty()).then(|| (options.len(), different.join(" or ")))
}

/// The same as the end of a verdict on `valid` valid tests; empty if there are none.
pub(crate) fn verdict(valid: usize, kept: Option<(usize, String)>) -> String {
    match kept {
        None => String::new(),
        Some((1, by)) if valid == 1 => format!("; it is kept only by {by}"),
        Some((n, by)) if n == valid => format!("; the valid ones are kept only by {by}"),
        Some((n, by)) => format!("; {n} of the valid ones {} kept only by {by}", if n == 1 { "is" } else { "are" }),
    }
}
