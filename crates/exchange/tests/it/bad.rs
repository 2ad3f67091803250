//! Files that cannot be imported: each is refused with its name, most with the line, and nothing panics.

use loadline_exchange::{ImportError, Tool};
use proptest::prelude::*;

use crate::{contents, read};

/// The line at which a text is refused; 0 if it is as a whole.
fn line(tool: Tool, text: &str) -> u64 {
    match read(tool, &[("f", text)]) {
        Err(ImportError::Wrong { line, .. }) => line.unwrap_or_default(),
        Err(error) => panic!("{error}"),
        Ok(groups) => panic!("{} groups", groups.len()),
    }
}

const FIRST: [(Tool, &str); 3] =
    [(Tool::Pgbench, "pgbench-tpcb.txt"), (Tool::Sysbench, "sysbench-rw.txt"), (Tool::Fio, "fio-read.json")];

#[test]
fn files_of_other_tools_are_refused_at_their_line() {
    for (tool, file) in FIRST {
        for (other, others) in FIRST.iter().filter(|(other, _)| *other != tool) {
            let first = if *other == Tool::Fio { 2 } else { 1 };
            assert_eq!(line(tool, &contents(others)), first, "{tool:?}: {other:?}");
            // Also behind a report of the tool.
            let own = contents(file);
            assert_eq!(line(tool, &format!("{own}{}", contents(others))), own.lines().count() as u64 + first);
        }
        assert_eq!(line(tool, "\n[OVERALL], RunTime(ms), 10110\n"), 2, "YCSB");
    }
}

#[test]
fn empty_cut_off_and_binary_files_are_refused() {
    for (tool, file) in FIRST {
        assert_eq!((line(tool, ""), line(tool, "\n\nsome text\n")), (0, 0));
        assert_eq!((line(tool, "ok\nb\u{0}d\n"), line(tool, &"x".repeat(3 << 20))), (2, 1));
        // Whatever is cut off is refused, or was not needed: never half of a number.
        let text = contents(file);
        let whole = read(tool, &[("f", &text)]).unwrap().remove(0).tests.remove(0).record.figures;
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)).step_by(1 + text.len() / 400) {
            if let Ok(groups) = read(tool, &[("f", &text[..at])]) {
                for (id, value) in &groups[0].tests[0].record.figures {
                    assert_eq!(whole.get(id), Some(value), "{tool:?} cut off at byte {at}: {id}");
                }
            }
        }
    }
    assert_eq!(line(Tool::Fio, "{\n\"a\": 1\n"), 2);
}

/// More files that are damaged, so that there is one of each form that is read.
const DAMAGED: [(Tool, &str); 3] = [
    (Tool::Pgbench, "pgbench-partitions.txt"),
    (Tool::Sysbench, "sysbench-rate.txt"),
    (Tool::Fio, "fio-mixed-bins.json"),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// No damage to a file makes a panic, and none makes a figure that is no number.
    #[test]
    fn no_damage_panics(which in 0usize..6, at in 0.0f64..1.0, junk in "[ -~\n]{0,12}", cut in 0usize..40) {
        let (tool, file) = [FIRST, DAMAGED].concat()[which];
        let text = contents(file);
        let at = (at * text.len() as f64) as usize;
        let from = (0..=at).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
        let to = (from + cut..=text.len()).find(|i| text.is_char_boundary(*i)).unwrap_or(text.len());
        let damaged = format!("{}{junk}{}", &text[..from], &text[to..]);
        if let Ok(groups) = read(tool, &[("f", damaged.as_str())]) {
            for test in groups.iter().flat_map(|g| &g.tests) {
                prop_assert!(test.record.figures.values().all(|v| v.is_finite() && *v >= 0.0), "{:?}", test.record.figures);
            }
        }
    }
}
