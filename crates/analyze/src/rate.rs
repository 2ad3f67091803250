//! The highest rate of an open loop that meets a latency objective, by a number of looks that is set before. Nothing that a look
//! shows ends the search earlier or later, so its interval has the level that it says.
//!
//! A look is a window at a rate. Its margin is the objective divided by the latency: at the answer it is 1. In a queue with one
//! server and exponential times, margins of means and of percentiles fall in proportion to the rate (Kleinrock, Queueing Systems I,
//! 1975, chapter 3.2), so a line through rates near the answer is a good model of other queues as well.
//!
//! First, bisection between 0 and the highest rate, which is assumed and no look. Then two rows of looks evenly around the answer so
//! far: a tenth to either side, and so far that the margin goes from 1.25 to 0.75. The answer is where the line through both rows is
//! 1, with its interval by Fieller's theorem (Some problems in interval estimation, 1954, section 4). Where the margin drops, as at
//! the capacity of a server with fixed service times, the second row repeats the look that missed and bisects; the interval reaches
//! from the highest rate that met to the lowest one above it that missed. A look that misses below one that meets bounds nothing: a
//! checkpoint may have stalled it. If all looks of the first row may lie below the answer, the second row bisects above them.

use crate::linear::{beside, centred, dot};
use crate::stats::student_t_975;

const BISECTIONS: usize = 6;
const ROW: usize = 5;
/// Looks up to the end of the first row, and with the one that may be repeated.
const FIRST_ROW_END: usize = BISECTIONS + ROW;
const REPEATED: usize = FIRST_ROW_END + 1;
pub const LOOKS: usize = BISECTIONS + 2 * ROW;
/// Windows of a search: before the looks, one job and all jobs in a closed loop.
pub const WINDOWS: usize = 2 + LOOKS;
/// Distance of the first and the last look of the first row from its middle, as a share of it.
const REACH: f64 = 0.1;
/// Least and greatest such distance of the second row.
const REACHES: [f64; 2] = [0.05, 0.4];
/// Margin that greater ones count as: how far latency is below the objective does not say where it meets it.
const MOST_MARGIN: f64 = 2.0;
/// So many times the margin of the next look is a drop.
const DROP: f64 = 2.0;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Look {
    rate: f64,
    margin: f64,
}

/// Two looks around the answer so far.
#[derive(Debug, Clone, Copy)]
struct Bracket {
    /// The highest rate that met the objective; 0, without load, if none did.
    met: Look,
    /// The lowest rate above it that missed. No look above it met.
    missed: Option<Look>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SecondRow {
    /// Spreads its looks evenly for the line.
    Spread,
    /// Bisects at a drop of the margin, after it repeats the look that missed.
    Drop,
    /// Bisects above the highest rate that met.
    Climb,
}

/// The answer of a search, transactions per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FoundRate {
    /// The highest rate that meets the objective.
    pub rate: f64,
    /// 95 % confidence interval of it. 0 and the highest rate of the search or of its looks if these do not bound it.
    pub low: f64,
    pub high: f64,
}

#[derive(Debug, Clone)]
pub struct RateSearch {
    idle: f64,
    highest: f64,
    looks: Vec<Look>,
    /// Middle of the row under way, and the distance of its ends as a share of it.
    middle: f64,
    reach: f64,
    second_row: SecondRow,
}

struct Line {
    mean_rate: f64,
    /// Of the margin, per transaction per second.
    slope: f64,
    root: f64,
    /// Sums of squares: of rates around their mean, and of margins around the line.
    rates: f64,
    rest: f64,
}

impl RateSearch {
    /// A search below about `highest` transactions per second, of jobs that take `idle_ns` without load.
    pub fn new(objective_ns: f64, idle_ns: f64, highest: f64) -> RateSearch {
        let idle = (objective_ns / idle_ns).min(MOST_MARGIN);
        RateSearch { idle, highest, looks: Vec::new(), middle: 0.0, reach: REACH, second_row: SecondRow::Spread }
    }

