//! The limit of statements: the same transactions with an empty statement in place of each.

use std::sync::Arc;

use loadline_database::{Target, Work};
use loadline_load::Request;
use loadline_model::Driver;
use loadline_workload::{Arm, Effect, Program, Statement, Step, Workload};

use super::threads::awake;
use super::{Lengths, Part, References, Sample, Subject, with_work};

/// On a busy machine a call of the in-database driver may return after a short window.
pub(super) const LENGTHS: Lengths = Lengths { warmup_s: 0.1, windows_s: [0.3, 1.5] };

#[derive(Default)]
pub(super) struct Statements {
    request: Option<Request>,
}

impl Part for Statements {
    fn sample(&mut self, subject: Subject<'_>, _: &References) -> Result<Option<Sample>, String> {
        if self.request.is_none() {
            let like = subject.request;
            let work = Arc::new(emptied(like.target.as_ref(), &like.work)?);
            if like.driver == Driver::Database {
                let driver = like.target.abilities().driver().map_err(|e| e.to_string())?;
                driver.install(&work).map_err(|e| e.to_string())?;
            }
            self.request = Some(with_work(like, work));
        }
        let Some(request) = &self.request else { return Ok(None) };
        let of = format!("the same transactions with empty statements ({} driver)", request.driver.name());
        Ok(Some(Sample::new(awake(|| LENGTHS.rate(request))?, of)))
    }
}

/// The transactions of `work` without their work.
fn emptied(target: &dyn Target, work: &Work) -> Result<Work, String> {
    // Its statements are the program's, which another workload gives.
    let mut workload = Workload::default();
    "EMPTY-STATEMENTS".clone_into(&mut workload.code);
    let nothing = target.facts().empty_query;
    let statement = Statement::new(nothing, Effect::Read(1)).map_err(|e| e.to_string())?;
    let statements = work.program.statements.iter().map(|_| statement.clone()).collect();
    let program = Program { statements, body: steps(&work.program.body), commit: work.program.commit };
    Ok(Work {
        params: workload.params(&Default::default()).map_err(|e| e.to_string())?,
        workload: Arc::new(workload),
        program,
        ..work.clone()
    })
}

/// The steps without computations and loads.
fn steps(body: &[Step]) -> Vec<Step> {
    let one = |step: &Step| match step {
        Step::Bulk { .. } | Step::Compute { .. } => None,
        Step::Repeat { times, body } => Some(Step::Repeat { times: *times, body: steps(body) }),
        Step::Choose { var, arms } => {
            let arms = arms.iter().map(|arm| Arm { body: steps(&arm.body), ..arm.clone() }).collect();
            Some(Step::Choose { var: var.clone(), arms })
        }
        Step::Bind { .. } | Step::Execute { .. } => Some(step.clone()),
    };
    body.iter().filter_map(one).collect()
}
