//! `null:`, an engine that does nothing: measures loadline itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use loadline_model::manifest::TargetInfo;
use loadline_model::snapshot::counter;
use loadline_model::{Column, Finding, Severity, Snapshot};
use loadline_workload::Arg;

use crate::error::TargetError;
use crate::facts::{Facts, Runs};
use crate::kind::TargetKind;
use crate::pause::{pause, pause_ns};
use crate::render::Rendered;
use crate::request::OpenRequest;
use crate::role::{
    Administration, ClientDriver, ClientSession, Doctor, FreeSpace, Observation, Observer, Results, Scope, TextDone,
};
use crate::target::{Abilities, Target};
use crate::work::Work;
use loadline_storage::now_ns;

pub(crate) struct Kind;

impl TargetKind for Kind {
    fn scheme(&self) -> &'static str {
        "null"
    }

    fn check_url(&self, url: &str) -> Result<u32, TargetError> {
        pause_of(url).map(|_| 1)
    }

    fn open(&self, request: &OpenRequest) -> Result<Box<dyn Target>, TargetError> {
        Null::open(request)
    }

    fn render(&self, _: &Work) -> Vec<Rendered> {
        vec![Rendered::new("statements", "-- none: the engine answers at once").in_words()]
    }

    fn is_temporary(&self, _: &str) -> bool {
        true
    }
}

static FACTS: LazyLock<Facts> = LazyLock::new(|| Facts::for_runs(Runs::Nowhere));

/// Commits and changed rows of one job. Each job writes only its own counts, so timed jobs share nothing.
#[derive(Default)]
struct JobCounts {
    commits: AtomicU64,
    rows: AtomicU64,
}

/// The counts of all jobs.
type Jobs = Arc<Mutex<Vec<Arc<JobCounts>>>>;

struct Null {
    url: String,
    pause_ns: u64,
    jobs: Jobs,
}

fn pause_of(url: &str) -> Result<u64, TargetError> {
    let wrong =
        || TargetError::Usage(format!("'{url}': only a pause of at most 1s may follow 'null:', as null:?pause=100us"));
    match url.strip_prefix("null:").ok_or_else(wrong)?.strip_prefix("?pause=") {
        None if url == "null:" => Ok(0),
        None => Err(wrong()),
        Some(text) => pause_ns(text).map_err(|_| wrong()),
    }
}

impl Null {
    fn open(request: &OpenRequest) -> Result<Box<dyn Target>, TargetError> {
        let pause_ns = pause_of(&request.url)?;
        if let Some(name) = request.settings.keys().next() {
            return Err(TargetError::Usage(format!("--setting {name}: null: has no settings")));
        }
        Ok(Box::new(Null { url: request.url.clone(), pause_ns, jobs: Arc::default() }))
    }
}

fn sum(jobs: &Jobs, of: fn(&JobCounts) -> &AtomicU64) -> u64 {
    let jobs = jobs.lock().unwrap_or_else(PoisonError::into_inner);
    jobs.iter().map(|j| of(j).load(Ordering::Relaxed)).sum()
}

impl Target for Null {
    fn facts(&self) -> &Facts {
        &FACTS
    }

    fn info(&self) -> Result<TargetInfo, TargetError> {
        Ok(TargetInfo {
            kind: "null".into(),
            product: Kind.facts().product.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            url: self.url.clone(),
            nodes: 1,
            local: true,
            notes: vec!["nothing is stored: these figures measure loadline's own loop".into()],
            ..TargetInfo::default()
        })
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default()
    }
}

impl Administration for Null {
    fn evidence(&self, work: &Work) -> Result<Option<i64>, TargetError> {
        Ok(work.workload.evidence.as_ref().map(|_| sum(&self.jobs, |j| &j.rows) as i64))
    }
}

impl Doctor for Null {
    fn doctor(&self) -> Result<Vec<Finding>, TargetError> {
        let advice = "no figure of this target says anything about a database";
        Ok(vec![Finding::new("engine", Severity::Warning, "engine", "null", advice)])
    }

    fn free_space(&self) -> Result<Option<FreeSpace>, TargetError> {
        let place = "the null engine, which stores nothing".to_owned();
        Ok(Some(FreeSpace { bytes: u64::MAX, place, may_grow: None }))
    }
}

impl ClientDriver for Null {
    fn client_session(&self, work: &Work, _: u32) -> Result<Box<dyn ClientSession>, TargetError> {
        let counts = Arc::new(JobCounts::default());
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&counts));
        let rows = work.program.statements.iter().map(|s| (s.effect.most_rows(), s.effect.reads())).collect();
        Ok(Box::new(NullSession { rows, counts, done: (0, 0), pause_ns: self.pause_ns }))
    }
}

impl Observation for Null {
    fn observer_of(&self, _: Scope) -> Result<Box<dyn Observer>, TargetError> {
        Ok(Box::new(NullObserver(Arc::clone(&self.jobs))))
    }

    fn absent_columns(&self) -> Vec<(&'static Column, String)> {
        Kind.facts().uncounted("")
    }
}

struct NullSession {
    /// For each statement: rows it touches, and whether it only reads them.
    rows: Vec<(u64, bool)>,
    counts: Arc<JobCounts>,
    /// Commits and changed rows so far: published with plain stores, as no other job writes them.
    done: (u64, u64),
    pause_ns: u64,
}

impl ClientSession for NullSession {
    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, TargetError> {
        // The arguments must not be optimised away.
        std::hint::black_box(args);
        let (rows, reads) = self.rows.get(statement).copied().unwrap_or((0, true));
        if !reads {
            self.done.1 += rows;
            self.counts.rows.store(self.done.1, Ordering::Relaxed);
        }
        Ok(rows)
    }

    fn bulk(&mut self, _: usize, _: i64, rows: u32) -> Result<u64, TargetError> {
        self.done.1 += u64::from(rows);
        self.counts.rows.store(self.done.1, Ordering::Relaxed);
        Ok(rows.into())
    }

    fn commit(&mut self) -> Result<(), TargetError> {
        pause(self.pause_ns);
        self.done.0 += 1;
        self.counts.commits.store(self.done.0, Ordering::Relaxed);
        Ok(())
    }

    fn send_text(&mut self, text: &str, _: Results, done: &mut TextDone) -> Result<(), TargetError> {
        std::hint::black_box(text);
        *done = TextDone { commits: 1, ..TextDone::default() };
        Ok(())
    }

    fn rollback(&mut self) -> Result<(), TargetError> {
        Ok(())
    }
}

struct NullObserver(Jobs);

impl Observer for NullObserver {
    fn snapshot(&mut self) -> Result<Snapshot, TargetError> {
        let counters = [(counter::COMMITS.to_owned(), sum(&self.0, |j| &j.commits) as f64)].into();
        Ok(Snapshot { at_ns: now_ns(), counters, ..Snapshot::default() })
    }
}
