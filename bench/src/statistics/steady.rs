//! When a window may open, and whether throughput stayed as it was in it: against planted series.

use loadline_analyze::paired::simulated::{level, series};
use loadline_analyze::stats::{mean, median};
use loadline_analyze::steady::{self, LOOK_EVERY, STEP_S, departure, is_warm};

/// The longest warm-up, values.
const MOST: usize = 600;
/// Length of the window that follows, s.
const WINDOW_S: f64 = 10.0;
/// From this difference to the plateau on, the window opened too early.
const BIAS: f64 = 0.02;

/// The values of 0.1 s after which the window opens.
fn opens(values: &[f64]) -> Option<usize> {
    let looks = (1..=values.len() / LOOK_EVERY).map(|look| look * LOOK_EVERY);
    looks.filter(|n| *n >= steady::FIRST_LOOK).find(|n| values.get(..*n).is_some_and(|values| is_warm(values, 1)))
}

pub(super) fn tables(runs: usize) {
    openings(runs / 10);
    marks(runs);
}

/// Mean of a window that opens after `n` values, without noise.
fn mean_of_window(truth: fn(f64) -> f64, n: usize) -> f64 {
    let from_s = n as f64 * STEP_S;
    let times = (0..500).map(|i| from_s + WINDOW_S * (f64::from(i) + 0.5) / 500.0);
    mean(&times.map(truth).collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

fn openings(runs: usize) {
    /// Name, and throughput at a time, s.
    type Course = (&'static str, fn(f64) -> f64);
    const COURSES: [Course; 8] = [
        ("flat", |_| 1.0),
        ("approach from 30 %, time constant 0.5 s", |t| 1.0 - 0.7 * (-t / 0.5).exp()),
        ("the same, 2 s", |t| 1.0 - 0.7 * (-t / 2.0).exp()),
        ("the same, 5 s", |t| 1.0 - 0.7 * (-t / 5.0).exp()),
        ("60 %, at once 100 % after 4 s", |t| level(0.6, 0.0, 4.0)(t)),
        ("straight from 50 % to 100 % in 5 s", |t| (0.5 + 0.5 * t / 5.0).min(1.0)),
        ("the same in 15 s", |t| (0.5 + 0.5 * t / 15.0).min(1.0)),
        ("the same in 80 s: never steady", |t| (0.5 + 0.5 * t / 80.0).min(1.0)),
    ];
    const NOISES: [(f64, f64); 4] = [(0.03, 0.0), (0.03, 0.8), (0.1, 0.5), (0.1, 0.8)];
    let title = "Planted warm-ups: windows that open too early, median opening, never within 60 s";
    super::table(title, "course | noise, φ | no trend, 5 looks | right from");
    for (name, truth) in COURSES {
        for (noise, correlation) in NOISES {
            let off = |n: usize| (mean_of_window(truth, n) - 1.0).abs() > BIAS;
            let one = |seed: usize| opens(&series(truth, noise, correlation, seed as u64, MOST));
            let at: Vec<Option<usize>> = (0..runs).map(one).collect();
            let opened: Vec<f64> = at.iter().flatten().map(|n| *n as f64 * STEP_S).collect();
            let early = super::percent(at.iter().map(|n| n.is_some_and(off)));
            let never = super::percent(at.iter().map(Option::is_none));
            let when = median(&opened).map_or("–".to_owned(), |s| format!("{s:.1} s"));
            let right = (0..MOST).find(|n| !off(*n)).map(|n| n as f64 * STEP_S);
            let right = right.map_or("never".to_owned(), |s| format!("{s:.1} s"));
            let noise = 100.0 * noise;
            println!("| {name} | {noise:.0} %, {correlation} | {early:.0} %, {when}, {never:.0} % | {right} |");
        }
    }
}

fn marks(runs: usize) {
    const WINDOWS: [usize; 4] = [20, 40, 100, 300];
    let columns = format!("course | noise, φ | {}", super::each(WINDOWS, "values"));
    super::table("Planted windows of 2, 4, 10 and 30 s that are marked", &columns);
    /// Name, throughput of a window of so many seconds at a time in it, s, noises.
    type Case = (&'static str, fn(f64, f64) -> f64, &'static [(f64, f64)]);
    let courses: [Case; 7] = [
        ("flat", |_, _| 1.0, &[(0.05, 0.8), (0.3, 0.0), (0.3, 0.5), (0.3, 0.8)]),
        ("falls by 20 % at 2/3", |s, t| level(0.8, s * 2.0 / 3.0, s)(t), &[(0.05, 0.5), (0.1, 0.5)]),
        ("falls by 50 % at 4/5", |s, t| level(0.5, s * 0.8, s)(t), &[(0.05, 0.5), (0.1, 0.5)]),
        ("rises straight by 25 %", |s, t| 0.8 + 0.2 * t / s, &[(0.05, 0.5), (0.1, 0.5)]),
        (
            "nothing for a fifth",
            |s, t| level(0.0, s * 0.3, s * 0.5)(t),
            &[(0.05, 0.5), (0.1, 0.5), (0.3, 0.5), (0.3, 0.8)],
        ),
        ("nothing for 0.6 s", |s, t| level(0.0, s * 0.3, s * 0.3 + 0.6)(t), &[(0.1, 0.5), (0.3, 0.5), (0.3, 0.8)]),
        ("a tenth for a fifth", |s, t| level(0.1, s * 0.3, s * 0.5)(t), &[(0.1, 0.5), (0.3, 0.5), (0.3, 0.8)]),
    ];
    for (name, course, noises) in courses {
        for (noise, correlation) in noises {
            let cell = |n: usize| {
                let window =
                    |seed: usize| series(|t| course(n as f64 * STEP_S, t), *noise, *correlation, seed as u64, n);
                let marked = |seed| departure(&window(seed), steady::outage(STEP_S, false)).is_some();
                format!(" {:.1} % |", super::percent((0..runs).map(marked)))
            };
            println!("| {name} | {:.0} %, {correlation} |{}", 100.0 * noise, WINDOWS.map(cell).concat());
        }
    }
}
