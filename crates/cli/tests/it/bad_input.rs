//! Bad input: a clear message naming the offending value and the allowed ones, nothing started.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::{lat1, ok, results, run, sound_tests};

/// Arguments, exit code, and what the message must say.
type Case<'a> = (&'a [&'a str], i32, &'a [&'a str]);

#[test]
fn usage_errors_name_the_value_and_the_allowed_ones() {
    let dir = results();
    let path = dir.path().join("runs");
    let cases: &[Case<'_>] = &[
        (&["run", "--workload", "LGWR-LAT2"], 2, &["LGWR-LAT2", "did you mean"]),
        (&["run", "--group", "log-writter"], 2, &["log-writter", "log-writer"]),
        (&["run", "--target", "oracel://x"], 2, &["oracel", "sqlite:"]),
        (&["run", "--target", "postgres://u@h/d?sslmod=require"], 2, &["sslmod", "sslmode"]),
        (&["run", "--target", "postgres-temp:?bim=/x"], 2, &["bim", "bin"]),
        // A link to MariaDB's server, and a folder without any.
        (&["doctor", "--target", "mysql-temp:?bin=/usr/sbin"], 2, &["MariaDB 1", "use mariadb-temp:?bin=/usr/sbin"]),
        (&["doctor", "--target", "mariadb-temp:?bin=/etc"], 2, &["no 'mariadbd'", "10.6 and newer"]),
        (
            &["run", "--target", "postgres-temp:", "--setting", "shared_bufers=1GB"],
            2,
            &["shared_bufers", "shared_buffers"],
        ),
        (
            &["run", "--target", "postgres-temp:", "--setting", "shared_buffers=plenty"],
            2,
            &["shared_buffers", "plenty"],
        ),
        (&["run", "--target", "postgres://u@h/d", "--setting", "fsync=off"], 2, &["fsync"]),
        (&["run", "--limits", "no-such-limits.json"], 2, &["no-such-limits.json"]),
        (&["run", "--limits", "x.json", "--no-probe"], 2, &["--limits", "--no-probe"]),
        (&["run", "--target", "wal:/no/such/folder"], 2, &["/no/such/folder"]),
        (&["run", "--target", "wal:?devise=dsync"], 2, &["devise", "device"]),
        (&["run", "--target", "wal:?flush-fraction=3"], 2, &["'3'", "1/3"]),
        (&["run", "--target", "wal:", "--setting", "buffer=1MiB"], 2, &["--setting", "URL"]),
        (&["run", "--target", "wal:", "--driver", "database"], 2, &["procedures"]),
        (&["run", "--setting", "nonsense"], 2, &["nonsense", "NAME=VALUE"]),
        (&["run", "--setting", "page_sise=1024"], 2, &["page_sise", "page_size"]),
        (&["run", "--jobs", "0"], 2, &["0 jobs", "auto"]),
        (&["run", "--jobs", "1,x"], 2, &["1,x"]),
        (&["run", "--jobs", "many"], 2, &["many", "auto"]),
        (&["run", "--jobs", "20001"], 2, &["20001", "20000"]),
        (&["run", "--duration", "soon"], 2, &["soon", "30s"]),
        (&["run", "--duration", "-5s"], 2, &["-5s"]),
        (&["run", "--duration", "0"], 2, &["duration", "0.2 s"]),
        (&["run", "--patience", "-5%"], 2, &["-5%", "300%"]),
        (&["run", "--patience", "301%"], 2, &["301%", "300%"]),
        (&["run", "--latency-objective", "5"], 2, &["objective 5 has no unit", "5ms or 5s"]),
        (&["run", "--latency-objective", "5mm"], 2, &["'5mm'", "500ms"]),
        (&["run", "--warmup", "1ms"], 2, &["warm-up", "1ms", "'auto'"]),
        (&["run", "--max-warmup", "9s"], 2, &["max-warmup 9 s", "--warmup auto"]),
        (&["run", "--warmup", "auto", "--max-warmup", "-9s"], 2, &["max-warmup", "-9s"]),
        (
            &["ab", "--workload", "LGWR-LAT1", "--warmup", "auto", "--pairs", "2"],
            2,
            &["two arms", "--warmup with a time"],
        ),
        (&["run", "--repeat", "0"], 2, &["repeat"]),
        (&["run", "--driver", "server"], 2, &["server", "database", "client"]),
        (&["run", "--driver", "database"], 2, &["procedures"]),
        (&["run", "--rate", "-1"], 2, &["-1"]),
        (&["run", "--target", "postgres-temp:", "--rate", "10"], 2, &["--driver client"]),
        (&["run", "--payload-compressibility", "1.5"], 2, &["1.5", "between 0"]),
        (&["run", "--oracle-awr"], 2, &["--oracle-awr", "Oracle", "sqlite:"]),
        (&["doctor", "--oracle-awr", "--target", "null:"], 2, &["--oracle-awr", "Oracle"]),
        (&["run", "no-such-plan.toml"], 2, &["no-such-plan.toml"]),
        (&["run", "--resume", "no-such-run"], 2, &["no-such-run"]),
        (&["run", "--resume", "/nope"], 2, &["/nope", "no run"]),
        (&["run", "--resume", "no-such-run", "--no-probe"], 2, &["--resume", "--no-probe"]),
        (&["report", "no-such-run"], 2, &["no-such-run"]),
        (&["forecast", "reference:exadata-x9m", "--output", "/nope/x"], 2, &["'/nope/x' cannot be written"]),
        (&["workloads", "SRV-QUERY"], 2, &["SRV-QUERY"]),
        (&["frobnicate"], 2, &["frobnicate"]),
        (&["run", "--target", "postgres://u@127.0.0.1:1/d"], 3, &["127.0.0.1", "1"]),
        (&["run", "--target", "postgres://u@/d?host=/nowhere"], 3, &["/nowhere"]),
        (&["run", "--target", "postgres://u@no-such-host.invalid/d"], 3, &["no-such-host.invalid"]),
    ];
    for (args, code, parts) in cases {
        let mut args = args.to_vec();
        if args[0] == "run" {
            args.extend(["--results", path.to_str().unwrap()]);
        }
        let ran = run(&args);
        assert_eq!(ran.code, *code, "{args:?}: {}", ran.said());
        for part in *parts {
            assert!(ran.err.contains(part), "{args:?} does not say '{part}': {}", ran.said());
        }
        assert!(!ran.err.contains("panicked"), "{args:?}: {}", ran.said());
        let left = std::fs::read_dir(&path).map(|d| d.count()).unwrap_or(0);
        assert_eq!(left, 0, "{args:?} left something behind");
    }
}

#[test]
fn an_unknown_key_of_a_plan_is_named_with_its_line() {
    let dir = results();
    let plan = dir.path().join("plan.toml");
    std::fs::write(&plan, "target = \"null:\"\ndurration = \"3s\"\n").unwrap();
    let ran = run(&["run", plan.to_str().unwrap()]);
    assert!(ran.code == 2 && ran.err.contains("line 2") && ran.err.contains("'duration'"), "{}", ran.said());
}

#[test]
fn results_that_are_a_file_are_refused_before_anything_starts() {
    let dir = results();
    let file = dir.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    let (file, under) = (file.to_str().unwrap(), file.join("x"));
    // Nothing is tried of a server that is not there.
    for target in ["sqlite:", "null:", "postgres://u@127.0.0.1:1/d"] {
        for results in [file, under.to_str().unwrap(), "/proc/x"] {
            let ran = run(&["run", "--target", target, "--results", results]);
            assert!(ran.code == 2 && ran.err.contains(&format!("'{results}'")), "{}", ran.said());
        }
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), "mine");
    // A run that is refused later leaves no folder.
    let new = dir.path().join("a/b");
    let ran = run(&["run", "--target", "postgres://u@127.0.0.1:1/d", "--results", new.to_str().unwrap()]);
    assert!(ran.code == 3 && !dir.path().join("a").exists(), "{}", ran.said());
}

#[test]
fn a_private_server_that_cannot_be_started_is_out_of_reach() {
    let (dir, bin) = (results(), tempfile::Builder::new().prefix("loadline-bin-").tempdir_in("/var/tmp").unwrap());
    let open = |path: &Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    open(bin.path());
    let fails = "#!/bin/sh\n[ $1 = --version ] && echo 'postgres (PostgreSQL) 17.1' || exit 1\n";
    for program in ["postgres", "initdb"] {
        std::fs::write(bin.path().join(program), fails).unwrap();
        open(&bin.path().join(program));
    }
    let path = dir.path().join("runs");
    let path = path.to_str().unwrap();
    let broken = format!("postgres-temp:?bin={}", bin.path().display());
    for (target, says) in [(broken.as_str(), "initdb failed"), ("postgres-temp:/proc", "'/proc'")] {
        for command in ["run", "doctor"] {
            let ran = run(&[command, "--target", target, "--results", path]);
            assert!(ran.code == 3 && ran.err.contains(says), "{command} {target}: {}", ran.said());
        }
    }
    assert!(!Path::new(path).exists());
}

#[test]
fn a_damaged_run_says_which_file_and_line() {
    let dir = results();
    let ran = lat1("null:?pause=1ms", dir.path(), "--jobs 1,2 --duration 600ms --warmup 600ms");
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
        let ran = run(&args);
        assert!(ran.code == 2 && ran.err.contains("tests.jsonl") && ran.err.contains("line 1"), "{}", ran.said());
    }
    std::fs::write(&tests, &good).unwrap();
    std::fs::write(folder.join("manifest.json"), "{").unwrap();
    let ran = run(&["report", shown]);
    assert!(ran.code == 2 && ran.err.contains("manifest.json"), "{}", ran.said());
}

