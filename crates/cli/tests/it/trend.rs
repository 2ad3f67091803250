//! Histories of stored runs: `loadline trend`. One run is measured; its copies have known figures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use loadline_model::column;
use loadline_model::manifest::RunState;
use loadline_model::plan::{Arm, Arms, Levels};
use loadline_model::{Manifest, Series, TestRecord};
use loadline_store::{RunFolder, StoredRun, TestOutput, rfc3339, run_name};
use tempfile::TempDir;

use crate::common::{Ran, lat1, results, run};

/// Throughputs that differ by a few percent, without an order.
const NOISE: [f64; 8] = [1.01, 0.985, 1.02, 0.995, 0.98, 1.005, 1.015, 0.99];

/// A measured run, and a folder for its nights.
fn measured() -> (TempDir, StoredRun, PathBuf) {
    let results = results();
    // Other tests may disturb it: its figures do not count.
    let short = "--jobs 1 --duration 200ms --warmup 200ms --no-probe";
    let ran = lat1("null:?pause=1ms", results.path().join("measured"), short);
    let dir = results.path().join("nightly");
    (results, StoredRun::open(&ran.folder()).unwrap(), dir)
}

/// A copy of `run` as that of night `night`, with `change` made to it.
fn copy(run: &StoredRun, to: &Path, night: u64, tps: f64, change: impl Fn(&mut Manifest, &mut TestRecord)) -> PathBuf {
    let start = UNIX_EPOCH + Duration::from_secs(1_790_000_000 + night * 86_400);
    let mut folder = RunFolder::create(to, &run_name(start, "null")).unwrap();
    let mut manifest = run.manifest.clone();
    (manifest.run, manifest.started_at) = (folder.id(), rfc3339(start));
    let mut record = run.records[0].clone();
    (record.run, record.valid, record.invalid_reason) = (folder.id(), true, None);
    record.set(column::COMMIT_THROUGHPUT_TPS, tps);
    record.set(column::COMMIT_LATENCY_MS, 1000.0 / tps);
    change(&mut manifest, &mut record);
    folder.write_manifest(&manifest).unwrap();
    let (series, histograms, snapshots) = (Series::default(), Vec::new(), Vec::new());
    folder.append(&TestOutput { record, series, histograms, snapshots, activity: None, native: None }).unwrap();
    folder.path().to_owned()
}

/// `nights` copies, the throughput being `ratio` times as high from night `from` on.
fn history(run: &StoredRun, to: &Path, nights: u64, from: u64, ratio: f64) -> Vec<String> {
    let night = |night: u64| {
        let tps = 1000.0 * NOISE[night as usize % 8] * if night >= from { ratio } else { 1.0 };
        let path = copy(run, to, night, tps, |_, _| {});
        path.file_name().unwrap().to_str().unwrap().to_owned()
    };
    (0..nights).map(night).collect()
}

fn trend(dir: &Path, more: &[&str]) -> Ran {
    let dir = dir.display().to_string();
    run(&[&["trend", dir.as_str()], more].concat())
}

/// The rows of the CSV of `figure`.
fn rows(dir: &Path, figure: &str, more: &[&str]) -> (Vec<BTreeMap<String, String>>, Ran) {
    let ran = trend(dir, &[&["--figure", figure, "--format", "csv"], more].concat());
    let mut lines = ran.out.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let head = lines.next().unwrap();
    (lines.map(|cells| head.iter().cloned().zip(cells).collect()).collect(), ran)
}

/// That `ran` ended with `code`, and each of `says` is in what it wrote.
fn says(ran: &Ran, code: i32, says: &[&str]) {
    assert_eq!(ran.code, code, "{}", ran.said());
    // Lines are wrapped.
    let all = ran.said().split_whitespace().collect::<Vec<_>>().join(" ");
    for part in says {
        assert!(all.contains(part.trim()), "{part}: {}", ran.said());
    }
}

#[test]
fn a_change_is_found_between_the_right_runs() {
    let (_results, of, dir) = measured();
    let ids = history(&of, &dir, 16, 9, 0.8);
    let (found, ran) = rows(&dir, "commit_throughput_tps", &["--fail-if-slower", "3%"]);
    says(&ran, 1, &["slower: LGWR-LAT1, 1 job"]);
    let row = &found[0];
    assert_eq!((&row["last_run_before"], &row["first_run_after"]), (&ids[8], &ids[9]), "{row:?}");
    assert_eq!([&row["verdict"], &row["runs"], &row["left_out"]], ["slower", "16", "0"]);
    let number = |name: &str| row[name].parse::<f64>().unwrap();
    assert!((number("ratio") - 0.8).abs() < 0.02 && number("low") < 0.8 && number("high") > 0.8, "{row:?}");
    assert!(number("p") < 0.01 && (number("before") - 1000.0).abs() < 20.0, "{row:?}");
    let (time, ran) = rows(&dir, "commit_latency_ms", &["--workload", "LGWR-LAT1"]);
    assert_eq!((time.len(), time[0]["verdict"].as_str()), (1, "slower"), "{}", ran.said());
    let ran = trend(&dir, &["--fail-if-slower", "40%"]);
    says(&ran, 0, &["16 runs", "Changes of level", "0.8", "1,000", "2 series judged"]);
    assert_eq!(trend(&dir, &["--fail-if-slower", "40%"]).out, ran.out, "the same runs, the same answer");
}

