//! Builds the record of a test: the only place that does.

use std::time::{Duration, SystemTime};

use loadline_load::Request;
use loadline_model::disturbance::disturbed_by;
use loadline_model::{Activity, Detail, Forced, TestRecord};
use loadline_store::{NativeFile, TestOutput, rfc3339};

use crate::activity;
use crate::evidence::Evidence;
use crate::figures::series::series;
use crate::instrument::size_scan::Scanned;
use crate::test::Test;

/// The record of a test of jobs, of which `id` has what tells it from others, with all that is stored beside it.
pub(crate) fn of_jobs(
    e: &Evidence<'_>,
    test: Test,
    id: TestRecord,
    native: Option<NativeFile>,
    views: Activity,
) -> TestOutput {
    let (measured, merged) = (e.measured, e.merged());
    let mut histograms =
        vec![("transaction".to_owned(), merged.transaction.clone()), ("commit".to_owned(), merged.commit.clone())];
    histograms.extend(merged.response.clone().map(|r| ("response".to_owned(), r)));
    histograms.extend(merged.connect.clone().map(|c| ("connect".to_owned(), c)));
    let activity = activity::of_window(measured, e.counters.as_ref().ok(), views);
    let record = TestRecord {
        started_at: rfc3339(measured.opened_at),
        error_texts: merged.error_texts.clone(),
        waits: measured.waits(),
        ..record(test, e.request, id)
    };
    TestOutput {
        record,
        series: series(measured, e.request.driver),
        histograms,
        snapshots: measured.snapshots().map(|(name, snapshot)| (name.to_owned(), snapshot.clone())).collect(),
        activity: Some(activity),
        native,
    }
}

/// The record of a scan of sizes, which has no rate to compare tests by.
pub(crate) fn of_scan(e: Evidence<'_, Scanned>, test: Test, id: TestRecord, native: Option<NativeFile>) -> TestOutput {
    let record = record(test, e.request, id);
    let seen = e.seen;
    let started_at = rfc3339(seen.opened_at);
    let record = TestRecord { started_at, kpis: Vec::new(), ..record };
    let ([before, _], [open, close]) = (seen.all, seen.scan);
    let snapshots = [("before", before), ("open", open), ("close", close)];
    TestOutput {
        record,
        histograms: vec![("transaction".to_owned(), seen.transaction), ("commit".to_owned(), seen.commit)],
        snapshots: snapshots.map(|(name, snapshot)| (name.to_owned(), snapshot)).into(),
        native,
        ..TestOutput::default()
    }
}

/// The record of a test that was interrupted, of whose window the first `known_s` s are known.
pub(crate) fn of_parts(request: &Request, test: Test, id: TestRecord, known_s: f64) -> TestOutput {
    let started_at = rfc3339(SystemTime::now() - Duration::from_secs_f64(known_s));
    TestOutput { record: TestRecord { started_at, ..record(test, request, id) }, ..TestOutput::default() }
}

fn record(test: Test, request: &Request, id: TestRecord) -> TestRecord {
    let work = &request.work;
    let of_work = [Detail::Facts(work.workload.facts()), Detail::Seed(work.draws)];
    let record = TestRecord {
        group: work.workload.group.to_owned(),
        driver: request.driver,
        jobs: request.jobs,
        forced: Forced { not_the_devices: test.not_the_devices, ..id.forced },
        absent: test.absent(),
        figures: test.values,
        notes: test.notes,
        kpis: work.workload.kpis.iter().map(|k| k.column.id.to_owned()).collect(),
        details: id.details.into_iter().chain(of_work).chain(test.details).collect(),
        parameters: work.params.to_map(),
        ..id
    };
    let disturbed_by = disturbed_by(&record);
    TestRecord { disturbed_by, ..record }.with_checks(test.checks)
}
