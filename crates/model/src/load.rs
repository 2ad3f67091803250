//! How the jobs of a test make load: closed or open loop, think time, new sessions, and parts of the jobs that differ.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::format::{counted, number, share_of};
use crate::histogram::Latencies;

/// Words of a load whose transactions are due at a rate.
pub const OPEN_LOOP: &str = "open loop";

/// How the jobs of a test make load. The default is a closed loop: each job runs one transaction after the other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JobLoad {
    /// Transactions per second over all jobs (open loop), if any.
    pub rate_tps: Option<f64>,
    /// Objective of the highest rate, which is found and takes the place of a given one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<RateObjective>,
    /// Mean time that a job thinks after each transaction, s; drawn from an exponential distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think_s: Option<f64>,
    /// Transactions after which a job closes its session and opens a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconnect_every: Option<u64>,
    /// Which keys their transactions draw; `None`: all alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Keys>,
    /// Parts of the jobs that differ, in the order of the jobs' numbers; empty: all jobs are alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub populations: Vec<Population>,
}

/// Objective of the highest rate: response times, from the intended start on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateObjective {
    /// Which percentile of them; 0: their mean.
    pub pct: u8,
    /// The longest allowed, ns.
    pub ns: u64,
}

impl RateObjective {
    /// That of the figures of a test: see [`RateObjective::figures`].
    pub fn from_figures(ms: Option<f64>, pct: Option<f64>) -> Option<RateObjective> {
        Some(RateObjective { pct: pct? as u8, ns: (ms? * 1e6).round() as u64 })
    }

    /// The longest time, ms, and the percentile; 0 for the mean.
    pub fn figures(self) -> [f64; 2] {
        [self.ns as f64 / 1e6, self.pct.into()]
    }

    /// Value of these times that it limits, ns; `None` if there are none.
    pub fn latency_ns(self, times: &Latencies) -> Option<f64> {
        match self.pct {
            0 => times.mean_ns(),
            pct => times.quantile_ns(f64::from(pct) / 100.0).map(|ns| ns as f64),
        }
    }

    /// `p99`, or `mean latency`.
    pub fn name(self) -> String {
        if self.pct == 0 { "mean latency".to_owned() } else { format!("p{}", self.pct) }
    }

    /// `a p99 of at most 5 ms`.
    pub fn words(self) -> String {
        format!("a {} of at most {} ms", self.name(), trimmed(self.ns as f64 / 1e6))
    }
}

/// The search for the highest rate of a test that has no record yet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RateLooks {
    pub test: u32,
    pub workload: String,
    pub jobs: u32,
    /// The windows that ended, in order.
    pub looks: Vec<RateLook>,
}

/// A window of a search for a rate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RateLook {
    pub jobs: u32,
    /// Rate, tps; `None` in a closed loop.
    pub rate_tps: Option<f64>,
    /// Transactions that completed, 1/s.
    pub tps: f64,
    /// Value of their times that the objective limits, ns.
    pub latency_ns: f64,
    pub disturbed: bool,
}

/// Jobs of a test that make load in the same way.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Population {
    pub jobs: u32,
    /// Mean time that each thinks after a transaction, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think_s: Option<f64>,
    /// Transactions per second of these jobs together (open loop).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_tps: Option<f64>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct PartOfJob {
    pub index: usize,
    /// Number there, from 0.
    pub number: u32,
    pub population: Population,
}

impl Population {
    /// `8 jobs: closed loop, think time 10 ms`.
    pub fn words(&self) -> String {
        format!("{}: {}", counted(self.jobs as usize, "job"), manner(self.rate_tps, self.think_s))
    }
}

impl JobLoad {
    /// The parts of `jobs` jobs, at least one.
    pub fn parts(&self, jobs: u32) -> Vec<Population> {
        if self.populations.is_empty() {
            return vec![Population { jobs, think_s: self.think_s, rate_tps: self.rate_tps }];
        }
        self.populations.clone()
    }

    pub fn part_of(&self, job: u32, jobs: u32) -> PartOfJob {
        let mut number = job;
        for (index, population) in self.parts(jobs).into_iter().enumerate() {
            match number.checked_sub(population.jobs) {
                Some(rest) => number = rest,
                None => return PartOfJob { index, number, population },
            }
        }
        PartOfJob { number, ..PartOfJob::default() }
    }

