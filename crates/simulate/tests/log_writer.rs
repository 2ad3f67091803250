//! The simulated log writer beside the real one (`loadline-logwriter`), on a device that takes exactly so long.

#![allow(clippy::unwrap_used, missing_docs)]

use std::thread;
use std::time::{Duration, Instant};

use loadline_logwriter::{CommitMode, DeviceError, FileMaker, LogConfig, LogDevice, LogWriter};
use loadline_simulate::{Device, Length, Platform, Spread, simulate};

/// Time of a sync: long beside what another process on the machine takes from it.
const SYNC: Duration = Duration::from_millis(4);

/// A device that forgets everything.
struct Timed;

impl FileMaker for Timed {
    fn make(&mut self, _: u64, _: Option<u64>) -> Result<(), DeviceError> {
        Ok(())
    }
}

impl LogDevice for Timed {
    fn block_bytes(&self) -> usize {
        512
    }

    fn file_bytes(&self) -> u64 {
        1 << 24
    }

    fn file_maker(&self) -> Box<dyn FileMaker> {
        Box::new(Timed)
    }

    fn open_file(&mut self, _: u64) -> Result<(), DeviceError> {
        Ok(())
    }

    fn write(&mut self, _: u64, _: &[u8]) -> Result<(), DeviceError> {
        Ok(())
    }

    fn sync(&mut self) -> Result<(), DeviceError> {
        thread::sleep(SYNC);
        Ok(())
    }

    fn files(&self) -> Result<Vec<u64>, DeviceError> {
        Ok(Vec::new())
    }

    fn read(&self, _: u64, _: u64, _: &mut [u8]) -> Result<usize, DeviceError> {
        Ok(0)
    }

    fn describe(&self) -> String {
        "a device that takes its time".into()
    }
}

/// Commits per group of `jobs` jobs that commit again after `away`.
fn real(jobs: u32, away: Duration, gather: bool) -> f64 {
    let config = LogConfig { gather, every: None, ..LogConfig::default() };
    let (log, _) = LogWriter::open(&config, Box::new(Timed)).unwrap();
    let before = log.stats();
    let until = Instant::now() + Duration::from_millis(250);
    thread::scope(|scope| {
        for _ in 0..jobs {
            let mut session = log.session().unwrap();
            scope.spawn(move || {
                while Instant::now() < until {
                    if away > Duration::ZERO {
                        thread::sleep(away);
                    }
                    session.append(&[7; 100]).unwrap();
                    session.commit(CommitMode::Wait).unwrap();
                }
            });
        }
    });
    let after = log.stats();
    (after.commits - before.commits) as f64 / (after.groups - before.groups) as f64
}

fn simulated(jobs: u32, away: Duration, gather: bool) -> f64 {
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let platform = Platform {
        cpus: None,
        nodes: 1,
        cpu_us: 20.0,
        cpu_spread: Spread::Fixed,
        away_us: us(away),
        client: false,
        switch_us: 5.0,
        wake_us: 50.0,
        hand_us: 5.0,
        redo_bytes: 100.0,
        buffer_bytes: None,
        gather,
        delay_us: 0.0,
        siblings: 1,
        device: Device { sync_us: us(SYNC), spread: Spread::Fixed, cpu_us: 0.0, us_per_byte: 0.0 },
        standby: None,
    };
    simulate(&platform, jobs, Length { seed: 1, commits: Some(20_000) }).unwrap().commits_per_sync
}

#[test]
fn groups_are_as_large_as_those_of_the_real_log_writer() {
    let ms = Duration::from_millis;
    for (jobs, away, gather) in [
        (1, ms(0), true),
        (2, ms(0), true),
        (6, ms(0), true),
        (6, ms(0), false),
        (7, ms(0), false),
        // Jobs that come back later than the rule waits for, and jobs that come back within it.
        (6, ms(6), true),
        (6, ms(1), true),
        (6, ms(1), false),
    ] {
        let says = simulated(jobs, away, gather);
        // Other processes may take the CPUs for a while.
        let reals: Vec<f64> = (0..4).map(|_| real(jobs, away, gather)).collect();
        let near = |real: &f64| (says / real - 1.0).abs() < 0.15;
        assert!(
            reals.iter().any(near),
            "{jobs} jobs, away {away:?}, gather {gather}: {says} simulated, {reals:?} real"
        );
    }
}
