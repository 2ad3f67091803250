//! Contents of a report, in the order of a reader's needs: verdict and key figures, charts and tables, evidence.

pub(crate) mod aging;
mod answer;
pub(crate) mod charts;
mod evidence;
pub(crate) mod factors;
pub(crate) mod levels;
pub(crate) mod load;
pub(crate) mod load_study;
pub(crate) mod nodes;
mod page;
pub(crate) mod platform;
pub(crate) mod profiles;
pub(crate) mod qualified;
pub(crate) mod ratios;
mod sizes;
mod tables;
pub(crate) mod variants;

pub(crate) use crate::words::stop;
pub(crate) use answer::{bounded, by_weight, of_test};
pub(crate) use page::{not_measured, table as page};
pub(crate) use qualified::{kept as kept_tests, standing, verdict};
pub(crate) use tables::{all_histograms as waits_of, histogram};

use loadline_model::Column;
use loadline_model::manifest::RunState;
use minijinja::context;

use crate::doc::{Block, Document, Section, Standing};
use crate::platform_run::{PlatformRun, by_variant, comparisons, sides};
use crate::templates::{items, prose, stored};
use crate::words::grouped;
use crate::{Options, RunData};

/// The report of `runs`; test tables have the columns `chosen`, or the default ones.
pub(crate) fn document(runs: &[RunData], chosen: Option<&[&'static Column]>, options: &Options) -> Document {
    // Parts of one run share its database, its time and its name, unless they are variants, which are named by what they differ in.
    let parts_of_one = matches!(runs, [run] if run.manifest.plan.arms().is_none());
    let whole = parts_of_one.then(|| sides(runs));
    let by_variant = by_variant(runs);
    let sides = sides(by_variant.as_deref().unwrap_or(runs));
    let named = whole.as_ref().unwrap_or(&sides);
    // loadline has neither checks nor facts of published and imported figures.
    let measured: Vec<PlatformRun<'_>> = sides.iter().filter(|side| side.run.published.is_none()).cloned().collect();
    let records = || measured.iter().flat_map(|side| &side.run.records);
    let tests = records().count();
    let complete = measured.iter().all(|side| side.run.manifest.state == RunState::Complete);
    let unchecked = evidence::verdict_elsewhere(&sides);
    let verdict = (tests > 0 || unchecked.is_none()).then(|| qualified::verdict(records(), false));
    let told = if let [side] = measured.as_slice() { qualified::tells_apart(&side.run.records) } else { None };
    let tried = qualified::tried_again(records()).into_iter().chain(told);
    let verdict: Vec<String> = verdict.into_iter().chain(unchecked).collect();
    let standing = if tests == 0 || !complete { Standing::Unwell } else { standing(records()) };
    Document {
        title: options.title.clone().unwrap_or_else(|| named.iter().map(|s| &*s.label).collect::<Vec<_>>().join(" · ")),
        customer: options.customer.clone().unwrap_or_default(),
        platforms: platforms_of(named, options.title.is_some()),
        subtitle: subtitle_of(named, options.title.is_some()),
        standing,
        verdict: verdict.join(" "),
        remarks: remarks(runs).into_iter().chain(tried).collect(),
        sections: sections(runs, (&sides, &measured), chosen, options),
    }
}

/// The sections that say anything, of the platforms of `runs` and of those that loadline measured.
fn sections(
    runs: &[RunData],
    (sides, measured): (&[PlatformRun<'_>], &[PlatformRun<'_>]),
    chosen: Option<&[&'static Column]>,
    options: &Options,
) -> Vec<Section> {
    // Published jobs ran in the database; each comparison with others says so.
    let across_drivers = options.across_drivers || sides.iter().any(|side| side.run.published.is_some());
    let comparisons = comparisons(sides, across_drivers, false);
    // Key figures have imported tests as well, marked as such; published platforms do not.
    let own = |side: &&PlatformRun<'_>| side.run.published.as_ref().is_none_or(|p| p.imported);
    let own: Vec<PlatformRun<'_>> = sides.iter().filter(own).cloned().collect();
    let mut all = vec![
        answer::section(&own, &comparisons),
        variants::section(runs),
        levels::section(runs),
        platform::facts_section(runs),
        aging::section(measured),
        nodes::section(runs),
        nodes::processes(runs),
        page::section(&own, options.paper),
        answer::mind(measured),
        notes(runs, options.summary),
        load::section(runs),
        evidence::imported(sides),
        evidence::published(sides, options.summary),
        page::load_lines(sides, options),
        load_study::section(runs),
        factors::summary(&comparisons),
        options.prices.as_ref().map_or_else(Section::default, |prices| prices.section(sides, &comparisons)),
        platform::settings(measured),
    ];
    if options.summary {
        all.push(charts::load_lines(sides));
    } else {
        all.extend(tables::sections(sides, chosen));
        all.extend([
            sizes::section(sides),
            factors::in_full(&comparisons),
            charts::over_time(sides),
            evidence::section(sides, measured, options.paper),
            platform::section(measured),
            platform::again(measured),
            platform::glossary(sides),
        ]);
    }
    // Pairs are the answer themselves, and a peak over all windows of the baseline of levels would be none.
    let left_out: &[&str] = match runs {
        [run] if run.manifest.plan.levels().is_some() => &["answer", "key-figures", "load-lines"],
        [run] if run.manifest.plan.arms().is_some() => &["answer"],
        _ => &[],
    };
    all.retain(|section| !section.blocks.is_empty() && !left_out.contains(&section.id));
    all
}

fn notes(runs: &[RunData], of_workloads: bool) -> Section {
    let mut blocks = Vec::new();
    for run in runs {
        for (workload, markdown) in run.notes.iter().filter(|(code, _)| of_workloads || code.is_empty()) {
            let platform = if runs.len() > 1 { run.manifest.plan.platform.as_str() } else { "" };
            let of = [platform, workload.as_str()].into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join(", ");
            if !of.is_empty() {
                blocks.push(Block::heading(of));
            }
            blocks.push(Block::Notes { markdown: markdown.clone() });
        }
    }
    Section::new("notes", "Notes", blocks)
}

fn subtitle_of(sides: &[PlatformRun<'_>], titled: bool) -> String {
    let one = |s: &PlatformRun<'_>| {
        let (m, source) = (&s.run.manifest, s.run.published.as_ref().map(|p| &p.source));
        context! { label => s.label, target => stored(&m.target), source, started_at => m.started_at, version => m.loadline_version }
    };
    prose("subtitle", context! { titled, sides => sides.iter().map(one).collect::<Vec<_>>() })
}

/// Machine and storage of each platform that loadline measured; platforms on the same one are one line.
fn platforms_of(sides: &[PlatformRun<'_>], titled: bool) -> Vec<String> {
    let measured = sides.iter().filter(|s| s.run.published.is_none());
    let lines = grouped(measured, |side| prose("machine", stored(&side.run.manifest)));
    // A title of the user's does not name the platform.
    let alone = lines.len() == 1 && !titled;
    let labels = |of: &[&PlatformRun<'_>]| of.iter().map(|side| side.label.as_str()).collect::<Vec<_>>().join(", ");
    lines.into_iter().map(|(line, of)| if alone { line } else { format!("{}: {line}", labels(&of)) }).collect()
}

/// Qualifications of the verdict. (Skipped workloads are listed with the key figures.)
fn remarks(runs: &[RunData]) -> Vec<String> {
    let one = |RunData { manifest: m, warnings, .. }: &RunData| {
        context! { label => m.plan.platform, state => m.state, command => m.plan.command(), run => m.run, warnings }
    };
    items("remarks", context! { sides => runs.iter().map(one).collect::<Vec<_>>() })
}
