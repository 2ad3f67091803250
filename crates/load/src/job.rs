//! Reports of a job, and of jobs together.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use loadline_database::{Attempts, Cause, Refusal, TargetError};
use loadline_model::Latencies;
use serde::{Deserialize, Serialize};

use crate::schedule::{Schedule, Shared, course_step_ns};
use crate::scripts::{ScriptJob, Scripted};
use crate::slowest::{Slowest, WATCHED_JOBS};

/// Counts of jobs: of some of a part, or all of a test.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Transaction times of the transactions that completed in the window.
    pub transaction: Latencies,
    /// Commit times of the same transactions, or of a regular sample if the session cannot time all.
    pub commit: Latencies,
    /// Open loop: times from the intended start, of the transactions that were due in the window. Those that ended after it
    /// belong to it: they are the ones that a slow target kept waiting.
    pub response: Option<Latencies>,
    /// Times from the start of connecting until a new session was ready, of those that were ready in the window, if jobs open any.
    pub connect: Option<Latencies>,
    /// Transaction times of each kind of transaction, in the order of the kinds; empty if all are of one, or their kinds are unknown.
    #[serde(default)]
    pub kinds: Vec<Latencies>,
    /// Number of think times that ended in the window.
    pub thoughts: u64,
    /// Completed transactions by step of the window ([`course_step_ns`]); those of in-database jobs stand in the first step of a second.
    pub per_step: Vec<u64>,
    /// All committed transactions, including warm-up and tail.
    pub total: u64,
    /// Rows that these changed according to the program.
    pub rows_changed: u64,
    /// Transactions that ended with an error in the window.
    pub errors: u64,
    /// All transactions that ended with an error.
    pub errors_total: u64,
    /// Attempts that lost against another transaction and were tried again, of the transactions that ended in the window.
    pub conflicts: u64,
    /// All such attempts.
    pub conflicts_total: u64,
    /// COMMITs that failed in transactions that ended in the window.
    #[serde(default)]
    pub failed_commits: u64,
    /// Counts of scripts, if jobs run any.
    #[serde(skip)]
    pub scripted: Option<Scripted>,
    pub error_texts: BTreeMap<String, u64>,
    /// Whether one of them was a full disk of the server.
    #[serde(default)]
    pub full_disk: bool,
}

impl Tally {
    pub fn new(window_ns: u64, open_loop: bool) -> Tally {
        let steps = window_ns.div_ceil(course_step_ns(window_ns)) as usize;
        Tally { per_step: vec![0; steps], response: open_loop.then(Latencies::new), ..Tally::default() }
    }

    /// Commits of the database per transaction in the window, mean: 1, except of scripts.
    pub fn commits_per_tx(&self) -> f64 {
        let done = self.transaction.count();
        match &self.scripted {
            Some(did) if done > 0 => did.commits as f64 / done as f64,
            _ => 1.0,
        }
    }

    /// Forgets the window, as another one follows. What is counted of the whole test stays.
    fn forget_window(&mut self) {
        let begun = Tally {
            response: self.response.as_ref().map(|_| Latencies::new()),
            per_step: vec![0; self.per_step.len()],
            ..Tally::default()
        };
        let old = std::mem::replace(self, begun);
        (self.total, self.rows_changed, self.errors_total) = (old.total, old.rows_changed, old.errors_total);
        (self.conflicts_total, self.error_texts, self.full_disk) =
            (old.conflicts_total, old.error_texts, old.full_disk);
    }

    /// Adds tallies of parts of jobs to those of all.
    pub fn merge_parts(all: &mut Vec<Tally>, theirs: &[Tally]) {
        all.resize_with(all.len().max(theirs.len()), Tally::default);
        all.iter_mut().zip(theirs).for_each(|(all, theirs)| all.merge(theirs));
    }

    pub(crate) fn record_kind(&mut self, kind: usize, ns: u64) {
        self.kinds.resize_with(self.kinds.len().max(kind + 1), Latencies::new);
        self.kinds[kind].record(ns);
    }

