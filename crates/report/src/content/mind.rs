//! Caveats before a figure is used, and the bound of a workload in words.

use loadline_analyze::{Bound, BoundBy, Saturation, Sweep, SweepPoint};
use loadline_model::disturbance::why_not_valid;
use loadline_model::manifest::Manifest;
use loadline_model::{Severity, column};
use minijinja::context;

use super::figure::LIMIT;
use super::key::beyond;
use super::qualified;
use crate::doc::{Block, Section};
use crate::platform_run::PlatformRun;
use crate::templates::{items, prose, stored};
use crate::words::{alike, cut, grouped, short_name, stop};

/// Most characters of what was noticed.
const MOST_NOTICED: usize = 320;

/// Caveats; empty if there are none.
pub(crate) fn section(sides: &[PlatformRun<'_>]) -> Section {
    let all = sides.iter().flat_map(|side| minded(side).into_iter().map(move |item| (item, side.label.as_str())));
    let items = grouped(all, |(item, _)| item.clone()).into_iter().map(|(item, of)| {
        let labels: Vec<&str> = of.into_iter().map(|(_, label)| label).collect();
        if sides.len() > 1 { format!("{}: {item}", labels.join(", ")) } else { item }
    });
    Section::new("mind", "What to mind", Block::list(items).into_iter().collect())
}

/// Machine and storage of `manifest` in one line: `8 × AMD EPYC, 64.0 GiB, Debian 12; log on ext4, data on xfs`.
pub(crate) fn platform(manifest: &Manifest) -> String {
    prose("machine", stored(manifest))
}

/// The bound of the workload `name`, in a sentence.
pub(crate) fn bounded(name: &str, bound: &Bound) -> String {
    let by = if bound.by == BoundBy::Unknown { ":" } else { " is bounded by" };
    format!("{name}{by} {}.", stop(&bound.sentence()))
}

fn minded(side: &PlatformRun<'_>) -> Vec<String> {
    let (plan, records) = (&side.run.manifest.plan, side.run.records.as_slice());
    if records.is_empty() {
        return Vec::new();
    }
    let mut refused = alike(records.iter().filter(|r| !r.is_usable()).map(|r| (why_not_valid(r), r.test)));
    refused.sort_by_key(|(_, tests)| std::cmp::Reverse(tests.len()));
    let noticed = qualified::noticed(records).into_iter().chain(qualified::noted_sentences(records));
    let mut findings: Vec<_> = side.run.manifest.doctor.iter().filter(|f| f.severity > Severity::Ok).collect();
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    let names = |of: &dyn Fn(&Sweep, &SweepPoint) -> bool| -> Vec<String> {
        let peaks = side.sweeps.iter().filter_map(|s| Some((s, s.peak()?)));
        peaks.filter(|(s, peak)| of(s, peak)).map(|(s, _)| short_name(s, &side.sweeps)).collect()
    };
    let is_rising = |s: &Sweep| s.over_jobs() && matches!(s.saturation(), Saturation::Rising { .. });
    let rising_below = side.sweeps.iter().filter(|s| is_rising(s) && s.beyond().next().is_some());
    let rising_below =
        rising_below.map(|s| format!("{} ({})", short_name(s, &side.sweeps), beyond(s).trim_start_matches("; ")));
    // A percentile is known to a thousandth.
    let few_are_slow = |_: &Sweep, peak: &SweepPoint| {
        let ns = |column| peak.figure(column).map(|e| e.mean);
        let both = ns(column::TRANSACTION_TIME_NS_MEAN).zip(ns(column::TRANSACTION_TIME_NS_P99));
        both.is_some_and(|(mean, p99)| mean > 1.01 * p99)
    };
    let context = context! {
        refused,
        kept => qualified::kept(records.iter()),
        valid => records.iter().filter(|r| r.valid).count(),
        noticed => noticed.map(|sentence| cut(&sentence, MOST_NOTICED)).collect::<Vec<_>>(),
        rising => names(&|s, _| is_rising(s) && s.beyond().next().is_none()),
        rising_below => rising_below.collect::<Vec<_>>(),
        slow => names(&few_are_slow),
        without_limit => names(&|_, peak| side.run.published.is_none() && peak.figure(LIMIT).is_none()),
        measured => names(&|_, _| true),
        why => records.iter().find_map(|r| r.absent.get(column::LIMIT_SHARE_PCT.id)),
        findings,
        plan => stored(plan),
        private => side.run.manifest.target.kind.ends_with("-temp"),
    };
    items("mind", context)
}
