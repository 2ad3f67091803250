//! The simulation against closed theory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

/// A log that is written at once, as if there were none.
const NO_LOG: Device = Device { sync_us: 0.0, spread: Spread::Fixed, cpu_us: 0.0, us_per_byte: 0.0 };

fn platform(cpus: Option<u32>, cpu_us: f64, sync_us: f64) -> Platform {
    Platform {
        cpus,
        nodes: 1,
        cpu_us,
        cpu_spread: Spread::Fixed,
        away_us: 0.0,
        client: false,
        switch_us: 0.0,
        wake_us: 0.0,
        hand_us: 0.0,
        redo_bytes: 1500.0,
        buffer_bytes: None,
        gather: false,
        delay_us: 0.0,
        siblings: 1,
        device: Device { sync_us, ..NO_LOG },
        standby: None,
    }
}

fn run(platform: &Platform, jobs: u32) -> Outcome {
    simulate(platform, jobs, Length { seed: 1, commits: None }).unwrap()
}

fn near(seen: f64, expected: f64, within: f64, what: &str) {
    assert!((seen / expected - 1.0).abs() <= within, "{what}: {seen}, expected {expected}");
}

/// Throughput per µs of `jobs` jobs that think for `think` and share `cpus` CPUs, all exponential: the machine-repairman model
/// M/M/m//N (Kleinrock, Queueing Systems I, 3.8), by its birth-and-death equations.
fn machine_repairman(jobs: u32, cpus: u32, think: f64, service: f64) -> f64 {
    let mut weights = vec![1.0];
    for k in 0..jobs {
        let born = f64::from(jobs - k) / think;
        let dies = f64::from((k + 1).min(cpus)) / service;
        weights.push(weights[k as usize] * born / dies);
    }
    let all: f64 = weights.iter().sum();
    let busy: f64 = weights.iter().zip(0..).map(|(w, k)| w / all * f64::from(cpus.min(k))).sum();
    busy / service
}

#[test]
fn jobs_on_cpus_without_a_log_are_the_machine_repairman() {
    for (jobs, cpus, think) in [(1, 1, 300.0), (4, 2, 300.0), (8, 2, 300.0), (40, 4, 500.0), (100, 4, 500.0)] {
        let p = Platform {
            cpu_spread: Spread::Exponential,
            away_us: think,
            device: NO_LOG,
            ..platform(Some(cpus), 100.0, 0.0)
        };
        let seen = run(&p, jobs);
        near(seen.tps, machine_repairman(jobs, cpus, think, 100.0) * 1e6, 0.02, "tps");
    }
}

#[test]
fn one_job_takes_the_sum_of_its_parts() {
    for (cpu, sync, hand) in [(10.0, 140.0, 0.0), (100.0, 5.0, 7.0), (50.0, 0.0, 3.0)] {
        let p = Platform { hand_us: hand, wake_us: 30.0, ..platform(Some(2), cpu, sync) };
        let seen = run(&p, 1);
        near(seen.tps, 1e6 / (cpu + sync), 1e-6, "tps");
        assert_eq!(seen.commits_per_sync, 1.0);
        let p = Platform { client: true, ..p };
        near(run(&p, 1).tps, 1e6 / (cpu + sync + 2.0 * 30.0), 1e-6, "a client and its session wake each other");
        let away = Platform { away_us: 500.0, ..p.clone() };
        near(run(&away, 1).tps, 1e6 / (cpu + sync + 60.0 + 500.0), 1e-6, "with a network");
        let standby = |way, written| Platform {
            standby: Some(Standby { rtt_us: 1000.0, written, way }),
            client: false,
            ..p.clone()
        };
        near(run(&standby(Way::After, false), 1).tps, 1e6 / (cpu + sync + 1000.0 + 4.0 * 30.0), 1e-6, "after");
        near(
            run(&standby(Way::After, true), 1).tps,
            1e6 / (cpu + 2.0 * sync + 1000.0 + 4.0 * 30.0),
            1e-6,
            "after, written",
        );
        near(run(&standby(Way::Beside, true), 1).tps, 1e6 / (cpu + sync + 1000.0 + 3.0 * 30.0), 1e-6, "beside");
    }
}

#[test]
fn with_enough_cpus_two_halves_of_the_jobs_take_turns() {
    // All CPU time fits into a write, so each half has committed again before the other's write is done.
    for jobs in [2, 16, 100] {
        let seen = run(&platform(None, 20.0, 100.0), jobs);
        near(seen.tps, f64::from(jobs) / 2.0 / 100.0 * 1e6, 0.01, "tps");
        near(seen.commits_per_sync, f64::from(jobs) / 2.0, 0.01, "commits per sync");
        // A writer that waits for the jobs that it has just woken serves all of them in one write.
        let gathered = run(&Platform { gather: true, ..platform(None, 20.0, 100.0) }, jobs);
        near(gathered.tps, f64::from(jobs) / 120.0 * 1e6, 0.02, "gathered");
        // So does a delay that is long enough for them.
        let delayed = run(&Platform { delay_us: 25.0, ..platform(None, 20.0, 100.0) }, jobs);
        near(delayed.tps, f64::from(jobs) / 125.0 * 1e6, 0.25, "delayed");
    }
}

