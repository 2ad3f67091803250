//! Known results of the published log-writer study, computed from its figures.

use crate::common::study_1;
use loadline_analyze::compare::{ComparedAt, Platform, compare};
use loadline_analyze::kpi::{LATENCY, THROUGHPUT};
use loadline_analyze::sweep::{LoadLine, Saturation, sweeps};
use loadline_model::column;

fn comparison(workload: &str) -> loadline_analyze::Comparison {
    let (x5, x9) = (study_1("X5-2"), study_1("X9M-2"));
    let platform = |label, records| Platform::new(label, records);
    compare(&[platform("X5-2", &x5), platform("X9M-2", &x9)]).into_iter().find(|c| c.workload == workload).unwrap()
}

#[test]
fn sweeps_are_four_a_platform_and_their_peaks_are_found() {
    let x5 = sweeps(&study_1("X5-2"));
    assert_eq!(
        x5.iter().map(|s| s.workload.as_str()).collect::<Vec<_>>(),
        ["LGWR-LAT1", "LGWR-LAT25", "LGWR-LAT125", "LGWR-THR"]
    );
    // LAT1 was still growing at 72 jobs; THR had its peak at 48.
    let Saturation::Rising { jobs: 72, previous_jobs: 60, growth_pct } = x5[0].saturation() else {
        panic!("{:?}", x5[0].saturation())
    };
    assert!((growth_pct - (77_783.0 / 67_613.0 - 1.0) * 100.0).abs() < 1e-9);
    assert_eq!(x5[3].saturation(), Saturation::Saturated { peak_jobs: 48 });
    assert_eq!(x5[3].peak().unwrap().jobs, 48);
    // Highest job count within 0.8 ms: 36 (0.784 ms), before 48 (0.837 ms).
    let LoadLine::Objective { jobs: 36, at_least: false, .. } = x5[0].load_line(Some(800_000)) else {
        panic!("{:?}", x5[0].load_line(Some(800_000)))
    };
}

#[test]
fn factor_6_in_latency_is_at_best_4_95_in_commit_latency_and_8_25_in_log_file_sync() {
    let lat1 = comparison("LGWR-LAT1");
    let jobs: Vec<ComparedAt> = lat1.rows.iter().skip(1).map(|r| r.at).collect();
    assert_eq!(
        jobs,
        [ComparedAt::Jobs(2), ComparedAt::Jobs(48), ComparedAt::Jobs(72)],
        "job counts that both measured"
    );
    for (id, factor) in [(LATENCY, 4.95), (column::LOG_FILE_SYNC_MS, 8.25)] {
        let (_, (at, best)) = lat1.range(id).unwrap();
        assert_eq!(at, 48, "{id}");
        assert!((best.factor.value - factor).abs() < 0.005, "{id}: {}", best.factor.value);
        assert_eq!(best.factor.interval, None, "one test each: no interval");
    }
}

#[test]
fn at_peak_the_factors_are_smaller() {
    let lat1 = comparison("LGWR-LAT1");
    let peak = lat1.peak().unwrap();
    assert_eq!(peak.at, ComparedAt::Peak { base_jobs: 72, other_jobs: 80 });
    let value = |id| peak.factor(id).unwrap().factor.value;
    assert!((value(THROUGHPUT) - 367_848.0 / 77_783.0).abs() < 1e-9);
    assert!((value(LATENCY) - 0.922 / 0.217).abs() < 1e-9);
    assert!((value(column::LOG_FILE_SYNC_MS) - 0.812 / 0.12).abs() < 1e-9);
    assert!(peak.caveat.as_ref().unwrap().contains("rows per transaction"), "the study does not record rows");
}

#[test]
fn all_workloads_of_the_study_did_equal_work() {
    for workload in ["LGWR-LAT1", "LGWR-LAT25", "LGWR-LAT125", "LGWR-THR"] {
        let c = comparison(workload);
        assert!(c.refused.is_none() && c.rows.iter().all(|r| r.refused.is_none() && !r.factors.is_empty()), "{c:?}");
    }
}
