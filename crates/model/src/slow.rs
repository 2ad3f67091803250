//! What the slowest transactions of a test waited for, by samples of their sessions.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Fewest samples within slow transactions, and fewest moments at which they were taken, for a cause.
pub const LEAST: [u64; 2] = [20, 5];
/// Standard errors by which the shares of a wait must differ.
const ERRORS: f64 = 3.0;
/// And least difference of the shares.
const DIFFERENCE: f64 = 0.1;

crate::named! {
    /// What a session waits for, as the database's descriptor groups its wait events.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum WaitClass {
        /// The log writer.
        LogSync: "log sync";
        /// A new file of the log.
        LogFile: "new log file";
        /// A place in the log's buffers.
        LogBuffer: "log buffers";
        /// A buffer of the block cache.
        Buffer: "buffers";
        /// A lock or latch held by another session.
        Lock: "locks";
        /// A replica.
        Replica: "replica";
        /// Its client.
        Client: "client";
        /// Events that are in no group, each by itself; and work in the background.
        Other: "other";
    }
    /// Its words.
    pub fn name;
}

/// A wait, or work in the background, in samples of jobs' sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlowWait {
    /// Its group.
    pub class: WaitClass,
    /// The most frequent event of the group.
    pub event: String,
    /// Samples within slow transactions.
    pub samples: u64,
    /// Other samples.
    pub others: u64,
}

/// The slowest transactions of a test, at most 1 % of them, with what their sessions waited for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowFigures {
    /// Number of them, by the jobs whose slowest transactions are kept.
    pub transactions: u64,
    /// Transactions of these jobs.
    pub of: u64,
    /// They took longer than this, ns.
    pub above_ns: u64,
    /// Samples of these jobs' sessions within them.
    pub samples: u64,
    /// Moments at which these were taken.
    pub moments: u64,
    /// All other samples of these jobs' sessions.
    pub others: u64,
    /// Waits, those first whose shares differ most.
    pub waits: Vec<SlowWait>,
    /// Work of the server in the background at the same moments, likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<SlowWait>,
}

/// Why no cause is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoCause {
    /// Too few samples fell into slow transactions: samples, and moments at which they were taken.
    FewSamples(u64, u64),
    /// Slow transactions waited for the same as others.
    Alike,
}

impl fmt::Display for NoCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [least, moments] = LEAST;
        match self {
            NoCause::FewSamples(samples, at) => write!(
                f,
                "too few samples of wait events fell into the slowest transactions: {samples} at {at} moments, and {least} at \
                 {moments} are needed (longer windows have more)"
            ),
            NoCause::Alike => {
                write!(f, "the slowest transactions waited for nothing that others did not wait for as often")
            }
        }
    }
}

impl SlowFigures {
    /// Shares of `wait` in the samples of slow transactions and in others, 0…1.
    #[must_use]
    pub fn shares(&self, wait: &SlowWait) -> [f64; 2] {
        [(wait.samples, self.samples), (wait.others, self.others)].map(|(n, of)| n as f64 / of.max(1) as f64)
    }

    /// Whether `wait` is more frequent in slow transactions than chance explains. Sessions that wait for the same at one moment count
    /// once: the error is that of the moments.
    fn differs(&self, wait: &SlowWait) -> bool {
        let [slow, others] = self.shares(wait);
        let moments = self.moments as f64;
        let other_moments = self.others as f64 * moments / self.samples.max(1) as f64;
        let pooled = (slow * moments + others * other_moments) / (moments + other_moments).max(1.0);
        let error = (pooled * (1.0 - pooled) * (1.0 / moments.max(1.0) + 1.0 / other_moments.max(1.0))).sqrt();
        slow - others >= (ERRORS * error).max(DIFFERENCE)
    }

    /// What sets the slow transactions apart.
    ///
    /// # Errors
    /// Why nothing is named.
    pub fn cause(&self) -> Result<&SlowWait, NoCause> {
        if self.samples < LEAST[0] || self.moments < LEAST[1] || self.others < LEAST[0] {
            return Err(NoCause::FewSamples(self.samples.min(self.others), self.moments));
        }
        self.waits.first().filter(|wait| self.differs(wait)).ok_or(NoCause::Alike)
    }

    /// Work in the background that ran more often during slow transactions.
    #[must_use]
    pub fn during(&self) -> Option<&SlowWait> {
        self.background.first().filter(|work| self.cause().is_ok() && self.differs(work))
    }

    /// `locks (Lock:transactionid), during checkpoint`; `None` without a cause.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        let SlowWait { class, event, .. } = self.cause().ok()?;
        let during = self.during().map_or_else(String::new, |work| format!(", during {}", work.event));
        let named = if *class == WaitClass::Other { event.clone() } else { format!("{} ({event})", class.name()) };
        Some(named + &during)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(class: WaitClass, event: &str, samples: u64, others: u64) -> SlowWait {
        SlowWait { class, event: event.to_owned(), samples, others }
    }

    fn slow(samples: u64, moments: u64, waits: Vec<SlowWait>) -> SlowFigures {
        SlowFigures { samples, moments, others: 1000, waits, ..SlowFigures::default() }
    }

    #[test]
    fn a_cause_needs_samples_and_a_difference() {
        let locks = || vec![wait(WaitClass::Lock, "Lock:tuple", 36, 40)];
        assert_eq!(slow(40, 20, locks()).words().as_deref(), Some("locks (Lock:tuple)"));
        assert_eq!(slow(19, 19, locks()).cause(), Err(NoCause::FewSamples(19, 19)));
        assert_eq!(slow(40, 4, locks()).cause(), Err(NoCause::FewSamples(40, 4)), "one stall of all jobs");
        let alike = vec![wait(WaitClass::LogSync, "IO:WALSync", 24, 550)];
        assert_eq!(slow(40, 20, alike).cause(), Err(NoCause::Alike), "60 % of 20 moments and 55 %");
    }

    #[test]
    fn work_in_the_background_is_said_with_the_cause() {
        let mut of = slow(40, 20, vec![wait(WaitClass::Other, "IO:SLRUSync", 30, 10)]);
        of.background = vec![wait(WaitClass::Other, "checkpoint", 38, 100)];
        assert_eq!(of.words().as_deref(), Some("IO:SLRUSync, during checkpoint"));
    }
}