    /// The rate of the next look; `None` after the last.
    pub fn next_rate(&self) -> Option<f64> {
        let number = self.looks.len().checked_sub(BISECTIONS);
        let bracket = self.bracket();
        let (low, high) = (bracket.met.rate, self.ceiling(bracket).rate);
        match number {
            None => Some((low + high) / 2.0),
            Some(n) if n >= 2 * ROW => None,
            Some(ROW) if self.second_row == SecondRow::Drop => Some(high),
            Some(n) if n >= ROW && self.second_row != SecondRow::Spread => Some((low + high) / 2.0),
            Some(n) => {
                let place = (n % ROW) as f64 / (ROW - 1) as f64;
                Some(self.middle * (1.0 + self.reach * (2.0 * place - 1.0)))
            }
        }
    }

    /// Adds the look at the rate of [`RateSearch::next_rate`]: the objective divided by its latency; 0 if the jobs did not keep the rate.
    pub fn add(&mut self, rate: f64, margin: f64) {
        let look = Look { rate, margin: margin.min(MOST_MARGIN) };
        self.looks.push(look);
        match self.looks.len() {
            BISECTIONS => {
                let bracket = self.bracket();
                let (low, high) = (bracket.met, self.ceiling(bracket));
                self.middle = low.rate + (high.rate - low.rate) * (low.margin - 1.0) / (low.margin - high.margin);
            }
            FIRST_ROW_END => self.choose_second_row(look),
            // The repeated look met: what missed at this rate was not the drop.
            REPEATED if self.second_row == SecondRow::Drop && look.margin >= 1.0 => self.second_row = SecondRow::Climb,
            LOOKS if self.second_row == SecondRow::Climb => {
                let bracket = self.bracket();
                self.middle = bracket.missed.map_or(bracket.met.rate, |missed| (bracket.met.rate + missed.rate) / 2.0);
                self.reach = REACH;
                if self.drops(bracket) {
                    self.second_row = SecondRow::Drop;
                }
            }
            _ => {}
        }
    }

    /// Chooses what the second row does, and its middle and reach, after the last and highest look of the first one.
    fn choose_second_row(&mut self, last: Look) {
        let (bracket, line) = (self.bracket(), self.line());
        let reach = 2.0 * REACH * self.middle;
        let root_is_near = line.slope < 0.0 && line.root <= self.middle + reach;
        if self.drops(bracket) {
            self.second_row = SecondRow::Drop;
        } else if bracket.met.rate >= last.rate && !root_is_near {
            self.second_row = SecondRow::Climb;
        }
        if line.slope < 0.0 {
            self.middle = line.root.clamp(self.middle - reach, self.middle + reach);
            self.reach = (0.25 / (-line.slope * self.middle)).clamp(REACHES[0], REACHES[1]);
        }
    }

    pub fn answer(&self) -> FoundRate {
        let Bracket { met, missed } = self.bracket();
        if let (SecondRow::Drop, Some(missed)) = (self.second_row, missed) {
            return FoundRate { rate: met.rate, low: met.rate, high: missed.rate };
        }
        let (line, n) = (self.line(), self.near().len());
        let t = student_t_975(n.saturating_sub(2)).unwrap_or(f64::INFINITY);
        let variance = line.rest / n.saturating_sub(2).max(1) as f64;
        let doubt = t * t * variance / (line.slope * line.slope * line.rates);
        let top = self.looks.iter().fold(0.0_f64, |top, look| top.max(look.rate));
        // A root above all looks is a guess.
        let is_bounded = line.slope < 0.0 && doubt < 1.0 && line.root <= top;
        if !is_bounded {
            let high = self.highest.max(top);
            return FoundRate { rate: self.middle.clamp(0.0, high), low: 0.0, high };
        }
        let away = line.root - line.mean_rate;
        let half = t * variance.sqrt() / -line.slope * ((1.0 - doubt) / n as f64 + away * away / line.rates).sqrt();
        let end = |half: f64| (line.mean_rate + (away + half) / (1.0 - doubt)).max(0.0);
        FoundRate { rate: line.root.max(0.0), low: end(-half), high: end(half) }
    }

    fn bracket(&self) -> Bracket {
        let idle = Look { rate: 0.0, margin: self.idle };
        let met = self.looks.iter().filter(|look| look.margin >= 1.0).copied();
        let met = met.fold(idle, |a, b| if b.rate > a.rate { b } else { a });
        let missed = self.looks.iter().filter(|look| look.rate > met.rate).copied();
        Bracket { met, missed: missed.min_by(|a, b| a.rate.total_cmp(&b.rate)) }
    }

