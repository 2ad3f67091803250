//! Whether the warm-up came to a plateau and the window stayed on it. These checks never fail: what they saw is noted.

use loadline_analyze::stats::mean;
use loadline_analyze::steady::{self, Departure, Kind, LEAST_CHANGE, LOOK_EVERY, LOOKS, Look, STEP_S};
use loadline_analyze::within;
use loadline_database::Runs;
use loadline_load::{Load, Measured, Request, Warmup};
use loadline_model::snapshot::counter;
use loadline_model::{Check, Driver, Outcome};
use loadline_workload::Instrument;

/// Id of the check of the window.
const WINDOW: &str = "steady";
/// Id of the check of an automatic warm-up.
const WARMUP: &str = "warm-up";
/// Fewest values of less than a second.
const LEAST_SHORT_VALUES: usize = 20;

/// A warm-up until throughput is steady, `most_s` at most.
pub(crate) fn until_warm(most_s: f64) -> Warmup {
    Warmup::UntilSteady { most_s, steady: is_warm }
}

/// In a closed loop latency is jobs / throughput, and steady with it. In an open loop the transactions that wait must be
/// steady as well.
fn is_warm(load: &Load) -> bool {
    let least = steady::steps_of(&load.rates, busy(load));
    let waiting = Some(&load.waiting).filter(|waiting| !waiting.is_empty());
    load.rates.len().is_multiple_of(LOOK_EVERY)
        && steady::is_warm(&load.rates, least)
        && waiting.is_none_or(|waiting| steady::is_warm(waiting, least))
}

/// Most jobs that are in a transaction at a time: in an open loop the others rest.
fn busy(load: &Load) -> u32 {
    let waiting = load.waiting.get(load.waiting.len() / 2..).and_then(mean);
    // The cast saturates.
    waiting.map_or(load.jobs, |n| load.jobs.min(n.ceil() as u32))
}

/// Makes the checks of a test.
pub(crate) fn checks(request: &Request, measured: &Measured) -> Vec<Check> {
    let warmup = &measured.warmup;
    let warm = warmup.steady.map(|is_steady| warm_up(is_steady, warmup.taken_s, &warmup.load));
    warm.into_iter().chain([window(request, measured)]).collect()
}

fn warm_up(is_steady: bool, taken_s: f64, load: &Load) -> Check {
    if is_steady {
        let detail = format!(
            "throughput was steady after {taken_s:.1} s of warm-up: {LOOKS} looks at its last half, {} s apart, saw no trend \
             (Mann-Kendall test for autocorrelated values)",
            LOOK_EVERY as f64 * STEP_S
        );
        return Check::require(WARMUP, true, detail);
    }
    let seen = |what: &str, look: Look| match look {
        Look::TooShort(needed_s) => format!("at this rate that takes {needed_s:.0} s or more (--max-warmup)"),
        Look::Nothing => "no transaction completed in its last half".to_owned(),
        Look::Trend(_, false) => format!("{what} rose or fell within its last seconds, and no longer at its end"),
        Look::Trend(per_s, true) => {
            let way = if per_s > 0.0 { "rises" } else { "falls" };
            format!("{what} still {way} by {:.1} % per second", 100.0 * per_s.abs())
        }
    };
    let least = steady::steps_of(&load.rates, busy(load));
    let [rates, waiting] = [&load.rates, &load.waiting].map(|values| steady::look(values, least));
    let of_rates =
        load.waiting.is_empty() || !matches!((rates, waiting), (Look::Trend(_, false), Look::Trend(_, true)));
    let why = if of_rates { seen("throughput", rates) } else { seen("the number of transactions that wait", waiting) };
    Check::new(WARMUP, Outcome::Noted, format!("not shown to be steady after {taken_s:.1} s of warm-up: {why}"))
}

