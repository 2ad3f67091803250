//! Histories of stored runs: `loadline trend`. One run is measured; its copies have known figures.

use std::fs;

use serde_json::json;
use tempfile::TempDir;

use crate::common::*;

/// Throughputs that differ by a few percent, without an order.
const NOISE: [f64; 8] = [1.01, 0.985, 1.02, 0.995, 0.98, 1.005, 1.015, 0.99];
const FAIL: [&str; 2] = ["--fail-if-slower", "3%"];

/// A measured run, and a folder for its nights.
fn measured() -> (PathBuf, PathBuf, TempDir) {
    let results = results();
    let short = "--jobs 1 --duration 200ms --warmup 200ms --no-probe";
    let of = lat1("null:?pause=1ms", results.path().join("measured"), short).folder();
    (results.path().join("nightly"), of, results)
}

/// A copy of the run `of` as that of night `night`, with `change` made to its manifest and its test.
fn copy(of: &Path, to: &Path, night: usize, tps: f64, change: impl Fn(&mut Value, &mut Value)) -> String {
    let id = format!("night-{night:02}");
    let (mut manifest, mut test) = (manifest_of(of), tests_of(of).remove(0));
    manifest["started_at"] = json!(format!("2026-{:02}-{:02}T01:00:00Z", 1 + night / 28, 1 + night % 28));
    (manifest["run"], test["run"], test["valid"]) = (json!(id), json!(id), json!(true));
    // What disturbed it does not count.
    (test["checks"], test["invalid_reason"]) = (json!([]), Value::Null);
    (test["commit_throughput_tps"], test["commit_latency_ms"]) = (json!(tps), json!(1000.0 / tps));
    change(&mut manifest, &mut test);
    fs::create_dir_all(to.join(&id)).unwrap();
    fs::write(to.join(&id).join("manifest.json"), manifest.to_string()).unwrap();
    fs::write(to.join(&id).join("tests.jsonl"), format!("{test}\n")).unwrap();
    id
}

fn refuse(test: &mut Value) {
    test["valid"] = json!(false);
    test["checks"] = json!([{ "id": "errors", "outcome": "failed", "detail": "spoiled" }]);
}

/// `nights` copies, the throughput being `ratio` times as high from night `from` on.
fn history(of: &Path, to: &Path, nights: usize, from: usize, ratio: f64) -> Vec<String> {
    let tps = |night: usize| 1000.0 * NOISE[night % 8] * if night >= from { ratio } else { 1.0 };
    (0..nights).map(|night| copy(of, to, night, tps(night), |_, _| {})).collect()
}

/// That `loadline trend` ends with `code`, and each of `says` is in what it wrote.
fn trend(dir: &Path, more: &[&str], code: i32, says: &[&str]) -> Ran {
    let ran = run(&[&["trend", dir.to_str().unwrap()], more].concat());
    assert_eq!(ran.code, code, "{}", ran.said());
    // Lines are wrapped.
    let all = ran.said().split_whitespace().collect::<Vec<_>>().join(" ");
    says.iter().for_each(|part| assert!(all.contains(part), "{part}: {}", ran.said()));
    ran
}

fn rows(dir: &Path, figure: &str, more: &[&str], code: i32, says: &[&str]) -> Vec<Row> {
    rows_of(&trend(dir, &[&["--figure", figure, "--format", "csv"], more].concat(), code, says).out)
}

#[test]
fn what_cannot_be_followed_is_left_out_with_a_reason() {
    let (dir, of, results) = measured();
    let ids = history(&of, &dir, 12, 6, 0.7);
    let odd = |night, change: &dyn Fn(&mut Value, &mut Value)| copy(&of, &dir, night, 700.0, change);
    odd(50, &|_, test| refuse(test));
    odd(51, &|_, test| test["rows_per_tx"] = json!(7.0));
    odd(52, &|manifest, _| manifest["state"] = json!("interrupted"));
    odd(53, &|_, test| test["parameters"] = json!({ "payload": 9 }));
    odd(54, &|manifest, _| manifest["started_at"] = json!("tomorrow"));
    odd(55, &|manifest, _| manifest["plan"]["payload_compressibility"] = json!(0.5));
    fs::remove_file(dir.join(odd(56, &|_, _| {})).join("manifest.json")).unwrap();
    let arm = json!({ "label": "a", "target": "", "settings": {}, "workloads": [], "switch": null });
    let arms = json!({ "a": arm, "b": arm, "pairs": 6, "looks": [], "margin": 0.02, "seed": 1 });
    odd(57, &|manifest, _| manifest["plan"]["arms"] = arms.clone());
    let twice = results.path().join("nightly/../nightly").display().to_string();
    let why = ["'tomorrow'", "manifest.json", "once more", "is not complete", "night-57 is left out"];
    let found = rows(&dir, "commit_throughput_tps", &[&FAIL[..], &[&twice]].concat(), 1, &why);
    let first = found.iter().find(|row| row["first_run_after"] == ids[6]).unwrap();
    assert_eq!([&first["runs"], &first["left_out"], &first["verdict"]], ["13", "2", "slower"]);
    // Other parameters and other data are other series, and their names say so.
    let mut setups: Vec<&str> = found.iter().map(|row| row["setup"].as_str()).collect();
    setups.sort_unstable();
    let setup = "closed loop; 0 % compressible";
    assert_eq!(setups, [setup, setup, "closed loop; 50 % compressible"]);
    trend(&dir, &["--fail-if-slower", "40%"], 0, &["are refused", "unequal work", "have fewer than 8 runs"]);
}

#[test]
fn what_is_no_answer_is_said_and_bad_input_named() {
    let (dir, of, results) = measured();
    history(&of, &dir, 14, 12, 0.7);
    // What began in the newest runs is no change yet.
    assert_eq!(rows(&dir, "commit_throughput_tps", &FAIL, 0, &[])[0]["verdict"], "no_change");
    let refused = |_: &mut Value, test: &mut Value| refuse(test);
    let newest = dir.join(copy(&of, &dir, 20, 1000.0, refused));
    let [none, short] = ["none", "short"].map(|name| results.path().join(name));
    copy(&of, &none, 1, 1000.0, refused);
    history(&of, &short, 3, 99, 1.0);
    let cases: [(&Path, &[&str], i32, &str); 10] = [
        (&dir, &FAIL, 0, "2 of 2 series have no figure in the newest run"),
        (&short, &FAIL, 0, "2 of 2 series are too short"),
        (&none, &FAIL, 2, "no valid test has such a figure"),
        (&dir, &["--figure", "redo_mib_per_s"], 1, "no valid test has such a figure"),
        (&results.path().join("nowhere"), &[], 2, "nowhere"),
        (&newest.join("manifest.json"), &[], 2, "manifest.json"),
        (&newest, &[], 2, "no run to follow"),
        (&dir, &["--workload", "LGWR-LAT2"], 2, "did you mean 'LGWR-LAT1'?"),
        (&dir, &["--figure", "commit_latency"], 2, "commit_latency_ms"),
        (&dir, &["--fail-if-slower", "90%"], 2, "90%"),
    ];
    for (dir, more, code, says) in cases {
        trend(dir, more, code, &[says]);
    }
}
