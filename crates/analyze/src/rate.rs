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

/// Rates evenly around a middle, to a share of it on either side.
#[derive(Debug, Clone, Copy)]
struct Row {
    middle: f64,
    reach: f64,
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

struct Line {
    mean_rate: f64,
    /// Of the margin, per transaction per second.
    slope: f64,
    root: f64,
    /// Sums of squares: of rates around their mean, and of margins around the line.
    rates: f64,
    rest: f64,
    looks: usize,
}

/// Searches below about `highest` transactions per second, of jobs that have the margin `idle` without load. `window` is a look at a
/// rate: the objective divided by its latency; 0 if the jobs did not keep the rate.
pub fn find_rate<E>(idle: f64, highest: f64, window: impl FnMut(f64) -> Result<f64, E>) -> Result<FoundRate, E> {
    let idle = Look { rate: 0.0, margin: idle.min(MOST_MARGIN) };
    let mut search = Search { idle, highest, window, looks: Vec::new() };
    search.bisect(BISECTIONS)?;
    let [low, high] = search.around();
    let middle = low.rate + (high.rate - low.rate) * (low.margin - 1.0) / (low.margin - high.margin);
    let first = Row { middle, reach: REACH };
    search.spread(first)?;
    let dropped = if search.drops(middle) {
        // What missed there may have been stalled.
        let [_, high] = search.around();
        let repeated = search.look(high.rate)?;
        search.bisect(ROW - 1)?;
        repeated.margin < 1.0
    } else {
        let line = search.line(first);
        let end = 2.0 * REACH * middle;
        let is_falling = line.slope < 0.0;
        let all_met = search.bracket().0.rate >= middle * (1.0 + REACH);
        if !all_met || is_falling && line.root <= middle + end {
            let middle = if is_falling { line.root.clamp(middle - end, middle + end) } else { middle };
            let reach = if is_falling { (0.25 / (-line.slope * middle)).clamp(REACHES[0], REACHES[1]) } else { REACH };
            let second = Row { middle, reach };
            search.spread(second)?;
            return Ok(search.on_line(second));
        }
        search.bisect(ROW)?;
        false
    };
    let (met, missed) = search.bracket();
    let between = Row { middle: missed.map_or(met.rate, |missed| (met.rate + missed.rate) / 2.0), reach: REACH };
    Ok(match missed {
        Some(missed) if dropped || search.drops(between.middle) => {
            FoundRate { rate: met.rate, low: met.rate, high: missed.rate }
        }
        _ => search.on_line(between),
    })
}

struct Search<W> {
    idle: Look,
    highest: f64,
    window: W,
    looks: Vec<Look>,
}

impl<E, W: FnMut(f64) -> Result<f64, E>> Search<W> {
    fn look(&mut self, rate: f64) -> Result<Look, E> {
        let look = Look { rate, margin: (self.window)(rate)?.min(MOST_MARGIN) };
        self.looks.push(look);
        Ok(look)
    }

    fn bisect(&mut self, looks: usize) -> Result<(), E> {
        (0..looks).try_for_each(|_| {
            let [low, high] = self.around();
            self.look((low.rate + high.rate) / 2.0).map(drop)
        })
    }

    fn spread(&mut self, Row { middle, reach }: Row) -> Result<(), E> {
        (0..ROW).try_for_each(|n| {
            let place = n as f64 / (ROW - 1) as f64;
            self.look(middle * (1.0 + reach * (2.0 * place - 1.0))).map(drop)
        })
    }

    /// The highest rate that met the objective (0, without load, if none did), and the lowest one above it, which missed.
    fn bracket(&self) -> (Look, Option<Look>) {
        let met = self.looks.iter().filter(|look| look.margin >= 1.0).copied();
        let met = met.fold(self.idle, |a, b| if b.rate > a.rate { b } else { a });
        let missed = self.looks.iter().filter(|look| look.rate > met.rate).copied();
        (met, missed.min_by(|a, b| a.rate.total_cmp(&b.rate)))
    }

    /// Ends of the bracket. The upper one is assumed if no look missed there, near the highest rate so high that bisection goes a tenth up.
    fn around(&self) -> [Look; 2] {
        let (met, missed) = self.bracket();
        let is_near = met.rate * (1.0 + REACH) >= self.highest;
        let assumed = if is_near { met.rate * (1.0 + 2.0 * REACH) } else { self.highest };
        [met, missed.unwrap_or(Look { rate: assumed, margin: 0.0 })]
    }

    /// Whether the margin drops between the looks of the bracket, by less than a tenth of the rate `middle`, and stays low above them.
    fn drops(&self, middle: f64) -> bool {
        let (met, Some(missed)) = self.bracket() else { return false };
        let mut above = self.looks.iter().filter(|look| look.rate > met.rate);
        missed.rate - met.rate < REACH * middle && above.all(|look| met.margin >= DROP * look.margin)
    }

