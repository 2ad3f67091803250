//! Files that cannot be imported: each is refused with its name, most with the line, and nothing panics.

use loadline_exchange::Tool;
use loadline_model::column::TRANSACTION_TIME_NS_MEAN;
use proptest::prelude::*;

use crate::{contents, notes, read};

fn refused(tool: Tool, texts: &[(&str, &str)]) -> String {
    read(tool, texts).map(|groups| panic!("it was taken: {groups:?}")).unwrap_err().to_string()
}

fn says(tool: Tool, text: &str, what: &[&str]) {
    let said = refused(tool, &[("file.txt", text)]);
    for what in what.iter().chain(&["file.txt"]) {
        assert!(said.contains(what), "'{what}' is not in '{said}'");
    }
}

pub(crate) const FIRST: [(Tool, &str); 4] = [
    (Tool::Pgbench, "pgbench-tpcb.txt"),
    (Tool::Sysbench, "sysbench-rw.txt"),
    (Tool::HammerDb, "hammerdb-log.txt"),
    (Tool::Fio, "fio-read.json"),
];

#[test]
fn files_of_other_tools_are_named() {
    for (tool, _) in FIRST {
        for (other, file) in FIRST.iter().filter(|(other, _)| *other != tool) {
            says(tool, &contents(file), &[&format!("is of {other}, not of {tool}"), "line "]);
        }
    }
}

#[test]
fn two_tools_in_one_file_are_refused_at_the_line() {
    let first = contents("pgbench-tpcb.txt");
    let lines = first.lines().count();
    let mixed = first + &contents("sysbench-rw.txt");
    says(Tool::Pgbench, &mixed, &[&format!("line {}", lines + 1), "is of sysbench, not of pgbench"]);
}

#[test]
fn empty_cut_off_and_binary_files_are_refused() {
    for (tool, file) in FIRST {
        says(tool, "", &["it is empty"]);
        says(
            tool,
            "\n\nsome text\n",
            &["it is no"].map(|what| if tool == Tool::HammerDb { "it has no result" } else { what }),
        );
        says(tool, "ok\nb\u{0}d\n", &["line 2", "it is no text"]);
        let text = contents(file);
        // Whatever is cut off is refused, or was not needed: never half of a number.
        let whole = read(tool, &[("file.txt", &text)]).unwrap();
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)).step_by(1 + text.len() / 200) {
            if let Ok(groups) = read(tool, &[("file.txt", &text[..at])]) {
                let tps = |g: &[loadline_exchange::Group]| g[0].tests[0].record.figures.get("commits").copied();
                assert_eq!(tps(&groups), tps(&whole), "{tool} cut off at byte {at}");
            }
        }
    }
}

#[test]
fn figures_that_are_none_are_named_with_their_line() {
    let text = contents("pgbench-tpcb.txt");
    says(
        Tool::Pgbench,
        &text.replace("number of clients: 4", "number of clients: four"),
        &["line 7", "'four' is no number"],
    );
    says(Tool::Pgbench, &text.replace("tps = 5544.876722", "tps = -1"), &["line 16", "'-1' is no number"]);
    says(Tool::Pgbench, &text.replace("tps = 5544.876722", "tps = inf"), &["line 16", "'inf'"]);
    let text = contents("sysbench-rw.txt");
    says(Tool::Sysbench, &text.replace("(148.39 per sec.)", ""), &["it has no rate"]);
    says(Tool::Sysbench, &contents("sysbench-cpu.txt"), &["its cpu test", "fileio"]);
    says(Tool::HammerDb, "TEST RESULT : System achieved many NOPM from 97 X TPM\n", &["line 1", "cannot be read"]);
    says(Tool::Fio, "{\n \"fio version\": \"fio-3.33\",\n \"jobs\": 7\n}\n", &["line 3"]);
    says(Tool::Fio, "rr: (groupid=0, jobs=1): err= 0: pid=1: Mon\n", &["fio's text", "--output-format=json"]);
}

#[test]
fn what_is_not_the_whole_run_is_refused() {
    // pgbench: a run that failed, one that was killed before its report, progress that nobody can assign.
    let failed = "pgbench (15.18)\npgbench: error: client 0 script 0 aborted in command 0 query 0: ERROR:  division by zero\n\
                  transaction type: bad.sql\nnumber of clients: 2\nnumber of transactions actually processed: 0\n";
    says(Tool::Pgbench, failed, &["line 5", "'tps ='", "division by zero"]);
    let killed = "pgbench (15.18)\nprogress: 1.0 s, 10.0 tps, lat 1.0 ms stddev 0.1, 0 failed\n";
    says(Tool::Pgbench, &format!("{killed}{}", contents("pgbench-tpcb.txt")), &["line 3", "'transaction type:'"]);
    says(Tool::Pgbench, &format!("{}{killed}", contents("pgbench-tpcb.txt")), &["line 18", "'transaction type:'"]);
    // sysbench counts anew.
    let checkpoint =
        contents("sysbench-rw.txt").replace("SQL statistics:", "[ 2s ] Checkpoint report:\nSQL statistics:");
    says(Tool::Sysbench, &checkpoint, &["--report-checkpoints", "line "]);
    // fio: the second output is one of the same run, one of the next run is not.
    let at = |ms: u64| {
        contents("fio-read.json").replace("\"timestamp_ms\" : ", &format!("\"timestamp_ms\" : {ms}, \"was\" : "))
    };
    let two = |ms: u64| at(1_700_000_000_000) + &at(1_700_000_000_000 + ms);
    says(Tool::Fio, &two(500), &["--status-interval", "line "]);
    assert_eq!(read(Tool::Fio, &[("f", &two(1500))]).unwrap()[0].tests.len(), 2);
    let turned = at(1_700_000_009_000) + &at(1_700_000_000_000);
    assert_eq!(read(Tool::Fio, &[("f", &turned)]).unwrap()[0].tests.len(), 2);
    says(Tool::Fio, &format!("3;fio-3.33;a{}\n", ";0".repeat(120)), &["terse", "--output-format=json"]);
    // HammerDB: queries, and a result that does not say its own number of users.
    says(Tool::HammerDb, "Vuser 1:Completed 1 query set(s) in 45 seconds\n", &["line 1", "TPROC-H"]);
    let one =
        "Vuser 1:4 Active Virtual Users configured\nVuser 1:TEST RESULT : System achieved 40 NOPM from 90 X TPM\n";
    let (_, second) = one.split_once('\n').unwrap();
    says(Tool::HammerDb, &format!("{one}{second}"), &["how many virtual users"]);
}

