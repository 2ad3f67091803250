//! What one job brings back.

use std::collections::BTreeMap;

use loadline_model::Latencies;

use super::phase::Split;
use super::schedule::Schedule;

/// Everything that one job measured. A job fills its own; they are merged after the test.
#[derive(Debug, Clone, Default)]
pub struct JobResult {
    /// Transaction times of the transactions that completed in the window.
    pub transaction: Latencies,
    /// Commit times of the same, or of a regular sample of them where the session sees no more.
    pub commit: Latencies,
    /// The same times, split by a phase, if an instrument sets one.
    pub split: Option<Box<Split>>,
    /// Open loop: times from the intended start.
    pub response: Option<Latencies>,
    /// Completed transactions by second of the window.
    pub per_second: Vec<u64>,
    /// Transactions committed in all, warm-up and tail included.
    pub total: u64,
    /// Rows that these changed, by what their programs say.
    pub rows_changed: u64,
    /// Transactions that ended with an error in the window.
    pub errors: u64,
    /// The same in all.
    pub errors_total: u64,
    /// Texts of the errors.
    pub error_texts: BTreeMap<String, u64>,
    /// Start of the first transaction, ns.
    pub first_start_ns: Option<u64>,
    /// End of the last transaction, or the return of the last slice if that was later, ns.
    pub ran_until_ns: u64,
    /// How long the transaction that was under way when the window opened had run by then, ns.
    pub age_at_open_ns: u64,
    /// The same at the close.
    pub age_at_close_ns: u64,
    /// Open loop: how far behind its schedule the job was at the close, ns.
    pub behind_ns: u64,
    /// Open loop, first job: when each of its transactions was meant to begin, ns; failed ones are among them,
    /// and those that were due before the close and had not begun when the job ended.
    pub intended_ns: Vec<u64>,
    /// Why the job ended before it was told to.
    pub lost: Option<String>,
}

impl JobResult {
    /// For a window of `window_ns`.
    #[must_use]
    pub fn new(window_ns: u64, open_loop: bool) -> JobResult {
        let seconds = window_ns.div_ceil(1_000_000_000) as usize;
        JobResult { per_second: vec![0; seconds], response: open_loop.then(Latencies::new), ..JobResult::default() }
    }

    /// Counts a transaction that ran from `start_ns` to `end_ns`, its commit from `commit_ns` on if
    /// that was seen.
    #[inline]
    pub fn completed(&mut self, schedule: &Schedule, start_ns: u64, commit_ns: Option<u64>, end_ns: u64) {
        self.total += 1;
        self.seen(schedule, start_ns, end_ns);
        if schedule.counts(end_ns) {
            self.transaction.record(end_ns.saturating_sub(start_ns));
            if let Some(commit_ns) = commit_ns {
                self.commit.record(end_ns.saturating_sub(commit_ns));
            }
            if let Some(n) = self.per_second.get_mut(schedule.second(end_ns)) {
                *n += 1;
            }
        }
    }

    /// Counts a transaction that ended with an error.
    pub fn failed(&mut self, schedule: &Schedule, start_ns: u64, end_ns: u64, text: String) {
        self.errors_total += 1;
        self.seen(schedule, start_ns, end_ns);
        self.errors += u64::from(schedule.counts(end_ns));
        // A text holds values now and then; a few hundred different ones tell as much as all.
        if self.error_texts.len() < 100 || self.error_texts.contains_key(&text) {
            *self.error_texts.entry(text).or_default() += 1;
        }
    }

    /// Notes when the job was inside transactions.
    #[inline]
    pub fn seen(&mut self, schedule: &Schedule, start_ns: u64, end_ns: u64) {
        self.first_start_ns.get_or_insert(start_ns);
        self.ran_until_ns = end_ns;
        if start_ns < schedule.open_ns && end_ns >= schedule.open_ns {
            self.age_at_open_ns = schedule.open_ns - start_ns;
        }
        if start_ns < schedule.close_ns && end_ns >= schedule.close_ns {
            self.age_at_close_ns = schedule.close_ns - start_ns;
        }
    }

    /// Whether the job ran when the window opened and still ran when it closed.
    #[must_use]
    pub fn ran_through(&self, schedule: &Schedule) -> bool {
        self.first_start_ns.is_some_and(|s| s <= schedule.open_ns) && self.ran_until_ns >= schedule.close_ns
    }

    /// Adds `other`: latencies, counts and errors. Moments and ages are those of single jobs and
    /// are not merged.
    pub fn merge(&mut self, other: &JobResult) {
        self.transaction.merge(&other.transaction);
        self.commit.merge(&other.commit);
        if let Some(theirs) = &other.response {
            self.response.get_or_insert_with(Latencies::new).merge(theirs);
        }
        self.per_second.resize(self.per_second.len().max(other.per_second.len()), 0);
        for (mine, theirs) in self.per_second.iter_mut().zip(&other.per_second) {
            *mine += theirs;
        }
        if let Some(theirs) = &other.split {
            self.split.get_or_insert_default().merge(theirs);
        }
        self.total += other.total;
        self.rows_changed += other.rows_changed;
        self.errors += other.errors;
        self.errors_total += other.errors_total;
        for (text, n) in &other.error_texts {
            *self.error_texts.entry(text.clone()).or_default() += n;
        }
    }

    /// Time inside transactions within the window, ns: an identity, no estimate. What completed in
    /// the window counts whole, less what of it lay before the opening, plus what of the last
    /// transaction lay before the close.
    #[must_use]
    pub fn time_in_transactions_ns(&self) -> f64 {
        self.transaction.sum_ns() as f64 - self.age_at_open_ns as f64 + self.age_at_close_ns as f64
    }
}