#[test]
fn a_busy_cpu_and_a_full_device_are_limits() {
    let cpu = run(&platform(Some(2), 50.0, 1.0), 64);
    near(cpu.tps, 2.0 / 50.0 * 1e6, 0.01, "all CPUs busy");
    near(cpu.cpu_busy_pct.unwrap(), 100.0, 0.01, "CPU busy");
    let mut slow = platform(None, 1.0, 10.0);
    slow.device.us_per_byte = 0.01;
    near(run(&slow, 1000).tps, 1e6 / (1500.0 * 0.01), 0.01, "bandwidth");
}

#[test]
fn a_buffer_bounds_the_group() {
    let free = platform(None, 20.0, 100.0);
    let small = Platform { buffer_bytes: Some(6000.0), ..free.clone() };
    let seen = run(&small, 40);
    assert!(seen.commits_per_sync <= 4.0, "{seen:?}");
    assert!(seen.tps < run(&free, 40).tps / 2.0);
    let tiny = Platform { buffer_bytes: Some(1.0), ..free.clone() };
    assert!(run(&tiny, 40).tps > 0.0, "a transaction larger than the buffer is written alone");
    let ample = Platform { buffer_bytes: Some(60_000.0), ..free.clone() };
    near(run(&ample, 40).tps, run(&free, 40).tps, 1e-9, "it never fills");
}

/// Platforms that use every part.
fn every_part() -> Vec<Platform> {
    let rich = Platform {
        cpu_spread: Spread::LogNormal(0.5),
        switch_us: 4.0,
        wake_us: 25.0,
        hand_us: 2.0,
        device: Device { sync_us: 150.0, spread: Spread::LogNormal(0.3), cpu_us: 40.0, us_per_byte: 0.001 },
        ..platform(Some(2), 30.0, 0.0)
    };
    let standby = |way, written| Some(Standby { rtt_us: 800.0, written, way });
    vec![
        rich.clone(),
        Platform { gather: true, ..rich.clone() },
        Platform { client: true, ..rich.clone() },
        Platform { client: true, away_us: 100.0, standby: standby(Way::After, true), ..rich.clone() },
        Platform { standby: standby(Way::After, false), hand_us: 0.0, wake_us: 0.0, ..rich.clone() },
        Platform { standby: standby(Way::Beside, true), gather: true, ..rich.clone() },
        Platform { delay_us: 100.0, client: true, buffer_bytes: Some(12_000.0), ..rich.clone() },
        Platform { device: Device { cpu_us: 150.0, ..rich.device }, ..rich.clone() },
        Platform { nodes: 3, ..rich.clone() },
    ]
}

