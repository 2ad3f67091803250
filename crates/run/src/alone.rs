//! One test outside a run, for benches: figures and checks are those of a run, without limits and instruments.

use loadline_load::{Request, TestError, run_test};
use loadline_model::machine::Machine;
use loadline_model::{Manifest, TestRecord};

use crate::activity::ReadViews;
use crate::evidence::RunContext;
use crate::evidence::{Evidence, Excuses, Jobs};
use crate::figures::counters::Counters;
use crate::instrument::Instruments;
use crate::study::proof::BeforeTest;
use crate::{record, steps};

/// Runs the test of `request` on tables that are loaded, and returns its record.
///
/// # Errors
/// [`TestError`].
pub fn measure(request: &Request) -> Result<TestRecord, TestError> {
    let (target, work) = (request.target.as_ref(), request.work.as_ref());
    let before = BeforeTest::query(target, work)?;
    let info = target.info()?;
    let measured = run_test(request, &mut (), |_| ())?;
    let proof = before.proof(target, work);
    let why = || "outside a run".to_owned();
    let (references, data_files) = (Err(why()), Err(why()));
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let manifest = Manifest { machine: Machine { cpus, ..Machine::default() }, ..Manifest::default() };
    let run = RunContext {
        manifest: &manifest,
        records: &[],
        repetition: 1,
        references: &references,
        data_files: &data_files,
        log: None,
        cache_bytes: None,
        server_memory: None,
    };
    let (instruments, views) = (Instruments::default(), ReadViews::unless_arms(target, true).grown(target));
    let evidence = Evidence {
        request,
        run: &run,
        proof: &proof,
        target: (info, target.info()),
        excuses: Excuses::default(),
        remarks: Vec::new(),
        seen: Jobs {
            measured: &measured,
            counters: Counters::of(request, &measured),
            instruments: &instruments,
            views: &views,
            lost_nodes: &[],
            ended_sessions: &[],
            full_disk: None,
        },
    };
    let id = TestRecord::blank(work.workload.code);
    Ok(record::of_jobs(&evidence, steps::test_of_jobs(&evidence), id, None).record)
}