    /// The upper end of a bracket: assumed if no look missed there, near the highest rate so high that bisection goes a tenth up.
    fn ceiling(&self, bracket: Bracket) -> Look {
        let low = bracket.met.rate;
        let is_near = low * (1.0 + REACH) >= self.highest;
        let assumed = if is_near { low * (1.0 + 2.0 * REACH) } else { self.highest };
        bracket.missed.unwrap_or(Look { rate: assumed, margin: 0.0 })
    }

    /// Whether the margin drops between the looks of a bracket, and stays low above them.
    fn drops(&self, bracket: Bracket) -> bool {
        let Bracket { met, missed: Some(missed) } = bracket else { return false };
        let mut above = self.looks.iter().filter(|look| look.rate > met.rate);
        missed.rate - met.rate < REACH * self.middle && above.all(|look| met.margin >= DROP * look.margin)
    }

    /// Looks of the rows in the reach of the last row.
    fn near(&self) -> Vec<Look> {
        let (rows, far) = (self.looks.iter().skip(BISECTIONS), self.reach * self.middle);
        rows.filter(|look| (look.rate - self.middle).abs() <= far * 1.000_001).copied().collect()
    }

    /// The line through these looks, by least squares.
    fn line(&self) -> Line {
        let (rates, margins): (Vec<f64>, Vec<f64>) = self.near().iter().map(|look| (look.rate, look.margin)).unzip();
        let [mean_rate, mean_margin] = [&rates, &margins].map(|of| of.iter().sum::<f64>() / of.len() as f64);
        let ((slope, left), spread) = (beside(&margins, &rates), centred(&rates));
        let root = mean_rate + (1.0 - mean_margin) / slope;
        Line { mean_rate, slope, root, rates: dot(&spread, &spread), rest: dot(&left, &left) }
    }
}

#[cfg(test)]
mod tests {
    use loadline_model::Random;

    use super::*;

    /// Response times of `customers` in virtual time, s, after a quarter as many that warm up: one server that takes `service` s, and
    /// times between arrivals by `gap`. Waiting times follow from each other (Lindley, The theory of queues with a single server, 1952).
    fn responses(customers: usize, mut service: impl FnMut() -> f64, mut gap: impl FnMut() -> f64) -> Vec<f64> {
        let mut waiting = 0.0_f64;
        let mut next = || {
            let response = waiting + service();
            waiting = (response - gap()).max(0.0);
            response
        };
        (0..customers / 4 + customers).map(|_| next()).skip(customers / 4).collect()
    }

    fn percentile(mut times: Vec<f64>, share: f64) -> f64 {
        let at = (times.len() as f64 * share) as usize;
        *times.select_nth_unstable_by(at, f64::total_cmp).1
    }

    fn exponential(random: &mut Random, mean: f64) -> f64 {
        -mean * (1.0 - (random.next() >> 11) as f64 / (1_u64 << 53) as f64).ln()
    }

    fn searched(objective: f64, idle: f64, highest: f64, mut latency: impl FnMut(f64) -> f64) -> FoundRate {
        let mut search = RateSearch::new(objective, idle, highest);
        let mut looks = 0;
        while let Some(rate) = search.next_rate() {
            assert!(rate > 0.0 && rate.is_finite());
            search.add(rate, objective / latency(rate));
            looks += 1;
        }
        assert_eq!(looks, LOOKS, "whatever they show");
        search.answer()
    }

    /// 100 searches. Returns in how many the answer is within 2 % of `truth`, and in how many the interval has it.
    fn hundred(truth: f64, mut search: impl FnMut(&mut Random) -> FoundRate) -> [usize; 2] {
        let mut counts = [0; 2];
        for seed in 0..100 {
            let FoundRate { rate, low, high } = search(&mut Random::new(seed));
            assert!(low <= rate && rate <= high, "{low} {rate} {high}");
            counts[0] += usize::from((rate / truth - 1.0).abs() < 0.02);
            counts[1] += usize::from((low..=high).contains(&truth));
        }
        counts
    }

