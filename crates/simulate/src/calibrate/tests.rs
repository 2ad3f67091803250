//! Platforms that the model made up are recovered; what is no such platform is said.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::answer::{Answer, Bound, untried};
use crate::draw::Spread;
use crate::platform::Device;
use crate::start::{CPU_SPREAD, SWITCH_US};
use crate::what_if::{OtherDevice, WhatIf};

/// What tests on `platform` would have measured, without noise; the device drifts by these factors.
fn measured(platform: &Platform, jobs: &[u32], drift: &[f64]) -> Measured {
    let length = Length { seed: 99, commits: Some(20_000) };
    let point = |(jobs, drift): (&u32, &f64)| {
        let mut p = platform.clone();
        p.device.sync_us *= drift;
        let seen = simulate(&p, *jobs, length).unwrap();
        Point {
            jobs: *jobs,
            tps: seen.tps,
            latency_us: Some(seen.latency_us),
            tests: vec![1],
            commits_per_sync: Some(seen.commits_per_sync),
            sync_us: Some(p.device.sync_us),
            cpu_us_per_tx: Some(seen.cpu_us_per_tx),
            disturbed: None,
        }
    };
    Measured {
        run: "made-up".into(),
        workload: "LGWR-LAT1".into(),
        kind: "postgres".into(),
        product: "PostgreSQL 17".into(),
        nodes: 1,
        cpus: platform.cpus,
        client: platform.client,
        remote: false,
        points: jobs.iter().zip(drift).map(point).collect(),
        redo_bytes: platform.redo_bytes,
        buffer_bytes: None,
        delay_us: 0.0,
        operation: loadline_model::probe::Operation::SyncWriteFdatasyncPrealloc,
        probe: None,
        commit_quantiles: None,
        single_wait_us: None,
        notes: Vec::new(),
    }
}

/// Platforms far from where a fit starts.
fn platforms() -> Vec<Platform> {
    let device = |sync_us| Device { sync_us, spread: Spread::LogNormal(0.3), cpu_us: sync_us / 5.0, us_per_byte: 0.0 };
    let one = Platform {
        cpus: Some(2),
        nodes: 1,
        cpu_us: 30.0,
        cpu_spread: CPU_SPREAD,
        away_us: 0.0,
        client: false,
        switch_us: SWITCH_US,
        wake_us: 45.0,
        hand_us: 2.0,
        redo_bytes: 1500.0,
        buffer_bytes: None,
        gather: false,
        delay_us: 0.0,
        siblings: 5,
        device: device(150.0),
        standby: None,
    };
    vec![
        one.clone(),
        Platform { cpus: Some(8), cpu_us: 120.0, wake_us: 10.0, hand_us: 12.0, device: device(60.0), ..one.clone() },
        Platform { cpus: Some(16), client: true, cpu_us: 60.0, device: device(900.0), ..one.clone() },
        Platform { cpu_us: 200.0, device: device(5000.0), ..one },
    ]
}

const JOBS: [u32; 5] = [1, 2, 4, 8, 16];
const STEADY: [f64; 5] = [1.0; 5];

#[test]
fn a_platform_of_the_model_is_recovered_and_foretold() {
    // The first one is that of the other tests.
    for (n, truth) in platforms().iter().enumerate().skip(1) {
        let calibration = calibrate(&measured(truth, &JOBS, &STEADY), 1).unwrap();
        assert!(calibration.worst_pct() < 5.0 && calibration.good(), "{n}: {:?}", calibration.points);
        assert!(calibration.worst_left_out_pct().unwrap() < 15.0, "{n}: {:?}", calibration.worst_left_out_pct());
        // What took no part: more jobs, and a device that takes a third of the time.
        let faster =
            |p: &Platform| Platform { device: Device { sync_us: p.device.sync_us / 3.0, ..p.device }, ..p.clone() };
        for (other, jobs) in [(truth.clone(), 48), (faster(truth), 1), (faster(truth), 6), (faster(truth), 24)] {
            let same = other.device == truth.device;
            let says = if same { calibration.platform.clone() } else { faster(&calibration.platform) };
            let length = Length { seed: 5, commits: None };
            let error =
                error_pct(simulate(&says, jobs, length).unwrap().tps, simulate(&other, jobs, length).unwrap().tps);
            assert!(error.abs() < 15.0, "{n}: {error} % with {jobs} jobs, same device: {same}");
        }
    }
}

#[test]
fn a_device_that_drifts_is_not_taken_for_a_platform() {
    let truth = &platforms()[0];
    let drift = [1.6, 1.0, 0.7, 1.2, 0.9];
    let m = measured(truth, &JOBS, &drift);
    let calibration = calibrate(&m, 1).unwrap();
    assert!(calibration.worst_pct() < 6.0, "{:?}", calibration.points);
    // A line is at the points as the device was there, and between them between.
    let drift = Drift::of_points(&m.points);
    let sync = |jobs: f64| drift.of(truth, jobs).device.sync_us / truth.device.sync_us;
    assert!((sync(1.0) - 1.6).abs() < 1e-9 && (sync(100.0) - 0.9).abs() < 1e-9);
    assert!((0.7..1.2).contains(&sync(6.0)));
}

