//! `loadline forecast` of the published study: the forms of its output, and what it says of bad questions.

use crate::common::{Ran, run, words};

/// The study: two platforms with four workloads each.
const STUDY: [&str; 3] = ["forecast", "reference:exadata-x5-2", "reference:exadata-x9m"];

fn forecast(args: &[&str]) -> Ran {
    run(&[&STUDY[..], args].concat())
}

/// The rows of a CSV with the header `head`.
fn rows(ran: &Ran, head: &str) -> Vec<Vec<String>> {
    assert_eq!((ran.code, ran.out.lines().next()), (0, Some(head)), "{}", ran.said());
    ran.out.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn a_forecast_is_a_row_per_series_jobs_and_figure() {
    let ran = forecast(&["--jobs", "30,128", "--tps", "25000", "--latency", "9ms", "--format", "csv"]);
    let rows = rows(&ran, "series,jobs,figure,value,low,high,model");
    let of = |figure: &'static str| rows.iter().filter(move |row| row[2] == figure);
    for row in of("commit_throughput_tps") {
        let [value, low, high] = [3, 4, 5].map(|n| row[n].parse::<f64>().unwrap());
        assert!(low < value && value < high && (row[6] == "interpolation") == (row[1] == "30"), "{row:?}");
    }
    assert_eq!(["commit_throughput_tps", "jobs_above_9_commit_latency_ms"].map(|id| of(id).count()), [16, 8]);
    let mut needs = of("jobs_for_25000_tps").map(|row| row[3].parse::<f64>().unwrap());
    assert!(needs.any(|jobs| jobs < 24.0), "{}", ran.said());
    for (format, holds) in
        [("text", "jobs_for_20000_tps"), ("md", "| "), ("html", "<svg"), ("json", "\"jobs_for_20000_tps\"")]
    {
        let ran = forecast(&["--workload", "LGWR-LAT25", "--tps", "20000", "--format", format]);
        assert!(ran.code == 0 && ran.out.contains(holds) && !ran.out.contains("NaN"), "{format}: {}", ran.said());
    }
}

#[test]
fn an_evaluation_ends_with_all_series() {
    let ran = forecast(&["--evaluate", "--format", "csv"]);
    let rows = rows(&ran, "series,model,held_out,mean_abs_error_pct,coverage_pct,refused");
    let all = rows.last().unwrap();
    assert_eq!((rows.len(), &all[..3]), (9, &["all", "", "27"].map(str::to_owned)[..]), "{}", ran.said());
    let [error, coverage] = [3, 4].map(|n| all[n].parse::<f64>().unwrap());
    assert!(error <= 5.0 && coverage >= 85.0, "{}", ran.said());
}

#[test]
fn bad_questions_are_refused_with_what_is_wrong() {
    run(&["forecast", "/nonexistent"]).fails(2, &["/nonexistent"]);
    let wrong = "--tps 15,000 --p99 5 --cpu 180% --latency 0ms --jobs 0 --tps -5 --latency -1ms --workload X";
    for question in words(wrong).chunks(2) {
        forecast(question).fails(2, &[question[1]]);
    }
}
