//! Whether the warm-up came to a plateau and the window stayed on it. These checks never fail: what they saw is noted.

use loadline_analyze::stats::mean;
use loadline_analyze::steady::{self, Departure, LEAST_CHANGE, LOOK_EVERY, LOOKS, Look, STEP_S};
use loadline_analyze::within;
use loadline_load::{Load, Measured, Request, WarmedUp, Warmup};
use loadline_model::{Column, Driver, column};
use loadline_workload::Instrument;

use crate::evidence::Evidence;
use crate::test::{Test, Verdict, not_made, noted, passed};

/// Fewest values of less than a second.
const LEAST_SHORT_VALUES: usize = 20;

/// Series that must be steady: throughput, with which latency is in a closed loop; in an open loop, whose throughput is given, the
/// transactions that wait.
fn series(load: &Load) -> (&'static str, &[f64]) {
    if load.waiting.is_empty() {
        return ("throughput", &load.rates);
    }
    ("the number of transactions that wait", &load.waiting)
}

/// Number of values to average. In an open loop jobs that no transaction waits for rest.
fn least(load: &Load) -> usize {
    let half = |values: &[f64]| mean(values.get(values.len() / 2..).unwrap_or_default());
    // The cast saturates.
    let busy = half(&load.waiting).map_or(load.jobs, |n| load.jobs.min(n.ceil() as u32));
    half(&load.rates).filter(|rate| *rate > 0.0).map_or(1, |rate| steady::steps(rate, busy, STEP_S))
}

/// A warm-up until throughput is steady, `most_s` at most.
pub(crate) fn until_warm(most_s: f64) -> Warmup {
    Warmup::UntilSteady { most_s, steady: is_warm }
}

fn is_warm(load: &Load) -> bool {
    load.rates.len().is_multiple_of(LOOK_EVERY) && steady::is_warm(series(load).1, least(load))
}

/// Throughput must have been steady before the window, if that was asked.
pub(crate) fn warm_up(WarmedUp { taken_s, steady: is_steady, load }: &WarmedUp) -> Option<Verdict> {
    let looked = format!("{LOOKS} looks at its last half, {} s apart", LOOK_EVERY as f64 * STEP_S);
    if (*is_steady)? {
        return Some(passed(format!("throughput was steady after {taken_s:.1} s of warm-up: {looked}, saw no trend")));
    }
    let (what, values) = series(load);
    let seen = match steady::look(values, least(load)) {
        Look::Trend(per_s, _) => format!("in its last half {what} changed by {:+.1} % per second", 100.0 * per_s),
        Look::TooShort(s) if s.is_finite() => format!("at this rate that takes {s:.0} s or more (--max-warmup)"),
        Look::TooShort(_) => "no transaction completed in its last half".to_owned(),
    };
    let said = format!("not shown to be steady after {taken_s:.1} s of warm-up: {seen}; {looked}, must see no trend");
    Some(noted(said))
}

/// Throughput must stay on one level in the window.
pub(crate) fn window(request: &Request, measured: &Measured) -> Verdict {
    if request.work.workload.has(Instrument::Checkpoint) {
        return not_made("the workload has a checkpoint in its window on purpose");
    }
    let (values, each_s, sparse) = values(request, measured);
    let seen = format!("{} values of {each_s:.1} s", values.len());
    if values.len() < if each_s < 1.0 { LEAST_SHORT_VALUES } else { steady::LEAST_VALUES } {
        return not_made(format!(
            "the window has {seen}, which are too few to see a change; use a longer window (--duration)"
        ));
    }
    if values.iter().all(|rate| *rate == 0.0) {
        return not_made("no transaction completed in the window");
    }
    let outage = steady::outage(each_s, sparse);
    if let Some(departure) = steady::departure(&values, outage) {
        return noted(words(&departure, each_s));
    }
    passed(format!(
        "no part of the window differs from the rest by {:.0} % beyond noise in {seen}, and throughput never stopped for {:.1} s",
        100.0 * LEAST_CHANGE,
        outage as f64 * each_s
    ))
}

/// Half width of the 95 % interval of throughput from the course of the window, as a share of it.
pub(crate) fn within_window(e: &Evidence<'_>, test: &mut Test) {
    const ID: &Column = column::WITHIN_WINDOW_PCT;
    if e.request.load.waits() {
        return test.set_absent(ID, "in an open loop throughput is given");
    }
    let (values, each_s, _) = values(e.request, e.measured);
    let (n, least) = (values.len(), within::LEAST_VALUES);
    let why = format!("the window has {n} values of {each_s:.1} s, and an interval takes {least} or more (--duration)");
    test.set_or_absent(ID, within::half_width(&values).map(|share| 100.0 * share), why);
}

