//! `loadline forecast` of the published study: the forms of its output.

use crate::common::*;

/// The study: two platforms with four workloads each.
const STUDY: [&str; 3] = ["forecast", "reference:exadata-x5-2", "reference:exadata-x9m"];

fn forecast(args: &[&str]) -> Ran {
    run(&[&STUDY[..], args].concat())
}

#[test]
fn a_forecast_is_a_row_per_series_jobs_and_figure() {
    let ran = forecast(&["--jobs", "30,128", "--tps", "25000", "--latency", "9ms", "--format", "csv"]);
    let rows = rows_of(&ran.out);
    let of = |figure: &'static str| rows.iter().filter(move |row| row["figure"] == figure);
    for row in of("commit_throughput_tps") {
        let [value, low, high] = ["value", "low", "high"].map(|id| number(row, id));
        assert!(low < value && value < high && (row["model"] == "interpolation") == (row["jobs"] == "30"), "{row:?}");
    }
    assert_eq!(["commit_throughput_tps", "jobs_above_9_commit_latency_ms"].map(|id| of(id).count()), [16, 8]);
    let mut needs = of("jobs_for_25000_tps").map(|row| number(row, "value"));
    assert!(needs.any(|jobs| jobs < 24.0), "{}", ran.said());
    for (format, holds) in
        [("text", "jobs_for_20000_tps"), ("md", "| "), ("html", "<svg"), ("json", "\"jobs_for_20000_tps\"")]
    {
        let ran = forecast(&["--workload", "LGWR-LAT25", "--tps", "20000", "--format", format]);
        // The script of a page, at its end, knows the word.
        let figures = ran.out.split("<script>").next().unwrap();
        assert!(ran.code == 0 && figures.contains(holds) && !figures.contains("NaN"), "{format}: {}", ran.said());
    }
    // A row per series, and all together.
    assert_eq!(rows_of(&forecast(&["--evaluate", "--format", "csv"]).out).len(), 9);
}
