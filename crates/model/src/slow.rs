//! Waits of the slowest transactions of a test, by samples of their sessions.

use serde::{Deserialize, Serialize};

/// Fewest samples within slow transactions, and fewest moments at which they were taken, for a cause.
pub const LEAST: [u64; 2] = [20, 5];
/// Share of the time by which slow transactions took longer that a cause explains at least.
const EXPLAINED: f64 = 0.5;
/// Standard errors by which the shares of work in the background must differ, and least difference.
const DIFFERENCE: (f64, f64) = (3.0, 0.1);

crate::named! {
    /// Wait of a session, as the database's descriptor groups its wait events.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum WaitClass {
        LogSync: "log sync";
        LogFile: "new log file";
        LogBuffer: "log buffers";
        Buffer: "buffers";
        /// A lock or latch held by another session.
        Lock: "locks";
        Replica: "replica";
        /// Client, as far as the server knows: also the network, or a CPU for what the client has sent.
        Client: "client, network or CPU";
        /// Events that are in no group, each by itself.
        Other: "other";
        /// Work of the server in the background at the same moments, each by itself.
        Background: "work in the background";
    }
    pub fn name;
}

/// A wait, or work in the background, in samples of jobs' sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlowWait {
    pub class: WaitClass,
    /// The most frequent event of the group.
    pub event: String,
    pub samples: u64,
    pub others: u64,
}

impl SlowWait {
    /// `locks`, `IO:SLRUSync`, `during checkpoint`.
    pub fn words(&self) -> String {
        match self.class {
            WaitClass::Background => format!("during {}", self.event),
            WaitClass::Other => self.event.clone(),
            class => class.name().to_owned(),
        }
    }
}

/// The slowest transactions of a test, at most 1 % of them, with what their sessions waited for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowFigures {
    /// Number of them, by the jobs whose slowest transactions are kept.
    pub transactions: u64,
    pub of: u64,
    /// They took longer than this, ns.
    pub above_ns: u64,
    /// Mean time of them, and of the others, ns.
    pub mean_ns: [f64; 2],
    /// Samples of these jobs' sessions within them.
    pub samples: u64,
    pub moments: u64,
    /// All other samples of these jobs' sessions.
    pub others: u64,
    /// Waits, those first that explain most of the time by which slow transactions took longer; then work in the background, likewise.
    pub waits: Vec<SlowWait>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoCause {
    #[error("no sample of the target's wait events says which job waited")]
    NotSampled,
    #[error("when the slow ones were is unknown: jobs ran on agents, or the procedure returns a histogram")]
    NotKept,
    #[error("none of the {0} transactions was slower than the 99th percentile, as histograms distinguish times")]
    NoneSlower(u64),
    #[error(
        "too few samples of wait events were asked for and answered within one of the slowest transactions, or of others: {samples} at \
         {moments} moments, and {others}; {least} at {least_moments} and {least} are needed",
        least = LEAST[0],
        least_moments = LEAST[1]
    )]
    FewSamples { samples: u64, moments: u64, others: u64 },
    #[error("no single wait explains half of the time by which the slowest transactions took longer")]
    Several,
}

impl SlowFigures {
    /// Shares of `wait` in the samples of slow transactions and in others, 0…1.
    pub fn shares(&self, wait: &SlowWait) -> [f64; 2] {
        [(wait.samples, self.samples), (wait.others, self.others)].map(|(n, of)| n as f64 / of.max(1) as f64)
    }

    /// Share of the time by which slow transactions took longer than others that is `wait`, 0…1 or beyond: mean time in it per slow
    /// transaction minus that per other transaction.
    pub fn explained(&self, wait: &SlowWait) -> f64 {
        let [slow, others] = self.shares(wait);
        let [slow_ns, others_ns] = self.mean_ns;
        (slow * slow_ns - others * others_ns) / (slow_ns - others_ns).max(1.0)
    }