#[test]
fn points_that_no_such_platform_has_are_not_calibrated_well() {
    let mut m = measured(&platforms()[0], &JOBS, &STEADY);
    // Sixteen jobs were slower than one.
    m.points[4].tps = m.points[0].tps / 2.0;
    let calibration = calibrate(&m, 1).unwrap();
    assert!(!calibration.good() && calibration.worst_pct() > GOOD_PCT);
}

#[test]
fn two_points_say_that_they_prove_little_and_the_same_seed_says_the_same() {
    let m = measured(&platforms()[1], &[1, 8], &STEADY);
    let calibration = calibrate(&m, 3).unwrap();
    assert_eq!(calibration, calibrate(&m, 3).unwrap());
    assert!(calibration.points.iter().all(|p| p.left_out_error_pct.is_none()));
    assert!(calibration.notes.iter().any(|n| n.contains("two points fit almost any model")));
}

#[test]
fn of_a_remote_server_the_network_is_fitted_and_cpus_never_limit() {
    let one = &platforms()[0];
    let mut truth = Platform { cpus: None, away_us: 600.0, wake_us: 0.0, ..one.clone() };
    truth.device.us_per_byte = 0.001;
    let m = Measured { remote: true, cpus: None, ..measured(&truth, &JOBS, &STEADY) };
    let calibration = calibrate(&m, 1).unwrap();
    assert!(calibration.worst_pct() < 5.0, "{:?}", calibration.points);
    let network = calibration.parameters.iter().find(|p| p.name.starts_with("network")).unwrap();
    assert!((network.us / 600.0 - 1.0).abs() < 0.15, "{network:?}");
}

#[test]
fn without_any_timing_the_latency_is_what_there_is() {
    let mut m = measured(&platforms()[0], &JOBS, &STEADY);
    for p in &mut m.points {
        (p.sync_us, p.cpu_us_per_tx, p.commits_per_sync) = (None, None, None);
    }
    let calibration = calibrate(&m, 1).unwrap();
    assert!(calibration.worst_pct() < 10.0, "{:?}", calibration.points);
    assert!(calibration.parameters.iter().all(|p| p.measured_us.is_none()));
    assert!(calibration.parameters.iter().any(|p| p.source.contains("neither a sync nor a commit was timed")));
}

fn answer(measured: &Measured, what_if: WhatIf, jobs: &[u32]) -> Answer {
    Answer::of(measured.clone(), &[what_if], jobs, Length { seed: 7, commits: None }).unwrap()
}

#[test]
fn each_node_has_the_device_as_it_was_with_its_jobs() {
    // With one job the device took twice as long as with eight.
    let m = measured(&platforms()[0], &[1, 4, 8], &[1.6, 1.0, 0.8]);
    let four = answer(&m, WhatIf { nodes: Some(4), ..WhatIf::default() }, &[4, 16, 32]);
    let one = answer(&m, WhatIf::default(), &[1, 4, 8]);
    for (all, each) in four.lines[1].outcomes.iter().zip(&one.lines[0].outcomes) {
        assert!((all.tps / each.tps / 4.0 - 1.0).abs() < 1e-9, "{} on four nodes, {} on one", all.tps, each.tps);
    }
}

#[test]
fn another_kind_of_device_has_two_bounds_which_hold_the_truth() {
    let truth = &platforms()[1];
    let m = measured(truth, &[1, 4, 16], &STEADY);
    let another = |us| {
        let device = Device { sync_us: us, ..truth.device }.or_memory();
        untried(truth, &Platform { device, ..truth.clone() }).is_some()
    };
    assert_eq!(
        [40.0, 100.0, 15.0, 5.0, 700.0].map(another),
        [false, false, true, true, true],
        "the calibrated one takes 60 µs"
    );
    // A job that is never asleep has 12 µs less to do there, which no sweep on the slow device shows.
    let mut awake = Platform { cpu_us: truth.cpu_us - 12.0, ..truth.clone() };
    awake.device = Device { sync_us: 1.0, ..awake.device }.or_memory();
    let points = measured(&awake, &[1, 4, 16], &STEADY).points.iter().map(|p| (p.jobs, p.tps)).collect::<Vec<_>>();
    let takes = WhatIf { device: Some(OtherDevice::Takes(1.0)), ..WhatIf::default() };
    let mut memory = answer(&m, takes, &[1]);
    let bounds: Vec<_> = memory.lines.iter().map(|l| l.bound).collect();
    assert_eq!(bounds, [None, Some(Bound::Slowest), Some(Bound::Fastest)]);
    memory.check_against("other", &points).unwrap();
    for c in &memory.checked {
        assert!(c.simulated_tps[0] < c.simulated_tps[1] && c.error_pct.abs() < 6.0, "{c:?}");
    }
    assert!(memory.beyond.iter().any(|text| text.contains("times as fast")));
}

#[test]
fn what_the_calibration_leaves_open_is_in_the_interval() {
    let m = measured(&platforms()[2], &[1, 4, 16], &STEADY);
    let off = |(p, times): (&Point, f64)| Point { tps: p.tps * times, ..p.clone() };
    let noisy = Measured { points: m.points.iter().zip([0.93, 1.07, 0.95]).map(off).collect(), ..m.clone() };
    let within = |m: &Measured| answer(m, WhatIf::default(), &[16]).lines[0].outcomes[0].tps_within;
    let [quiet, noisy] = [within(&m), within(&noisy)];
    assert!(noisy > 0.012 && noisy > quiet, "{noisy} and {quiet}");
}