#[test]
fn what_cannot_be_followed_is_left_out_with_a_reason() {
    let (results, of, dir) = measured();
    let ids = history(&of, &dir, 12, 6, 0.7);
    copy(&of, &dir, 50, 10.0, |_, record| (record.valid, record.invalid_reason) = (false, Some("spoiled".to_owned())));
    copy(&of, &dir, 51, 10.0, |_, record| record.set(column::ROWS_PER_TX, 7.0));
    copy(&of, &dir, 52, 700.0, |manifest, _| manifest.state = RunState::Interrupted);
    copy(&of, &dir, 53, 10.0, |_, record| record.parameters.extend([("payload".to_owned(), 9)]));
    copy(&of, &dir, 54, 10.0, |manifest, _| manifest.started_at = "tomorrow".to_owned());
    let newer = copy(&of, &dir, 55, 10.0, |_, _| {}).join("manifest.json");
    let text = std::fs::read_to_string(&newer).unwrap();
    std::fs::write(&newer, text.replacen("\"schema\": 1", "\"schema\": 99", 1)).unwrap();
    std::fs::write(copy(&of, &dir, 56, 10.0, |_, _| {}).join("tests.jsonl"), "{no test}\n{}\n").unwrap();
    std::fs::remove_file(copy(&of, &dir, 57, 10.0, |_, _| {}).join("manifest.json")).unwrap();
    let (label, target) = ("a".to_owned(), String::new());
    let a = Arm { label, target, settings: BTreeMap::new(), workloads: Vec::new(), switch: None };
    let arms = Arms { b: a.clone(), a, pairs: 6, precision: None, looks: Vec::new(), margin: 0.02, seed: 1 };
    copy(&of, &dir, 58, 10.0, |manifest, _| manifest.plan.arms = Some(Box::new(arms.clone())));
    let levels = Levels { levels: vec!["on".to_owned()], delays_ms: vec![0.0], pairs: 6, ..Levels::default() };
    let levels = copy(&of, &dir, 59, 10.0, |manifest, _| manifest.plan.levels = Some(Box::new(levels.clone())));
    copy(&of, &dir, 60, 10.0, |manifest, _| manifest.plan.payload_compressibility = 0.5);
    std::fs::create_dir(dir.join("notes")).unwrap();
    let twice = results.path().join("nightly/../nightly").display().to_string();

    let (found, ran) = rows(&dir, "commit_throughput_tps", &[&twice]);
    let why =
        ["'tomorrow' is no time", "layout 99", "line 1, is damaged", "manifest.json", "once more", "run of two arms"];
    says(&ran, 0, &[&why[..], &["run of levels", "is not complete"]].concat());
    let first = found.iter().find(|row| row["first_run_after"] == ids[6]).unwrap();
    assert_eq!([&first["runs"], &first["left_out"], &first["verdict"]], ["13", "2", "slower"], "{}", ran.said());
    let text = ["has no valid test", "unequal work", "too short: 8 runs are needed, there are 1."];
    says(&trend(&dir, &[]), 0, &text);
    // Other parameters and other data are other series, and their names say so.
    let mut setups: Vec<&str> = found.iter().map(|row| row["setup"].as_str()).collect();
    setups.sort_unstable();
    let setup = "closed loop; 0 % compressible";
    assert_eq!(setups, [setup, setup, "closed loop; 50 % compressible"], "{}", ran.said());
    says(&trend(&dir, &[]), 0, &["0 % compressible, 1 job"]);
    let compared = run(&["compare", dir.join(&ids[0]).to_str().unwrap(), levels.to_str().unwrap()]);
    says(&compared, 2, &["levels of replication"]);
}

#[test]
fn what_began_in_the_newest_runs_is_no_change_yet_and_a_missing_figure_no_answer() {
    let (results, of, late) = measured();
    let fail = ["--fail-if-slower", "3%"];
    history(&of, &late, 14, 12, 0.7);
    let (found, ran) = rows(&late, "commit_throughput_tps", &fail);
    assert_eq!((ran.code, found[0]["verdict"].as_str()), (0, "no_change"), "{}", ran.said());
    says(&trend(&late, &[]), 0, &["2 series without a change of level."]);
    copy(&of, &late, 20, 1000.0, |_, record| record.valid = false);
    says(&trend(&late, &fail), 0, &["2 of 2 series have no figure in the newest run"]);
    let none = results.path().join("none");
    copy(&of, &none, 1, 1000.0, |_, record| record.valid = false);
    says(&trend(&none, &fail), 2, &["cannot be answered"]);
}

#[test]
fn bad_input_is_named() {
    let (results, of, dir) = measured();
    let ids = history(&of, &dir, 3, 99, 1.0);
    let short = ["8 runs are needed, there are 3", "2 of 2 series are too short"];
    says(&trend(&dir, &["--fail-if-slower", "3%"]), 0, &short);
    let empty = results.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    std::fs::write(empty.join("file"), "x").unwrap();
    let refused: [(&Path, &[&str], &str); 8] = [
        (&results.path().join("nowhere"), &[], "does not exist"),
        (&empty.join("file"), &[], "is a file"),
        (&empty, &[], "no run to follow"),
        (&dir.join(&ids[0]), &[], "is a single run"),
        (&dir, &["--workload", "LGWR-LAT2"], "did you mean 'LGWR-LAT1'?"),
        (&dir, &["--figure", "commit_latency"], "commit_latency_ms"),
        (&dir, &["--figure", ""], "--figure"),
        (&dir, &["--fail-if-slower", "90%"], "90%"),
    ];
    for (dir, more, named) in refused {
        says(&trend(dir, more), 2, &[named]);
    }
    says(&trend(&dir, &["--figure", "redo_mib_per_s"]), 1, &["no valid test has such a figure"]);
}
