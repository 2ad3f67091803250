//! The page about servers that loadline was run on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::Measured;
use super::list::List;
use crate::outcomes::head;

const HEAD: &str = include_str!("head.txt");

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