    /// Whether some jobs are closed and others open, or think for different times.
    pub fn is_mixed(&self) -> bool {
        !self.populations.is_empty()
    }

    /// Whether any job starts its transactions at a rate.
    pub fn has_rate(&self) -> bool {
        self.rate_tps.is_some() || self.objective.is_some() || self.populations.iter().any(|p| p.rate_tps.is_some())
    }

    pub fn thinks(&self) -> bool {
        self.think_s.is_some() || self.populations.iter().any(|p| p.think_s.is_some())
    }

    /// Whether jobs wait between transactions on purpose, so that throughput is not what the target can do.
    pub fn waits(&self) -> bool {
        self.has_rate() || self.thinks()
    }

    /// `closed loop, think time 10 ms, a new session after 100 transactions, keys zipf:1.1`.
    pub fn words(&self) -> String {
        let out = if let Some(objective) = self.objective {
            format!("{OPEN_LOOP} at the highest rate with {}", objective.words())
        } else if self.populations.is_empty() {
            manner(self.rate_tps, self.think_s)
        } else {
            self.populations.iter().map(Population::words).collect::<Vec<_>>().join("; ")
        };
        out + &self.sessions_and_keys()
    }

    /// Load of equal jobs beside a closed loop, or a rate that was found: `, think time 10 ms, a new session after 100 transactions`.
    pub fn beside_closed_loop(&self) -> String {
        let rate = self.objective.map(|objective| format!(", highest rate with {}", objective.words()));
        rate.unwrap_or_else(|| thinking(self.think_s)) + &self.sessions_and_keys()
    }

    /// `, a new session after 100 transactions, keys zipf:1.1`; empty if jobs keep theirs and draw all keys alike.
    pub fn sessions_and_keys(&self) -> String {
        let plural = if self.reconnect_every == Some(1) { "" } else { "s" };
        let sessions = self.reconnect_every.map(|n| format!(", a new session after {n} transaction{plural}"));
        let keys = self.keys.map(|keys| format!(", keys {keys}"));
        sessions.into_iter().chain(keys).collect()
    }
}

fn manner(rate_tps: Option<f64>, think_s: Option<f64>) -> String {
    match (rate_tps, think_s) {
        (Some(rate), _) => format!("{OPEN_LOOP} at {rate} tps"),
        (None, think_s) => format!("closed loop{}", thinking(think_s)),
    }
}

/// `, think time 10 ms`; empty without one.
fn thinking(think_s: Option<f64>) -> String {
    think_s.map_or(String::new(), |think| format!(", think time {} ms", trimmed(think * 1e3)))
}

/// `ms` without zeros at its end.
fn trimmed(ms: f64) -> String {
    let text = number(ms, 3);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// How often each key of a table is drawn. Exponents and shares are whole millionths, because all languages compute with the same integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Keys {
    /// Key number k, from 1, as often as k^−s.
    Zipf {
        /// The exponent s, millionths.
        exponent: u64,
    },
    /// The first keys more often than the others; in each of the two parts, all alike.
    Hot {
        /// Share of the keys that are hot, millionths.
        keys: u64,
        /// Share of the draws that are of hot keys, millionths.
        draws: u64,
    },
}

pub const MILLION: u64 = 1_000_000;

fn millionths(number: f64) -> u64 {
    (number * MILLION as f64).round() as u64
}

impl Keys {
    pub fn from_figures([exponent, keys_pct, draws_pct]: [Option<f64>; 3]) -> Option<Keys> {
        let zipf = exponent.map(|s| Keys::Zipf { exponent: millionths(s) });
        let hot = keys_pct.zip(draws_pct).map(|of| <[f64; 2]>::from(of).map(|pct| millionths(pct / 100.0)));
        zipf.or_else(|| hot.map(|[keys, draws]| Keys::Hot { keys, draws }))
    }

    /// The exponent, and the two shares, %: what a test stores.
    pub fn figures(self) -> [Option<f64>; 3] {
        let of = |millionths: u64, one: f64| Some(millionths as f64 * one / MILLION as f64);
        match self {
            Keys::Zipf { exponent } => [of(exponent, 1.0), None, None],
            Keys::Hot { keys, draws } => [None, of(keys, 100.0), of(draws, 100.0)],
        }
    }
}

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.figures() {
            [Some(exponent), ..] => write!(f, "zipf:{exponent}"),
            [_, keys, draws] => write!(f, "hot:{}%:{}%", keys.unwrap_or(0.0), draws.unwrap_or(0.0)),
        }
    }
}

