use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use loadline_database::TargetError;

use super::*;

const S: u64 = 1_000_000_000;

type Snap = Box<dyn FnMut() -> Result<Snapshot, String> + Send>;
type Waits = Box<dyn FnMut() -> Result<Option<WaitSample>, String> + Send>;

struct Fake(Snap, Waits);

impl Observer for Fake {
    fn snapshot(&mut self) -> Result<Snapshot, TargetError> {
        (self.0)().map_err(TargetError::Lost)
    }
    fn sample_waits(&mut self) -> Result<Option<WaitSample>, TargetError> {
        (self.1)().map_err(TargetError::Lost)
    }
}

fn snapshot() -> Result<Snapshot, String> {
    let counters = BTreeMap::from([("commits".to_owned(), 7.0)]);
    Ok(Snapshot {
        at_ns: loadline_storage::now_ns(),
        counters,
        proc_stat: Some("cpu  1 2 3 4\n".to_owned()),
        ..Snapshot::default()
    })
}

fn waits() -> Result<Option<WaitSample>, String> {
    let sessions = BTreeMap::from([("IO:WALSync".to_owned(), 2)]);
    Ok(Some(WaitSample { sessions, others: Some(1), ..WaitSample::default() }))
}

fn start(config: SamplerConfig, snapshot: Snap, waits: Waits) -> Sampler {
    Sampler::start(config, Box::new(Fake(snapshot, waits))).unwrap()
}

fn start_sound(config: SamplerConfig) -> Sampler {
    start(config, Box::new(snapshot), Box::new(waits))
}

fn sleep_until(at_ns: u64) {
    std::thread::sleep(until(at_ns));
}

#[test]
fn readings_are_taken_on_whole_seconds() {
    let begin = loadline_storage::now_ns();
    // A CPU may be late by less than a second.
    let (collected, _) = readings(S);
    let most = 1 + (loadline_storage::now_ns() - begin) * 50 / S;
    let samples = collected.wait_samples.len() as u64;
    assert!((1..=most).contains(&samples), "{samples} of {most}");
}

#[test]
#[ignore = "nightly: how late a reading is depends on who has the CPUs"]
fn readings_are_taken_on_time() {
    let (collected, [open_ns, close_ns]) = readings(S / 4);
    // 50 a second over 2 s, less the guard before the close.
    let profile = collected.waits_between(open_ns, close_ns);
    assert!((60..=101).contains(&profile.samples), "{}", profile.samples);
    assert!(collected.wait_samples.iter().all(|(at, _)| !(close_ns - 10_000_000..close_ns).contains(at)));
}

/// Collected figures of a window of 2 s, each reading late by less than `late`; when its start and end were read.
fn readings(late: u64) -> (Collected, [u64; 2]) {
    let origin = loadline_storage::now_ns() + S + S / 3;
    let sampler = start_sound(SamplerConfig { wait_hz: 50.0, ..SamplerConfig::new(origin) });
    let (open, close) =
        (sampler.reading_at("open", origin).unwrap(), sampler.reading_at("close", origin + 2 * S).unwrap());
    let (open, close) = (open.wait().unwrap(), close.wait().unwrap());
    let collected = sampler.finish();
    assert_eq!(collected.problems, [] as [&str; 0]);
    assert!(collected.source.is_some());

    // One before the window, its start and end, one between them: each is its second's only point.
    assert_eq!(collected.points.len(), 4, "{collected:?}");
    for (point, due) in collected.points.iter().zip([origin - S, origin, origin + S, origin + 2 * S]) {
        assert!(point.system.at_ns >= due && point.system.at_ns < due + late, "{} for {due}", point.system.at_ns);
        assert_eq!(point.snapshot.as_ref().map(|s| s.counters["commits"]), Some(7.0));
        assert_eq!(point.snapshot.as_ref().unwrap().proc_stat, None);
        assert!(point.system.cpu.is_some());
    }
    let readings = [open.system.at_ns, close.system.at_ns];
    assert_eq!(readings, [1, 3].map(|at| collected.points[at].system.at_ns));
    assert!(open.snapshot.unwrap().proc_stat.is_some());
    assert!(close.system.process_ns.unwrap() > open.system.process_ns.unwrap());

    let profile = collected.waits_between(readings[0], readings[1]);
    assert_eq!(profile.mean_sessions(|event| event == "IO:WALSync"), Some(2.0));
    assert_eq!(profile.others, Some(u64::from(profile.samples)));
    let all = collected.waits_between(0, u64::MAX);
    assert!(all.samples > profile.samples && all.samples as usize == collected.wait_samples.len());
    (collected, readings)
}