/// Looks for a change in the course of the window.
fn window(request: &Request, measured: &Measured) -> Check {
    if request.work.workload.has(Instrument::Checkpoint) {
        return Check::new(WINDOW, Outcome::NotMade, "the workload has a checkpoint in its window on purpose");
    }
    let (values, each_s, sparse) = values(request, measured);
    if values.len() < if each_s < 1.0 { LEAST_SHORT_VALUES } else { steady::LEAST_VALUES } {
        let detail = format!(
            "the window has {} values of {each_s:.1} s, which are too few to see a change; use a longer window (--duration)",
            values.len()
        );
        return Check::new(WINDOW, Outcome::NotMade, detail);
    }
    if values.iter().all(|rate| *rate == 0.0) {
        return Check::new(WINDOW, Outcome::NotMade, "no transaction completed in the window");
    }
    let outage = steady::outage(each_s, sparse);
    let Some(departure) = steady::departure(&values, outage) else {
        let detail = format!(
            "throughput had no step, trend or stalls of {:.0} % that stand out in {} values of {each_s:.1} s, and never stopped for \
             {:.1} s",
            100.0 * LEAST_CHANGE,
            values.len(),
            outage as f64 * each_s
        );
        return Check::require(WINDOW, true, detail);
    };
    let cause = checkpoint(request, measured).map_or(String::new(), |text| format!("; {text}"));
    Check::new(WINDOW, Outcome::Noted, words(&departure, each_s) + &cause)
}

/// Half width of the 95 % interval of throughput from the course of the window, as a share of it; or why there is none.
pub(crate) fn within_window(request: &Request, measured: &Measured) -> Result<f64, String> {
    if request.load.waits() {
        return Err("in an open loop throughput is given".to_owned());
    }
    let (values, each_s, _) = values(request, measured);
    within::half_width(&values).ok_or_else(|| {
        format!(
            "the window has {} values of {each_s:.1} s, and an interval takes {} or more (--duration)",
            values.len(),
            within::LEAST_VALUES
        )
    })
}

/// Transactions per second in equal parts of the window, the length of a part, s, and whether that is as long as few transactions.
fn values(request: &Request, measured: &Measured) -> (Vec<f64>, f64, bool) {
    let (rates, step_s) = match request.driver {
        Driver::Client => (measured.load().rates, STEP_S),
        // These publish once a second.
        Driver::Database => {
            let whole = measured.schedule.window_s() as usize;
            (measured.merged.per_second.iter().take(whole).map(|n| *n as f64).collect(), 1.0)
        }
    };
    let Some(rate) = mean(&rates).filter(|rate| *rate > 0.0) else { return (rates, step_s, false) };
    // By Little's law.
    let open_loop = measured.merged.transaction.mean_ns().filter(|_| request.load.waits());
    let busy = open_loop.map_or(request.jobs, |ns| request.jobs.min((rate * ns / 1e9).ceil() as u32));
    let each = (steady::steps(rate, busy) as f64 * STEP_S / step_s - 1e-9).ceil().max(1.0) as usize;
    let values = rates.chunks_exact(each).filter_map(mean).collect();
    (values, each as f64 * step_s, each > 1)
}

fn words(departure: &Departure, each_s: f64) -> String {
    let (from_s, pct) = (departure.from as f64 * each_s, |share: f64| 100.0 * share);
    let way = |share: f64| if share < 0.0 { "fell" } else { "rose" };
    match departure.kind {
        Kind::Level(share) if share.is_infinite() => {
            format!("throughput rose from nothing at {from_s:.1} s of the window")
        }
        Kind::Level(share) => {
            format!("throughput {} by {:.0} % at {from_s:.1} s of the window", way(share), pct(share.abs()))
        }
        Kind::Line(share) => {
            format!(
                "throughput {} by {:.0} % of its mean from window start to window end",
                way(share),
                pct(share.abs())
            )
        }
        Kind::Stall { long, level, lost, times } => {
            let more = if times > 1 { format!(", the worst of {times} such times") } else { String::new() };
            format!(
                "throughput was {:.0} % of the usual for {:.1} s from {from_s:.1} s of the window on{more}, which cost {:.0} % of \
                 the work",
                pct(level),
                long as f64 * each_s,
                pct(lost)
            )
        }
    }
}

