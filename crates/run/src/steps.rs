//! The lists of functions that make a test of its evidence. Each reads the evidence and what the functions before it made, and adds
//! figures (a value or a reason), checks and notes. Nothing is changed later: the order of a list is the order in the record.

use crate::checks::{self, agents, disturbance as others, load, redo_on_device, settings, steady};
use crate::evidence::Evidence;
use crate::figures::{self, blocks, bulk, database, disturbance, machine, nodes, populations, shares, volume};
use crate::instrument::size_scan::{Scanned, output as scan};
use crate::study::window_length;
use crate::test::Test;

/// Figures of a test of jobs.
const FIGURES: &[fn(&Evidence<'_>, &mut Test)] = &[
    figures::own,
    populations::figures,
    volume::figures,
    database::figures,
    bulk::figures,
    database::log_file_sync,
    machine::machine,
    machine::client,
    blocks::figures,
    shares::figures,
    nodes::replicas,
    disturbance::figures,
    figures::background,
    steady::within_window,
];

/// Checks of a test of jobs, and what instruments make of it. What a lost node, agent or replica spoils are other checks as well:
/// the reason comes first.
pub(crate) const CHECKS: &[fn(&Evidence<'_>, &mut Test)] = &[
    nodes::lost,
    agents::common_window,
    nodes::membership,
    |e, test| e.instruments.reasons_first(test),
    checks::window,
    checks::errors,
    checks::reset,
    checks::all_commits,
    checks::window_commits,
    checks::work_evidence,
    load::littles_law,
    checks::commits_per_sync,
    checks::redo_size,
    checks::client_cpu,
    load::rate,
    load::think_time,
    checks::consistency,
    checks::rows_read,
    checks::read_only,
    agents::network,
    steady::warm_up,
    steady::window,
    nodes::commits_of_each,
    window_length::notes,
    |e, test| e.instruments.report(e, test),
    |e, test| around(e, test),
];

/// A test of a scan of sizes.
const SCAN: &[fn(&Evidence<'_, Scanned>, &mut Test)] = &[
    scan::figures,
    scan::disturbance,
    scan::sizes_found,
    scan::commits,
    scan::work_evidence,
    scan::commits_per_sync,
    scan::no_load,
    |e, test| around(e, test),
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

/// The test of a scan of sizes.
pub(crate) fn test_of_scan(e: &Evidence<'_, Scanned>) -> Test {
    let mut test = Test::default();
    SCAN.iter().for_each(|make| make(e, &mut test));
    test
}

/// What was before and after the test, and around it: the last of every test.
fn around<S>(e: &Evidence<'_, S>, test: &mut Test) {
    test.notes.extend(e.remarks.iter().cloned());
    settings::unchanged(e, test);
    others::undisturbed(e, test);
    redo_on_device::check(e, test);
}
