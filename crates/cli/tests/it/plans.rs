//! Plans that come with loadline, printed and run by name.

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
