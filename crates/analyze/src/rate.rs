//! The highest rate of an open loop that meets a latency objective, found with a number of looks that is set before. Nothing that a look
//! shows ends the search earlier or later, so its interval has the level that it says.
//!
//! A look is a window at a rate. Its margin is the objective divided by the latency: at the answer it is 1. In a queue with one server
//! and exponential times, margins of means and of percentiles fall in proportion to the rate (Kleinrock, Queueing Systems I, 1975, chapter
//! 3.2), so a line through rates near the answer is a good model of other queues as well.
//!
//! Margins above 2 count as 2: how far latency is below the objective does not say where it meets it.
//!
//! First, bisection between 0 and the highest rate. Then two rows of looks evenly around the answer so far. The first one reaches a tenth
//! to either side, the second one so far that the slope of the first lets the margin be from 1.25 to 0.75. Through the looks of both rows
//! that are in the reach of the second goes a line. The answer is the rate at which it is 1, with its interval by Fieller's theorem
//! (Fieller, Some problems in interval estimation, 1954, section 4). Where the margin does not fall but drops, as that of a server with
//! fixed service times does at its capacity, a line says little. If the highest rate below all that missed has twice the margin of the next
//! one, the second row is bisection too, and the interval is from that rate to the next one.

use crate::stats::student_t_975;

const BISECTIONS: usize = 6;
const ROW: usize = 5;
/// Looks of a search.
pub const LOOKS: usize = BISECTIONS + 2 * ROW;
/// Windows of a search: before the looks, one job and all jobs in a closed loop.
pub const WINDOWS: usize = 2 + LOOKS;
/// Distance of the first and the last look of the first row from its middle, as a share of it.
const REACH: f64 = 0.1;
/// Least and greatest such distance of the second row.
const REACHES: [f64; 2] = [0.05, 0.4];
/// Margin that greater ones count as.
const MOST_MARGIN: f64 = 2.0;
/// So many times the margin of the next look is a drop.
const DROP: f64 = 2.0;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Look {
    rate: f64,
    margin: f64,
}

/// The answer of a search, transactions per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FoundRate {
    /// The highest rate that meets the objective.
    pub rate: f64,
    /// 95 % confidence interval of it. 0 and the highest rate of the search if the looks do not bound it.
    pub low: f64,
    pub high: f64,
}

/// A search under way.
#[derive(Debug, Clone)]
pub struct RateSearch {
    /// Margin without load.
    idle: f64,
    highest: f64,
    looks: Vec<Look>,
    /// Middle of the row under way, and the distance of its ends as a share of it.
    middle: f64,
    reach: f64,
    drops: bool,
}

