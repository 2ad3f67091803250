//! Names that users, scripts and stored runs know: none vanishes, none comes unseen.

use std::path::Path;
use std::process::Command;

use loadline_workload::CATALOGUE;
use serde_json::Value;

use crate::kept::{self, Items};
use crate::said;

/// The objects of a list that the program prints as JSON.
fn listed(of: &str) -> Vec<Value> {
    serde_json::from_str(&said(Path::new("."), &format!("{of} --format json"))).unwrap()
}

/// Commands and flags, as the completions for fish name them.
fn commands_and_flags(found: &mut Vec<String>) {
    for line in said(Path::new("."), "completions fish").lines().filter(|l| l.starts_with("complete ")) {
        let mut parts = line.splitn(3, '"').skip(1);
        let (Some(place), Some(rest)) = (parts.next(), parts.next()) else { continue };
        if place.contains("help") && rest.contains(" -a ") || place.contains("_subcommand help") {
            continue;
        }
        let place =
            place.trim_start_matches("__fish_loadline_using_subcommand ").trim_start_matches("__fish_loadline_");
        let place = match place.split_once("; and ") {
            Some((command, within)) if within.starts_with("not ") => command.to_owned(),
            Some((command, within)) => format!("{command} {}", within.rsplit(' ').next().unwrap_or_default()),
            None => place.replace("needs_command", "loadline"),
        };
        let options = rest.split(" -d '").next().unwrap_or_default();
        let after = |key: &str| options.split(key).nth(1).and_then(|r| r.split_whitespace().next());
        if let Some(flag) = after(" -l ") {
            found.push(format!("flag {place} --{flag}"));
        } else if let Some(command) = after(" -a ").filter(|c| c.len() > 2) {
            found.push(format!("command {place} {}", command.trim_matches('"')));
        }
    }
}

/// Keys of a plan file: those that the refusal of an unknown one names.
fn plan_keys(found: &mut Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("plan.toml");
    std::fs::write(&plan, "no-such-key = 1\n").unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_loadline")).arg("run").arg(&plan).output().unwrap();
    let why = String::from_utf8(out.stderr).unwrap();
    let keys = why.split("known: ").nth(1).and_then(|rest| rest.split(')').next()).unwrap();
    found.extend(keys.split(", ").map(|key| format!("plan key {key}")));
}

fn census() -> Items {
    let mut found = Vec::new();
    commands_and_flags(&mut found);
    plan_keys(&mut found);
    let counters: toml::Table = include_str!("../../../model/counters.toml").parse().unwrap();
    found.extend(counters.keys().map(|name| format!("counter loadline.{name}")));
    let id_of = |value: &Value, key: &str| value[key].as_str().unwrap().to_owned();
    found.extend(listed("columns").iter().map(|c| format!("column {}", id_of(c, "id"))));
    found.extend(listed("checks").iter().map(|c| format!("check {}", id_of(c, "check"))));
    found.extend(listed("audit --laws").iter().map(|l| format!("law {}", id_of(l, "law"))));
    found.extend(loadline_database::TARGETS.iter().map(|t| format!("target {}", t.scheme())));
    for workload in CATALOGUE.iter() {
        found.push(format!("workload {}", workload.code));
        found.extend(workload.params.iter().map(|p| format!("parameter {}.{}", workload.code, p.name)));
        found.extend(workload.kpis.iter().map(|k| format!("kpi {}.{}", workload.code, k.column)));
    }
    found.into_iter().map(|name| (name, String::new())).collect()
}

#[test]
fn no_name_vanishes_and_none_comes_unseen() {
    kept::compare("census", &kept::items("census.txt"), &census());
}