#[test]
fn a_reading_is_made_at_once_beside_those_of_whole_seconds() {
    let now = loadline_storage::now_ns();
    let sampler = start_sound(SamplerConfig { wait_hz: 0.0, ..SamplerConfig::new(now + S / 2) });
    let reading = sampler.reading("now").unwrap();
    assert!(reading.system.at_ns >= now && reading.system.at_ns < now + S / 2, "{}", reading.system.at_ns - now);
    sleep_until(now + 5 * S / 4);
    let collected = sampler.finish();
    assert_eq!(collected.points.len(), 2);
    let second = collected.points[1].system.at_ns - now;
    assert!((S / 2..S * 5 / 4).contains(&second), "{second}");
    assert!(collected.wait_samples.is_empty());
}

#[test]
fn cpu_and_device_come_from_where_they_were_asked_for() {
    let reading = |cpu, disk: Option<&str>| {
        let config =
            SamplerConfig { cpu, disk: disk.map(str::to_owned), ..SamplerConfig::new(loadline_storage::now_ns()) };
        let sampler = start(config, Box::new(snapshot), Box::new(|| Ok(None)));
        (sampler.reading("e").unwrap(), sampler.finish().problems)
    };
    let remote = CpuTimes { user: 3, sys: 3, idle: 4, ..CpuTimes::default() };
    assert_eq!(reading(CpuSource::Snapshot, None).0.system.cpu, Some(remote));
    assert!(reading(CpuSource::Local, None).0.system.cpu.is_some_and(|c| c != remote));
    let (e, problems) = reading(CpuSource::Local, Some("no-such-device"));
    assert_eq!(e.system.disk, None);
    assert!(problems.len() == 1 && problems[0].contains("'no-such-device'"), "{problems:?}");
}

#[test]
fn a_source_that_fails_leaves_gaps_and_a_problem() {
    let origin = loadline_storage::now_ns() + S / 10;
    let calls = AtomicU32::new(0);
    let failing = move || match calls.fetch_add(1, Ordering::Relaxed) {
        1 => snapshot(),
        _ => Err("connection lost".to_owned()),
    };
    let config = SamplerConfig { wait_hz: 20.0, ..SamplerConfig::new(origin) };
    let sampler = start(config, Box::new(failing), Box::new(|| Err("no privilege".to_owned())));
    sleep_until(origin + 2 * S + S / 2);
    let reading = sampler.reading("close").unwrap();
    let collected = sampler.finish();
    assert_eq!(reading.snapshot, Err("connection lost".to_owned()));
    assert!(reading.system.cpu.is_some() && reading.system.process_ns.is_some(), "the operating system still answers");
    let there: Vec<bool> = collected.points.iter().map(|p| p.snapshot.is_some()).collect();
    assert_eq!(there, [false, true, false, false]);
    let problem = |text: &str| collected.problems.iter().find(|p| p.contains(text)).cloned().unwrap();
    assert_eq!(problem("connection"), "the database's counters could not be read: connection lost (3 times)");
    assert!(problem("no privilege").ends_with("times)"));
    assert_eq!(collected.waits_between(0, u64::MAX), WaitProfile::default());
}

