//! Plans: those that come with loadline, printed and run by name; and what one states of a platform.

use crate::common::*;

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "a server: ./test")]
fn every_plan_runs_by_name_and_as_the_file_that_is_printed() {
    let dir = results();
    let runs = dir.path().join("runs");
    let dry =
        |plan: &str| printed(&format!("run {plan} --target postgres-temp: --results {} --dry-run", runs.display()));
    for line in printed("plans --format csv").lines().skip(1) {
        let name = line.split(',').next().unwrap();
        let in_repository = format!("{}/../../plans/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        assert_eq!(printed(&format!("plans {name}")), read(in_repository), "{name} is printed as it is");
        // A private server can do what the plans ask for.
        let by_name = dry(&format!("--plan {name}"));
        assert!(by_name.contains("postgres-temp:") && by_name.contains("driver"), "{by_name}");
    }
    let copy = dir.path().join("copy.toml");
    printed(&format!("plans quick --output {}", copy.display()));
    assert_eq!(dry(copy.to_str().unwrap()), dry("--plan quick"));
    assert!(!runs.exists(), "a dry run makes no folder");
}

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "a server: ./test")]
fn every_example_is_a_plan_of_its_command() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let plans: Vec<_> = files.filter(|file| !file.ends_with("queue.toml")).collect();
    for plan in &plans {
        let text = std::fs::read_to_string(plan).unwrap();
        let command = if text.contains("[[variant]]") { "ab" } else { "run" };
        let target = if text.contains("target = ") { "" } else { "--target postgres-temp:" };
        let dry = printed(&format!("{command} {} {target} --dry-run", plan.display()));
        assert!(dry.contains("postgres-temp:") && dry.contains("time "), "{dry}");
    }
    assert!(!plans.is_empty());
}

#[test]
fn the_quick_plan_is_what_a_run_does_that_names_none() {
    let bare = ok(&["run", "--dry-run"]).out;
    assert_eq!(ok(&["run", "--plan", "quick", "--dry-run"]).out, bare);
    assert!(bare.contains("sqlite:") && bare.contains("LGWR-LAT1"), "{bare}");
    assert_ne!(ok(&["run", "--plan", "log-writer", "--dry-run"]).out, bare);
}

#[test]
fn facts_of_plan_and_flags_are_stored_and_survive_a_resume() {
    let dir = results();
    let plan = dir.path().join("plan.toml");
    let text = "target = 'null:?pause=1ms'\nplatform = 'sata ssd'\nworkload = ['LGWR-LAT1']\njobs = [1]\nduration = '300ms'\n\
                warmup = '200ms'\nprobe = false\n[facts]\nLaunch-Year = 2019\nflash = '2 TB'\ncompression = false\n";
    std::fs::write(&plan, text).unwrap();
    let (plan, into) = (plan.to_str().unwrap(), dir.path().to_str().unwrap());
    let flags = ["--fact", "Launch year=2021", "--fact", "System=a box"];
    let dry = ok(&[&["run", plan, "--dry-run", "--results", into], &flags[..]].concat()).out;
    assert!(dry.contains("launch-year = 2021") && dry.contains("system = a box"), "{dry}");
    let folder = run(&[&["run", plan, "--results", into], &flags[..]].concat()).folder();
    let stated = || manifest_of(&folder)["plan"]["facts"].clone();
    let wanted = serde_json::json!({"compression": "no", "flash": "2 TB", "launch-year": "2021", "system": "a box"});
    assert_eq!(stated(), wanted, "a flag goes before the plan, however both spell it");
    let name = folder.to_str().unwrap();
    run(&["run", "--resume", name]);
    assert_eq!(stated(), wanted);
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