#[test]
fn a_time_of_sysbench_that_is_printed_as_0_is_none() {
    let text = contents("sysbench-point.txt").replace("avg:                                    0.08", "avg: 0.00");
    let text = text.replace("sum:                                 4819.87", "sum: 0.00");
    let test = &read(Tool::Sysbench, &[("f", &text)]).unwrap()[0].tests[0];
    assert!(test.record.why_absent(TRANSACTION_TIME_NS_MEAN).unwrap().contains("two decimals"));
    says(Tool::Sysbench, &text.replace("avg: 0.00", "avg: 0,08"), &["'0,08' is no number"]);
}

#[test]
fn contradictions_are_said_and_not_mended() {
    let text = contents("pgbench-tpcb.txt").replace("tps = 5544.876722", "tps = 9544.876722");
    let groups = read(Tool::Pgbench, &[("file.txt", &text)]).unwrap();
    let said = notes(&groups[0].tests[0]);
    assert!(
        said.contains("contradictory: the number of transactions is 10930.000, but throughput × time gives 19089.753"),
        "{said}"
    );
    assert!(said.contains("contradictory: the number of clients"), "more than 4 clients were busy: {said}");
    let text = contents("sysbench-rw.txt").replace("(148.39 per sec.)", "(300.00 per sec.)");
    let said = notes(&read(Tool::Sysbench, &[("f", &text)]).unwrap()[0].tests[0]);
    assert!(said.contains("contradictory: the number of transactions"), "{said}");
    let text = contents("fio-read.json").replacen("19171.656687", "29171.656687", 1);
    let said = notes(&read(Tool::Fio, &[("f", &text)]).unwrap()[0].tests[0]);
    assert!(said.contains("contradictory: reads per second"), "{said}");
}

#[test]
fn logs_that_do_not_belong_together_are_refused() {
    let (report, log) = (contents("pgbench-tpcb.txt"), contents("pgbench-tries.32652"));
    let said = refused(Tool::Pgbench, &[("a", &report), ("b", &report), ("c.1", &log)]);
    assert!(said.starts_with("c.1: ") && said.contains("2 reports"), "{said}");
    let said = refused(Tool::Pgbench, &[("a", &report), ("c.1", &log), ("c.1.1", &log)]);
    assert!(said.contains("clients that are also in c.1"), "{said}");
    let other = contents("pgbench-rate.32572");
    let said = refused(Tool::Pgbench, &[("a", &report), ("c.1", &log), ("d.1", &other)]);
    assert!(said.contains("other columns"), "{said}");
    says(Tool::Pgbench, &contents("pgbench-intervals.log"), &["how many clients"]);
    let cut = &log[..log.len() - 4];
    says(Tool::Pgbench, cut, &["line 59", "columns"]);
    let far = format!("{log}0 99 100 0 1000000000 0 0 0\n");
    says(Tool::Pgbench, &far, &["30 days"]);
    // Numbers that no counter has: named, or at least no panic.
    says(Tool::Pgbench, &log.replacen("0 1 ", "0 1e18 ", 1), &["line 1", "'1e18' is no number"]);
    let bins = contents("fio-two-jobs.json").replacen(
        "\"bins\" : {",
        "\"bins\" : {\"7\" : 18446744073709551615, \"8\" : 18446744073709551615,",
        1,
    );
    assert!(read(Tool::Fio, &[("f", &bins)]).is_ok());
    says(Tool::Fio, &contents("fio-read.json").replacen("\"iops\" : ", "\"iops\" : -5, \"was\" : ", 1), &["below 0"]);
    let timing = contents("hammerdb-timing.json");
    assert!(refused(Tool::HammerDb, &[("t.json", &timing)]).contains("without a result"));
}

#[test]
fn a_line_or_value_without_an_end_is_refused() {
    let endless = "x".repeat(3 << 20);
    for (tool, _) in FIRST {
        says(tool, &endless, &["line 1", "longer than"]);
    }
    says(Tool::Fio, "{\n\"a\": 1\n", &["cut off"]);
}

/// Files that are damaged, of each form that is read.
const DAMAGED: [(Tool, &str); 9] = [
    FIRST[0],
    FIRST[1],
    FIRST[2],
    FIRST[3],
    (Tool::Pgbench, "pgbench-tries.32652"),
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
        if let Ok(groups) = read(tool, &[("f", &damaged)]) {
            for test in groups.iter().flat_map(|g| &g.tests) {
                prop_assert!(test.record.figures.values().all(|v| v.is_finite() && *v >= 0.0), "{:?}", test.record.figures);
            }
        }
    }
}