/// A URL that stands where none belongs is quoted by whoever looks for something else there: never with its password.
#[test]
fn no_message_shows_a_password() {
    let dir = results();
    let url = "postgres://u:s3cr3tpw@h/d";
    let plan = dir.path().join("plan.toml");
    let plan = plan.to_str().unwrap();
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
        assert_ne!(ran.code, 0, "{args:?}");
        assert!(!ran.said().contains("s3cr3tpw"), "{args:?}: {}", ran.said());
        assert!(ran.err.contains(says), "{args:?} does not say '{says}': {}", ran.said());
    }
    for key in ["target", "node", "workload", "group", "workload-file", "jobs", "size", "parameters", "results"] {
        let value = match key {
            "node" | "workload" | "group" | "workload-file" => format!("[\"{url}\"]"),
            "target" => format!("\"{}\"", url.replace("postgres", "postgers")),
            _ => format!("\"{url}\""),
        };
        let text = if key == "parameters" { format!("[parameters.\"{url}\"]\n") } else { format!("{key} = {value}\n") };
        std::fs::write(plan, format!("repeat = {}\n{text}", if key == "results" { 0 } else { 1 })).unwrap();
        let ran = run(&["run", plan]);
        assert_eq!(ran.code, 2, "{key}: {}", ran.said());
        assert!(!ran.said().contains("s3cr3tpw"), "{key}: {}", ran.said());
    }
}