    /// The line through the looks after the bisection that are in the reach of `row`, by least squares.
    fn line(&self, Row { middle, reach }: Row) -> Line {
        let near = self.looks[BISECTIONS..].iter().filter(|l| (l.rate - middle).abs() <= reach * middle * 1.000_001);
        let (rates, margins): (Vec<f64>, Vec<f64>) = near.map(|look| (look.rate, look.margin)).unzip();
        let [mean_rate, mean_margin] = [&rates, &margins].map(|of| of.iter().sum::<f64>() / of.len() as f64);
        let ((slope, left), spread) = (beside(&margins, &rates), centred(&rates));
        let root = mean_rate + (1.0 - mean_margin) / slope;
        Line { mean_rate, slope, root, rates: dot(&spread, &spread), rest: dot(&left, &left), looks: rates.len() }
    }

    /// The answer by the line through the looks in the reach of `row`.
    fn on_line(&self, row: Row) -> FoundRate {
        let Line { mean_rate, slope, root, rates, rest, looks } = self.line(row);
        let t = student_t_975(looks.saturating_sub(2)).unwrap_or(f64::INFINITY);
        let variance = rest / looks.saturating_sub(2).max(1) as f64;
        let doubt = t * t * variance / (slope * slope * rates);
        let top = self.looks.iter().fold(0.0_f64, |top, look| top.max(look.rate));
        // A root above all looks is a guess.
        let is_bounded = slope < 0.0 && doubt < 1.0 && root <= top;
        if !is_bounded {
            let high = self.highest.max(top);
            return FoundRate { rate: row.middle.clamp(0.0, high), low: 0.0, high };
        }
        let away = root - mean_rate;
        let half = t * variance.sqrt() / -slope * ((1.0 - doubt) / looks as f64 + away * away / rates).sqrt();
        let end = |half: f64| (mean_rate + (away + half) / (1.0 - doubt)).max(0.0);
        FoundRate { rate: root.max(0.0), low: end(-half), high: end(half) }
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
        let mut looks = 0;
        let window = |rate: f64| {
            assert!(rate > 0.0 && rate.is_finite());
            looks += 1;
            Ok::<f64, std::convert::Infallible>(objective / latency(rate))
        };
        let found = find_rate(objective / idle, highest, window).unwrap();
        assert_eq!(looks, LOOKS, "whatever they show");
        found
    }

    /// 100 searches: at least 95 answers are within 2 % of `truth`, and at least 89 intervals have it.
    fn hundred(truth: f64, mut search: impl FnMut(&mut Random) -> FoundRate) {
        let (mut near, mut inside) = (0, 0);
        for seed in 0..100 {
            let FoundRate { rate, low, high } = search(&mut Random::new(seed));
            assert!(low <= rate && rate <= high, "{low} {rate} {high}");
            near += usize::from((rate / truth - 1.0).abs() < 0.02);
            inside += usize::from((low..=high).contains(&truth));
        }
        assert!(near >= 95 && inside >= 89, "{truth}: {near} within 2 %, {inside} intervals");
    }

    #[test]
    fn the_rate_of_a_queue_is_found_within_two_percent_in_95_of_100_searches() {
        // One server of 1,000 transactions per second: with exponential times, their 99th percentile is ln 100 / (1,000 − rate).
        let (service, objective) = (0.001, 0.01);
        hundred(1000.0 - 100_f64.ln() / objective, |random| {
            searched(objective, service * 100_f64.ln(), 1100.0, |rate| {
                let mut gaps = Random::new(random.next());
                let (service, gap) = (|| exponential(random, service), || exponential(&mut gaps, 1.0 / rate));
                percentile(responses(60_000, service, gap), 0.99)
            })
        });
        // Fixed service times: their mean is 1 + rate / (2 (1,000 − rate)) of the service time (Pollaczek and Khinchine).
        hundred(800.0, |random| {
            searched(0.003, service, 1100.0, |rate| {
                let times = responses(60_000, || service, || exponential(random, 1.0 / rate));
                times.iter().sum::<f64>() / times.len() as f64
            })
        });
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
    fn one_stalled_look_does_not_hide_the_rates_above_it() {
        for stalled in 0..LOOKS {
            let with_stall = |latency: fn(f64) -> f64| {
                let mut looks = 0..LOOKS;
                searched(1.0, 0.1, 880.0, |rate| if looks.next() == Some(stalled) { 1.0 / 0.3 } else { latency(rate) })
            };
            let found = with_stall(|rate| if rate > 790.0 { f64::INFINITY } else { 0.1 });
            assert!((found.rate / 790.0 - 1.0).abs() < 0.02, "drop, look {stalled}: {found:?}");
            assert!(found.high / found.low < 1.02, "drop, look {stalled}: {found:?}");
            let found = with_stall(|rate| 210.0 / (1000.0 - rate));
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