    pub fn merge(&mut self, other: &Tally) {
        self.transaction.merge(&other.transaction);
        self.commit.merge(&other.commit);
        self.kinds.resize_with(self.kinds.len().max(other.kinds.len()), Latencies::new);
        self.kinds.iter_mut().zip(&other.kinds).for_each(|(mine, theirs)| mine.merge(theirs));
        for (mine, theirs) in [(&mut self.response, &other.response), (&mut self.connect, &other.connect)] {
            theirs.iter().for_each(|theirs| mine.get_or_insert_with(Latencies::new).merge(theirs));
        }
        self.thoughts += other.thoughts;
        self.per_step.resize(self.per_step.len().max(other.per_step.len()), 0);
        for (mine, theirs) in self.per_step.iter_mut().zip(&other.per_step) {
            *mine += theirs;
        }
        self.total += other.total;
        self.rows_changed += other.rows_changed;
        self.errors += other.errors;
        self.errors_total += other.errors_total;
        self.conflicts += other.conflicts;
        self.conflicts_total += other.conflicts_total;
        self.failed_commits += other.failed_commits;
        if let Some(theirs) = &other.scripted {
            self.scripted.get_or_insert_default().merge(theirs);
        }
        self.full_disk |= other.full_disk;
        for (text, n) in &other.error_texts {
            *self.error_texts.entry(text.clone()).or_default() += n;
        }
    }
}

/// Figures of one job alone; all else is in its [`Tally`].
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct JobResult {
    /// Transactions that completed in the window.
    pub completed: u64,
    /// The parts in the window, by time, of transactions that cross its start or end, without those that count as completed.
    #[serde(default)]
    pub crossing: f64,
    /// Sum of their times, ns.
    pub sum_ns: u64,
    /// All committed transactions, including warm-up and tail.
    pub total: u64,
    /// All transactions that ended with an error.
    pub errors_total: u64,
    /// All COMMITs that failed, also those of transactions that were tried again.
    #[serde(default)]
    pub failed_commits: u64,
    /// Start of the first transaction, ns.
    pub first_start_ns: Option<u64>,
    /// End of the last transaction, or the return of the last slice if that was later, ns.
    pub ran_until_ns: u64,
    /// Age of the transaction in progress at the window start, ns.
    pub age_at_open_ns: u64,
    /// Age of the transaction in progress at the window end, ns.
    pub age_at_close_ns: u64,
    /// Time in the window in which it thought, ns.
    pub thinking_ns: u64,
    /// Time in the window in which it closed sessions and opened new ones, ns.
    pub connecting_ns: u64,
    /// Open loop: how far the job was behind its schedule at the window end, ns.
    pub behind_ns: u64,
    /// Open loop, first job only: intended start of each transaction, ns, including failed ones and those due before
    /// the window end that never began.
    pub intended_ns: Vec<u64>,
    /// Slowest transactions, if they are kept: those of other processes are not.
    #[serde(skip)]
    pub slowest: Option<Slowest>,
    /// Why the job ended early, if it did.
    pub lost: Option<String>,
    /// Refusal of the server, by a limit, for want of a privilege, or at all; of jobs of this process.
    #[serde(skip)]
    pub refused: Option<Refusal>,
}

impl JobResult {
    pub fn ended(why: impl Into<String>) -> JobResult {
        JobResult { lost: Some(why.into()), ..JobResult::default() }
    }

    /// Whether the job ran when the window opened and still ran when it closed.
    pub fn ran_through(&self, schedule: &Schedule) -> bool {
        self.first_start_ns.is_some_and(|s| s <= schedule.open_ns) && self.ran_until_ns >= schedule.close_ns
    }

    /// Time inside transactions within the window, ns; exact. Sum of the transactions that completed in the window,
    /// minus the part before the window start, plus the part of the last transaction before the window end.
    pub fn time_in_transactions_ns(&self) -> f64 {
        self.sum_ns as f64 - self.age_at_open_ns as f64 + self.age_at_close_ns as f64
    }

    /// Time in the window that was neither inside transactions, nor think time, nor connecting, ns: that of loadline's own loop,
    /// and in an open loop also that until the next transaction was due.
    pub fn time_outside_ns(&self, schedule: &Schedule) -> f64 {
        schedule.window_ns() as f64
            - self.time_in_transactions_ns()
            - self.thinking_ns as f64
            - self.connecting_ns as f64
    }

