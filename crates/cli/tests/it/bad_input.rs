//! Bad input: the offending value and the allowed ones are named, and nothing is started. What the parts of a plan, a URL or a
//! workload refuse is tested where they are read; here is what the command line itself refuses, and one case of each command.

use crate::common::{lat1, ok, results, run, sound_tests};

/// Arguments, exit code, and what the message must say.
type Case<'a> = (&'a [&'a str], i32, &'a [&'a str]);

#[test]
fn usage_errors_name_the_value_and_the_allowed_ones() {
    let dir = results();
    let path = dir.path().join("runs");
    let cases: &[Case<'_>] = &[
        (&["run", "--workload", "LGWR-LAT2"], 2, &["LGWR-LAT2", "did you mean"]),
        // A link to MariaDB's server.
        (&["doctor", "--target", "mysql-temp:?bin=/usr/sbin"], 2, &["MariaDB 1", "use mariadb-temp:?bin=/usr/sbin"]),
        (&["run", "--limits", "no-such-limits.json"], 2, &["no-such-limits.json"]),
        (&["run", "--limits", "x.json", "--no-probe"], 2, &["--limits", "--no-probe"]),
        (&["run", "--target", "wal:", "--setting", "buffer=1MiB"], 2, &["--setting", "URL"]),
        (&["run", "--setting", "nonsense"], 2, &["nonsense", "NAME=VALUE"]),
        (&["run", "--jobs", "1,x"], 2, &["1,x"]),
        (&["run", "--duration", "-5s"], 2, &["-5s"]),
        (&["run", "--think", "-1ms"], 2, &["-1ms"]),
        (&["run", "--patience", "-5%"], 2, &["-5%", "300%"]),
        (&["run", "--latency-objective", "5"], 2, &["objective 5 has no unit", "5ms or 5s"]),
        (&["run", "--latency-objective", "5mm"], 2, &["'5mm'", "500ms"]),
        (&["run", "--warmup", "auto", "--max-warmup", "-9s"], 2, &["max-warmup", "-9s"]),
        (&["run", "--driver", "server"], 2, &["server", "database", "client"]),
        (&["run", "--rate", "-1"], 2, &["-1"]),
        (&["doctor", "--oracle-awr", "--target", "null:"], 2, &["--oracle-awr", "Oracle"]),
        (&["run", "no-such-plan.toml"], 2, &["no-such-plan.toml"]),
        (&["run", "--resume", "no-such-run"], 2, &["no-such-run"]),
        (&["run", "--resume", "no-such-run", "--no-probe"], 2, &["--resume", "--no-probe"]),
        (&["report", "no-such-run"], 2, &["no-such-run"]),
        (&["forecast", "reference:exadata-x9m", "--output", "/nope/x"], 2, &["'/nope/x' cannot be written"]),
        (&["workloads", "SRV-QUERY"], 2, &["SRV-QUERY"]),
        (&["frobnicate"], 2, &["frobnicate"]),
        (&["run", "--target", "postgres://u@127.0.0.1:1/d"], 3, &["127.0.0.1", "1"]),
    ];
    for (args, code, parts) in cases {
        let mut args = args.to_vec();
        if args[0] == "run" {
            args.extend(["--results", path.to_str().unwrap()]);
        }
        run(&args).fails(*code, parts);
        assert!(!path.exists(), "{args:?} left something behind");
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
    assert_eq!(std::fs::read_to_string(file).unwrap(), "mine");
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
    let good = std::fs::read_to_string(&tests).unwrap();
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

/// A URL that stands where none belongs is quoted by whoever looks for something else there: never with its password.
#[test]
fn no_message_shows_a_password() {
    let dir = results();
    let url = "postgres://u:s3cr3tpw@h/d";
    let plan = dir.path().join("plan.toml");
    let plan = plan.to_str().unwrap();
    // What else a plan refuses is a test of `run/src/plan/planfile.rs`.
    std::fs::write(plan, format!("target = \"{url}\njobs = 1\n")).unwrap();
    let hint = "write a URL after --target";
    let with_equals = format!("--targt={url}");
    let cases: &[(&[&str], &str)] = &[
        (&["run", url], hint),
        (&["doctor", url], hint),
        (&["clean", url], hint),
        (&[url], "postgres://u@h/d"),
        (&["run", &with_equals], "--target"),
        (&["run", "--driver", url], "postgres://u@h/d"),
        (&["run", "--seed", url], "postgres://u@h/d"),
        (&["run", "--setting", url], "NAME=VALUE"),
        (&["run", "--workload", url], "postgres://u@h/d"),
        (&["run", "--workload-file", url], "postgres://u@h/d"),
        (&["run", "--jobs", url], "postgres://u@h/d"),
        (&["run", "--resume", url], "u@h/d"),
        (&["run", "--limits", url], "u@h/d"),
        (&["report", url], "u@h/d"),
        (&["probe", url], "u@h/d"),
        (&["workloads", url], "postgres://u@h/d"),
        (&["run", plan], "line 1, column"),
    ];
    for (args, says) in cases {
        let ran = run(args);
        assert!(ran.code != 0 && ran.err.contains(says), "{args:?} does not say '{says}': {}", ran.said());
        assert!(!ran.said().contains("s3cr3tpw"), "{args:?}: {}", ran.said());
    }
}
