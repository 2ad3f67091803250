//! The page about servers that loadline was run on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::Measured;
use super::list::List;
use crate::outcomes::head;

const HEAD: &str = "# Servers that loadline was run on

Written by `cargo run -p loadline-bench -- servers --docs docs/servers.md`, which fetches each server, starts it as a private
one through `?bin=`, runs the plans with short windows, and removes it (rest: the workloads that are in no plan). Short windows on a small machine: whether tests are
valid counts here, not their figures, and tests that others on the machine disturbed are kept. A cell is the number of valid
tests of all that ran, with both drivers, and how many workloads were skipped with each. Where a plan has fewer tests than
elsewhere, it ran with one driver, fewer job counts or some of its workloads only. The page of a workload says why a driver skips it
([workloads](workloads/README.md)); DBWR-CKPT was skipped on MariaDB 11.4 and MySQL, which have no `innodb_log_checkpoint_now`. The builds from Maven are made for size:
their speed is not that of a distribution's. PostgreSQL 15 and MariaDB 10.11 are the packages of Debian 12, with which
loadline is tested and its [measurements](measurements.md) are made.

DuckDB is a library, not a server. 1.5.6 and 1.4.4 (npm, `@duckdb/node-bindings-linux-x64`, `1.5.6-r.1` and `1.4.4-r.1`) ran the quick
plan with one and two jobs on 2026-11-29, beside compilers: no test was refused, and 5 of 18 workloads were skipped with their reasons.

";

/// The page about `all` outcomes.
pub(super) fn page(list: &List, all: &[Measured]) -> String {
    let plans = loadline_run::plans::PLANS.iter().map(|p| p.name).chain([super::REST]);
    let plans: Vec<&str> = plans.filter(|name| all.iter().any(|m| m.plan == *name)).collect();
    let mut out = HEAD.to_owned();
    let _ = writeln!(out, "{}", head(&format!("server | from | date | {}", plans.join(" | "))));
    for server in &list.servers {
        let of: Vec<&Measured> = all.iter().filter(|m| m.server == server.name).collect();
        if of.is_empty() {
            continue;
        }
        let version = of.iter().find_map(|m| m.version.as_deref()).unwrap_or(&server.version);
        let settings: Vec<String> = server.settings.iter().map(|(n, v)| format!("`{n}={v}`")).collect();
        let with = if settings.is_empty() { String::new() } else { format!(" with {}", settings.join(", ")) };
        let cells = plans.iter().map(|plan| cell(&of, plan));
        let dates: BTreeSet<&str> = of.iter().map(|m| m.date.as_str()).collect();
        let _ = writeln!(
            out,
            "| {version}{with} | {} | {} | {} |",
            server.place(),
            dates.into_iter().collect::<Vec<_>>().join(", "),
            cells.collect::<Vec<_>>().join(" | ")
        );
    }
    for (title, reasons) in [
        ("Refused", reasons(all, |m| m.refused.clone())),
        ("Not run", reasons(all, |m| m.failed.iter().map(|why| (m.plan.clone(), why.clone())).collect())),
    ] {
        if !reasons.is_empty() {
            let _ = writeln!(out, "\n## {title}\n");
            reasons.iter().for_each(|line| out += &format!("- {line}\n"));
        }
    }
    out += "\n## Never run\n\n| what | why |\n| --- | --- |\n";
    list.never.iter().for_each(|(what, why)| out += &format!("| {what} | {why} |\n"));
    out
}

fn cell(of: &[&Measured], plan: &str) -> String {
    let of: Vec<&&Measured> = of.iter().filter(|m| m.plan == plan).collect();
    if of.is_empty() {
        return "–".to_owned();
    }
    let proved: usize = of.iter().map(|m| m.proved).sum();
    let ran = proved + of.iter().map(|m| m.refused.len()).sum::<usize>();
    let skipped: Vec<String> =
        of.iter().filter(|m| !m.skipped.is_empty()).map(|m| format!("{} {}", m.driver, m.skipped.len())).collect();
    let skipped = if skipped.is_empty() { String::new() } else { format!("; skipped: {}", skipped.join(", ")) };
    let failed = if of.iter().any(|m| m.failed.is_some()) { "; see below" } else { "" };
    format!("{proved} of {ran}{skipped}{failed}")
}

/// `reason`: what, on which servers.
fn reasons(all: &[Measured], of: impl Fn(&Measured) -> Vec<(String, String)>) -> Vec<String> {
    let mut by_reason: BTreeMap<String, (BTreeSet<String>, BTreeSet<&str>)> = BTreeMap::new();
    for measured in all {
        for (what, why) in of(measured) {
            let (whats, servers) = by_reason.entry(why).or_default();
            whats.insert(what);
            servers.insert(&measured.server);
        }
    }
    let join = |set: &mut dyn Iterator<Item = &str>| set.collect::<Vec<_>>().join(", ");
    let line = |(why, (whats, servers)): (&String, &(BTreeSet<String>, BTreeSet<&str>))| {
        let whats = join(&mut whats.iter().map(String::as_str));
        format!("{} ({whats}; on {})", why.replace('\n', " "), join(&mut servers.iter().copied()))
    };
    by_reason.iter().map(line).collect()
}