    /// Records when the job was inside transactions.
    #[inline]
    pub fn note_times(&mut self, schedule: &Schedule, start_ns: u64, end_ns: u64) {
        self.first_start_ns.get_or_insert(start_ns);
        self.ran_until_ns = end_ns;
        if start_ns < schedule.open_ns && end_ns >= schedule.open_ns {
            self.age_at_open_ns = schedule.open_ns - start_ns;
        }
        if start_ns < schedule.close_ns && end_ns >= schedule.close_ns {
            self.age_at_close_ns = schedule.close_ns - start_ns;
        }
    }
}

/// Transactions per second of `jobs`. Of those that cross window start or window end their parts in the window count, by time: counted
/// whole, throughput would be in steps of one.
pub fn tps<'a>(jobs: impl IntoIterator<Item = &'a JobResult>, schedule: &Schedule) -> f64 {
    jobs.into_iter().map(|job| job.completed as f64 + job.crossing).sum::<f64>() / schedule.window_s().max(1e-9)
}

/// Where a job writes down what it does.
pub struct Books<'a> {
    pub job: JobResult,
    pub(crate) tally: Held<'a>,
    /// The part of the window that is under way, with the times in it: see [`Shared::parts`].
    part: (usize, Option<Latencies>),
}

/// A tally as a job holds it. Locking one for each transaction takes a tenth of those that do nothing.
pub enum Held<'a> {
    /// No other job has it: it stays locked.
    Alone(MutexGuard<'a, Tally>),
    /// It is locked to write something down.
    Shared(&'a Mutex<Tally>),
}

impl<'a> Held<'a> {
    pub fn new(tally: &'a Mutex<Tally>, alone: bool) -> Held<'a> {
        if alone { Held::Alone(tally.lock().unwrap_or_else(PoisonError::into_inner)) } else { Held::Shared(tally) }
    }

    /// Writes something down. `note` must not wait: another job may need the tally.
    #[inline]
    pub(crate) fn with(&mut self, note: impl FnOnce(&mut Tally)) {
        match self {
            Held::Alone(tally) => note(tally),
            Held::Shared(tally) => note(&mut tally.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

impl<'a> Books<'a> {
    pub fn new(tally: Held<'a>) -> Books<'a> {
        Books { job: JobResult::default(), tally, part: (0, None) }
    }

    /// Books of job number `job`, which keep its slowest transactions if it is watched.
    pub(crate) fn watching(job: u32, tally: Held<'a>) -> Books<'a> {
        // Nothing is allocated while it runs.
        let slowest = (job < WATCHED_JOBS).then(Slowest::with_room);
        Books { job: JobResult { slowest, ..JobResult::default() }, ..Books::new(tally) }
    }

    /// Forgets the window, which the job has passed, as another one follows. What is counted of the whole test stays. Returns the
    /// transactions that were completed in the window.
    pub(crate) fn forget_window(&mut self) -> u64 {
        let JobResult { total, completed, errors_total, failed_commits, first_start_ns, slowest, .. } =
            std::mem::take(&mut self.job);
        let slowest = slowest.map(|_| Slowest::with_room());
        self.job = JobResult { total, errors_total, failed_commits, first_start_ns, slowest, ..JobResult::default() };
        self.tally.with(Tally::forget_window);
        completed
    }

    /// Keeps a transaction that ended in the window, or was in progress at its end, if it is one of the slowest.
    #[inline]
    pub(crate) fn may_be_slow(&mut self, start_ns: u64, end_ns: u64) {
        if let Some(slowest) = &mut self.job.slowest {
            slowest.add(start_ns, end_ns);
        }
    }

    /// Counts a transaction of `kind` from `start_ns` to `end_ns`, with its commit from `commit_ns` on, if known.
    #[inline]
    pub fn completed(
        &mut self,
        schedule: &Schedule,
        kind: Option<usize>,
        start_ns: u64,
        commit_ns: Option<u64>,
        end_ns: u64,
    ) {
        self.job.total += 1;
        self.job.note_times(schedule, start_ns, end_ns);
        let (counts, ns) = (schedule.counts(end_ns), end_ns.saturating_sub(start_ns));
        if start_ns < schedule.open_ns || !counts {
            let part = schedule.part_inside(start_ns, end_ns) as f64 / ns.max(1) as f64;
            self.job.crossing += part - f64::from(u8::from(counts));
        }
        if counts {
            self.job.completed += 1;
            self.job.sum_ns += ns;
        }
        if counts || (start_ns < schedule.close_ns && end_ns >= schedule.close_ns) {
            self.may_be_slow(start_ns, end_ns);
        }
        self.tally.with(|tally| {
            tally.total += 1;
            if counts {
                tally.transaction.record(ns);
                if let Some(kind) = kind {
                    tally.record_kind(kind, ns);
                }
                if let Some(commit_ns) = commit_ns {
                    tally.commit.record(end_ns.saturating_sub(commit_ns));
                }
                if let Some(n) = tally.per_step.get_mut(schedule.step(end_ns)) {
                    *n += 1;
                }
            }
        });
    }

    /// Adds a transaction that was due and began at these times to the part of the window in which it completed, if there are parts.
    #[inline]
    pub(crate) fn in_part(&mut self, schedule: &Schedule, shared: &Shared, began_ns: [u64; 2], end_ns: u64) {
        let Some((part, from_ns)) = shared.part(schedule, began_ns, end_ns) else { return };
        if part != self.part.0 {
            self.end_part(shared, part);
        }
        self.part.1.get_or_insert_with(Latencies::new).record(end_ns.saturating_sub(from_ns));
    }

    /// Adds the times in the part under way to those of all jobs; `next` is under way now.
    pub(crate) fn end_part(&mut self, shared: &Shared, next: usize) {
        let (part, times) = std::mem::replace(&mut self.part, (next, None));
        times.iter().for_each(|times| shared.add_part(part, times));
    }

    /// Open loop: counts the response time of a transaction that was due at `intended_ns` and ended at `end_ns`.
    #[inline]
    pub(crate) fn responded(&mut self, schedule: &Schedule, intended_ns: Option<u64>, end_ns: u64) {
        if let Some(intended) = intended_ns.filter(|at| schedule.counts(*at)) {
            self.tally.with(|tally| {
                if let Some(response) = &mut tally.response {
                    response.record(end_ns.saturating_sub(intended));
                }
            });
        }
    }

    /// Counts a think time, if it is `whole` and not cut short by the end of the test.
    pub fn thought(&mut self, schedule: &Schedule, began_ns: u64, end_ns: u64, whole: bool) {
        self.job.thinking_ns += schedule.part_inside(began_ns, end_ns);
        self.job.ran_until_ns = end_ns;
        if whole && schedule.counts(end_ns) {
            self.tally.with(|tally| tally.thoughts += 1);
        }
    }

    /// Counts a new session: when connecting began, and when it was ready, ns. The end of the old one began with that of its last
    /// transaction or think time: what it published at a window's end is part of it.
    pub(crate) fn connected(&mut self, schedule: &Schedule, connecting_ns: u64, ready_ns: u64) {
        self.job.connecting_ns += schedule.part_inside(self.job.ran_until_ns, ready_ns);
        self.job.ran_until_ns = ready_ns;
        if schedule.counts(ready_ns) {
            let ns = ready_ns.saturating_sub(connecting_ns);
            self.tally.with(|tally| tally.connect.get_or_insert_with(Latencies::new).record(ns));
        }
    }

    /// Counts what the script did that ended at `end_ns`.
    #[inline]
    pub(crate) fn scripted(&mut self, schedule: &Schedule, end_ns: u64, script: &mut ScriptJob) {
        let did = script.take(schedule, end_ns);
        self.tally.with(|tally| tally.scripted.get_or_insert_default().merge(&did));
    }

    pub(crate) fn failed(&mut self, schedule: &Schedule, start_ns: u64, end_ns: u64, error: &TargetError) {
        let (text, age_at_open_ns) = (error.to_string(), self.job.age_at_open_ns);
        self.job.note_times(schedule, start_ns, end_ns);
        // Its time is not in the sum from which that before the window is taken.
        self.job.age_at_open_ns = age_at_open_ns;
        self.job.errors_total += 1;
        if let TargetError::Server(refusal) = error
            && matches!(refusal.cause, Cause::Limit | Cause::NotAllowed | Cause::Privilege)
        {
            self.job.refused = Some(refusal.clone());
        }
        self.tally.with(|tally| {
            tally.errors_total += 1;
            tally.errors += u64::from(schedule.counts(end_ns));
            tally.full_disk |= error.is_full_disk();
            // Texts may hold values: keep at most 100 different ones.
            if tally.error_texts.len() < 100 || tally.error_texts.contains_key(&text) {
                *tally.error_texts.entry(text).or_default() += 1;
            }
        });
    }

    /// Counts the attempts of transactions, which ended in the window if `inside`.
    #[inline]
    pub(crate) fn lost(&mut self, inside: bool, lost: Attempts) {
        if lost != Attempts::default() {
            self.job.failed_commits += lost.failed_commits;
            self.tally.with(|tally| {
                tally.conflicts_total += lost.conflicts;
                tally.conflicts += u64::from(inside) * lost.conflicts;
                tally.failed_commits += u64::from(inside) * lost.failed_commits;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::Parts;

    #[test]
    fn a_failure_that_crosses_the_window_start_takes_no_time_from_other_transactions() {
        let tally = Mutex::new(Tally::new(1_000_000_000, false));
        let mut books = Books::new(Held::new(&tally, true));
        let schedule = Schedule { start_ns: 0, open_ns: 4_000_000_000, close_ns: 5_000_000_000 };
        books.failed(&schedule, 0, 4_100_000_000, &TargetError::Refused("lock".into()));
        books.completed(&schedule, None, 4_100_000_000, None, 5_100_000_000);
        assert!((books.job.time_in_transactions_ns() - 9e8).abs() < 1.0, "{:?}", books.job);
    }

    const MS: u64 = 1_000_000;

    /// A job that did the same before the window, twice in it, and when it had ended.
    fn books<'a>(tally: &'a Mutex<Tally>, schedule: &Schedule, shared: &Shared) -> Books<'a> {
        let mut books = Books::watching(0, Held::new(tally, true));
        let causes = [Cause::Other, Cause::FullDisk, Cause::Limit, Cause::Other];
        for (end_ms, cause) in [3900, 4050, 4950, 5075].into_iter().zip(causes) {
            let (end, inside) = (end_ms * MS, (4000..5000).contains(&end_ms));
            books.completed(schedule, Some(1), end - 100 * MS, Some(end - 20 * MS), end);
            books.in_part(schedule, shared, [end - 110 * MS; 2], end);
            books.responded(schedule, Some(end - 120 * MS), end);
            books.lost(inside, Attempts { conflicts: 2, failed_commits: 3 });
            let refusal = Refusal { cause, code: String::new(), text: "no".into() };
            books.failed(schedule, end, end + MS, &TargetError::Server(refusal));
            books.thought(schedule, end + MS, end + 11 * MS, end_ms != 4950);
            books.connected(schedule, end + 12 * MS, end + 20 * MS);
        }
        books.end_part(shared, 0);
        books
    }

    #[test]
    fn what_a_job_does_counts_where_it_ends_and_another_window_forgets_that_of_the_first() {
        let schedule = Schedule { start_ns: 0, open_ns: 4000 * MS, close_ns: 5000 * MS };
        let tally = Mutex::new(Tally::new(schedule.window_ns(), true));
        let shared = Shared::new(1, Arc::default()).split(Parts::Equal(4));
        let mut books = books(&tally, &schedule, &shared);
        let job = books.job.clone();
        assert_eq!([job.total, job.completed, job.errors_total, job.failed_commits], [4, 2, 4, 12]);
        assert_eq!((job.crossing, job.sum_ns / MS, job.first_start_ns), (0.25 - 0.5, 200, Some(3800 * MS)));
        let times_ns = [job.age_at_open_ns, job.age_at_close_ns, job.thinking_ns, job.connecting_ns, job.ran_until_ns];
        assert_eq!(times_ns.map(|ns| ns / MS), [50, 25, 20, 18, 5095]);
        assert_eq!(job.time_outside_ns(&schedule) / MS as f64, 1000.0 - (200.0 - 50.0 + 25.0) - 20.0 - 18.0);
        assert_eq!(job.refused.map(|refusal| refusal.cause), Some(Cause::Limit));
        let ends: Vec<u64> = job.slowest.unwrap().kept.iter().map(|[_, end]| end / MS).collect();
        assert_eq!(ends, [4050, 4950, 5075]);
        assert_eq!(books.forget_window(), 2);
        assert_eq!(
            [books.job.total, books.job.completed, books.job.errors_total, books.job.failed_commits],
            [4, 0, 4, 12]
        );
        assert_eq!((books.job.first_start_ns, books.job.slowest.is_some()), (Some(3800 * MS), true));
        drop(books);
        let left = tally.into_inner().unwrap();
        assert_eq!([left.total, left.errors_total, left.conflicts_total, left.error_texts["no"]], [4, 4, 8, 4]);
        assert_eq!([left.errors, left.conflicts, left.failed_commits, left.thoughts, left.transaction.count()], [0; 5]);
        assert!(left.full_disk && left.per_step == [0; 10] && left.response.is_some_and(|times| times.count() == 0));
        assert_eq!(shared.parts().iter().map(Latencies::count).collect::<Vec<_>>(), [1, 0, 0, 1]);
        assert_eq!(shared.parts()[3].max_ns().map(|ns| ns / MS), Some(110));
    }

    #[test]
    fn tallies_of_two_jobs_are_twice_that_of_one() {
        let schedule = Schedule { start_ns: 0, open_ns: 4000 * MS, close_ns: 5000 * MS };
        let tally = Mutex::new(Tally::new(schedule.window_ns(), true));
        drop(books(&tally, &schedule, &Shared::new(1, Arc::default())));
        let uncertain = Some("CALL".to_owned());
        let scripted = Scripted { commits: 6, commits_total: 9, statements: 5, sleeping_ns: 3, uncertain };
        let one = tally.into_inner().unwrap();
        let one = Tally { rows_changed: 7, scripted: Some(scripted), ..one };
        let mut two = Tally::default();
        two.merge(&one);
        two.merge(&one);
        let counts = |of: &Tally| {
            let count = |times: &Option<Latencies>| times.as_ref().unwrap().count();
            let times = [of.transaction.count(), of.commit.count(), count(&of.response), count(&of.connect)];
            let split = [of.kinds[0].count(), of.kinds[1].count(), of.per_step[0], of.per_step[9]];
            let all = [of.total, of.rows_changed, of.errors, of.errors_total, of.conflicts, of.conflicts_total];
            let did = of.scripted.as_ref().unwrap();
            let scripts = [did.commits, did.commits_total, did.statements, did.sleeping_ns];
            [&times[..], &split, &all, &scripts, &[of.thoughts, of.failed_commits, of.error_texts["no"]]].concat()
        };
        assert_eq!(counts(&one), [2, 2, 2, 2, 0, 2, 1, 1, 4, 7, 2, 4, 4, 8, 6, 9, 5, 3, 1, 6, 4]);
        assert_eq!(counts(&two), counts(&one).iter().map(|n| 2 * n).collect::<Vec<u64>>());
        assert!(two.full_disk && two.scripted.as_ref().unwrap().uncertain.as_deref() == Some("CALL"));
        assert_eq!((one.commits_per_tx(), two.commits_per_tx(), Tally::default().commits_per_tx()), (3.0, 3.0, 1.0));
        let mut parts = vec![one.clone()];
        Tally::merge_parts(&mut parts, &[one.clone(), one]);
        assert_eq!(parts.iter().map(|part| part.total).collect::<Vec<_>>(), [8, 4]);
    }

    proptest! {
        #[test]
        fn throughput_is_not_in_steps_of_one(first_ns in 1u64..3_000_000_000, each_ns in 1_000_000u64..3_000_000_000) {
            let schedule = Schedule { start_ns: 0, open_ns: 4_000_000_000, close_ns: 5_000_000_000 };
            let tally = Mutex::new(Tally::new(schedule.window_ns(), false));
            let mut books = Books::new(Held::new(&tally, true));
            let mut start_ns = first_ns;
            while start_ns < schedule.close_ns {
                books.completed(&schedule, None, start_ns, None, start_ns + each_ns);
                start_ns += each_ns;
            }
            let tps = tps([&books.job], &schedule);
            prop_assert!((tps * each_ns as f64 / 1e9 - 1.0).abs() < 1e-6, "{tps} of transactions of {each_ns} ns");
        }
    }
}
