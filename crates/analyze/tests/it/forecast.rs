//! Forecasts of the published log-writer study: its upper halves from its lower ones.

use loadline_analyze::forecast::{Kind, Point, Series, evaluate};
use loadline_analyze::sweep::sweeps;

use crate::common::study_1;

#[test]
#[allow(clippy::print_stdout)]
fn the_upper_half_of_the_study_is_forecast_from_the_lower_one() {
    let sweeps = sweeps(&[study_1("X5-2"), study_1("X9M-2")].concat());
    let series = sweeps.iter().map(|s| Series::new(&s.platform, &s.workload, &Point::of_sweep(s)).unwrap());
    let found = evaluate(&series.collect::<Vec<_>>(), |_| true);
    let all = found.overall(true).unwrap();
    println!("{all:?}, by model {:?}", found.models);
    let usl = found.models.iter().find(|used| used.model == Kind::Usl).unwrap().mean_abs_error_pct;
    assert_eq!((found.series.len(), all.held_out, found.refused()), (8, 27, 0));
    assert!(all.mean_abs_error_pct <= 5.0 && all.mean_abs_error_pct < 0.7 * usl, "{all:?}");
    assert!(all.coverage_pct >= 85.0 && all.half_width_pct < 3.0 * all.mean_abs_error_pct, "{all:?}");
}
