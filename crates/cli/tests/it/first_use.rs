//! What a new user does first, on what needs no server.

use crate::common::figures::figure;
use crate::common::{
    Ran, command, figures, lat1, leftovers, loadline, manifest_of, measured, ok, on, printed, report, results, rows_of,
    run, sound_tests, tests_of, words,
};

#[test]
fn a_run_ends_with_key_figures_a_report_and_its_path() {
    let dir = results();
    let workloads = "--workload LGWR-LAT1,LGWR-LAT25,LGWR-LAT125,LGWR-THR";
    // SQLite is what a run takes that names no target.
    let short = "--jobs 1,2 --duration 1s --warmup 200ms --no-probe";
    let ran = command(&format!("run --results {} {workloads} {short}", dir.path().display()));
    let tests = sound_tests(&ran);
    let folder = ran.folder();
    assert_eq!(folder.parent().unwrap(), dir.path(), "the last line is the run folder");
    assert!(ran.out.contains("LGWR-LAT1") && ran.out.contains("Key figures"), "{}", ran.said());
    assert!(ran.err.contains("test  1"), "progress goes to standard error");
    let html = std::fs::read_to_string(folder.join("report/index.html")).unwrap();
    assert!(html.contains("LGWR-THR") && html.contains("<svg"));
    assert_eq!(tests.len(), 8, "four workloads at two job counts");
    for t in &tests {
        let [tps, latency, jobs] = ["commit_throughput_tps", "commit_latency_ms", "jobs"].map(|id| figure(t, id));
        // Little's law, roughly: windows are short here.
        assert!(tps > 0.0 && (tps * latency / 1e3 / jobs - 1.0).abs() < 0.5, "{t:#}");
        for (kind, extension) in [("histograms", "hlog"), ("series", "csv"), ("snapshots", "json")] {
            assert!(folder.join(format!("{kind}/{}.{extension}", t["test"])).exists(), "{kind} of test {}", t["test"]);
        }
    }
    assert_eq!(leftovers(dir.path()), Vec::<String>::new(), "nothing else is left");

    // The report is rebuilt offline, in every format, from the folder or from its id.
    let id = format!("report {} --results {}", folder.file_name().unwrap().display(), dir.path().display());
    let csv = printed(&format!("{id} --format csv --output -"));
    assert!(csv.starts_with("platform,workload,run,test,nodes,jobs,cpu_busy_pct"), "{csv}");
    assert_eq!(csv.lines().count(), 9);
    std::fs::remove_dir_all(folder.join("report")).unwrap();
    ok(&["report", folder.to_str().unwrap()]);
    let again = std::fs::read_to_string(folder.join("report/index.html")).unwrap();
    assert_eq!(again, html, "the same run gives the same report");
    for format in ["md", "json", "text"] {
        assert!(report(&folder, &format!("--format {format}")).contains("LGWR-LAT25"), "{format}");
    }
    let chosen = printed(&format!("{id} --format csv --columns jobs,commit_throughput_tps"));
    assert!(chosen.starts_with("jobs,commit_throughput_tps\n"), "{chosen}");
    command(&format!("{id} --columns commit_troughput_tps")).fails(2, &["commit_throughput_tps"]);
}

#[test]
fn the_same_seed_does_the_same_work() {
    let dir = results();
    let calibration = |seed: &str| {
        let short = "--jobs 1 --duration 300ms --warmup 200ms --no-probe";
        let ran = on("sqlite:", &dir, &format!("--workload LGWR-LAT25 --seed {seed} {short}"));
        sound_tests(&ran);
        let manifest = manifest_of(&ran.folder());
        (manifest["calibration"].clone(), manifest["plan"]["seed"].clone())
    };
    assert_eq!(calibration("7"), calibration("7"));
}

