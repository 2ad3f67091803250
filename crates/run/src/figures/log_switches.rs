//! Figures of log switches: how many, and throughput in the seconds in which there was one against that in the others.

use loadline_collect::Point;
use loadline_load::SECOND_NS;
use loadline_model::column;
use loadline_model::snapshot::counter;

use crate::evidence::Evidence;
use crate::test::Test;

const NOT_COUNTED: &str = "the target does not count its log switches";
/// Farthest from a whole second of the window that a reading may be to be that second's, ns.
const NEAR_NS: u64 = SECOND_NS / 5;

pub(crate) fn figures(e: &Evidence<'_>, out: &mut Test) {
    let measured = e.measured;
    let Some(switches) = e.counters.as_ref().ok().and_then(|c| c.grown_on_time(counter::LOG_SWITCHES)) else {
        let why = e.missing(NOT_COUNTED);
        return column::SWITCHES.iter().for_each(|column| out.set_fallback_reason(column, &why));
    };
    out.set(column::LOG_SWITCHES, switches);
    // The window's last second may be a part of one.
    let mut per_second = measured.per_second();
    per_second.truncate((measured.schedule.window_ns() / SECOND_NS) as usize);
    let sides = throughput(&measured.collected.points, measured.schedule.open_ns, &per_second);
    let whys = [
        if switches == 0.0 { "no log switch in the window" } else { "no whole second with a log switch was read" },
        "no whole second without a log switch was read",
    ];
    for ((column, tps), why) in [column::LOG_SWITCH_TPS, column::BETWEEN_SWITCHES_TPS].into_iter().zip(sides).zip(whys)
    {
        out.set_or_absent(column, tps, why);
    }
}

/// Transactions per second in the whole seconds with a switch, and in those without; each if there is one. A second without a reading at
/// its start and at its end is in neither.
fn throughput(points: &[Point], open_ns: u64, per_second: &[u64]) -> [Option<f64>; 2] {
    let at = |second: usize| {
        let due = open_ns + second as u64 * SECOND_NS;
        let read = points.iter().filter_map(|p| p.snapshot.as_ref()).filter(|s| s.at_ns.abs_diff(due) < NEAR_NS);
        read.min_by_key(|s| s.at_ns.abs_diff(due))
    };
    let mut sides = [(0.0, 0.0); 2];
    for (second, done) in per_second.iter().enumerate() {
        let Some(grown) = at(second).zip(at(second + 1)).and_then(|(a, b)| a.delta(b, counter::LOG_SWITCHES)) else {
            continue;
        };
        let (count, seconds) = &mut sides[usize::from(grown < 1.0)];
        (*count, *seconds) = (*count + *done as f64, *seconds + 1.0);
    }
    sides.map(|(count, seconds)| (seconds > 0.0).then(|| count / seconds))
}

#[cfg(test)]
mod tests {
    use loadline_collect::System;

    use super::*;

    #[test]
    fn a_second_with_a_switch_is_on_its_own_side() {
        let point = |ms: u64, switches: f64| {
            let at_ns = 7 * SECOND_NS + ms * 1_000_000;
            let snapshot = Some(crate::testing::snapshot(at_ns, &[(counter::LOG_SWITCHES, switches)]));
            Point { system: System { at_ns, ..System::default() }, snapshot }
        };
        // Switches in the second and the fourth second, two in the latter.
        let points = [point(0, 5.0), point(1001, 5.0), point(1999, 6.0), point(3000, 6.0), point(4010, 8.0)];
        let done = [100, 40, 110, 60];
        let of = |points: &[Point], done: &[u64]| throughput(points, 7 * SECOND_NS, done);
        assert_eq!(of(&points, &done), [Some(50.0), Some(105.0)]);
        assert_eq!(of(&points[..2], &done), [None, Some(100.0)], "what was not read is on neither side");
        assert_eq!(of(&points[1..3], &done), [Some(40.0), None]);
        assert_eq!(of(&[point(0, 5.0), point(1500, 6.0)], &done), [None, None], "too far from a whole second");
        assert_eq!(of(&points, &[]), [None, None]);
    }
}