#[test]
fn a_source_without_waits_is_asked_once() {
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let none = move || {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(None)
    };
    let now = loadline_storage::now_ns();
    let sampler =
        start(SamplerConfig { wait_hz: 100.0, ..SamplerConfig::new(now + 10 * S) }, Box::new(snapshot), Box::new(none));
    sleep_until(now + S / 4);
    assert!(sampler.finish().problems.is_empty());
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[test]
fn a_source_that_hangs_is_given_up() {
    let calls = AtomicU32::new(0);
    let hanging = move || {
        if calls.fetch_add(1, Ordering::Relaxed) > 0 {
            std::thread::sleep(Duration::from_secs(20));
        }
        snapshot()
    };
    let config = SamplerConfig {
        wait_hz: 0.0,
        reading_timeout: Duration::from_millis(200),
        finish_timeout: Duration::from_millis(300),
        ..SamplerConfig::new(loadline_storage::now_ns() + 100 * S)
    };
    let sampler = start(config, Box::new(hanging), Box::new(waits));
    assert!(sampler.reading("open").is_ok());
    let start = Instant::now();
    let error = sampler.reading("close").unwrap_err();
    assert!(matches!(&error, CollectError::Stuck { reading, .. } if reading == "close"), "{error}");
    let collected = sampler.finish();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert_eq!(collected.points.len(), 1, "what was read before is kept");
    assert!(collected.source.is_none() && collected.problems[0].contains("abandoned"), "{:?}", collected.problems);
}

#[test]
fn a_slow_source_misses_seconds_and_says_so() {
    let origin = loadline_storage::now_ns() + S / 10;
    let slow = || {
        std::thread::sleep(Duration::from_millis(1300));
        snapshot()
    };
    let sampler = start(SamplerConfig { wait_hz: 0.0, ..SamplerConfig::new(origin) }, Box::new(slow), Box::new(waits));
    sleep_until(origin + 3 * S / 2);
    let collected = sampler.finish();
    assert_eq!(collected.points.len(), 1);
    assert!(collected.problems.iter().any(|p| p.starts_with("1 of the once-a-second")), "{:?}", collected.problems);
}

#[test]
fn a_source_that_panics_ends_the_sampler_only() {
    let sampler = start(
        SamplerConfig::new(loadline_storage::now_ns() + 100 * S),
        Box::new(|| panic!("on purpose")),
        Box::new(|| Ok(None)),
    );
    assert!(matches!(sampler.reading("open"), Err(CollectError::Ended { .. })));
    let collected = sampler.finish();
    assert!(collected.source.is_none() && collected.problems[0].contains("internal error"), "{:?}", collected.problems);
}

#[test]
fn rates_are_those_of_the_last_second_and_waits_are_handed_out_once() {
    let shared = Arc::new(Mutex::new(Shared::default()));
    let mut recent = Recent { shared: Arc::clone(&shared), waits: 0 };
    assert_eq!(recent.second(), Second::default(), "nothing was read yet");
    let point = |at_ns: u64, user: u64, idle: u64| {
        let cpu = CpuTimes::parse(&format!("cpu {user} 0 0 {idle} 0 0 0 0 0 0\n")).unwrap();
        Point { system: System { at_ns, cpu: Some(cpu), ..System::default() }, snapshot: None }
    };
    let sample = |n: u32| WaitSample { sessions: [("CPU".to_owned(), n)].into(), ..WaitSample::default() };
    {
        let mut shared = shared.lock().unwrap();
        shared.read.points = vec![point(0, 0, 0), point(S, 30, 70), point(S + 1_000_000, 30, 70)];
        shared.read.wait_samples = vec![(1, sample(2)), (2, sample(4))];
    }
    let second = recent.second();
    let busy_pct = second.rates.cpu.map(|c| c.busy_pct.round());
    assert_eq!(busy_pct, Some(30.0), "not the reading of the window start beside it");
    assert_eq!((second.waits.samples, second.waits.sessions["CPU"]), (2, 6));
    assert_eq!(recent.second().waits, WaitProfile::default());
}
