//! Bad input: the offending value and the allowed ones are named, and nothing is started (`data/refused.toml`).

use serde::Deserialize;

use crate::common::*;

#[derive(Deserialize)]
struct Refused {
    case: Vec<Case>,
}

/// A command line, what its message must say, and its exit code.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    line: String,
    says: Vec<String>,
    #[serde(default = "usage")]
    code: i32,
}

fn usage() -> i32 {
    2
}

#[test]
fn what_is_refused_is_named_without_a_password_and_leaves_nothing() {
    let dir = results();
    let path = dir.path().display().to_string();
    let refused: Refused = toml::from_str(include_str!("data/refused.toml")).unwrap();
    for Case { line, says, code } in refused.case {
        // A private server is asked what its settings are.
        if line.contains("-temp:") && !cfg!(feature = "servers") {
            continue;
        }
        let mut line =
            line.replace("{dir}", &path).replace("{url}", "postgres://u:s3cr3tpw@h/d").replace("{data}", DATA);
        if ["run", "ab", "replica-cost"].iter().any(|measures| line.split(' ').next() == Some(measures)) {
            line += &format!(" --results {path}/runs");
        }
        let ran = command(&line);
        ran.fails(code, &says.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(ran.out.is_empty() && !ran.err.contains("s3cr3tpw"), "{line}: {}", ran.said());
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0, "{line} left something behind");
    }
}

#[test]
fn results_that_are_a_file_are_refused_before_anything_starts() {
    let dir = results();
    let file = dir.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    // Nothing is tried of a server that is not there.
    let at = |results: &str| run(&["run", "--target", "postgres://u@127.0.0.1:1/d", "--results", results]);
    for results in [file.to_str().unwrap(), file.join("x").to_str().unwrap(), "/proc/x"] {
        at(results).fails(2, &[&format!("'{results}'")]);
    }
    assert_eq!(read(file), "mine");
    for command in ["run", "ab", "replica-cost"] {
        run(&[command, "--results", ""]).fails(2, &["'--results <DIR>'"]);
        run(&[command, "--workload-file", ""]).fails(2, &["'--workload-file <FILE>'"]);
    }
    // A run that is refused later leaves no folder.
    at(dir.path().join("a/b").to_str().unwrap()).fails(3, &[]);
    assert!(!dir.path().join("a").exists());
}

#[test]
fn a_damaged_run_says_which_file_and_line() {
    let dir = results();
    let ran = lat1("null:?pause=1ms", dir.path(), "--jobs 1,2 --duration 300ms --warmup 200ms --no-probe");
    assert_eq!(sound_tests(&ran).len(), 2, "{}", ran.said());
    let folder = ran.folder();
    let tests = folder.join("tests.jsonl");
    let good = read(&tests);
    let shown = folder.to_str().unwrap();
    // A torn last line is what a kill leaves: it is passed over and said.
    std::fs::write(&tests, &good[..good.len() - 20]).unwrap();
    let torn = ok(&["report", shown, "--format", "csv"]);
    assert!(torn.out.lines().count() == 2 && torn.err.contains("warning"), "{}", torn.said());
    // Damage anywhere else is an error.
    std::fs::write(&tests, good.replacen("\"schema\"", "\"schem", 1)).unwrap();
    for args in [vec!["report", shown], vec!["run", "--resume", shown]] {
        run(&args).fails(2, &["tests.jsonl", "line 1"]);
    }
}
