//! Lists and texts that say something of the catalogue from outside of it are held to it.

use std::path::Path;

use loadline_analyze::kpi::{defined_by_redo, writes_redo};
use loadline_workload::{CATALOGUE, Sweep, Workload};

/// Codes of the workloads of which `is` holds.
fn codes(is: impl Fn(&Workload) -> bool) -> Vec<&'static str> {
    let mut all: Vec<&str> = CATALOGUE.iter().filter(|w| is(w)).map(|w| w.code.as_str()).collect();
    all.sort_unstable();
    all
}

#[test]
fn comparisons_know_what_workloads_do() {
    assert_eq!(codes(|w| w.redo.is_some()), codes(|w| defined_by_redo(&w.group)));
    // A group that writes may have workloads that only read: that their redo is told does no harm.
    assert_eq!(codes(|w| w.writes() && !writes_redo(&w.group, &w.code, Some(w.facts()))), Vec::<&str>::new());
}

#[test]
fn the_readme_names_what_is_not_swept_over_jobs() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = std::fs::read_to_string(readme).unwrap();
    let said = text.split("Not swept over jobs: ").nth(1).unwrap().split('.').next().unwrap();
    let not = codes(|w| {
        let once = matches!(w.sweep, Sweep::Once | Sweep::Parameter { then_jobs: false, .. });
        once || w.scan.is_some()
    });
    let mut named: Vec<&str> = said
        .split(|c: char| !(c.is_ascii_uppercase() || c == '-'))
        .filter(|word| word.contains('-') && word.len() > 4)
        .collect();
    named.sort_unstable();
    assert_eq!(named, not);
}