/// Transactions per second in equal parts of the window, the length of a part, s, and whether that is as long as few transactions.
fn values(request: &Request, measured: &Measured) -> (Vec<f64>, f64, bool) {
    let (rates, step_s) = match request.driver {
        Driver::Client => (measured.load().rates, STEP_S),
        // These publish once a second.
        Driver::Database => {
            let whole = measured.schedule.window_s() as usize;
            (measured.per_second().iter().take(whole).map(|n| *n as f64).collect(), 1.0)
        }
    };
    let Some(rate) = mean(&rates).filter(|rate| *rate > 0.0) else { return (rates, step_s, false) };
    // By Little's law.
    let open_loop = if request.load.waits() { measured.merged.transaction.mean_ns() } else { None };
    let busy = open_loop.map_or(request.jobs, |ns| request.jobs.min((rate * ns / 1e9).ceil() as u32));
    let each = steady::steps(rate, busy, step_s);
    let values = rates.chunks_exact(each).filter_map(mean).collect();
    (values, each as f64 * step_s, each > 1)
}

fn words(departure: &Departure, each_s: f64) -> String {
    let [from_s, to_s] = [departure.values.start, departure.values.end].map(|at| at as f64 * each_s);
    let when = format!("from {from_s:.1} to {to_s:.1} s of the window");
    if departure.level.is_infinite() {
        return format!("nothing completed but {when}");
    }
    format!("throughput was {:.0} % of the rest {when}", 100.0 * departure.level)
}

#[cfg(test)]
mod tests {
    use loadline_model::Outcome;

    use super::*;

    fn load(jobs: u32, rate: fn(usize) -> f64, waiting: Option<fn(usize) -> f64>, n: usize) -> Load {
        let all = |value: fn(usize) -> f64| (0..n).map(value).collect::<Vec<f64>>();
        Load { jobs, rates: all(rate), waiting: waiting.map(all).unwrap_or_default() }
    }

    fn noisy(i: usize) -> f64 {
        1000.0 + (i * 7 % 13) as f64
    }

    #[test]
    fn a_plateau_is_steady_and_what_is_none_says_what_was_seen() {
        // A load, and what is said of it if it is not steady.
        let cases = [
            (load(2, noisy, None, 70), None),
            (load(2, noisy, Some(|_| 0.5), 70), None),
            // Of many jobs few are busy in an open loop: a value need not be as long as all of them would take.
            (load(64, |_| 20.0, Some(|_| 0.5), 100), None),
            (load(64, |_| 20.0, Some(|_| 64.0), 100), Some("s or more (--max-warmup)")),
            // Looks are 0.5 s apart.
            (load(2, noisy, None, 71), Some("throughput changed by")),
            (load(2, |i| 1000.0 + 10.0 * i as f64, None, 300), Some("throughput changed by +3.1 % per second")),
            (load(2, |i| 9000.0 - 10.0 * i as f64, None, 300), Some("-1.5 % per second")),
            (load(2, |_| 1000.0, None, 30), Some("7 s or more (--max-warmup)")),
            // Long transactions need a long warm-up.
            (load(2, |_| 8.0, None, 150), Some("takes 22 s or more")),
            (load(2, |_| 8.0, None, 300), None),
            (load(8, |_| 8.0, None, 300), Some("takes 42 s or more")),
            (load(2, |_| 1.0, None, 300), Some("takes 162 s or more")),
            (load(2, |_| 0.0, None, 300), Some("no transaction completed")),
            // A rate that is kept, while more and more transactions wait.
            (load(2, |_| 1e3, Some(|i| 5.0 + 0.1 * i as f64), 300), Some("transactions that wait changed by +")),
            // A trend that only an earlier look saw.
            (load(2, |i| if i < 130 { 900.0 } else { noisy(i) }, None, 260), Some("0.0 % per second")),
        ];
        for (load, says) in cases {
            assert_eq!(is_warm(&load), says.is_none(), "{load:?}");
            let check = warm_up(&WarmedUp { taken_s: 30.0, steady: Some(says.is_none()), load }).unwrap();
            let outcome = if says.is_none() { Outcome::Passed } else { Outcome::Noted };
            assert!(check.outcome == outcome && check.detail.contains(says.unwrap_or_default()), "{says:?}: {check:?}");
        }
    }

    #[test]
    fn a_change_is_told_with_its_time() {
        let said = |from, to, level| words(&Departure { values: from..to, level }, 0.5);
        assert_eq!(said(24, 40, 0.62), "throughput was 62 % of the rest from 12.0 to 20.0 s of the window");
        assert_eq!(said(0, 4, f64::INFINITY), "nothing completed but from 0.0 to 2.0 s of the window");
    }
}
