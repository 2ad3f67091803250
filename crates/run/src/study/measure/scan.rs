//! A test that is a scan of sizes, by one session of loadline's own.

use loadline_model::live::LiveTest;
use loadline_store::TestOutput;
use loadline_workload::SizeScan;

use super::{PlannedTest, Prepared, native_reports};
use crate::evidence::Proof;
use crate::instrument::size_scan::{self, Scanned};
use crate::study::{Context, StudyError, native_report};
use crate::{record, steps};

/// Runs a scan of sizes. It has no fixed duration.
pub(super) fn measure(
    of: &PlannedTest<'_>,
    context: &mut Context<'_>,
    scan: &SizeScan,
) -> Result<TestOutput, StudyError> {
    let prepared = of.prepare(context, None, None)?;
    context.wait_until_quiet(of.position.test, of.position.try_of);
    let mark = native_report::mark(native_reports(context));
    let (scanned, proof) = run(of, context, scan, &prepared)?;
    let (native, missing) = of.report(context, mark);
    let (run, after) = (of.run_context(context, prepared.cache_bytes), context.side.target.info());
    let evidence = of.evidence_of(context, &run, &prepared, &proof, after, scanned).and_remarks(missing);
    let (test, id) = (steps::test_of_scan(&evidence), of.identity(context));
    Ok(record::of_scan(evidence, test, id, native))
}

/// Runs a scan of sizes, and asks what proves its work.
fn run(
    of: &PlannedTest<'_>,
    context: &mut Context<'_>,
    scan: &SizeScan,
    prepared: &Prepared,
) -> Result<(Scanned, Proof), StudyError> {
    let LiveTest { test, workload, .. } = &of.position;
    let (mut last, mut began) = (None, None);
    let idle_s = context.manifest.plan.idle_s().to_vec();
    let scanned = size_scan::scan(&prepared.request, scan, &idle_s, |done, all| {
        let percent = done * 100 / all.max(1);
        let took_s = began.get_or_insert_with(std::time::Instant::now).elapsed().as_secs_f64();
        if last.replace(percent) != Some(percent) {
            let left_s = took_s / done.max(1) as f64 * all.saturating_sub(done) as f64;
            let left = if done > 0 { format!(", about {left_s:.0} s left") } else { String::new() };
            context.step(format!("test {test:>2}  {workload}: {percent} % of {all} samples{left}"));
        }
    })
    .map_err(|e| of.failed(e))?;
    let proof = prepared.before.proof(context.side.target.as_ref(), &of.work);
    Ok((scanned, proof))
}
