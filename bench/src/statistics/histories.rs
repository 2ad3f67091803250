//! Histories of runs against simulated truth: false changes, planted ones, and many series together.

use loadline_analyze::paired::simulated::Machine;
use loadline_analyze::trend::{Change, judge};
use loadline_model::Random;

use super::{ERROR, QUIET, each, of_those, percent, table};

const NIGHTLY: Machine = Machine { noise: 0.05, ..QUIET };
const LENGTHS: [usize; 4] = [8, 10, 20, 40];

/// Prints the tables of histories, `runs` histories behind each figure.
pub(super) fn print(runs: usize) {
    without(runs);
    drifting(runs);
    stepped(runs);
    together(runs);
}

/// The changes of `runs` histories of `n` runs of `machine`, the last ones being `ratio` times as fast.
fn series(runs: usize, machine: Machine, n: usize, last: usize, ratio: f64) -> Vec<Vec<Change>> {
    let mut random = Random::new(n as u64);
    let one = |_| {
        let mut figures = machine.series(&mut random, n);
        figures.iter_mut().rev().take(last).for_each(|f| *f *= ratio);
        judge(&[figures], ERROR).pop().flatten()
    };
    (0..runs).filter_map(one).collect()
}

/// Share of histories with a change, in %.
fn share(histories: &[Vec<Change>]) -> f64 {
    percent(histories.iter().map(|changes| !changes.is_empty()))
}

fn without(runs: usize) {
    table("Histories without a step: changes found", &format!("runs of a machine | {}", each(LENGTHS, "runs")));
    for (name, machine) in [
        ("noise 5 %", NIGHTLY),
        ("noise 10 %", Machine { noise: 0.1, ..NIGHTLY }),
        ("noise 5 %, 5 % stalled to a tenth", Machine { stalls: 0.05, ..NIGHTLY }),
        ("heavy tails, 3 %", Machine { heavy: true, ..QUIET }),
        ("noise 5 %, half of it inherited", Machine { correlation: 0.5, ..NIGHTLY }),
    ] {
        let cell = |n: usize| format!(" {:.1} % |", share(&series(runs, machine, n, 0, 1.0)));
        println!("| {name} |{}", LENGTHS.map(cell).concat());
    }
}

fn drifting(runs: usize) {
    let title = "Histories that drift by 20 % from the first to the last run: changes found";
    table(title, &format!("noise | {}", each(LENGTHS, "runs")));
    for noise in [0.02, 0.05] {
        let drift = Machine { noise, drift: 0.182, ..QUIET };
        let cell = |n: usize| format!(" {:.0} % |", share(&series(runs, drift, n, 0, 1.0)));
        println!("| {:.0} % |{}", 100.0 * noise, LENGTHS.map(cell).concat());
    }
}

fn stepped(runs: usize) {
    let title = "Histories with one step: found; of those, the interval holds the ratio";
    table(title, "machine | runs | runs after it | 3 % | 5 % | 10 % | 20 %");
    for (name, machine) in [("noise 5 %", NIGHTLY), ("noise 5 %, stalls", Machine { stalls: 0.05, ..NIGHTLY })] {
        for n in [10, 20, 40] {
            let mut lasts = vec![n / 2, 5, 3];
            lasts.dedup();
            for last in lasts {
                let cell = |step: f64| {
                    let stepped = series(runs, machine, n, last, 1.0 + step);
                    let holds = |c: &Change| c.interval.is_some_and(|i| i.low <= 1.0 + step && 1.0 + step <= i.high);
                    let found = stepped.iter().filter(|changes| !changes.is_empty());
                    let of_found = percent(found.clone().map(|changes| changes.iter().any(holds)));
                    let said = if found.count() * 20 < runs { String::new() } else { format!(" ({of_found:.0} %)") };
                    format!(" {:.0} %{said} |", share(&stepped))
                };
                println!("| {name} | {n} | {last} |{}", [0.03, 0.05, 0.1, 0.2].map(cell).concat());
            }
        }
    }
}

fn together(runs: usize) {
    let columns = "that change by 20 % in the middle | mean share of false ones | of those that change, found";
    table("20 histories of 20 runs judged together, noise 5 %", columns);
    for different in [0, 1, 5, 20] {
        let runs = runs / 2;
        let (mut wrong, mut right) = (0.0, 0);
        for seed in 0..runs {
            let one = |n: usize| {
                let mut figures = NIGHTLY.series(&mut Random::new((1000 * seed + n) as u64), 20);
                figures.iter_mut().rev().take(10).for_each(|f| *f *= if n < different { 1.2 } else { 1.0 });
                figures
            };
            let found = judge(&(0..20).map(one).collect::<Vec<_>>(), ERROR);
            let changed: Vec<usize> = (0..20)
                .filter(|n| found.get(*n).and_then(Option::as_ref).is_some_and(|changes| !changes.is_empty()))
                .collect();
            let bad = changed.iter().filter(|n| **n >= different).count();
            wrong += bad as f64 / changed.len().max(1) as f64;
            right += changed.len() - bad;
        }
        let found = of_those(right, runs * different);
        println!("| {different} | {:.1} % | {found} |", 100.0 * wrong / runs as f64);
    }
}
