//! The first steps of a new user, without a server.

use crate::common::*;

#[test]
fn a_run_ends_with_key_figures_a_report_and_its_path() {
    let dir = results();
    let workloads = "--workload LGWR-LAT1,LGWR-LAT25,LGWR-LAT125,LGWR-THR";
    // SQLite is what a run takes that names no target.
    let short = "--jobs 1,2 --duration 500ms --warmup 200ms --no-probe";
    let ran = command(&format!("run --results {} {workloads} {short}", dir.path().display()));
    let tests = sound_tests(&ran);
    let folder = ran.folder();
    assert_eq!(folder.parent().unwrap(), dir.path(), "the last line is the run folder");
    assert!(ran.out.contains("LGWR-LAT1") && ran.out.contains("Key figures"), "{}", ran.said());
    assert!(ran.err.contains("test  1"), "progress goes to standard error");
    let html = read(folder.join("report/index.html"));
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
    assert_eq!(printed(&format!("{id} --format csv --output -")).lines().count(), 9);
    std::fs::remove_dir_all(folder.join("report")).unwrap();
    ok(&["report", folder.to_str().unwrap()]);
    let again = read(folder.join("report/index.html"));
    assert_eq!(again, html, "the same run gives the same report");
    for format in ["md", "json", "text"] {
        assert!(report(&folder, &format!("--format {format}")).contains("LGWR-LAT25"), "{format}");
    }

    // Each test has a page with its figures, and two of them stand side by side.
    for number in 1..=tests.len() {
        let link = format!("<a href=\"test-{number}.html\">");
        assert!(html.contains(&link) && folder.join(format!("report/test-{number}.html")).exists(), "{link}");
    }
    let page = report(&folder, "--test 1,2 --format text");
    let tps = page.lines().find_map(|line| line.strip_prefix("Transactions  ")).unwrap().split_whitespace();
    let tps: Vec<f64> = tps.filter_map(|number| number.replace(',', "").parse().ok()).collect();
    // Of each test those of a second, and those of a transaction.
    for (test, shown) in tests.iter().zip([tps[0], tps[2]]) {
        let known = figure(test, "commit_throughput_tps");
        assert!((shown / known - 1.0).abs() < 0.01, "{known}: {page}");
    }
    assert!(page.contains("SQLite") && page.contains("Latencies") && page.contains("· B: "), "{page}");

    // A law that a test broke because others had the CPU is an error of its row, and no other is.
    let audit = command(&format!("audit {} --format csv --output -", folder.display()));
    let errors = audit.out.lines().filter(|line| line.starts_with("error,"));
    let rows: Vec<usize> = errors.map(|line| line.split(',').nth(2).unwrap().parse().unwrap()).collect();
    assert_eq!(audit.code, i32::from(!rows.is_empty()), "{}", audit.said());
    assert!(rows.into_iter().all(|row| tests[row - 1]["valid"] != true), "{}", audit.said());
}

#[test]
fn each_window_draws_with_a_seed_of_its_own_that_follows_from_the_runs() {
    let dir = results();
    let windows = |line: &str, more: &str| -> [Vec<u64>; 3] {
        let short = "--workload LGWR-LAT1 --duration 300ms --warmup 200ms --no-probe";
        let ran = measured(&words(&format!("{line} --target null: {more} {short} --results {}", dir.path().display())));
        let tests = tests_of(&ran.folder());
        ["seed", "repetition", "jobs"].map(|key| tests.iter().map(|test| test[key].as_u64().unwrap()).collect())
    };
    let swept = "run --jobs 1,2 --repeat 2";
    let [first, repetitions, jobs] = windows(swept, "--seed 7");
    assert_eq!((first.len(), first[0]), (4, 7));
    assert_eq!([repetitions, jobs], [[1, 1, 2, 2], [1, 2, 1, 2]], "repetitions are far apart in time");
    // Nor do the arms of a pair share one: the second would find what the first has read and changed.
    let pairs = "ab --jobs 1 --pairs 2 --parameter-b LGWR-LAT1.own-rows=64";
    assert_eq!(windows(pairs, "--seed 7")[0], first, "by the number of the window");
    // Without a seed, nor do two runs, which may find the same data set on a server.
    let all: Vec<u64> = [&first, &windows(swept, "")[0]].into_iter().flatten().copied().collect();
    assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 8, "{all:?}");
}

#[test]
fn the_doctor_says_the_worst_first() {
    let dir = results();
    let text = printed(&format!("doctor --target sqlite: --results {}", dir.path().display()));
    let verdicts = ["SQLite", "", "warning", "ok", "note"];
    assert!(text.lines().is_sorted_by_key(|l| verdicts.iter().rposition(|w| l.starts_with(w))), "{text}");
}

/// The user's settings are meant for other servers; a private one has neither passwords nor certificates.
#[test]
#[cfg_attr(not(feature = "servers"), ignore = "a server: ./test")]
fn a_private_server_takes_nothing_from_the_users_environment() {
    let dir = results();
    std::fs::write(dir.path().join(".my.cnf"), "[client]\nuser=ann\npassword=x\n").unwrap();
    let pg = ["HOST", "PORT", "USER", "PASSWORD", "DATABASE", "OPTIONS", "APPNAME", "SERVICE", "PASSFILE"];
    for target in ["mariadb-temp:", "postgres-temp:"] {
        let mut doctor = loadline();
        doctor.envs(pg.map(|name| (format!("PG{name}"), "x"))).env("PGSSLMODE", "verify-full");
        doctor.envs([("MYSQL_PWD", "x"), ("MYSQL_HOST", "x"), ("USER", "x")]).env("HOME", dir.path());
        doctor.args(["doctor", "--target", target, "--results", dir.path().to_str().unwrap()]);
        let ran = Ran::from_output(doctor.output().unwrap());
        assert_eq!(ran.code, 0, "{target}: {}", ran.said());
    }
}
