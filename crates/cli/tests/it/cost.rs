//! Costs of a transaction for the database's machine, log switches, and scans over idle times.

use crate::common::*;

const SHORT: &str = "--driver client --jobs 2 --duration 2s --warmup 500ms --no-probe";
const CPU: [&str; 2] = ["server_cpu_user_us_per_tx", "server_cpu_sys_us_per_tx"];

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "a server: ./test")]
fn what_a_transaction_costs_is_of_all_processes_and_log_switches_are_as_many_as_files() {
    let dir = results();
    for target in ["sqlite:", "postgres-temp:", "mariadb-temp:"] {
        let ran = on(target, dir.path(), &format!("--workload LGWR-LAT1,LGWR-THR {SHORT}"));
        let tests = tests_of(&ran.folder());
        let [t, thr] = &tests[..] else { panic!("{}", ran.said()) };
        assert!(sound(t), "{t}");
        let f = |id: &str| figure(t, id);
        let server_cpus = CPU.map(f).iter().sum::<f64>() * f("tx_per_s") / 1e6;
        let cpus = std::thread::available_parallelism().unwrap().get() as f64;
        assert!(server_cpus > 0.0 && server_cpus <= cpus * 1.05, "{target}: {server_cpus} CPUs");
        // The sessions' part is read by another part of loadline, at the window's ends.
        let sessions = f("session_cpu_pct") / 100.0 * 2.0;
        assert!(server_cpus >= sessions * 0.9, "{target}: {server_cpus} CPUs, of the sessions alone {sessions}");
        match target {
            "sqlite:" => {
                assert!(server_cpus <= sessions * 1.1 + 0.02, "there is nothing else: {server_cpus}, {sessions}");
                assert!(absent(t, "old_rows_per_tx").contains("keeps no undo"));
                // Its log begins anew after a checkpoint only.
                let switches = figure(thr, "log_switches");
                assert!(switches <= figure(thr, "checkpoints") + 1.0, "{switches}: {thr}");
            }
            "postgres-temp:" => {
                let redo_mib = figure(thr, "redo_mib_per_s") * figure(thr, "elapsed_s");
                let switches = figure(thr, "log_switches");
                assert!((switches - redo_mib / 16.0).abs() < 1.1, "{switches} of {redo_mib} MiB");
            }
            _ => assert!(absent(t, "log_switches").contains("circle"), "{t}"),
        }
        if target != "sqlite:" {
            // Each transaction waits for the client at least once, and changes a row.
            assert!(f("server_voluntary_switches_per_tx") >= 0.5, "{target}: {t}");
            assert!((0.9..1.1).contains(&f("old_rows_per_tx")), "{target}: {}", f("old_rows_per_tx"));
        }
        // Seconds with and without a switch make up the window, so its throughput lies between.
        let sides = ["log_switch_tps", "between_switches_tps"].map(|id| thr[id].as_f64());
        if let [Some(with), Some(without)] = sides {
            let tps = figure(thr, "tx_per_s");
            assert!(with.min(without) * 0.98 <= tps && tps <= with.max(without) * 1.02, "{with} {without} {tps}");
        }
        assert!(thr["log_switches"].as_f64().is_none_or(|n| n == 0.0) || sides[0].is_some(), "{thr}");
        for id in ["server_involuntary_switches_per_tx", "block_reads_per_tx", "block_writes_per_tx"] {
            assert!(f(id) >= 0.0, "{target}: {id}");
        }
        for id in ["server_instructions_per_tx", "server_cache_misses_per_tx"] {
            assert!(absent(t, id).contains("--perf-events"), "{target}");
        }
        let row = &rows_of(&report(&ran.folder(), &format!("--format csv --columns {}", CPU[0])))[0];
        assert!((number(row, CPU[0]) - f(CPU[0])).abs() <= f(CPU[0]) / 100.0 + 0.1, "{target}: {row:?}");
    }
    let ran = lat1("null:?pause=1ms", dir.path(), "--no-probe --jobs 1 --duration 300ms --warmup 200ms");
    assert!(absent(&tests_of(&ran.folder())[0], CPU[0]).contains("no database"));
}

#[test]
fn copies_among_payloads_are_found_as_identical_blocks() {
    let dir = results();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/data/wide.toml");
    let wide =
        format!("--workload-file {file} --setting page_size=4096 --jobs 1 --duration 300ms --warmup 200ms --no-probe");
    let share = |more: &str| {
        let ran = on("sqlite:", dir.path(), &format!("{wide} {more}"));
        let t = tests_of(&ran.folder()).remove(0);
        t["identical_blocks_pct"].as_f64().ok_or_else(|| absent(&t, "identical_blocks_pct").to_owned())
    };
    assert!(share("").unwrap_err().contains("--payload-duplicates"));
    // A row is a page of payload, and a part of a page that has its key.
    let [none, half, all] = ["0", "50%", "100%"].map(|given| share(&format!("--payload-duplicates {given}")).unwrap());
    assert!(none < 1.0 && (20.0..50.0).contains(&half) && (50.0..80.0).contains(&all), "{none} {half} {all}");
}

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "a server: ./test")]
fn perf_events_are_counted_or_refused_with_the_reason() {
    let dir = results();
    let path = dir.path().join("r");
    let ran = lat1("postgres-temp:", &path, &format!("{SHORT} --perf-events"));
    if ran.code == 2 {
        assert!(ran.err.contains("--perf-events: ") && ran.err.contains("perf_event_paranoid is"), "{}", ran.said());
        return assert!(!path.exists(), "nothing was started");
    }
    let t = &tests_of(&ran.folder())[0];
    let counted = t["server_instructions_per_tx"].as_f64();
    assert!(counted.map_or_else(|| !absent(t, "server_instructions_per_tx").is_empty(), |n| n > 1000.0), "{t}");
}

#[test]
fn commit_time_is_scanned_over_idle_times() {
    let dir = results();
    let few = "--parameter LGWR-SIZE.most-kib=256 --parameter LGWR-SIZE.samples=4 --parameter LGWR-SIZE.own-rows=512";
    let ran = on("sqlite:", dir.path(), &format!("--workload LGWR-SIZE {few} --idle 100ms,0 --no-probe"));
    let t = &tests_of(&ran.folder())[0];
    let points = t["sizes"].as_array().unwrap();
    assert_eq!(points.iter().map(|p| p["idle_s"].as_f64()).collect::<Vec<_>>(), [None, Some(0.1)], "{t}");
    let commits = |p: &Value| p["commit_ns"].as_array().unwrap().len();
    assert!(points.iter().all(|p| (3..=4).contains(&commits(p))), "{t}");
    let redo = points.iter().map(|p| p["redo_bytes"].as_f64().unwrap()).collect::<Vec<_>>();
    assert!((redo[0] - redo[1]).abs() <= redo[0] / 20.0, "of one size: {redo:?}");
    assert!(figure(t, "elapsed_s") >= 0.4, "four times 100 ms: {t}");
    // SQLite writes nothing in the background; whatever it shows, it says.
    let within = t["log_flushed_within_s"].as_f64();
    assert!(within.map_or_else(|| absent(t, "log_flushed_within_s").contains("0.1 s"), |s| s == 0.1), "{t}");
    let text = report(&ran.folder(), "--format md");
    let said =
        if within.is_some() { "flushed in the background within 0.1 s" } else { "not flushed by time up to 0.1 s" };
    assert!(text.contains("Idle") && text.contains("0.100") && text.contains(said), "{text}");
}
