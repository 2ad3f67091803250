//! One test outside a run, for benches: figures and checks are those of a run, without limits and instruments.

use loadline_load::{Request, TestError, run_test};
use loadline_model::machine::Machine;
use loadline_model::{Activity, Manifest, Plan, TestRecord};

use crate::evidence::{BeforeTest, Evidence, Excuses, Jobs, RunContext};
use crate::{record, steps};

/// Runs the test of `request` on tables that are loaded, and returns its record.
pub fn measure(request: &Request) -> Result<TestRecord, TestError> {
    let (target, work) = (request.target.as_ref(), request.work.as_ref());
    let before = BeforeTest::query(target, work)?;
    let info = target.info()?;
    let measured = run_test(request, &mut (), |_| ())?;
    let proof = before.proof(target, work);
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    // With a plan of another window the record would say that the window was longer than planned.
    let plan = Plan { duration_s: request.duration_s, ..Plan::default() };
    let manifest = Manifest { machine: Machine { cpus, ..Machine::default() }, plan, ..Manifest::default() };
    let evidence = Evidence {
        request,
        run: &RunContext::outside(&manifest),
        proof: &proof,
        target: (&info, target.info()),
        excuses: Excuses::default(),
        remarks: Vec::new(),
        seen: Jobs::from(request, &measured),
    };
    let id = TestRecord::blank(&work.workload.code);
    let test = steps::with_checks(steps::figures_of(&evidence), &evidence);
    Ok(record::of_jobs(&evidence, test, id, None, Activity::default()).record)
}
