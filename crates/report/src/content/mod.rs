//! Contents of a report, in the order of a reader's needs: verdict and key figures, charts and tables, evidence.

mod agents;
pub(crate) mod arms;
mod charts;
mod curves;
pub(crate) mod disturbed;
mod elsewhere;
mod evidence;
mod factors;
mod figure;
mod glossary;
mod groups;
mod kept;
mod key;
pub(crate) mod levels;
mod limit;
pub(crate) mod load;
mod mind;
pub(crate) mod nodes;
pub(crate) mod noted;
mod page;
mod platform;
pub(crate) mod ratios;
pub(crate) mod settings;
mod sizes;
mod tables;
pub(crate) mod wait_profiles;
mod waits;

pub(crate) use crate::words::count;
pub(crate) use kept::{counted as kept_tests, verdict as kept_verdict};
pub(crate) use page::{not_measured, table as page};
pub(crate) use waits::{Waits, all as waits_of, histogram};

use loadline_model::format::counted;
use loadline_model::manifest::RunState;
use loadline_model::{Column, TestRecord};

use crate::doc::{Block, Document, Section};
use crate::platform_run::{PlatformRun, apart, comparisons, sides};
use crate::words::grouped;
use crate::words::validities;
use crate::{Options, RunData};

/// The report of `runs`; test tables have the columns `chosen`, or the default ones.
pub(crate) fn document(runs: &[RunData], chosen: Option<&[&'static Column]>, options: &Options) -> Document {
    let across_drivers = options.across_drivers;
    let linked = runs;
    let of_arms = if let [run] = runs { arms::of(run) } else { None };
    let of_levels = if let [run] = runs { levels::of(run) } else { None };
    let over_nodes = nodes::section(runs);
    let of_jobs = load::section(runs);
    let over_agents = agents::section(runs);
    // Parts of one run share its database, its time and its name, unless they are arms, which are named by what they differ in.
    let parts_of_one = matches!(runs, [run] if run.manifest.plan.arms.is_none());
    let whole = parts_of_one.then(|| sides(runs));
    let apart = apart(runs);
    let runs = apart.as_deref().unwrap_or(runs);
    let sides = sides(runs);
    let named = whole.as_ref().unwrap_or(&sides);
    // Published jobs ran in the database; each comparison with others says so.
    let comparisons = comparisons(&sides, across_drivers || sides.iter().any(|side| side.run.published.is_some()));
    // loadline has neither checks nor facts of published and imported figures.
    let measured: Vec<PlatformRun<'_>> = sides.iter().filter(|side| side.run.published.is_none()).cloned().collect();
    let measured = measured.as_slice();
    // Key figures have imported tests as well, marked as such; published platforms do not.
    let own = |side: &&PlatformRun<'_>| side.run.published.as_ref().is_none_or(|p| p.imported);
    let own: Vec<PlatformRun<'_>> = sides.iter().filter(own).cloned().collect();
    let records = || measured.iter().flat_map(|side| &side.run.records);
    let (tests, valid) = (records().count(), records().filter(|r| r.valid).count());
    let kept = kept::counted(records());
    let complete = measured.iter().all(|side| side.run.manifest.state == RunState::Complete);
    // Windows of a baseline are compared in their pairs: a peak over all of them would not be.
    let of_pairs = of_levels.is_some();
    let pooled = |section: Section| if of_pairs { Section { blocks: Vec::new(), ..section } } else { section };
    let first = [
        arms::section(of_arms.as_ref()),
        levels::section(of_levels.as_ref()),
        over_nodes,
        over_agents,
        pooled(page::section(&own, options.paper)),
        pooled(mind::bounds_section(measured)),
        mind::mind_section(measured),
        notes(linked, options.summary),
        of_jobs,
        elsewhere::imported(&sides),
        elsewhere::published(&sides, options.summary),
        pooled(key::section(&sides, options.summary)),
        factors::summary(&comparisons),
        settings::section(measured),
    ];
    let last = || {
        [
            sizes::section(&sides),
            factors::in_full(&comparisons),
            charts::over_time(&sides),
            pages(linked),
            evidence::section(measured, options.paper),
            platform::section(measured),
            platform::again(measured),
            glossary::section(&sides),
        ]
    };
    let whole = || groups::sections(&sides, chosen).into_iter().chain(last());
    let all_well = tests > 0 && valid == tests && complete && kept.is_none();
    let unchecked = elsewhere::verdict(&sides);
    let classes = validities(records());
    let verdict = verdict(tests, valid, &classes, kept, unchecked.is_some());
    let told = if let [side] = measured { disturbed::tells_apart(&side.run.records) } else { None };
    let tried = disturbed::tried_again(records()).into_iter().chain(told);
    let verdict: Vec<String> = verdict.into_iter().chain(unchecked).chain(tried).collect();
    let sections =
        first.into_iter().chain(if options.summary { vec![curves::summary(&sides)] } else { whole().collect() });
    let sections: Vec<Section> = sections.filter(|s: &Section| !s.blocks.is_empty()).collect();
    Document {
        title: options.title.clone().unwrap_or_else(|| title_of(named)),
        customer: options.customer.clone().unwrap_or_default(),
        platforms: platforms_of(named, options.title.is_some()),
        subtitle: subtitle_of(named),
        all_well,
        verdict: verdict.join(" "),
        remarks: remarks(&sides),
        sections,
    }
}

/// What the users wrote on the runs, and in a summary on their workloads as well.
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
    Section::of("notes", "Notes", blocks)
}