impl FromStr for Keys {
    type Err = String;

    fn from_str(text: &str) -> Result<Keys, String> {
        let refuse = |why: &str| Err(format!("keys '{text}': {why}"));
        match text.split(':').collect::<Vec<_>>()[..] {
            ["zipf", exponent] => match exponent.parse().map(millionths) {
                Ok(exponent) if (1..5 * MILLION).contains(&exponent) => Ok(Keys::Zipf { exponent }),
                _ => refuse("the exponent of zipf must be a number above 0 and below 5, such as zipf:1.1"),
            },
            ["hot", keys, draws] => match [share_of(keys).map(millionths), share_of(draws).map(millionths)] {
                [Ok(keys @ 1..MILLION), Ok(draws @ 1..MILLION)] => Ok(Keys::Hot { keys, draws }),
                _ => refuse("both shares must be above 0 % and below 100 %, such as hot:10%:90%"),
            },
            _ => refuse("write zipf:EXPONENT or hot:KEYS%:DRAWS%, such as zipf:1.1 or hot:10%:90%"),
        }
    }
}

impl TryFrom<String> for Keys {
    type Error = String;

    fn try_from(text: String) -> Result<Keys, String> {
        text.parse()
    }
}

impl From<Keys> for String {
    fn from(keys: Keys) -> String {
        keys.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_has_its_part_and_its_number_there() {
        let part = |jobs, think_s, rate_tps| Population { jobs, think_s, rate_tps };
        let mixed =
            JobLoad { populations: vec![part(3, Some(0.01), None), part(2, None, Some(500.0))], ..JobLoad::default() };
        let of: Vec<(usize, u32)> = (0..5).map(|job| mixed.part_of(job, 5)).map(|p| (p.index, p.number)).collect();
        assert_eq!(of, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]);
        assert!(mixed.has_rate() && mixed.thinks() && mixed.is_mixed());
        assert_eq!(mixed.words(), "3 jobs: closed loop, think time 10 ms; 2 jobs: open loop at 500 tps");
        let alike = JobLoad { think_s: Some(0.5), ..JobLoad::default() };
        assert_eq!(alike.part_of(4, 5), PartOfJob { index: 0, number: 4, population: part(5, Some(0.5), None) });
        assert!(alike.waits() && !alike.is_mixed() && !JobLoad::default().waits());
    }

    #[test]
    fn a_load_in_words() {
        let load = JobLoad { think_s: Some(0.0105), reconnect_every: Some(1), ..JobLoad::default() };
        assert_eq!(load.words(), "closed loop, think time 10.5 ms, a new session after 1 transaction");
        let objective = RateObjective { pct: 99, ns: 5_000_000 };
        let found = JobLoad { objective: Some(objective), ..JobLoad::default() };
        assert_eq!(found.words(), "open loop at the highest rate with a p99 of at most 5 ms");
        let [ms, pct] = objective.figures();
        assert_eq!(RateObjective::from_figures(Some(ms), Some(pct)), found.objective);
        let keys = Some(Keys::Zipf { exponent: 1_100_000 });
        assert_eq!(JobLoad { keys, ..JobLoad::default() }.words(), "closed loop, keys zipf:1.1");
        assert_eq!(JobLoad { rate_tps: Some(20.0), ..JobLoad::default() }.words(), "open loop at 20 tps");
        assert_eq!(JobLoad { think_s: Some(10.0), ..JobLoad::default() }.words(), "closed loop, think time 10,000 ms");
    }

    #[test]
    fn keys_are_read_as_they_are_written_and_stored() {
        for text in ["zipf:1.1", "zipf:4.999999", "zipf:0.000001", "hot:10%:90%", "hot:0.0001%:12.5%"] {
            let keys: Keys = text.parse().unwrap();
            assert_eq!(keys.to_string(), text);
            assert_eq!(Keys::from_figures(keys.figures()), Some(keys));
        }
        assert_eq!(Keys::from_figures([None; 3]), None);
        for text in ["zipf:0", "zipf:5", "zipf:-1", "zipf:nan", "zipf:", "zipf", "hot:0:1%", "hot:1%:100%", "hot:9", ""]
        {
            assert!(text.parse::<Keys>().is_err_and(|e| e.contains(&format!("'{text}'"))), "{text}");
        }
    }
}
