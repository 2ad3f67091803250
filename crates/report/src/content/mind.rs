//! What bounds each platform, and what to mind before a figure is used: the second half of the first page.

use loadline_analyze::{BoundBy, Saturation, Sweep, bound_of_sweep};
use loadline_model::disturbance::why_not_valid;
use loadline_model::format::{bytes, counted, duration_s};
use loadline_model::manifest::Manifest;
use loadline_model::{Severity, TestRecord, column};

use super::{count, disturbed, kept, limit, noted, stop};
use crate::doc::{Block, Section};
use crate::platform_run::PlatformRun;
use crate::words::{alike, cut, distinct, grouped, short_name, spans};

/// Most workloads whose bound is given in a full sentence; with more, they are listed by what bounds them.
const FEW: usize = 4;
/// Most sentences of one kind; the rest is counted, and the report has it in full.
const MOST: usize = 3;
/// Most characters of a reason.
const MAX_REASON: usize = 160;
/// Shorter windows and fewer repetitions are a first look, s.
const SHORT_S: f64 = 10.0;

/// What bounds the platforms; empty without tests.
pub(crate) fn bounds_section(sides: &[PlatformRun<'_>]) -> Section {
    section("bounds", "What bounds it", sides, bounds)
}

/// What to mind; empty if there is nothing.
pub(crate) fn mind_section(sides: &[PlatformRun<'_>]) -> Section {
    section("mind", "What to mind", sides, minded)
}

fn section(
    id: &'static str,
    title: &str,
    sides: &[PlatformRun<'_>],
    said: impl Fn(&PlatformRun<'_>) -> Vec<String>,
) -> Section {
    let items = sides.iter().flat_map(|side| under_label(side, sides, said(side)));
    Section::of(id, title, Block::list(items).into_iter().collect())
}

/// Machine and storage of `manifest` in one line: `8 × AMD EPYC, 64.0 GiB, Debian 12; log on ext4, data on xfs`.
pub(crate) fn platform(manifest: &Manifest) -> String {
    let (machine, target) = (&manifest.machine, &manifest.target);
    let mut parts = vec![format!("{} × {}", machine.cpus, machine.cpu_model), bytes(machine.memory_bytes as f64)];
    parts.push(machine.os.clone());
    parts.extend(machine.virtualisation.clone());
    parts.retain(|p| !p.is_empty());
    let place = if target.local { "" } else { "loadline's machine (the database is on another): " };
    let stored = ["log", "data"].into_iter().filter_map(|role| {
        let storage = target.storage.get(role)?;
        Some(format!("{role} on {} ({})", storage.filesystem, storage.device.as_deref().unwrap_or(&storage.source)))
    });
    let nodes = (target.nodes > 1).then(|| counted(target.nodes as usize, "node"));
    let more: Vec<String> = stored.chain(nodes).collect();
    let more = if more.is_empty() { String::new() } else { format!("; {}", more.join(", ")) };
    format!("{place}{}{more}", parts.join(", "))
}

fn under_label(side: &PlatformRun<'_>, all: &[PlatformRun<'_>], items: Vec<String>) -> Vec<String> {
    if all.len() == 1 { items } else { items.into_iter().map(|i| format!("{}: {i}", side.label)).collect() }
}

fn bounds(side: &PlatformRun<'_>) -> Vec<String> {
    let of = |sweep: &Sweep| Some((short_name(sweep, &side.sweeps), bound_of_sweep(sweep, &side.run.records)?));
    let all: Vec<_> = side.sweeps.iter().filter_map(of).collect();
    if all.len() <= FEW {
        let sentence = |(name, bound): &(String, loadline_analyze::Bound)| match bound.by {
            BoundBy::Unknown => format!("{name}: {}.", stop(&bound.sentence())),
            _ => format!("{name} is bounded by {}.", stop(&bound.sentence())),
        };
        return all.iter().map(sentence).collect();
    }
    let mut by = grouped(&all, |(_, bound)| bound.by.name());
    by.sort_by_key(|(what, of)| (*what == BoundBy::Unknown.name(), std::cmp::Reverse(of.len())));
    let said = |(what, of): (&str, Vec<&(String, loadline_analyze::Bound)>)| {
        let names = distinct(of.into_iter().map(|(name, _)| name.as_str())).join(", ");
        match what == BoundBy::Unknown.name() {
            true => format!("The figures do not show what bounds {names}."),
            false => format!("{names}: bounded by {what}."),
        }
    };
    by.into_iter().map(said).collect()
}

fn minded(side: &PlatformRun<'_>) -> Vec<String> {
    let (manifest, records) = (&side.run.manifest, side.run.records.as_slice());
    if records.is_empty() {
        return Vec::new();
    }
    let mut out = refused(records);
    if let Some((n, by)) = kept::counted(records.iter()) {
        let valid = records.iter().filter(|r| r.valid).count();
        out.push(format!("{n} of {valid} valid tests {} kept only by {by}.", if n == 1 { "is" } else { "are" }));
    }
    out.extend(
        disturbed::sentences(records).into_iter().chain(noted::sentences(records)).map(|s| cut(&s, 2 * MAX_REASON)),
    );
    out.extend(rising(side));
    out.extend(few_are_slow(side));
    out.extend(no_limit(side));
    out.extend(doctor(manifest));
    out.extend(first_look(manifest));
    if manifest.target.kind.ends_with("-temp") {
        out.push("The database was a private one that loadline made for the run: its settings are not those of a server in use.".to_owned());
    }
    out
}

/// Refused tests by reason; reasons that differ only in numbers are one.
fn refused(records: &[TestRecord]) -> Vec<String> {
    let mut reasons = alike(records.iter().filter(|r| !r.is_usable()).map(|r| (why_not_valid(r), r.test)));
    reasons.sort_by_key(|(_, tests)| std::cmp::Reverse(tests.len()));
    let said = reasons.iter().map(|(reason, tests)| {
        let (word, are) = if tests.len() == 1 { ("Test", "is") } else { ("Tests", "are") };
        format!("{word} {} {are} refused and in no mean: {}.", spans(tests), stop(&cut(stop(reason), MAX_REASON)))
    });
    shortened(said.collect(), "more reason why tests are refused", "more reasons why tests are refused")
}

/// Workloads whose highest load gave the most: their peak is that of the sweep, not of the platform.
fn rising(side: &PlatformRun<'_>) -> Option<String> {
    let rises = |s: &&Sweep| s.over_jobs() && matches!(s.saturation(), Saturation::Rising { .. });
    let names: Vec<String> = side.sweeps.iter().filter(rises).map(|s| short_name(s, &side.sweeps)).collect();
    (!names.is_empty()).then(|| {
        format!("Still rising at the most jobs measured: {}. The platform's peak may be higher.", names.join(", "))
    })
}

/// Workloads whose mean latency at the peak is above the 99th percentile: a reader may take that for a mistake.
fn few_are_slow(side: &PlatformRun<'_>) -> Option<String> {
    let slow = |s: &&Sweep| {
        let ns = |column| s.peak().and_then(|peak| Some(peak.figure(column)?.mean));
        // A percentile is known to a thousandth.
        ns(column::TRANSACTION_TIME_NS_MEAN)
            .zip(ns(column::TRANSACTION_TIME_NS_P99))
            .is_some_and(|(mean, p99)| mean > 1.01 * p99)
    };
    let names: Vec<String> = side.sweeps.iter().filter(slow).map(|s| short_name(s, &side.sweeps)).collect();
    (!names.is_empty()).then(|| {
        format!(
            "The mean is above the 99th percentile: {}. Fewer than 1 % of the transactions took so long that they make the mean, as \
            where sessions wait for a CPU or are not served in turn.",
            names.join(", ")
        )
    })
}

/// Workloads without a limit, by reason.
fn no_limit(side: &PlatformRun<'_>) -> Option<String> {
    if side.run.published.is_some() {
        return None;
    }
    let peaks = || side.sweeps.iter().filter_map(|s| Some((s, s.peak()?)));
    let without = |(_, peak): &(&Sweep, &loadline_analyze::SweepPoint)| peak.figure(limit::LIMIT).is_none();
    let names: Vec<String> = peaks().filter(without).map(|(s, _)| short_name(s, &side.sweeps)).collect();
    let all = names.len() == peaks().count();
    let why = side.run.records.iter().find_map(|r| r.absent.get(column::LIMIT_SHARE_PCT.id));
    match (names.is_empty(), all) {
        (true, _) => None,
        (false, true) => Some(format!(
            "No share of the hardware's limit is known{}.",
            why.map_or(String::new(), |w| format!(": {}", stop(w)))
        )),
        (false, false) => Some(format!("The hardware's limit is not known for {}.", names.join(", "))),
    }
}

fn doctor(manifest: &Manifest) -> Vec<String> {
    let mut findings: Vec<_> = manifest.doctor.iter().filter(|f| f.severity > Severity::Ok).collect();
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    let said = findings.into_iter().map(|f| {
        let advice = if f.advice.is_empty() { String::new() } else { format!(": {}", stop(&f.advice)) };
        format!("{} = {}{advice}.", f.subject, cut(&f.value, MAX_REASON))
    });
    shortened(said.collect(), "more warning of the doctor", "more warnings of the doctor")
}

fn first_look(manifest: &Manifest) -> Option<String> {
    let plan = &manifest.plan;
    // Arms and levels repeat in pairs.
    if plan.arms.is_some() || plan.levels.is_some() {
        return None;
    }
    let s = plan.duration_s;
    let window = if s < SHORT_S { format!("{s} s") } else { duration_s(s) };
    let short = plan.duration_s < SHORT_S;
    match (short, plan.repeat < 2) {
        (true, true) => Some(format!(
            "Windows of {window}, each measured once: a first look. --duration 30s --repeat 3 gives figures with intervals."
        )),
        (true, false) => Some(format!("Windows of {window} are short: --duration 30s is steadier.")),
        (false, true) => Some("Each point was measured once: --repeat 3 gives confidence intervals.".to_owned()),
        (false, false) => None,
    }
}

/// The first [`MOST`] of `items`, and how many are left out.
fn shortened(mut items: Vec<String>, one: &str, many: &str) -> Vec<String> {
    let more = items.len().saturating_sub(MOST);
    items.truncate(MOST);
    if more > 0 {
        items.push(format!("{}.", count(more, one, many)));
    }
    items
}