    /// Distinction of the slow transactions.
    pub fn cause(&self) -> Result<&SlowWait, NoCause> {
        let SlowFigures { samples, moments, others, .. } = *self;
        if samples < LEAST[0] || moments < LEAST[1] || others < LEAST[0] {
            return Err(NoCause::FewSamples { samples, moments, others });
        }
        let [slow_ns, others_ns] = self.mean_ns;
        let is_cause = |wait: &&SlowWait| {
            let error = error(self.shares(wait)[0], self.moments as f64) * slow_ns / (slow_ns - others_ns).max(1.0);
            wait.class != WaitClass::Background && self.explained(wait) - error >= EXPLAINED
        };
        self.waits.first().filter(is_cause).ok_or(NoCause::Several)
    }

    /// Work in the background that ran more often during slow transactions.
    fn during(&self) -> Option<&SlowWait> {
        let differs = |work: &&SlowWait| {
            let [slow, others] = self.shares(work);
            let of_others = self.others as f64 * self.moments as f64 / self.samples.max(1) as f64;
            let error = error(slow, self.moments as f64).hypot(error(others, of_others));
            work.class == WaitClass::Background && slow - others >= (DIFFERENCE.0 * error).max(DIFFERENCE.1)
        };
        self.waits.iter().find(differs)
    }

    /// `locks (Lock:transactionid), during checkpoint`; `None` without a cause.
    pub fn words(&self) -> Option<String> {
        let wait = self.cause().ok()?;
        let event = if wait.class == WaitClass::Other { String::new() } else { format!(" ({})", wait.event) };
        let during = self.during().map_or_else(String::new, |work| format!(", {}", work.words()));
        Some(wait.words() + &event + &during)
    }
}

/// Standard error of a share of samples, taken at so many moments: sessions that wait at one moment may wait for the same. With two
/// more moments, so that it is above 0 at a share of 0 or 1 (Agresti and Coull, Approximate is better than 'exact', 1998).
fn error(share: f64, moments: f64) -> f64 {
    let share = (share * moments + 1.0) / (moments + 2.0);
    (share * (1.0 - share) / (moments + 2.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(class: WaitClass, event: &str, samples: u64, others: u64) -> SlowWait {
        SlowWait { class, event: event.to_owned(), samples, others }
    }

    fn slow(samples: u64, moments: u64, waits: Vec<SlowWait>) -> SlowFigures {
        SlowFigures { samples, moments, others: 1000, waits, mean_ns: [200e6, 4e6], ..SlowFigures::default() }
    }

    #[test]
    fn a_cause_needs_samples_and_most_of_the_time() {
        let cause = |samples, moments, of_lock| {
            let of = slow(samples, moments, vec![wait(WaitClass::Lock, "Lock:tuple", of_lock, 40)]);
            of.cause().map(|_| of.words().unwrap())
        };
        let few = |samples, moments| Err(NoCause::FewSamples { samples, moments, others: 1000 });
        assert_eq!(cause(40, 20, 36).as_deref(), Ok("locks (Lock:tuple)"));
        assert_eq!(cause(19, 19, 18), few(19, 19));
        assert_eq!(cause(40, 4, 36), few(40, 4), "one stall of all jobs");
        assert_eq!(cause(40, 20, 22), Err(NoCause::Several), "55 %, by 20 moments");
    }

    #[test]
    fn slow_transactions_may_wait_longer_for_what_all_wait_for() {
        let mut of = slow(40, 20, vec![wait(WaitClass::LogSync, "IO:WALSync", 39, 920)]);
        assert_eq!(of.words().as_deref(), Some("log sync (IO:WALSync)"));
        of.mean_ns = [4.4e6, 4e6];
        of.waits[0].others = 995;
        assert_eq!(of.cause(), Err(NoCause::Several), "longer by something else");
    }

    #[test]
    fn work_in_the_background_is_said_with_the_cause() {
        let mut of = slow(40, 20, vec![wait(WaitClass::Other, "IO:SLRUSync", 36, 10)]);
        of.waits.push(wait(WaitClass::Background, "checkpoint", 38, 100));
        assert_eq!(of.words().as_deref(), Some("IO:SLRUSync, during checkpoint"));
        // Most often, but as often meanwhile as otherwise: then the other work.
        of.waits.insert(1, wait(WaitClass::Background, "autovacuum", 39, 950));
        assert_eq!(of.words().as_deref(), Some("IO:SLRUSync, during checkpoint"));
    }
}
