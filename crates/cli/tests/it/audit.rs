//! `loadline audit`: its contract, own runs, and what is no table.

use std::path::Path;

use crate::common::{Ran, loadline, ok, results, run, sound_tests, words};

/// A file with `text`.
fn file(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn audit(path: &str) -> Ran {
    run(&["audit", path, "--format", "csv", "--output", "-"])
}

const GOOD: &str = "jobs,commit_throughput_tps,commit_latency_ms\n2,4000,0.5\n8,10000,0.8\n16,12800,1.25\n";

#[test]
fn the_exit_code_says_whether_there_are_errors() {
    let dir = results();
    let good = audit(&file(dir.path(), "good.csv", GOOD));
    assert_eq!((good.code, good.out.lines().count()), (0, 1), "{}", good.said());
    assert_eq!(good.out.trim(), "severity,table,row,columns,law,printed,recomputed,deviation_pct,message");
    let bad = audit(&file(dir.path(), "bad.csv", &GOOD.replace("12800", "18200")));
    assert_eq!(bad.code, 1, "{}", bad.said());
    let line = bad.out.lines().nth(1).unwrap();
    assert!(
        line.starts_with("error,bad.csv,3,jobs commit_throughput_tps commit_latency_ms,little,18200,12800,42.19,"),
        "{line}"
    );
}

#[test]
fn own_runs_have_no_errors() {
    let dir = results();
    let path = dir.path().display().to_string();
    for target in ["null:?pause=1ms", "wal:", "sqlite:"] {
        let short = "--workload LGWR-LAT1,LGWR-LAT25 --jobs 1,2 --duration 1s --warmup 200ms --no-probe";
        let ran = run(&[vec!["run", "--target", target, "--results", &path], words(short)].concat());
        let tests = sound_tests(&ran);
        let found = audit(ran.folder().to_str().unwrap());
        // The law that a test broke because others had the CPU is an error of its table, and no other is.
        let broken = |row: &str| row.parse::<usize>().is_ok_and(|row| tests[row - 1]["valid"] != true);
        let errors: Vec<&str> = found.out.lines().filter(|line| line.starts_with("error,")).collect();
        let rows: Vec<&str> = errors.iter().map(|line| line.split(',').nth(2).unwrap()).collect();
        assert!(rows.into_iter().all(broken), "{target}: {}", found.said());
        assert_eq!(found.code, i32::from(!errors.is_empty()), "{target}: {}", found.said());
    }
}

#[test]
fn formats_columns_and_claims() {
    let dir = results();
    let path = file(dir.path(), "feature.csv", "who;n;rate;wait\nold;8;26.566;0,301\nnew;8;73.915;0,108\n");
    let columns = "who=platform,n=jobs,rate=commit_throughput_tps,wait=commit_latency_ms";
    let claimed = |claim, format| run(&["audit", &path, "--columns", columns, "--claim", claim, "--format", format]);
    for format in ["text", "csv", "md", "markdown", "json"] {
        assert_eq!(claimed("rate: new / old = 2.78", format).code, 0, "{format}");
    }
    let wrong = claimed("rate: 2 / 1 = 7", "text");
    assert!(wrong.code == 1 && wrong.out.contains("claim: row 2"), "{}", wrong.said());
    assert!(wrong.out.trim_end().ends_with("laws could be checked"), "{}", wrong.said());
}

/// Standard input, and a published table; figures are numbers in JSON.
#[test]
fn a_table_may_come_from_elsewhere() {
    let dir = results();
    let path = file(dir.path(), "in.csv", &GOOD.replace("12800", "18200"));
    let mut command = loadline();
    command.args(["audit", "-", "--format", "json"]).stdin(std::fs::File::open(&path).unwrap());
    let piped = Ran::of(command.output().unwrap());
    let found: serde_json::Value = serde_json::from_str(&piped.out).unwrap();
    assert!(piped.code == 1 && found[0]["row"] == 3 && found[0]["recomputed"] == 12800, "{}", piped.said());
    assert!(found[0]["printed"] == "18200" && found[0]["deviation_pct"].is_f64(), "{found}");
    for command in ["audit", "forecast"] {
        let published = run(&[command, "reference:exadata-x5-2", "--format", "csv", "--output", "-"]);
        assert!(published.code == 0 && published.out.contains("LGWR-THR"), "{command}: {}", published.said());
        let unknown = run(&[command, "reference:exadata-x1"]);
        assert!(unknown.code == 2 && unknown.err.contains("exadata-x1"), "{command}: {}", unknown.said());
    }
}

/// What a file calls its columns and platforms cannot control the terminal.
#[test]
fn names_do_not_control_the_terminal() {
    let dir = results();
    let text = "platform,jobs,tps,latency_ms,\u{1b}[2Jx\n\u{1b}[31mred,8,9000,2.00,1\n\u{1b}[31mred,16,9500,1.70,2\n";
    let path = file(dir.path(), "colours.csv", text);
    for args in [&["audit", path.as_str()][..], &["audit", &path, "--columns", "y=jobs"]] {
        let ran = run(args);
        assert!(!ran.said().contains('\u{1b}') && ran.said().contains("[2Jx"), "{args:?}: {:?}", ran.said());
    }
}

#[test]
fn what_is_no_table_is_refused_with_its_name() {
    let dir = results();
    let none = file(dir.path(), "none.csv", "colour,shape\nred,round\n");
    let cases = [
        (file(dir.path(), "empty.csv", ""), "empty.csv"),
        (file(dir.path(), "prose.txt", "Nothing here is a table.\n"), "prose.txt"),
        (file(dir.path(), "numbers.csv", "1,2\n3,4\n"), "'1 2'"),
        (dir.path().join("missing.csv").display().to_string(), "missing.csv"),
        (none, "no law covers"),
    ];
    for (path, named) in cases {
        let refused = audit(&path);
        assert!(refused.code == 2 && refused.err.contains(named), "{path}: {}", refused.said());
    }
    let beside = file(dir.path(), "beside.csv", "clients,old tps,new tps\n8,4100,12800\n32,9900,31000\n");
    let refused = audit(&beside);
    assert!(refused.code == 2 && refused.err.contains("side by side"), "{}", refused.said());
    let good = file(dir.path(), "good.csv", GOOD);
    for (flag, value, named) in
        [("--columns", "jobs=jbos", "'jobs'"), ("--columns", "x=jobs", "'x'"), ("--claim", "it flies", "'it flies'")]
    {
        let refused = run(&["audit", &good, flag, value]);
        assert!(refused.code == 2 && refused.err.contains(named), "{}", refused.said());
    }
    assert_eq!(run(&["audit"]).code, 2);
}

#[test]
fn the_docs_have_the_laws_of_the_registry() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/audit.md");
    let text = std::fs::read_to_string(docs).unwrap();
    let laws = ok(&["audit", "--laws", "--format", "md"]).out;
    let renew = "renew the table of docs/audit.md with `loadline audit --laws --format md`";
    assert!(text.contains(&laws), "{renew}");
}
