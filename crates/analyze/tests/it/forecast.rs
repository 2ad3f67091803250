//! Forecasts of the published log-writer study: its upper halves from its lower ones.

use std::collections::BTreeSet;

use loadline_analyze::forecast::{evaluate, overall, series};
use loadline_model::column;
use loadline_model::manifest::RunState;

use crate::common::study_1;

#[test]
fn the_upper_half_of_the_study_is_forecast_from_the_lower_one() {
    let records = [study_1("X5-2"), study_1("X9M-2")].concat();
    let (series, _) = series(RunState::Complete, &records, &records);
    let found = evaluate(&series);
    let all = overall(&found).unwrap();
    assert_eq!((found.len(), all.held_out, found.iter().filter(|s| s.fitted.refused.is_some()).count()), (8, 27, 0));
    assert!(all.mean_abs_error_pct <= 5.0, "{all:?}");
    assert!(all.coverage_pct >= 85.0 && all.half_width_pct < 3.0 * all.mean_abs_error_pct, "{all:?}");
}

#[test]
fn a_figure_of_0_is_missing_and_series_have_names_of_their_own() {
    let records = study_1("X5-2");
    let mut other = records.clone();
    other.iter_mut().for_each(|r| r.run = "another".to_owned());
    other[0].set(column::CPU_BUSY_PCT, 0.0);
    let beside = [records.clone(), other.clone()].concat();
    let (zero, _) = series(RunState::Complete, &other, &beside);
    assert!(zero.iter().flat_map(|s| &s.points).any(|p| p.cpu_pct.is_none()), "no law has a place for a CPU busy 0 %");
    let (all, _) = series(RunState::Complete, &records, &beside);
    let names: BTreeSet<&str> = all.iter().chain(&zero).map(|s| s.name.as_str()).collect();
    assert_eq!(names.len(), all.len() + zero.len(), "{names:?}");
    assert!(all.iter().all(|s| s.points.iter().all(|p| p.cpu_pct.is_some())));
}
