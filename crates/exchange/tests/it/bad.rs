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

pub(crate) const FIRST: [(Tool, &str); 4] = [
    (Tool::Pgbench, "pgbench-tpcb.txt"),
    (Tool::Sysbench, "sysbench-rw.txt"),
    (Tool::HammerDb, "hammerdb-log.txt"),
    (Tool::Fio, "fio-read.json"),
];

#[test]
fn files_of_other_tools_are_refused_at_their_line() {
    for (tool, file) in FIRST {
        for (other, others) in FIRST.iter().filter(|(other, _)| *other != tool) {
            let first = if *other == Tool::Fio { 2 } else { 1 };
            assert_eq!(line(tool, &contents(others)), first, "{tool}: {other}");
            // Also behind a report of the tool.
            let own = contents(file);
            assert_eq!(line(tool, &format!("{own}{}", contents(others))), own.lines().count() as u64 + first);
        }
        assert_eq!(line(tool, "\n[OVERALL], RunTime(ms), 10110\n"), 2, "YCSB");
    }
}

#[test]
fn formats_that_are_not_read_are_refused_by_name() {
    for (tool, text, name, at) in [
        (Tool::Sysbench, contents("sysbench-0.4.txt"), "sysbench 0.4.12", 1),
        (Tool::Sysbench, contents("sysbench-0.5.txt"), "sysbench 0.5", 1),
        (Tool::Sysbench, contents("sysbench-cpu.txt"), "its cpu test", 0),
        (Tool::Fio, contents("fio-read.json").replace("fio-3.33", "fio-2.21"), "fio 2.21", 1),
        (Tool::Fio, format!("3;fio-3.33;a{}\n", ";0".repeat(120)), "terse", 0),
        (Tool::Fio, "rr: (groupid=0, jobs=1): err= 0: pid=1: Mon\n".to_owned(), "fio's text", 0),
        (Tool::HammerDb, "Vuser 1:Completed 1 query set(s) in 45 seconds\n".to_owned(), "TPROC-H", 1),
    ] {
        let error = read(tool, &[("f", &text)]).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(line(tool, &text), at, "{name}");
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
                    assert_eq!(whole.get(id), Some(value), "{tool} cut off at byte {at}: {id}");
                }
            }
        }
    }
    assert_eq!(line(Tool::Fio, "{\n\"a\": 1\n"), 2);
}

#[test]
fn what_is_not_the_whole_run_is_refused() {
    // pgbench: a run that failed, one that was killed before its report, progress that nobody can assign.
    let failed = "pgbench (15.18)\npgbench: error: client 0 script 0 aborted in command 0 query 0: ERROR:  division by zero\n\
                  transaction type: bad.sql\nnumber of clients: 2\nnumber of transactions actually processed: 0\n";
    assert!(read(Tool::Pgbench, &[("f", failed)]).unwrap_err().to_string().contains("division by zero"));
    let killed = "pgbench (15.18)\nprogress: 1.0 s, 10.0 tps, lat 1.0 ms stddev 0.1, 0 failed\n";
    assert_eq!(line(Tool::Pgbench, &format!("{killed}{}", contents("pgbench-tpcb.txt"))), 3);
    assert_eq!(line(Tool::Pgbench, &format!("{}{killed}", contents("pgbench-tpcb.txt"))), 18);
    // A second result of fio may be of the same run.
    let fio = contents("fio-read.json");
    assert_eq!(line(Tool::Fio, &format!("{fio}{fio}")), fio.lines().count() as u64 + 1);
    // HammerDB: a result that does not say its own number of users.
    let one =
        "Vuser 1:4 Active Virtual Users configured\nVuser 1:TEST RESULT : System achieved 40 NOPM from 90 X TPM\n";
    assert_eq!(line(Tool::HammerDb, &format!("{one}{}", one.split_once('\n').unwrap().1)), 0);
}

/// Files that are damaged, of each form that is read.
const DAMAGED: [(Tool, &str); 8] = [
    FIRST[0],
    FIRST[1],
    FIRST[2],
    FIRST[3],
    (Tool::Pgbench, "pgbench-partitions.txt"),
    (Tool::Sysbench, "sysbench-fileio.txt"),
    (Tool::HammerDb, "hammerdb-timing.json"),
    (Tool::Fio, "fio-mixed-bins.json"),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// No damage to a file makes a panic, and none makes a figure that is no number.
    #[test]
    fn no_damage_panics(which in 0usize..DAMAGED.len(), at in 0.0f64..1.0, junk in "[ -~\n]{0,12}", cut in 0usize..40) {
        let (tool, file) = DAMAGED[which];
        let text = contents(file);
        let at = (at * text.len() as f64) as usize;
        let from = (0..=at).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
        let to = (from + cut..=text.len()).find(|i| text.is_char_boundary(*i)).unwrap_or(text.len());
        let damaged = format!("{}{junk}{}", &text[..from], &text[to..]);
        // Response times are read after a result.
        let result = contents("hammerdb-result.json");
        let before = (file == "hammerdb-timing.json").then_some(("r", result.as_str()));
        if let Ok(groups) = read(tool, &before.into_iter().chain([("f", damaged.as_str())]).collect::<Vec<_>>()) {
            for test in groups.iter().flat_map(|g| &g.tests) {
                prop_assert!(test.record.figures.values().all(|v| v.is_finite() && *v >= 0.0), "{:?}", test.record.figures);
            }
        }
    }
}
