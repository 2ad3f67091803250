//! Checks of who else used the machine. The thresholds are in `loadline_model::disturbance`.

use loadline_model::disturbance::{DISTURBANCES, Disturbance};
use loadline_model::format::number;
use loadline_model::{Check, Outcome, column};

use crate::evidence::Evidence;
use crate::test::Test;

/// One check for each kind of disturbance. With `--allow-disturbed`, none fails.
pub(crate) fn undisturbed<S>(e: &Evidence<'_, S>, test: &mut Test) {
    let checks = checks(test, e.run.manifest.plan.allow_disturbed);
    test.checks.extend(checks);
}

fn checks(test: &Test, allow: bool) -> Vec<Check> {
    DISTURBANCES.iter().map(|kind| check(kind, test, allow)).collect()
}

fn check(kind: &Disturbance, figures: &Test, allow: bool) -> Check {
    let Some(pct) = figures.figure(kind.column) else {
        return Check::new(kind.check, Outcome::NotMade, figures.absence_reason(kind.column).unwrap_or("not measured"));
    };
    // Names of processes that are seen say nothing about what is left beside them.
    let hidden = kind.column == column::UNKNOWN_CPU_PCT && figures.figure(column::OTHER_CPU_PCT).is_none();
    let of_cpu = kind.column == column::OTHER_CPU_PCT || hidden;
    let names =
        if of_cpu && !figures.others.is_empty() { format!(" (most: {})", figures.others) } else { String::new() };
    let invalid = kind.invalid_from.map_or(String::new(), |pct| format!(", invalid from {pct} %"));
    let value = number(pct, if pct < 10.0 { 1 } else { 0 });
    let detail = format!("{} {value} %{names}; noted from {} %{invalid}", kind.words, kind.noted_from);
    if kind.is_invalid(pct) && !allow {
        let detail = format!("disturbed: {detail}; --allow-disturbed keeps such tests, marked");
        return Check::new(kind.check, Outcome::Failed, detail);
    }
    let outcome = if kind.is_noted(pct) { Outcome::Noted } else { Outcome::Passed };
    Check::new(kind.check, outcome, detail)
}

#[cfg(test)]
mod tests {
    use loadline_model::Column;

    use super::*;

    fn outcome(column: &'static Column, pct: f64, allow: bool) -> (Outcome, String) {
        let mut figures = Test::default();
        DISTURBANCES.iter().for_each(|d| figures.set(d.column, 0.0));
        figures.set(column, pct);
        figures.others = "yes 0.88 CPUs".to_owned();
        let checks = checks(&figures, allow);
        let (of_column, rest): (Vec<_>, Vec<_>) =
            DISTURBANCES.iter().zip(checks).partition(|(d, _)| d.column == column);
        assert!(rest.iter().all(|(_, c)| c.outcome == Outcome::Passed), "{rest:?}");
        (of_column[0].1.outcome, of_column[0].1.detail.clone())
    }

    #[test]
    fn each_kind_is_noted_and_invalid_from_its_thresholds_on() {
        for kind in DISTURBANCES {
            let of = |pct| outcome(kind.column, pct, false).0;
            assert_eq!(of(kind.noted_from - 0.01), Outcome::Passed, "{kind:?}");
            assert_eq!(of(kind.noted_from), Outcome::Noted, "{kind:?}");
            let Some(invalid) = kind.invalid_from else {
                assert_eq!(of(100.0), Outcome::Noted, "{kind:?}");
                continue;
            };
            assert_eq!(of(invalid - 0.01), Outcome::Noted, "{kind:?}");
            assert_eq!(of(invalid), Outcome::Failed, "{kind:?}");
            assert_eq!(outcome(kind.column, invalid, true).0, Outcome::Noted, "kept: {kind:?}");
        }
    }

    #[test]
    fn the_reader_is_told_who_and_what_is_allowed() {
        let (_, said) = outcome(column::OTHER_CPU_PCT, 45.3, false);
        for part in [
            "other processes on the CPU 45 % (most: yes 0.88 CPUs)",
            "noted from 5 %",
            "invalid from 20 %",
            "--allow-d",
        ] {
            assert!(said.contains(part), "'{said}' lacks '{part}'");
        }
        let none = checks(&Test::default(), false);
        assert!(none.iter().all(|c| c.outcome == Outcome::NotMade), "what was not read passes nothing: {none:?}");
    }
}
