//! Forecasts of the published log-writer study: its upper halves from its lower ones.

use loadline_analyze::forecast::{Evaluation, Kind, Point, Series, evaluate};
use loadline_analyze::sweep::sweeps;

use crate::common::study_1;

fn study() -> Vec<Series> {
    let records = [study_1("X5-2"), study_1("X9M-2")].concat();
    let series = |s: &loadline_analyze::Sweep| Series::new(&s.platform, &s.workload, &Point::of_sweep(s)).unwrap();
    sweeps(&records).iter().map(series).collect()
}

fn error_of(found: &Evaluation, kind: Kind) -> f64 {
    found.models().into_iter().find(|(k, ..)| *k == kind).unwrap().1
}

#[test]
fn the_upper_half_of_the_study_is_forecast_from_the_lower_one() {
    let found = evaluate(&study());
    let all = found.overall(true).unwrap();
    assert_eq!((found.series.len(), all.held_out, found.refused()), (8, 27, 0));
    assert!(all.mean_abs_error_pct <= 5.0 && all.mean_abs_error_pct < 0.7 * error_of(&found, Kind::Usl), "{all:?}");
    assert!(all.coverage_pct >= 85.0 && all.half_width_pct < 3.0 * all.mean_abs_error_pct, "{all:?}");
    // The flash log of X5-2 saturates beyond the lower half, in which nothing shows it.
    let worst =
        found.series.iter().max_by(|a, b| a.mean_abs_error_pct().unwrap().total_cmp(&b.mean_abs_error_pct().unwrap()));
    assert_eq!(worst.unwrap().series.name(), "X5-2 LGWR-THR");
}