#[test]
fn each_window_draws_with_a_seed_of_its_own_that_follows_from_the_runs() {
    let dir = results();
    let seeds = |args: &[&str], seed: &[&str]| -> Vec<u64> {
        let common = ["--workload", "LGWR-LAT1", "--duration", "300ms", "--warmup", "200ms"];
        let folder = measured(&[args, seed, &common, &["--results", dir.path().to_str().unwrap()]].concat()).folder();
        tests_of(&folder).iter().map(|test| test["seed"].as_u64().unwrap()).collect()
    };
    let (seven, swept) = (["--seed", "7"], ["run", "--target", "null:", "--jobs", "1,2", "--repeat", "2"]);
    let first = seeds(&swept, &seven);
    assert_eq!((first.len(), first[0]), (4, 7));
    // Nor do the arms of a pair share one: the second would find what the first has read and changed.
    let pairs = ["ab", "--target", "null:", "--jobs", "1", "--pairs", "2", "--parameter-b", "LGWR-LAT1.own-rows=64"];
    assert_eq!(seeds(&pairs, &seven), first, "by the number of the window");
    // Without a seed, nor do two runs, which may find the same data set on a server.
    let all: Vec<u64> = [first, seeds(&swept, &[])].concat();
    assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 8, "{all:?}");
}

#[test]
fn open_loop_keeps_response_and_service_time_apart() {
    let dir = results();
    let ran = lat1("null:?pause=1ms", dir.path(), "--jobs 2 --rate 500 --duration 1s");
    let tests = sound_tests(&ran);
    let t = &tests[0];
    let kept = figures::check(t, "rate")["outcome"] == "passed";
    let tps = figure(t, "commit_throughput_tps");
    assert_eq!(kept, tps >= 500.0 * 0.98, "{t:#}");
    // What is late is made up for, but no more is asked for.
    assert!(tps < 500.0 * 1.5, "{t:#}");
    assert!(figure(t, "response_time_ns_p50") >= figure(t, "transaction_time_ns_p50"));
}

#[test]
fn a_plan_file_does_what_the_flags_do_and_a_dry_run_starts_nothing() {
    let dir = results();
    let plan = dir.path().join("plan.toml");
    std::fs::write(&plan, "target = \"null:?pause=1ms\"\nworkload = [\"LGWR-LAT1\"]\njobs = [1, 3]\nduration = \"1s\"\nwarmup = \"200ms\"\nrepeat = 2\n").unwrap();
    let runs = dir.path().join("runs");
    let (plan, runs) = (plan.to_str().unwrap(), runs.to_str().unwrap());
    let dry = ok(&["run", plan, "--results", runs, "--dry-run"]);
    assert!(dry.out.contains("null:") && dry.out.contains("1, 3") && dry.out.contains("4 tests each"), "{}", dry.out);
    assert!(!std::path::Path::new(runs).exists(), "a dry run makes no folder");
    let tests = tests_of(&measured(&["run", plan, "--results", runs, "--platform", "Engine <0>"]).folder());
    let order: Vec<_> =
        tests.iter().map(|t| (t["repetition"].as_u64().unwrap(), t["jobs"].as_u64().unwrap())).collect();
    assert_eq!(order, [(1, 1), (1, 3), (2, 1), (2, 3)], "repetitions are interleaved");
    assert!(tests.iter().all(|t| t["platform"] == "Engine <0>"));
}

#[test]
fn runs_stand_side_by_side() {
    let dir = results();
    let one = |name: &str| {
        let short = "--workload LGWR-LAT1 --jobs 1,2 --duration 300ms --warmup 200ms --no-probe";
        let line = format!("run --target sqlite: --results {} --platform {name} {short}", dir.path().display());
        measured(&words(&line)).folder().display().to_string()
    };
    let (a, b) = (one("Array-A"), one("Array-B"));
    for format in ["md", "html"] {
        let both = printed(&format!("report {a} {b} --format {format} --output -"));
        assert!(both.contains("Array-A") && both.contains("Array-B"), "{both}");
    }
    let csv = printed(&format!("report {a} {b} --format csv"));
    assert_eq!(rows_of(&csv).len(), 4, "one table with all tests of all runs");
    assert_eq!(run(&["report", &a, &a]).code, 2);
}

