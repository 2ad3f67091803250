//! The lists of functions that make a test of its evidence. Each reads the evidence and what the functions before it made, and adds
//! figures (a value or a reason), checks and notes. Nothing is changed later: the order of a list is the order in the record.

use loadline_model::{CheckId as Id, Detail};

use crate::checks::{self, load, processes, redo_on_device, settings, steady};
use crate::evidence::{Evidence, excused};
use crate::figures::{self, database, disturbance, machine, nodes, populations, shares, slow, volume};
use crate::instrument;
use crate::instrument::size_scan::{Scanned, output as scan};
use crate::study::window_length;
use crate::test::Test;

pub(crate) const FIGURES: &[fn(&Evidence<'_>, &mut Test)] = &[
    figures::own,
    populations::figures,
    volume::figures,
    database::figures,
    volume::loads,
    database::log_file_sync,
    figures::ratios,
    machine::machine,
    machine::client,
    volume::blocks,
    shares::figures,
    slow::figures,
    nodes::behind,
    |e, t| t.add(Detail::Nodes, nodes::of_each(e)),
    |e, t| t.add(Detail::Populations, populations::of_each(e.request, e.measured)),
    |e, t| t.add(Detail::Kinds, populations::of_each_kind(e.request, e.measured)),
    processes::figures,
    disturbance::figures,
    machine::cost,
    machine::proxy,
    database::log_switches,
    figures::background,
    steady::within_window,
];

/// Checks of a test of jobs, and what instruments make of it. The reason why others fail comes first.
pub(crate) const CHECKS: &[fn(&Evidence<'_>, &mut Test)] = &[
    |e, t| t.check(Id::CommitsNode, nodes::lost(e.lost_nodes)),
    processes::windows,
    nodes::members,
    |e, t| e.instruments.iter().for_each(|of| of.reasons_first(t)),
    |e, t| t.check(Id::Window, checks::with_full_disk(e, checks::window(e.measured))),
    |e, t| t.check(Id::Errors, checks::with_full_disk(e, checks::errors(e.merged()))),
    |e, t| t.check(Id::Counters, checks::reset(e)),
    |e, t| t.judge(Id::CommitsDatabase, checks::all_commits(e)),
    |e, t| t.judge(Id::CommitsWindow, checks::window_commits(e)),
    |e, t| t.judge(Id::WorkEvidence, checks::work_evidence(e)),
    |e, t| t.check(Id::Kinds, populations::kinds_are_all(e)),
    |e, t| t.check(Id::LittlesLaw, load::littles_law(e)),
    |e, t| t.check(Id::CommitsPerSync, excused(checks::commits_per_sync(e), e.excuses.commits.as_ref())),
    |e, t| t.check(Id::RedoSize, excused(checks::redo_size(e, t), e.excuses.redo.as_ref())),
    |e, t| t.judge(Id::ClientCpu, checks::client_cpu(e, t)),
    |e, t| t.check(Id::Rate, load::rate(e)),
    |e, t| t.check(Id::ThinkTime, load::think_time(e)),
    |e, t| t.check(Id::Consistency, checks::consistency(&e.proof.consistency)),
    |e, t| t.check(Id::RowsRead, checks::rows_read(e)),
    |e, t| t.check(Id::ReadOnly, checks::read_only(e)),
    processes::links,
    |e, t| t.check(Id::WarmUp, steady::warm_up(&e.measured.warmup)),
    |e, t| t.check(Id::Steady, steady::window(e.request, e.measured)),
    |e, t| t.check(Id::CommitsNode, nodes::commits_of_each(e.request, e.measured)),
    window_length::notes,
    |e, t| e.instruments.iter().for_each(|of| of.report(e, t)),
    |_, t| instrument::say_why_absent(t),
    |e, t| around(e, t),
];

const SCAN: &[fn(&Evidence<'_, Scanned>, &mut Test)] = &[
    scan::figures,
    scan::disturbance,
    |e, t| t.add(Detail::Sizes, e.sizes.clone()),
    |e, t| t.check(Id::Sizes, scan::sizes_found(e)),
    |e, t| t.check(Id::CommitsDatabase, scan::commits(e)),
    |e, t| t.judge(Id::WorkEvidence, scan::work_evidence(e)),
    |e, t| t.check(Id::CommitsPerSync, scan::commits_per_sync(e)),
    scan::no_load,
    |e, t| around(e, t),
];

/// Figures of jobs, without those of instruments: with them limits are measured.
pub(crate) fn figures_of(e: &Evidence<'_>) -> Test {
    let mut test = Test::of_target(e.request.target.absent_columns());
    FIGURES.iter().for_each(|make| make(e, &mut test));
    test
}

/// The test of jobs: its figures with checks, and with what instruments add.
pub(crate) fn with_checks(mut figures: Test, e: &Evidence<'_>) -> Test {
    CHECKS.iter().for_each(|make| make(e, &mut figures));
    figures
}

pub(crate) fn test_of_scan(e: &Evidence<'_, Scanned>) -> Test {
    let mut test = Test::default();
    SCAN.iter().for_each(|make| make(e, &mut test));
    test
}

/// Events before and after the test, and around it: the last of every test.
fn around<S>(e: &Evidence<'_, S>, test: &mut Test) {
    test.notes.extend(e.remarks.iter().cloned());
    test.check(Id::Settings, settings::unchanged(e.target.0, &e.target.1));
    disturbance::undisturbed(test);
    test.check(Id::RedoOnDevice, redo_on_device::check(e, test));
}
