//! `loadline audit`: its contract, own runs, and what is no table.

use crate::common::*;

fn file(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn audit(path: &str) -> Ran {
    run(&["audit", path, "--format", "csv", "--output", "-"])
}

const GOOD: &str = "jobs,commit_throughput_tps,commit_latency_ms\n2,4000,0.5\n8,10000,0.8\n16,12800,1.25\n";
const HEADER: &str = "severity,table,row,columns,law,printed,recomputed,deviation_pct,message";

#[test]
fn the_exit_code_says_whether_there_are_errors() {
    let dir = results();
    let good = audit(&file(dir.path(), "good.csv", GOOD));
    assert_eq!((good.code, good.out.trim()), (0, HEADER), "{}", good.said());
    let path = file(dir.path(), "bad.csv", &GOOD.replace("12800", "18200"));
    let bad = audit(&path);
    let cells: Vec<&str> = bad.out.lines().nth(1).unwrap().split(',').take(8).collect();
    let columns = "jobs commit_throughput_tps commit_latency_ms";
    assert_eq!(cells, ["error", "bad.csv", "3", columns, "little", "18200", "12800", "42.19"]);
    // Figures are numbers in JSON, and standard input is a file.
    let mut command = loadline();
    command.args(["audit", "-", "--format", "json"]).stdin(std::fs::File::open(&path).unwrap());
    let piped = Ran::from_output(command.output().unwrap());
    let found: Value = serde_json::from_str(&piped.out).unwrap();
    let keys = ["row", "recomputed", "printed"].map(|key| found[0][key].to_string());
    assert_eq!((bad.code, piped.code, keys), (1, 1, ["3", "12800", "\"18200\""].map(str::to_owned)));
}

#[test]
fn own_runs_have_no_errors() {
    let dir = results();
    let short = "--jobs 1,2 --duration 500ms --warmup 200ms --no-probe";
    let ran = on("sqlite:", &dir, &format!("--workload LGWR-LAT1,LGWR-LAT25 {short}"));
    let tests = sound_tests(&ran);
    let found = audit(ran.folder().to_str().unwrap());
    // The law that a test broke because others had the CPU is an error of its table, and no other is.
    let broken = |row: &str| row.parse::<usize>().is_ok_and(|row| tests[row - 1]["valid"] != true);
    let errors = found.out.lines().filter(|line| line.starts_with("error,"));
    let rows: Vec<&str> = errors.map(|line| line.split(',').nth(2).unwrap()).collect();
    assert_eq!(found.code, i32::from(!rows.is_empty()), "{}", found.said());
    assert!(rows.into_iter().all(broken), "{}", found.said());
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
    let wrong = claimed("rate: 2 / 1 = 7", "csv");
    assert!(
        wrong.code == 1 && wrong.out.contains("error,feature.csv,2,commit_throughput_tps,claim,"),
        "{}",
        wrong.said()
    );
    for command in ["audit", "forecast"] {
        assert!(ok(&[command, "reference:exadata-x5-2", "--format", "csv", "--output", "-"]).out.contains("LGWR-THR"));
        assert_eq!(run(&[command, "reference:exadata-x1"]).code, 2, "{command}");
    }
}

#[test]
fn what_is_no_table_is_refused_with_its_name_and_controls_no_terminal() {
    let dir = results();
    let refused = |path: &str, more: &[&str], named: &str| {
        run(&[&["audit", path], more].concat()).fails(2, &[named]);
    };
    refused(&file(dir.path(), "prose.txt", "Nothing here is a table.\n"), &[], "prose.txt");
    refused(&dir.path().join("missing.csv").display().to_string(), &[], "missing.csv");
    let good = file(dir.path(), "good.csv", GOOD);
    refused(&good, &["--columns", "jobs=jbos"], "'jobs'");
    refused(&good, &["--claim", "it flies"], "'it flies'");
    let text = "platform,jobs,tps,latency_ms,\u{1b}[2Jx\n\u{1b}[31mred,8,9000,2.00,1\n\u{1b}[31mred,16,9500,1.70,2\n";
    let path = file(dir.path(), "colours.csv", text);
    for args in [&["audit", path.as_str()][..], &["audit", &path, "--columns", "y=jobs"]] {
        let ran = run(args);
        assert!(!ran.said().contains('\u{1b}') && ran.said().contains("[2Jx"), "{args:?}: {:?}", ran.said());
    }
}
