//! What is stated of a platform, and what it costs: from the command line to the tables.

use serde_json::json;

use crate::common::*;

const QUICK: &str = "workload = ['LGWR-LAT1']\njobs = [1]\nduration = '300ms'\nwarmup = '200ms'\nprobe = false\n";

/// The facts of a stored run that are stated.
fn stated(folder: &Path) -> Value {
    let text = read(folder.join("manifest.json"));
    serde_json::from_str::<Value>(&text).unwrap()["plan"]["facts"].clone()
}

#[test]
fn facts_of_plan_and_flags_are_stored_and_survive_a_resume() {
    let dir = results();
    let plan = dir.path().join("plan.toml");
    let facts = "[facts]\nLaunch-Year = 2019\nflash = '2 TB'\ncompression = false\n";
    std::fs::write(&plan, format!("target = 'null:?pause=1ms'\nplatform = 'sata ssd'\n{QUICK}{facts}")).unwrap();
    let (plan, into) = (plan.to_str().unwrap(), dir.path().to_str().unwrap());
    let flags = ["--fact", "Launch year=2021", "--fact", "System=a box"];
    let dry = ok(&[&["run", plan, "--dry-run", "--results", into], &flags[..]].concat()).out;
    assert!(dry.contains("launch-year = 2021") && dry.contains("system = a box"), "{dry}");
    let folder = run(&[&["run", plan, "--results", into], &flags[..]].concat()).folder();
    let wanted = json!({"compression": "no", "flash": "2 TB", "launch-year": "2021", "system": "a box"});
    assert_eq!(stated(&folder), wanted, "a flag goes before the plan, however both spell it");
    let name = folder.to_str().unwrap();
    run(&["run", "--resume", name]);
    assert_eq!(stated(&folder), wanted);
    assert_eq!(run(&["run", "--resume", name, "--fact", "cores=4"]).code, 2, "a stored plan stays as it is");
    let table = report(&folder, "--table facts --format csv");
    assert!(table.contains("sata ssd,launch-year,Launch year,2021,\n"), "{table}");
    assert!(report(&folder, "--format text").contains("2021 (stated)"));

    // The price follows from the same run.
    let list = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/data/priced.toml");
    let prices = report(&folder, &format!("--price {list} --table prices --format json"));
    let row = &serde_json::from_str::<Value>(&prices).unwrap()[0];
    let number = |key: &str| row[key].as_f64().unwrap();
    assert_eq!((number("total_price"), number("price_per_tb")), (4_000.0, 2_000.0));
    assert_eq!(run(&["report", name, "--price", list, "--redact"]).code, 2, "prices name what is hidden");
}
