//! Jobs that run pgbench scripts: one execution of a script is a transaction.

use loadline_database::{ClientSession, Results, TargetError, TextDone, Work};
use loadline_storage::now_ns;
use loadline_workload::SCALE;
use loadline_workload::script::{Client, Event, Gather};

use crate::schedule::{Schedule, Shared, sleep_until};

/// Counts of scripts beside their transactions, of which each is one execution.
#[derive(Debug, Clone, Default)]
pub struct Scripted {
    /// Transactions of the database that were committed in executions that ended in the window.
    pub commits: u64,
    /// Commits from the first job's start to the last job's end.
    pub commits_total: u64,
    /// Statements sent in executions that ended in the window; a text of several that are joined by `\;` counts as one.
    pub statements: u64,
    /// Time in the window in which scripts slept, ns.
    pub sleeping_ns: u64,
    /// A statement that may have committed more often than its client can see.
    pub uncertain: Option<String>,
}

impl Scripted {
    pub(crate) fn merge(&mut self, other: &Scripted) {
        self.commits += other.commits;
        self.commits_total += other.commits_total;
        self.statements += other.statements;
        self.sleeping_ns += other.sleeping_ns;
        if let Some(statement) = &other.uncertain {
            self.uncertain.get_or_insert_with(|| statement.clone());
        }
    }
}

#[derive(Debug)]
pub struct ScriptJob {
    client: Client,
    mixed: bool,
    sent: TextDone,
    /// Since it was last taken, in whichever part of the test.
    did: Scripted,
    /// Starts and ends of its sleeps, ns.
    slept: Vec<[u64; 2]>,
}

impl ScriptJob {
    /// Job number `job` of `jobs`; `None` if `work` has no scripts.
    pub fn new(work: &Work, job: u32, jobs: u32) -> Option<ScriptJob> {
        let scripts = work.workload.scripts.as_ref()?;
        let client = scripts.client(job, jobs, work.draws, work.params.get(SCALE));
        let mixed = scripts.scripts().count() > 1;
        Some(ScriptJob { client, mixed, sent: TextDone::default(), did: Scripted::default(), slept: Vec::new() })
    }

    /// Runs a script from its start to its end.
    /// Errors have file, line and column. After any but [`TargetError::Conflict`] pgbench's client ends, and so must the job.
    pub(crate) fn transaction(&mut self, session: &mut dyn ClientSession, shared: &Shared) -> Result<(), TargetError> {
        self.client.choose();
        self.sent.open = false;
        loop {
            let next = self.client.advance();
            match next.map_err(|e| self.failed(&e))? {
                Event::Statement(sql, keep) => {
                    let results = match &keep {
                        None => Results::None,
                        Some(Gather::Last(_)) => Results::Last,
                        Some(Gather::All(_)) => Results::All,
                    };
                    let sent = session.send_text(&sql, results, &mut self.sent);
                    self.did.statements += 1;
                    self.did.commits_total += std::mem::take(&mut self.sent.commits);
                    let uncertain = self.sent.uncertain.take();
                    self.did.uncertain = self.did.uncertain.take().or(uncertain);
                    sent.map_err(|e| e.at(&self.client.place()))?;
                    if let Some(keep) = keep {
                        self.keep(&keep)?;
                    }
                }
                Event::Sleep(length) => {
                    let began_ns = now_ns();
                    sleep_until(began_ns.saturating_add(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)), shared);
                    self.slept.push([began_ns, now_ns()]);
                }
                Event::End if self.sent.open => {
                    return Err(self.failed(&"the script ends and leaves a transaction open"));
                }
                Event::End => return Ok(()),
            }
        }
    }

    /// Counts since the last call, in an execution that ended at `end_ns`.
    pub(crate) fn take(&mut self, schedule: &Schedule, end_ns: u64) -> Scripted {
        let counts = schedule.counts(end_ns);
        let sleeping_ns = self.slept.drain(..).map(|[began, ended]| schedule.part_inside(began, ended)).sum();
        let did = std::mem::take(&mut self.did);
        let inside = |n: u64| if counts { n } else { 0 };
        Scripted { commits: inside(did.commits_total), statements: inside(did.statements), sleeping_ns, ..did }
    }

    /// The number of the script that it ran last; `None` if there is one.
    pub(crate) fn kind(&self) -> Option<usize> {
        self.mixed.then(|| self.client.script())
    }

    fn keep(&mut self, keep: &Gather) -> Result<(), TargetError> {
        let results = std::mem::take(&mut self.sent.results);
        if results.is_empty() && !keep.all() {
            return self.client.keep(keep, &[], &[]).map_err(|e| self.failed(&e));
        }
        for result in &results {
            self.client.keep(keep, &result.columns, &result.rows).map_err(|e| self.failed(&e))?;
        }
        Ok(())
    }

    fn failed(&self, what: &dyn std::fmt::Display) -> TargetError {
        TargetError::Statement(format!("{}: {what}", self.client.place()))
    }
}
