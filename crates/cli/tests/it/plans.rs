//! Plans that come with loadline: listed, printed, run by name; nothing is started here.

use crate::common::{command, ok, printed, results, rows_of};

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "a server: ./test")]
fn every_plan_runs_by_name_and_as_the_file_that_is_printed() {
    let dir = results();
    let csv = printed("plans --format csv");
    assert!(csv.starts_with("plan,summary,workloads,jobs,duration_s,warmup_s,repeat\n"), "{csv}");
    let names: Vec<String> = csv.lines().skip(1).map(|line| line.split(',').next().unwrap().to_owned()).collect();
    assert!(["quick", "full", "log-writer"].iter().all(|name| names.iter().any(|n| n == name)), "{names:?}");
    assert_eq!(rows_of(&printed("plans full --format csv")).len(), 1);
    assert!(!printed("plans").contains("LGWR-SIZE"), "a terminal has the number of workloads only");
    for name in &names {
        let copy = dir.path().join(format!("{name}.toml"));
        let write = format!("plans {name} --output {}", copy.display());
        printed(&write);
        let in_repository = format!("{}/../../plans/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = printed(&format!("plans {name}"));
        assert_eq!(text, std::fs::read_to_string(in_repository).unwrap(), "{name} is printed as it is");
        assert_eq!(text, std::fs::read_to_string(&copy).unwrap());
        std::fs::write(&copy, text + "# mine\n").unwrap();
        command(&write).fails(2, &["exists: name another file"]);
        assert!(std::fs::read_to_string(&copy).unwrap().ends_with("# mine\n"));
        // A private server can do what the plans ask for.
        let runs = dir.path().join("runs");
        let dry =
            |plan: &str| printed(&format!("run {plan} --target postgres-temp: --results {} --dry-run", runs.display()));
        let by_name = dry(&format!("--plan {name}"));
        assert!(by_name.contains("postgres-temp:") && by_name.contains("driver"), "{by_name}");
        assert_eq!(dry(copy.to_str().unwrap()), by_name);
        assert!(!runs.exists(), "a dry run makes no folder");
    }
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
    assert_eq!(plans.len(), 5);
}

#[test]
fn the_quick_plan_is_what_a_run_does_that_names_none() {
    let bare = ok(&["run", "--dry-run"]).out;
    assert_eq!(ok(&["run", "--plan", "quick", "--dry-run"]).out, bare);
    assert!(bare.contains("sqlite:") && bare.contains("LGWR-LAT1"), "{bare}");
    assert_ne!(ok(&["run", "--plan", "log-writer", "--dry-run"]).out, bare);
}