/// The line through looks.
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
    /// A search below `highest` transactions per second, of jobs that take `idle_ns` without load.
    pub fn new(objective_ns: f64, idle_ns: f64, highest: f64) -> RateSearch {
        let idle = (objective_ns / idle_ns).min(MOST_MARGIN);
        RateSearch { idle, highest, looks: Vec::new(), middle: 0.0, reach: REACH, drops: false }
    }

    /// The rate of the next look; `None` after the last.
    pub fn next_rate(&self) -> Option<f64> {
        let number = self.looks.len().checked_sub(BISECTIONS);
        let [low, high] = self.bracket();
        match number {
            None => Some((low.rate + high.rate) / 2.0),
            Some(n) if n >= 2 * ROW => None,
            Some(n) if n >= ROW && self.drops => Some((low.rate + high.rate) / 2.0),
            Some(n) => {
                let place = (n % ROW) as f64 / (ROW - 1) as f64;
                Some(self.middle * (1.0 + self.reach * (2.0 * place - 1.0)))
            }
        }
    }

    /// Adds the look at the rate of [`RateSearch::next_rate`]: the objective divided by its latency; 0 if the jobs did not keep the rate.
    pub fn add(&mut self, rate: f64, margin: f64) {
        self.looks.push(Look { rate, margin: margin.min(MOST_MARGIN) });
        if self.looks.len() == BISECTIONS {
            let [low, high] = self.bracket();
            self.middle = low.rate + (high.rate - low.rate) * (low.margin - 1.0) / (low.margin - high.margin);
        } else if self.looks.len() == BISECTIONS + ROW {
            let ([low, high], line) = (self.bracket(), self.line());
            self.drops = high.rate - low.rate < REACH * self.middle && low.margin >= DROP * high.margin;
            if line.slope < 0.0 {
                let reach = 2.0 * REACH * self.middle;
                self.middle = line.root.clamp(self.middle - reach, self.middle + reach);
                self.reach = (0.25 / (-line.slope * self.middle)).clamp(REACHES[0], REACHES[1]);
            }
        }
    }

    /// The answer, after the last look.
    pub fn answer(&self) -> FoundRate {
        let [low, high] = self.bracket();
        if self.drops {
            return FoundRate { rate: low.rate, low: low.rate, high: high.rate };
        }
        let (line, n) = (self.line(), self.near().len());
        let t = student_t_975(n.saturating_sub(2)).unwrap_or(f64::INFINITY);
        let variance = line.rest / n.saturating_sub(2).max(1) as f64;
        let doubt = t * t * variance / (line.slope * line.slope * line.rates);
        if line.slope >= 0.0 || doubt.is_nan() || doubt >= 1.0 {
            let between = self.middle.clamp(0.0, self.highest);
            return FoundRate { rate: between, low: 0.0, high: self.highest };
        }
        let away = line.root - line.mean_rate;
        let half = t * variance.sqrt() / -line.slope * ((1.0 - doubt) / n as f64 + away * away / line.rates).sqrt();
        let end = |half: f64| (line.mean_rate + (away + half) / (1.0 - doubt)).max(0.0);
        FoundRate { rate: line.root.max(0.0), low: end(-half), high: end(half) }
    }

    /// The highest rate below all that missed, and the lowest of these.
    fn bracket(&self) -> [Look; 2] {
        let missed = self.looks.iter().filter(|look| look.margin < 1.0).copied();
        let high = missed.fold(Look { rate: self.highest, margin: 0.0 }, |a, b| if b.rate < a.rate { b } else { a });
        let met = self.looks.iter().filter(|look| look.rate < high.rate).copied();
        let low = met.fold(Look { rate: 0.0, margin: self.idle }, |a, b| if b.rate > a.rate { b } else { a });
        [low, high]
    }

    /// Looks of the rows in the reach of the last row.
    fn near(&self) -> Vec<Look> {
        let (rows, far) = (self.looks.iter().skip(BISECTIONS), self.reach * self.middle);
        rows.filter(|look| (look.rate - self.middle).abs() <= far * 1.000_001).copied().collect()
    }

    /// The line through these looks, by least squares.
    fn line(&self) -> Line {
        let near = self.near();
        let mean = |of: fn(&Look) -> f64| near.iter().map(of).sum::<f64>() / near.len() as f64;
        let (mean_rate, mean_margin) = (mean(|look| look.rate), mean(|look| look.margin));
        let sum = |of: &dyn Fn(&Look) -> f64| near.iter().map(of).sum::<f64>();
        let rates = sum(&|look| (look.rate - mean_rate).powi(2));
        let slope = sum(&|look| (look.rate - mean_rate) * (look.margin - mean_margin)) / rates;
        let rest = sum(&|look| (look.margin - mean_margin - slope * (look.rate - mean_rate)).powi(2));
        Line { mean_rate, slope, root: mean_rate + (1.0 - mean_margin) / slope, rates, rest }
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

    #[test]
    fn looks_that_show_nothing_bound_nothing() {
        let mut random = Random::new(5);
        let found = searched(1.0, 0.5, 1000.0, |_| 0.5 + exponential(&mut random, 0.7));
        assert!(found.low <= found.rate && found.rate <= found.high, "{found:?}");
        let met = searched(1.0, 0.5, 1000.0, |_| 0.5);
        assert!(met.high >= 990.0, "{met:?}");
    }
}
