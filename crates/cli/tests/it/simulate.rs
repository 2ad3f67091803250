//! `loadline simulate`: what-ifs from a stored sweep of the reference log writer.

use std::path::Path;

use crate::common::{as_on_a_quiet_machine, lat1, ok, results, run, sound_tests};

/// A sweep of `wal:`. Other tests may disturb it: its figures do not count.
fn sweep(results: &Path, jobs: &str) -> String {
    let dir = results.join("runs");
    let log = results.join("log");
    std::fs::create_dir_all(&log).unwrap();
    let target = format!("wal:{}?device=fdatasync", log.display());
    let ran = lat1(&target, dir, &format!("--jobs {jobs} --duration 300ms --warmup 200ms --no-probe"));
    sound_tests(&ran);
    as_on_a_quiet_machine(&ran.folder());
    ran.folder().display().to_string()
}

fn csv(text: &str) -> Vec<Vec<String>> {
    text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn what_ifs_stand_beside_the_platform_as_measured() {
    let results = results();
    let run = sweep(results.path(), "1,2,4");
    let ask = |more: &[&str]| ok(&[&["simulate", run.as_str()][..], more].concat()).out;

    // Both lines at each number of jobs, and the measured throughput where there is one.
    let rows = csv(&ask(&["--sync-us", "100000", "--jobs", "1,…,8", "--format", "csv"]));
    let column = |name: &str| rows[0].iter().position(|c| c == name).unwrap();
    let number = |row: &[String], name: &str| row[column(name)].parse::<f64>().unwrap();
    assert_eq!(rows.len(), 1 + 3 * 4, "as measured, and two bounds");
    for row in &rows[1..] {
        let latency = number(row, "latency_us") * number(row, "tps") / 1e6;
        assert!((latency / number(row, "jobs") - 1.0).abs() < 0.02, "jobs = tps × latency: {row:?}");
        assert!(number(row, "commits_per_sync") <= number(row, "jobs"));
        assert_eq!(row[column("measured_tps")].is_empty(), number(row, "jobs") == 8.0);
    }
    let slow: Vec<_> = rows.iter().filter(|r| r[column("line")].starts_with("sync of 100")).collect();
    assert_eq!(slow.len(), 8);
    // A device that takes 0.1 s: not more than jobs / 0.1 s, but for the spread of its time, which the noise of the sweep decides.
    let fast: Vec<_> = slow.iter().filter(|r| number(r, "tps") > number(r, "jobs") * 10.0 * 1.3).collect();
    assert!(fast.is_empty(), "{fast:?}");

    // The same seed, the same answer; the text says what it is worth.
    let all = "--device pmem --cpus 2x --nodes 4 --standby-rtt 1ms --group-commit-delay 100us";
    let all: Vec<&str> = all.split(' ').collect();
    let text = ask(&all);
    assert_eq!(text, ask(&all));
    for part in [
        "explains, it does not promise", "largest error", "left out of its calibration", "Parameters", "not measured",
        "Assumed", "Bounds instead of a figure", "(slowest)", "(fastest)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }

    // Lines drawn beside the measured one, each what-if by itself and all together.
    let page = results.path().join("simulate.html");
    ask(&["--sweep", "--cpus", "2x", "--nodes", "4", "--format", "html", "--output", &page.display().to_string()]);
    let html = std::fs::read_to_string(&page).unwrap();
    for part in ["<svg", "measured", "as measured, simulated", "2 × CPUs", "4 nodes", "2 × CPUs, 4 nodes"] {
        assert!(html.contains(part), "{part}");
    }
    let json: serde_json::Value = serde_json::from_str(&ask(&["--sweep", "--format", "json"])).unwrap();
    let lines: Vec<&str> = json["lines"].as_array().unwrap().iter().filter_map(|l| l["name"].as_str()).collect();
    assert!(lines.len() >= 7, "as measured, and five usual questions, of them one with two bounds at least: {lines:?}");
    assert!(lines.contains(&"pmem (slowest)") && lines.contains(&"pmem (fastest)"));
    assert_eq!(json["calibration"]["points"].as_array().unwrap().len(), 3);

    // The run holds itself: what was simulated of it is set beside what it measured.
    let against = ask(&["--against", &run]);
    assert!(against.contains("Against the run calibrated on"));
    let timed = ok(&["simulate", &run, "--commits", "20000"]);
    assert!(timed.err.contains("million a second"), "{}", timed.err);
}

#[test]
fn what_is_missing_or_out_of_range_is_said_with_what_would_do() {
    let results = results();
    let sweep_run = sweep(results.path(), "1,2");
    let single = sweep(results.path(), "2");
    let refused = |args: &[&str]| {
        let ran = run(&[&["simulate"][..], args].concat());
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.said());
        ran.err
    };
    let says = |args: &[&str], part: &str| {
        let said = refused(&[&[sweep_run.as_str()][..], args].concat());
        assert!(said.contains(part), "{args:?}: {said}");
    };
    let one = refused(&[&single]);
    assert!(one.contains("with 2 jobs only") && one.contains("loadline run --target"), "{one}");
    says(&["--workload", "TP-LIGHT"], "has no test of TP-LIGHT: it has LGWR-LAT1");
    says(&["--jobs", "0"], "write 1 to 1000000");
    says(&["--jobs", "1,x"], "'x' is no number of jobs");
    says(&["--sync-us", "-1"], "allowed is 0 to 1 minute");
    says(&["--sync-us", "NaN"], "allowed is 0 to 1 minute");
    says(&["--standby-rtt", "-1ms"], "--standby-rtt");
    says(&["--standby-rtt", "1"], "write the unit");
    says(&["--cpus", "0"], "a factor such as 2x");
    says(&["--nodes", "0"], "the number of nodes is 0: allowed is 1 to 1,000,000");
    says(&["--group-commit-delay", "soon"], "--group-commit-delay soon");
    says(&["--device", "floppy"], "give pmem, nvme, the output of  loadline probe");
    says(&["--device", &format!("{sweep_run}/manifest.json")], "is not the output of a probe");
    says(&["--device", &sweep_run, "--device-operation", "pmem-persit"], "did you mean 'pmem-persist'?");
    says(&["--probe", "nowhere.json"], "cannot read nowhere.json");
    says(&["--standby-rtt", "1ms", "--against", &sweep_run], "`loadline replica-cost` measures them");
    says(&["--commits", "3"], "20..=1000000000");
    assert!(refused(&["nowhere"]).contains("nowhere"));
}