/// Links to the pages of the tests of one run.
fn pages(runs: &[RunData]) -> Section {
    let [run] = runs else { return Section::of("pages", "", Vec::new()) };
    let link = |r: &TestRecord| {
        let jobs = counted(r.jobs as usize, "job");
        let arm = r.arm.map_or_else(String::new, |arm| format!(", arm {arm}"));
        (format!("{} {}, {jobs}{arm}", r.test, r.workload), format!("test-{}.html", r.test))
    };
    let items: Vec<(String, String)> = run.records.iter().filter(|r| run.pages.contains(&r.test)).map(link).collect();
    let title = if items.len() == run.records.len() { "A page for every test" } else { "Pages of typical windows" };
    let blocks = if items.is_empty() { Vec::new() } else { vec![Block::Links { items }] };
    Section::evidence("pages", title, blocks)
}

/// The verdict on measured tests, of which `classes` counts the valid, disturbed and refused ones; `None` if there is nothing but
/// imported ones.
fn verdict(tests: usize, valid: usize, classes: &str, kept: Option<(usize, String)>, imported: bool) -> Option<String> {
    let kept = kept::verdict(valid, kept);
    Some(match (tests, tests - valid) {
        (0, _) if imported => return None,
        (0, _) => "No test was completed: there are no figures to report.".to_owned(),
        (1, 0) => format!("1 test, and it is valid{kept}."),
        (n, 0) => format!("{n} tests, all valid{kept}."),
        (n, _) => format!("{}: {classes}{kept}.", counted(n, "test")),
    })
}

fn title_of(sides: &[PlatformRun<'_>]) -> String {
    sides.iter().map(|s| s.label.as_str()).collect::<Vec<_>>().join(" · ")
}

fn subtitle_of(sides: &[PlatformRun<'_>]) -> String {
    let one = |s: &PlatformRun<'_>| {
        let m = &s.run.manifest;
        let database = format!("{} {}", m.target.product, m.target.version);
        if let Some(published) = &s.run.published {
            let database = if database.trim().is_empty() { String::new() } else { format!("{}, ", database.trim()) };
            return format!("{database}not measured by loadline: {}", stop(&published.source));
        }
        format!("{}, measured {} with loadline {}", database.trim(), when(&m.started_at), m.loadline_version)
    };
    match sides {
        [only] => one(only),
        many => many.iter().map(|s| format!("{}: {}", s.label, one(s))).collect::<Vec<_>>().join(" · "),
    }
}

/// Machine and storage of each platform that loadline measured; platforms on the same one are one line.
fn platforms_of(sides: &[PlatformRun<'_>], titled: bool) -> Vec<String> {
    let measured = sides.iter().filter(|s| s.run.published.is_none());
    let lines = grouped(measured, |side| mind::platform(&side.run.manifest));
    // A title of the user's does not name the platform.
    let alone = lines.len() == 1 && !titled;
    let labels = |of: &[&PlatformRun<'_>]| of.iter().map(|side| side.label.as_str()).collect::<Vec<_>>().join(", ");
    lines.into_iter().map(|(line, of)| if alone { line } else { format!("{}: {line}", labels(&of)) }).collect()
}

/// What qualifies the verdict. (Skipped workloads are listed with the key figures.)
fn remarks(sides: &[PlatformRun<'_>]) -> Vec<String> {
    let several = sides.len() > 1;
    let mut out = Vec::new();
    for side in sides {
        let m = &side.run.manifest;
        let of = if several { format!(" of '{}'", side.label) } else { String::new() };
        let resume = format!("resume it with `loadline {} --resume {}`", m.plan.command(), m.run);
        match m.state {
            RunState::Complete => {}
            RunState::Started => {
                out.push(format!("The run{of} is not complete: it is still running or was killed; {resume}."))
            }
            RunState::Interrupted => out.push(format!("The run{of} was interrupted and is not complete; {resume}.")),
            RunState::Failed => out.push(format!("The run{of} ended with an error and is not complete; {resume}.")),
        }
        out.extend(side.run.warnings.iter().map(|w| format!("Stored run{of}: {}.", stop(w))));
    }
    out
}

/// `text` without a final full stop.
pub(crate) fn stop(text: &str) -> &str {
    text.trim_end().trim_end_matches('.')
}

/// An RFC 3339 time in UTC as `2025-01-02 03:04:05 UTC`; anything else unchanged.
pub(crate) fn when(rfc3339: &str) -> String {
    match (rfc3339.get(..10), rfc3339.get(10..11), rfc3339.get(11..19), rfc3339.strip_suffix('Z')) {
        (Some(day), Some("T"), Some(time), Some(_)) => format!("{day} {time} UTC"),
        _ => rfc3339.to_owned(),
    }
}