/// When the database counted checkpoints in the window. One in loadline's process makes its own all the time.
fn checkpoint(request: &Request, measured: &Measured) -> Option<String> {
    let schedule = measured.schedule;
    let readings = measured.collected.points.iter().filter_map(|p| p.snapshot.as_ref());
    let inside: Vec<_> = readings.filter(|s| (schedule.open_ns..=schedule.close_ns).contains(&s.at_ns)).collect();
    let (a, b) = inside
        .iter()
        .zip(inside.iter().skip(1))
        .find(|(a, b)| a.delta(b, counter::CHECKPOINTS).is_some_and(|n| n > 0.0))
        .filter(|_| request.target.facts().runs == Runs::Apart)?;
    let s = |ns: u64| (ns - schedule.open_ns) as f64 / 1e9;
    Some(format!("the database counted a checkpoint between {:.1} and {:.1} s", s(a.at_ns), s(b.at_ns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(rate: fn(usize) -> f64, n: usize) -> Load {
        Load { jobs: 2, rates: (0..n).map(rate).collect(), waiting: Vec::new() }
    }

    #[test]
    fn a_warm_up_that_never_settles_says_what_was_seen() {
        let said = |load: &Load| {
            assert!(!is_warm(load), "{load:?}");
            let check = warm_up(false, load.rates.len() as f64 / 10.0, load);
            assert_eq!(check.outcome, Outcome::Noted);
            check.detail
        };
        let rising = said(&load(|i| 1000.0 + 10.0 * i as f64, 300));
        assert!(rising.contains("after 30.0 s") && rising.contains("still rises by 3.1 % per second"), "{rising}");
        let falling = said(&load(|i| 9000.0 - 10.0 * i as f64, 300));
        assert!(falling.contains("falls by 1.5 % per second"), "{falling}");
        let short = said(&load(|_| 1000.0, 30));
        assert!(short.contains("7 s or more (--max-warmup)"), "{short}");
        let slow = said(&load(|_| 1.0, 300));
        assert!(slow.contains("takes 162 s or more"), "{slow}");
        assert!(said(&load(|_| 0.0, 300)).contains("no transaction completed"));
        // Of many jobs few are busy in an open loop: a value need not be as long as all of them would take.
        let idle = Load { jobs: 64, waiting: vec![0.5; 100], ..load(|_| 20.0, 100) };
        assert!(is_warm(&idle) && !is_warm(&Load { waiting: vec![64.0; 100], ..idle.clone() }));
        // A rate that is kept, while more and more transactions wait.
        let waiting = (0..300).map(|i| 5.0 + 0.1 * f64::from(i)).collect();
        let queue = said(&Load { waiting, ..load(|_| 1000.0, 300) });
        assert!(queue.contains("transactions that wait still rises by"), "{queue}");
    }

    #[test]
    fn a_plateau_is_steady() {
        let flat = load(|i| 1000.0 + (i * 7 % 13) as f64, 70);
        assert!(is_warm(&flat) && !is_warm(&load(|i| 1000.0 + (i * 7 % 13) as f64, 71)), "looks are 0.5 s apart");
        assert!(is_warm(&Load { waiting: vec![0.5; 70], ..flat.clone() }));
        assert_eq!(warm_up(true, 7.2, &flat).outcome, Outcome::Passed);
    }

    #[test]
    fn a_change_is_told_with_its_time() {
        let said = |kind, from| words(&Departure { kind, from }, 0.5);
        assert_eq!(said(Kind::Level(-0.38), 24), "throughput fell by 38 % at 12.0 s of the window");
        // Too short for a stall that counts, so it is a change of level.
        let begun: Vec<f64> = (0..25).map(|i| if i < 2 { 0.0 } else { 1000.0 + f64::from(i * 7 % 13) }).collect();
        let begins = words(&steady::departure(&begun, 5).unwrap(), 0.1);
        assert_eq!(begins, "throughput rose from nothing at 0.2 s of the window");
        assert_eq!(said(Kind::Line(0.2), 0), "throughput rose by 20 % of its mean from window start to window end");
        let stall = said(Kind::Stall { long: 3, level: 0.02, lost: 0.147, times: 2 }, 10);
        assert_eq!(
            stall,
            "throughput was 2 % of the usual for 1.5 s from 5.0 s of the window on, the worst of 2 such times, which cost 15 % \
             of the work"
        );
    }
}
