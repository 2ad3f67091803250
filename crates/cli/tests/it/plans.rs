//! Plans that come with loadline: listed, printed, run by name; nothing is started here.

use crate::common::{ok, results, run};

/// Targets that need no address.
const TARGETS: [&str; 4] = ["sqlite:", "postgres-temp:", "mariadb-temp:", "mysql-temp:"];

fn names() -> Vec<String> {
    let listed: Vec<serde_json::Value> = serde_json::from_str(&ok(&["plans", "--format", "json"]).out).unwrap();
    listed.iter().map(|p| p["plan"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_plan_runs_by_name_and_as_the_file_that_is_printed() {
    let dir = results();
    let names = names();
    assert!(names.len() >= 3, "{names:?}");
    for name in &names {
        let copy = dir.path().join(format!("{name}.toml"));
        ok(&["plans", name, "--output", copy.to_str().unwrap()]);
        let in_repository = format!("{}/../../plans/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let printed = ok(&["plans", name]).out;
        assert_eq!(printed, std::fs::read_to_string(in_repository).unwrap(), "{name} is printed as it is");
        assert_eq!(printed, std::fs::read_to_string(&copy).unwrap());
        let changed = printed.clone() + "# mine\n";
        std::fs::write(&copy, &changed).unwrap();
        let again = run(&["plans", name, "--output", copy.to_str().unwrap()]);
        assert!(again.code == 2 && again.err.contains("exists: name another file"), "{}", again.said());
        assert_eq!(changed, std::fs::read_to_string(&copy).unwrap());
        for target in TARGETS {
            if (name.as_str(), target) == ("procedural-code", "sqlite:") {
                let none = run(&["run", "--plan", name, "--target", target, "--dry-run"]);
                assert!(none.code == 2 && none.err.contains("no stored procedures"), "{}", none.said());
                continue;
            }
            let by_name = ok(&["run", "--plan", name, "--target", target, "--dry-run"]).out;
            assert!(by_name.contains(target) && by_name.contains("driver"), "{by_name}");
            assert_eq!(ok(&["run", copy.to_str().unwrap(), "--target", target, "--dry-run"]).out, by_name);
        }
    }
}

#[test]
fn the_quick_plan_is_what_a_run_does_that_names_none() {
    let bare = ok(&["run", "--dry-run"]).out;
    assert_eq!(ok(&["run", "--plan", "quick", "--dry-run"]).out, bare);
    assert!(bare.contains("sqlite:") && bare.contains("LGWR-LAT1"), "{bare}");
    for target in TARGETS {
        let dry = |more: &[&str]| ok(&[&["run", "--target", target, "--dry-run"], more].concat()).out;
        assert_eq!(dry(&["--plan", "quick"]), dry(&[]), "{target}");
    }
    assert_ne!(ok(&["run", "--plan", "log-writer", "--dry-run"]).out, bare);
}

#[test]
fn flags_override_a_named_plan() {
    let flags = ["--workload", "LGWR-THR", "--jobs", "3", "--duration", "7s", "--repeat", "2", "--dry-run"];
    let dry = ok(&[&["run", "--plan", "log-writer"], &flags[..]].concat()).out;
    assert!(dry.contains("LGWR-THR") && !dry.contains("LGWR-LAT1"), "{dry}");
    assert!(dry.contains("7 s after 10 s of warm-up") && dry.contains("2 tests each"), "{dry}");
}

#[test]
fn plans_are_listed_in_every_format() {
    for format in ["text", "md", "csv", "json"] {
        let out = ok(&["plans", "--format", format]).out;
        for part in ["quick", "full", "log-writer", "300", "1 2 4 8 16 32 64"] {
            assert!(out.contains(part), "--format {format}: {part}\n{out}");
        }
        assert_eq!(out.contains("LGWR-SIZE"), format != "text", "a terminal has their number only");
    }
    let csv = ok(&["plans", "full", "--format", "csv"]).out;
    assert!(csv.starts_with("plan,summary,workloads,jobs,duration_s,warmup_s,repeat\nfull,"), "{csv}");
    assert_eq!(csv.lines().count(), 2);
    for shell in ["bash", "zsh", "fish"] {
        assert!(ok(&["completions", shell]).out.contains("log-writer"), "{shell} completes the names");
    }
}

#[test]
fn what_is_no_plan_is_refused_with_the_known_ones() {
    let known = ["quick", "full", "log-writer"];
    let cases: [(&[&str], &[&str]); 6] = [
        (&["run", "--plan", "qick", "--dry-run"], &["'qick'", "did you mean 'quick'"]),
        (&["run", "--plan", "my-plan.toml", "--dry-run"], &["'my-plan.toml'", "loadline run FILE"]),
        (&["plans", "log-writter"], &["'log-writter'", "did you mean 'log-writer'"]),
        (&["run", "quick", "--dry-run"], &["quick", "--plan quick"]),
        (&["run", "--plan", "quick", "my-plan.toml"], &["--plan", "PLAN_FILE"]),
        (&["run", "--plan", "quick", "--resume", "some-run"], &["--plan", "--resume"]),
    ];
    for (i, (args, parts)) in cases.iter().enumerate() {
        let ran = run(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.said());
        for part in parts.iter().chain(known.iter().filter(|_| i < 3)) {
            assert!(ran.err.contains(part), "{args:?} does not say '{part}': {}", ran.said());
        }
        assert!(ran.out.is_empty(), "{}", ran.said());
    }
}
