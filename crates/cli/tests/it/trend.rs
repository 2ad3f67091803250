//! Histories of stored runs: `loadline trend`. One run is measured; its copies have known figures.

use std::fs;

use serde_json::json;

use crate::commands::hold;
use crate::common::*;

/// Throughputs that differ by a few percent, without an order.
const NOISE: [f64; 8] = [1.01, 0.985, 1.02, 0.995, 0.98, 1.005, 1.015, 0.99];

/// A folder for copies of a measured run, each as that of a night.
struct Nights<'a> {
    manifest: &'a Value,
    test: &'a Value,
    folder: PathBuf,
}

impl Nights<'_> {
    /// A run of night `night`, with `change` made to its manifest and its test; its folder.
    fn add(&self, night: usize, tps: f64, change: impl Fn(&mut Value, &mut Value)) -> PathBuf {
        let folder = self.folder.join(format!("night-{night:02}"));
        let (mut manifest, mut test) = (self.manifest.clone(), self.test.clone());
        manifest["started_at"] = json!(format!("2026-{:02}-{:02}T01:00:00Z", 1 + night / 28, 1 + night % 28));
        manifest["run"] = json!(format!("night-{night:02}"));
        (test["run"], test["valid"]) = (manifest["run"].clone(), json!(true));
        // What disturbed it does not count.
        (test["checks"], test["invalid_reason"]) = (json!([]), Value::Null);
        (test["commit_throughput_tps"], test["commit_latency_ms"]) = (json!(tps), json!(1000.0 / tps));
        change(&mut manifest, &mut test);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
        fs::write(folder.join("tests.jsonl"), format!("{test}\n")).unwrap();
        folder
    }

    /// Runs of so many nights, the throughput being 30 % lower from night `from` on.
    fn history(&self, nights: usize, from: usize) {
        for night in 0..nights {
            self.add(night, 1000.0 * NOISE[night % 8] * if night >= from { 0.7 } else { 1.0 }, |_, _| {});
        }
    }
}

fn refuse(test: &mut Value) {
    test["valid"] = json!(false);
    test["checks"] = json!([{ "id": "errors", "outcome": "failed", "detail": "spoiled" }]);
}

#[test]
fn what_cannot_be_followed_is_left_out_with_a_reason_and_bad_input_named() {
    let results = results();
    let short = "--jobs 1 --duration 200ms --warmup 200ms --no-probe";
    let measured = lat1("null:?pause=1ms", results.path().join("measured"), short).folder();
    let (manifest, test) = (&manifest_of(&measured), &tests_of(&measured)[0]);
    let nights = |name: &str| Nights { manifest, test, folder: results.path().join(name) };
    let odd = nights("odd");
    odd.history(12, 6);
    odd.add(50, 700.0, |_, test| refuse(test));
    odd.add(51, 700.0, |_, test| test["rows_per_tx"] = json!(7.0));
    odd.add(52, 700.0, |manifest, _| manifest["state"] = json!("interrupted"));
    odd.add(53, 700.0, |_, test| test["parameters"] = json!({ "payload": 9 }));
    odd.add(54, 700.0, |manifest, _| manifest["started_at"] = json!("tomorrow"));
    odd.add(55, 700.0, |manifest, _| manifest["plan"]["payload_compressibility"] = json!(0.5));
    fs::remove_file(odd.add(56, 700.0, |_, _| {}).join("manifest.json")).unwrap();
    let arm = json!({ "label": "a", "target": "", "settings": {}, "workloads": [], "switch": null });
    let arms = json!({ "a": arm, "b": arm, "pairs": 6, "looks": [], "margin": 0.02, "seed": 1 });
    odd.add(57, 700.0, |manifest, _| manifest["plan"]["arms"] = arms.clone());
    // What began in the newest runs is no change yet.
    nights("newest").history(14, 12);
    nights("refused").history(14, 12);
    nights("refused").add(20, 1000.0, |_, test| refuse(test));
    nights("none").add(1, 1000.0, |_, test| refuse(test));
    nights("short").history(3, 99);
    hold(include_str!("data/trend.toml"), &[("{dir}", results.path().to_str().unwrap())]);

    let of = |dir: &str| {
        printed(&format!("trend {}/{dir} --figure commit_throughput_tps --format csv", results.path().display()))
    };
    let found = rows_of(&of("odd"));
    let first = found.iter().find(|row| row["first_run_after"] == "night-06").unwrap();
    assert_eq!([&first["runs"], &first["left_out"], &first["verdict"]], ["13", "2", "slower"]);
    // Other parameters and other data are other series, and their names say so.
    let mut setups: Vec<&str> = found.iter().map(|row| row["setup"].as_str()).collect();
    setups.sort_unstable();
    let setup = "closed loop; 0 % compressible";
    assert_eq!(setups, [setup, setup, "closed loop; 50 % compressible"]);
    assert_eq!(rows_of(&of("newest"))[0]["verdict"], "no_change");
}
