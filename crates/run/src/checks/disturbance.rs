//! Checks of who else used the machine. The thresholds are in `loadline_model::disturbance`.

use loadline_model::column;
use loadline_model::disturbance::{DISTURBANCES, Disturbance};
use loadline_model::format::number;

use crate::test::{Test, Verdict, failed, noted, passed};

pub(crate) fn undisturbed(test: &mut Test) {
    for kind in &DISTURBANCES {
        let verdict = test.known(kind.column).map_or_else(|why| why, |pct| judge(kind, pct, test));
        test.check(kind.check, verdict);
    }
}

fn judge(kind: &Disturbance, pct: f64, figures: &Test) -> Verdict {
    // Names of processes that are seen say nothing about what is left beside them.
    let hidden = kind.column == column::UNKNOWN_CPU_PCT && figures.figure(column::OTHER_CPU_PCT).is_none();
    let of_cpu = kind.column == column::OTHER_CPU_PCT || hidden;
    let names =
        if of_cpu && !figures.others.is_empty() { format!(" (most: {})", figures.others) } else { String::new() };
    let disturbed = kind.disturbed_from.map_or(String::new(), |pct| format!(", disturbed from {pct} %"));
    let value = number(pct, if pct < 10.0 { 1 } else { 0 });
    let detail = format!("{} {value} %{names}; noted from {} %{disturbed}", kind.words, kind.noted_from);
    match pct {
        pct if kind.is_disturbing(pct) => failed(detail),
        pct if kind.is_noted(pct) => noted(detail),
        _ => passed(detail),
    }
}

#[cfg(test)]
mod tests {
    use loadline_model::{Column, Outcome};

    use super::*;

    fn outcome(column: &'static Column, pct: f64) -> (Outcome, String) {
        let mut figures = Test::default();
        DISTURBANCES.iter().for_each(|d| figures.set(d.column, 0.0));
        figures.set(column, pct);
        figures.others = "yes 0.88 CPUs".to_owned();
        undisturbed(&mut figures);
        let (of_column, rest): (Vec<_>, Vec<_>) =
            DISTURBANCES.iter().zip(figures.checks).partition(|(d, _)| d.column == column);
        assert!(rest.iter().all(|(_, c)| c.outcome == Outcome::Passed), "{rest:?}");
        (of_column[0].1.outcome, of_column[0].1.detail.clone())
    }

    #[test]
    fn each_kind_is_noted_and_disturbing_from_its_thresholds_on() {
        for kind in DISTURBANCES {
            let of = |pct| outcome(kind.column, pct).0;
            assert_eq!(of(kind.noted_from - 0.01), Outcome::Passed, "{kind:?}");
            assert_eq!(of(kind.noted_from), Outcome::Noted, "{kind:?}");
            let Some(disturbed) = kind.disturbed_from else {
                assert_eq!(of(100.0), Outcome::Noted, "{kind:?}");
                continue;
            };
            assert_eq!(of(disturbed - 0.01), Outcome::Noted, "{kind:?}");
            assert_eq!(of(disturbed), Outcome::Failed, "{kind:?}");
        }
        let (_, said) = outcome(column::OTHER_CPU_PCT, 45.3);
        for part in ["other processes on the CPU 45 % (most: yes 0.88 CPUs)", "noted from 5 %", "disturbed from 20 %"] {
            assert!(said.contains(part), "'{said}' lacks '{part}'");
        }
        let mut none = Test::default();
        undisturbed(&mut none);
        assert!(
            none.checks.iter().all(|c| c.outcome == Outcome::NotMade),
            "what was not read passes nothing: {none:?}"
        );
    }
}
