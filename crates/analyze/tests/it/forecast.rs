//! Forecasts of the published log-writer study: its upper halves from its lower ones.

use loadline_analyze::forecast::{Kind, Overall, error_by, evaluate, series};
use loadline_model::manifest::RunState;

use crate::common::study_1;

#[test]
#[allow(clippy::print_stdout)]
fn the_upper_half_of_the_study_is_forecast_from_the_lower_one() {
    let (series, _) = series(RunState::Complete, &[study_1("X5-2"), study_1("X9M-2")].concat());
    let found = evaluate(&series);
    let all = Overall::over(&found).unwrap();
    let usl = error_by(Kind::Usl, &found).unwrap();
    println!("{all:?}, USL {usl}");
    assert_eq!((found.len(), all.held_out, found.iter().filter(|s| s.fitted.refused.is_some()).count()), (8, 27, 0));
    assert!(all.mean_abs_error_pct <= 5.0 && all.mean_abs_error_pct < 0.7 * usl, "{all:?}");
    assert!(all.coverage_pct >= 85.0 && all.half_width_pct < 3.0 * all.mean_abs_error_pct, "{all:?}");
}