#[test]
fn listings_come_in_every_format() {
    for command in ["workloads", "columns", "targets", "plans"] {
        for format in ["text", "md", "csv", "json"] {
            let out = printed(&format!("{command} --format {format} --output -"));
            assert!(out.lines().count() > 3, "{command} --format {format}");
            let json = || serde_json::from_str::<serde_json::Value>(&out).unwrap();
            assert!(format != "json" || json().is_array());
        }
    }
    let about = ok(&["workloads", "lgwr-lat1"]).out;
    for part in ["UPDATE", "sqlite:", "postgres:", "COMMIT", "own-rows"] {
        assert!(about.contains(part), "{part}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = ok(&["completions", shell]).out;
        assert!(script.contains("loadline") && script.contains("log-writer"), "{shell} completes the names of plans");
    }
    let dir = results();
    let doctor =
        |format| printed(&format!("doctor --target sqlite: --results {} --format {format}", dir.path().display()));
    let (text, csv) = (doctor("text"), doctor("csv"));
    assert!(text.contains("page_size"), "{text}");
    // Workloads with the same verdict have one line, warnings before what is right; in a file each has a row.
    let lines: Vec<&str> = text.lines().collect();
    let of =
        |code: &str| lines.iter().position(|l| l.contains(&format!(" {code} =")) || l.contains(&format!(" {code}, ")));
    let (commits, reads, procedures) = (of("LGWR-LAT1"), of("SRV-SCAN"), of("PLS-ADD"));
    assert!(commits.is_some() && commits == reads && procedures.is_some() && procedures != reads, "{text}");
    let verdicts = ["SQLite", "", "warning", "ok", "note"];
    assert!(lines.is_sorted_by_key(|l| verdicts.iter().rposition(|w| l.starts_with(w))), "{text}");
    for code in ["LGWR-LAT1", "SRV-SCAN", "PLS-ADD"] {
        assert_eq!(csv.lines().filter(|l| l.contains(&format!(",{code},"))).count(), 1, "{csv}");
    }
}

/// What the user set is meant for other servers; a private one has neither passwords nor certificates.
#[test]
fn a_private_server_takes_nothing_from_the_users_environment() {
    let dir = results();
    std::fs::write(dir.path().join(".my.cnf"), "[client]\nuser=ann\npassword=x\n").unwrap();
    let pg = ["HOST", "PORT", "USER", "PASSWORD", "DATABASE", "OPTIONS", "APPNAME", "SERVICE", "PASSFILE"];
    for target in ["mariadb-temp:", "postgres-temp:"] {
        let mut doctor = loadline();
        doctor.envs(pg.map(|name| (format!("PG{name}"), "x"))).env("PGSSLMODE", "verify-full");
        doctor.envs([("MYSQL_PWD", "x"), ("MYSQL_HOST", "x"), ("USER", "x")]).env("HOME", dir.path());
        doctor.args(["doctor", "--target", target, "--results", dir.path().to_str().unwrap()]);
        let ran = Ran::of(doctor.output().unwrap());
        assert_eq!(ran.code, 0, "{target}: {}", ran.said());
    }
}

#[test]
fn what_help_and_listings_promise_is_so() {
    let help = ok(&["run", "--help"]).out;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for value in ["4s", "1s", "auto", "128MiB", "42"] {
        assert!(!help.contains(&format!("[default: {value}]")), "a run without a plan takes those of 'quick'");
        assert!(help.contains(&format!("[default: that of the plan, else {value}]")), "{value}: {help}");
    }
    assert!(help.contains("[default: those of the plan]") && !help.contains("[default: all]"), "{help}");
    let targets = ok(&["targets"]).out;
    assert!(targets.contains("creates, and removes after the run (--keep-data"), "{targets}");
    let dir = results();
    let file = dir.path().join("x.db");
    let short = "--workload SRV-QUERY1 --size 1MiB --jobs 1 --duration 300ms --warmup 200ms --no-probe";
    // A machine that is busy may make the test invalid: the file is removed all the same.
    for (more, kept) in [("", false), ("--keep-data", true)] {
        on(&format!("sqlite:{}", file.display()), &dir, &format!("{short} {more}"));
        assert_eq!(file.exists(), kept, "{more}");
    }
}