    #[test]
    fn the_rate_of_a_queue_is_found_within_two_percent_in_95_of_100_searches() {
        // One server of 1,000 transactions per second: with exponential times, their 99th percentile is ln 100 / (1,000 − rate).
        let (service, objective) = (0.001, 0.01);
        let [near, inside] = hundred(1000.0 - 100_f64.ln() / objective, |random| {
            searched(objective, service * 100_f64.ln(), 1100.0, |rate| {
                let mut gaps = Random::new(random.next());
                let (service, gap) = (|| exponential(random, service), || exponential(&mut gaps, 1.0 / rate));
                percentile(responses(60_000, service, gap), 0.99)
            })
        });
        assert!(near >= 95 && inside >= 89, "p99: {near} within 2 %, {inside} intervals");
        // Fixed service times: their mean is 1 + rate / (2 (1,000 − rate)) of the service time (Pollaczek and Khinchine).
        let [near, inside] = hundred(800.0, |random| {
            searched(0.003, service, 1100.0, |rate| {
                let times = responses(60_000, || service, || exponential(random, 1.0 / rate));
                times.iter().sum::<f64>() / times.len() as f64
            })
        });
        assert!(near >= 95 && inside >= 89, "mean: {near} within 2 %, {inside} intervals");
    }

    #[test]
    fn a_capacity_at_which_latency_jumps_is_found_by_bisection() {
        for (capacity, highest) in [(500.0, 560.0), (500.0, 5000.0), (12.0, 13.0)] {
            let service = 1.0 / capacity;
            let found = searched(2.5 * service, service, highest, |rate| {
                percentile(responses(4_000, || service, || 1.0 / rate), 0.99)
            });
            assert!((found.rate / capacity - 1.0).abs() < 0.02, "{capacity}: {found:?}");
        }
        // However latency varies far below the objective.
        let mut random = Random::new(5);
        let found = searched(1.0, 0.1, 1000.0, |rate| {
            if rate > 300.0 { f64::INFINITY } else { (0.05 + exponential(&mut random, 0.05)).min(0.4) }
        });
        assert!(found.low == found.rate && found.low <= 300.0 && found.high > 300.0, "{found:?}");
        assert!(found.high / found.low < 1.02, "{found:?}");
    }

    /// A search below 880 with an objective of 1, whose look number `stalled` has a margin of 0.3.
    fn searched_with_stall(stalled: usize, latency: impl Fn(f64) -> f64) -> FoundRate {
        let mut looks = 0..LOOKS;
        searched(1.0, 0.1, 880.0, |rate| if looks.next() == Some(stalled) { 1.0 / 0.3 } else { latency(rate) })
    }

    #[test]
    fn one_stalled_look_does_not_hide_the_rates_above_it() {
        for stalled in 0..LOOKS {
            let found = searched_with_stall(stalled, |rate| if rate > 790.0 { f64::INFINITY } else { 0.1 });
            assert!((found.rate / 790.0 - 1.0).abs() < 0.02, "drop, look {stalled}: {found:?}");
            assert!(found.high / found.low < 1.02, "drop, look {stalled}: {found:?}");
            let found = searched_with_stall(stalled, |rate| 210.0 / (1000.0 - rate));
            assert!((found.rate / 790.0 - 1.0).abs() < 0.05, "line, look {stalled}: {found:?}");
            assert!(found.low < 790.1 && found.high > 789.9, "line, look {stalled}: {found:?}");
        }
    }

    #[test]
    fn neither_the_assumed_highest_rate_nor_looks_that_show_nothing_are_a_bound() {
        // The closed loop was slow: the capacity is above 1.1 times its throughput.
        let found = searched(1.0, 0.1, 880.0, |rate| if rate > 1000.0 { f64::INFINITY } else { 0.1 });
        assert!((found.rate / 1000.0 - 1.0).abs() < 0.02 && found.low > 0.0 && found.high > 1000.0, "{found:?}");
        let found = searched(1.0, 0.1, 880.0, |_| 0.1);
        assert!(found.low == 0.0 && found.rate > 960.0 && found.high >= found.rate, "{found:?}");
        let mut random = Random::new(5);
        let found = searched(1.0, 0.5, 1000.0, |_| 0.5 + exponential(&mut random, 0.7));
        assert!(found.low <= found.rate && found.rate <= found.high, "{found:?}");
    }
}