#[test]
fn laws_hold_on_every_platform() {
    for (n, p) in every_part().iter().enumerate() {
        for jobs in [1, 2, 7, 16, 300] {
            let seen = run(p, jobs);
            near(seen.tps * seen.latency_us / 1e6, f64::from(jobs), 0.02, &format!("{n}: jobs = tps × latency"));
            assert!(seen.commits_per_sync <= f64::from(jobs) && seen.commits_per_sync >= 0.98, "{n}: {seen:?}");
            near(seen.syncs_per_s * seen.commits_per_sync, seen.tps, 0.02, "syncs × commits per sync");
            assert!(seen.cpu_busy_pct.unwrap() <= 100.1, "{n}: {seen:?}");
            let at_least = p.cpu_us + p.device.sync_us / 2.0;
            assert!(seen.latency_us > at_least * 0.8, "{n}: {seen:?}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_answer_and_another_one_lies_within_the_intervals() {
    for p in every_part() {
        let of = |seed| simulate(&p, 12, Length { seed, commits: None }).unwrap();
        let (first, again, other) = (of(1), of(1), of(2));
        assert_eq!(first, again);
        assert_ne!(first.tps, other.tps);
        near(first.tps, other.tps, 0.03, "another seed");
    }
}

/// Any platform, with at most 40 jobs.
fn platforms() -> impl Strategy<Value = (Platform, u32)> {
    let times = (1.0..300.0, 0.0..8.0, 0.0..30.0, 0.0..10.0, 0.0..200.0);
    let device = (10.0..2000.0, 0.0..60.0, 0.0..0.5);
    let ways = prop_oneof![Just(None), Just(Some(Way::Beside)), Just(Some(Way::After))];
    let more = (any::<bool>(), any::<bool>(), ways, any::<bool>(), 1u32..=16, 1u32..=40);
    (times, device, more).prop_map(|((cpu, switch, wake, hand, delay), (sync, share, spread), more)| {
        let (gather, client, way, written, cpus, jobs) = more;
        let device = Device {
            sync_us: sync,
            spread: Spread::LogNormal(spread),
            cpu_us: f64::min(share, sync / 2.0),
            us_per_byte: 0.001,
        };
        let p = Platform {
            cpu_spread: Spread::LogNormal(0.5),
            switch_us: switch,
            wake_us: wake,
            hand_us: hand,
            gather,
            client,
            delay_us: if delay < 100.0 { 0.0 } else { delay },
            device,
            standby: way.map(|way| Standby { rtt_us: 500.0, written, way }),
            ..platform(Some(cpus), cpu, sync)
        };
        (p, jobs)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]
    #[test]
    fn what_is_faster_is_never_slower((p, jobs) in platforms()) {
        let tps = |p: &Platform| simulate(p, jobs, Length { seed: 1, commits: Some(20_000) }).unwrap().tps;
        let share = |least: f64, what: &str, changed: f64, now: f64| {
            prop_assert!(changed >= now * least, "{}: {} instead of {}", what, changed, now);
            Ok(())
        };
        let at_least = |what: &str, changed: f64, now: f64| share(0.97, what, changed, now);
        let half = |cpu: f64| Device { cpu_us: p.device.cpu_us * cpu, sync_us: p.device.sync_us / 2.0, ..p.device };
        at_least("a device twice as fast", tps(&Platform { device: half(0.5), ..p.clone() }), tps(&p))?;
        // On full CPUs what is slower fills the groups, and so saves CPU time of syncs. With CPUs to spare it does not.
        let p = Platform { cpus: None, ..p };
        at_least("a device that takes as much CPU time", tps(&Platform { device: half(1.0), ..p.clone() }), tps(&p))?;
        if let Some(s) = p.standby {
            let far = Platform { standby: Some(Standby { rtt_us: s.rtt_us * 2.0, ..s }), ..p.clone() };
            at_least("a standby half as far", tps(&p), tps(&far))?;
            at_least("no standby", tps(&Platform { standby: None, ..p.clone() }), tps(&p))?;
        }
        // A job wakes up sooner on a busy CPU than on an idle one, and on few CPUs commits come closer together: where the first
        // commit of a group does not wait for the others, the next group is then larger (0.84 in one of 1,000 platforms).
        let few = Platform { wake_us: 0.0, cpus: Some(2), ..p.clone() };
        share(0.8, "twice the CPUs", tps(&Platform { cpus: Some(4), ..few.clone() }), tps(&few))?;
    }
}

#[test]
fn nodes_are_independent() {
    let p = Platform { cpu_spread: Spread::Exponential, ..platform(Some(2), 30.0, 120.0) };
    let nodes = |n, jobs| run(&Platform { nodes: n, ..p.clone() }, jobs);
    near(nodes(64, 640).tps, 64.0 * run(&p, 10).tps, 1e-9, "as many jobs on each");
    let uneven = nodes(3, 10);
    near(uneven.tps, run(&p, 4).tps + 2.0 * run(&p, 3).tps, 1e-9, "4, 3 and 3");
    near(nodes(64, 5).tps, 5.0 * run(&p, 1).tps, 1e-9, "more nodes than jobs");
}

#[test]
fn the_interval_holds_the_truth() {
    // Seeds whose interval leaves out the mean of all: about 5 % of them.
    let p = Platform { cpu_spread: Spread::Exponential, ..platform(Some(2), 30.0, 120.0) };
    let outcomes: Vec<Outcome> =
        (0..200).map(|seed| simulate(&p, 6, Length { seed, commits: Some(8000) }).unwrap()).collect();
    let truth = outcomes.iter().map(|o| o.tps).sum::<f64>() / 200.0;
    let missed = outcomes.iter().filter(|o| (o.tps / truth - 1.0).abs() > o.tps_within).count();
    assert!((2..=24).contains(&missed), "{missed} of 200");
}

#[test]
fn extremes_end_and_keep_the_laws() {
    let slow = platform(Some(1), 1.0, 6e7);
    near(run(&slow, 1).tps, 1.0 / 60.0, 0.001, "a minute per sync");
    let wild = Platform { device: Device { spread: Spread::LogNormal(2.0), ..slow.device }, ..slow };
    near(run(&wild, 3).latency_us * run(&wild, 3).tps / 1e6, 3.0, 0.05, "jobs = tps × latency");
    let fast = platform(Some(1_000_000), 0.01, 0.0);
    assert!(run(&fast, 2).tps > 1e6);
    near(run(&platform(Some(4), 30.0, 100.0), 100_000).tps, 4.0 / 30.0 * 1e6, 0.02, "100,000 jobs on 4 CPUs");
}

#[test]
fn values_out_of_range_are_refused_by_name() {
    let p = platform(Some(2), 30.0, 120.0);
    let refused = |p: &Platform, jobs| simulate(p, jobs, Length { seed: 1, commits: None }).unwrap_err().to_string();
    assert_eq!(refused(&p, 0), "the number of jobs is 0: allowed is 1 to 1,000,000");
    let slow = Platform { delay_us: -1.0, ..p.clone() };
    assert_eq!(refused(&slow, 1), "the group commit delay is -1 µs: allowed is 0 to 1 minute");
    assert!(refused(&Platform { cpus: Some(0), ..p.clone() }, 1).contains("the number of CPUs is 0"));
    assert!(refused(&Platform { wake_us: f64::NAN, ..p.clone() }, 1).contains("a wake-up is NaN"));
    assert!(refused(&platform(None, 0.0, 0.0), 1).contains("more than 0"));
}
