//! Limits beside every figure, and their sources.

use crate::common::*;

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "a server: ./test")]
fn limits_are_brought_from_the_databases_own_machine() {
    let dir = results();
    let path = dir.path().to_str().unwrap();
    let file = dir.path().join("limits.json");
    let shown = file.to_str().unwrap();
    ok(&["probe", path, "--seconds", "1", "--size", "16MiB", "--format", "json", "--output", shown]);
    let mut stored = json_of(&file);
    let points = stored["dirs"][0]["log_writer"].as_array().unwrap();
    let of = |point: &Value, name: &str| point[name].as_f64().unwrap_or_else(|| panic!("no {name}: {point}"));
    for workload in ["LGWR-LAT1", "LGWR-LAT25", "LGWR-LAT125", "LGWR-THR"] {
        let measured = points.iter().filter(|p| p["workload"] == workload).count();
        assert_eq!(measured, 8, "1 to 128 jobs of {workload}: {points:?}");
    }
    for p in points {
        // Little's law, without the time in which jobs wait for a CPU between transactions.
        let in_flight = of(p, "tps") * of(p, "latency_ns_mean") / 1e9;
        assert!(in_flight > 0.0 && in_flight < of(p, "jobs") * 1.01, "{in_flight} in flight: {p}");
    }
    let ran = lat1("postgres-temp:", &dir, &format!("--jobs 2 --duration 500ms --warmup 300ms --limits {shown}"));
    let t = &sound_tests(&ran)[0];
    assert_eq!(t["limit"]["source"], "file", "{}", t["absent"]["limit_tps"]);
    // Of another machine than the database's, and of none.
    stored["machine"]["host"] = "elsewhere".into();
    for (text, says) in [(stored.to_string(), "'elsewhere'"), ("{}".to_owned(), "loadline probe DIR")] {
        std::fs::write(&file, text).unwrap();
        run(&["run", "--limits", shown, "--results", path]).fails(2, &[says]);
    }
}

#[test]
#[cfg(feature = "servers")]
fn what_bounds_a_test_is_what_its_workload_lists() {
    let (dir, server) = (results(), Server::start(&[]));
    let text = read(EXAMPLE);
    let text = text.replace("default = 3\nmin = 1\nmax = 100\n", "default = 3\nmin = 0\nmax = 100\n");
    let text = text.replace("default = 1\nmin = 0", "default = 1\nmin = 1");
    let file = dir.path().join("queue.toml");
    std::fs::write(&file, text).unwrap();
    let names = [("{file}", file.to_str().unwrap()), ("{url}", &server.url())];
    hold_runs(include_str!("data/demands/listed.toml"), &names);
}

#[test]
fn a_killed_runs_reference_log_is_removed() {
    let dir = results();
    // The database is elsewhere on the same filesystem.
    let target = format!("--target sqlite:{0}/x.db --results {0}", dir.path().display());
    let run = format!("run {target} --workload LGWR-LAT25 --jobs 1 --duration 300ms --warmup 200ms");
    let logs = || leftovers(dir.path()).into_iter().filter(|name| name.starts_with("loadline-wal-")).count();
    for next in [&format!("clean {target}"), &run] {
        let child = start(&words(&format!("{run} --repeat 50")));
        // Before it has an owner, nobody knows whose it is.
        wait_for("the run's log", || {
            leftovers(dir.path()).iter().any(|log| dir.path().join(log).join("owner.lock").exists())
        });
        kill(child);
        assert_eq!(logs(), 1, "the log of the killed run");
        let ran = command(next);
        assert!(ran.code <= 1 && logs() == 0, "{next}: {}", ran.said());
    }
}
