//! The log writer beside a raw loop of the same writes and syncs: rounds that take turns, medians
//! at the end.
//!
//! `measure DIR [JOBS [BYTES [SECONDS [ROUNDS [fdatasync|dsync]]]]]`
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use loadline_logwriter::device::file::{FileConfig, FileDevice, FileSync};
use loadline_logwriter::{CommitMode, LogConfig, LogDevice, LogError, LogWriter};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// CPU time of this process so far, in seconds.
fn cpu() -> Result<f64> {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF)?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// Commits per second, and CPU microseconds for each.
#[derive(Clone, Copy)]
struct Rate(f64, f64);

/// What one stream writes and syncs, in a file made ready as the log's are.
struct Raw {
    file: File,
    block: Vec<u8>,
    at: u64,
    config: FileConfig,
}

impl Raw {
    /// The blocks that a commit of one record of `bytes` takes.
    fn open(dir: &Path, bytes: usize, config: FileConfig) -> Result<Self> {
        std::fs::create_dir_all(dir)?;
        FileDevice::open(dir, &config)?.file_maker().make(0, None)?;
        let mut options = OpenOptions::new();
        options.write(true);
        if config.sync == FileSync::Dsync {
            options.custom_flags(libc::O_DSYNC);
        }
        let file = options.open(dir.join("redo-0000000000.log"))?;
        let taken = (32 + bytes).next_multiple_of(32) + 32;
        Ok(Self { file, block: vec![0x5A; taken.next_multiple_of(config.block_bytes)], at: 0, config })
    }

    fn run(&mut self, seconds: f64) -> Result<Rate> {
        let (begun, cpu_begun, mut commits) = (Instant::now(), cpu()?, 0.0);
        while begun.elapsed().as_secs_f64() < seconds {
            self.file.write_all_at(&self.block, self.at)?;
            if self.config.sync == FileSync::Fdatasync {
                self.file.sync_data()?;
            }
            let next = self.at + self.block.len() as u64;
            self.at = if next + self.block.len() as u64 > self.config.file_bytes { 0 } else { next };
            commits += 1.0;
        }
        Ok(Rate(commits / begun.elapsed().as_secs_f64(), (cpu()? - cpu_begun) / commits * 1e6))
    }
}

fn open(dir: &Path, config: FileConfig, gather: bool) -> Result<LogWriter> {
    std::fs::create_dir_all(dir)?;
    let device = FileDevice::open(dir, &config)?;
    Ok(LogWriter::open(&LogConfig { gather, ..LogConfig::default() }, Box::new(device))?.0)
}

fn log(writer: &LogWriter, jobs: usize, bytes: usize, seconds: f64) -> Result<Rate> {
    let record = vec![0x5A; bytes];
    let stop = AtomicBool::new(false);
    let (begun, cpu_begun, before) = (Instant::now(), cpu()?, writer.stats().commits_waited);
    std::thread::scope(|scope| -> Result<()> {
        let sessions = (0..jobs).map(|_| writer.session()).collect::<std::result::Result<Vec<_>, _>>()?;
        let run = |mut session: loadline_logwriter::LogSession| {
            while !stop.load(Ordering::Relaxed) {
                session.append(&record)?;
                session.commit(CommitMode::Wait)?;
            }
            Ok::<_, LogError>(())
        };
        let running: Vec<_> = sessions.into_iter().map(|session| scope.spawn(move || run(session))).collect();
        std::thread::sleep(Duration::from_secs_f64(seconds));
        stop.store(true, Ordering::Relaxed);
        for job in running {
            job.join().map_err(|_| "a job panicked")??;
        }
        Ok(())
    })?;
    let commits = (writer.stats().commits_waited - before) as f64;
    Ok(Rate(commits / begun.elapsed().as_secs_f64(), (cpu()? - cpu_begun) / commits * 1e6))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().ok_or("name a directory")?;
    let jobs: usize = args.next().map_or(Ok(1), |arg| arg.parse())?;
    let bytes: usize = args.next().map_or(Ok(1536), |arg| arg.parse())?;
    let seconds: f64 = args.next().map_or(Ok(0.5), |arg| arg.parse())?;
    let rounds: usize = args.next().map_or(Ok(20), |arg| arg.parse())?;
    let sync = if args.next().as_deref() == Some("dsync") { FileSync::Dsync } else { FileSync::Fdatasync };
    let dir = tempfile::tempdir_in(dir)?;
    let config = FileConfig { sync, ..FileConfig::default() };
    let mut raw = Raw::open(&dir.path().join("raw"), bytes, config)?;
    let gathering = open(&dir.path().join("log"), config, true)?;
    let plain = open(&dir.path().join("plain"), config, false)?;
    std::thread::sleep(Duration::from_secs(1));
    let mut all = Vec::new();
    for round in 0..rounds {
        // Each is first as often as the others.
        let mut rates = [Rate(0.0, 0.0); 3];
        for turn in 0..3 {
            let which = (round + turn) % 3;
            rates[which] = match which {
                0 => raw.run(seconds)?,
                1 => log(&gathering, jobs, bytes, seconds)?,
                _ => log(&plain, jobs, bytes, seconds)?,
            };
        }
        all.push(rates);
    }
    let rate = |which: usize| median(all.iter().map(|rates| rates[which].0));
    let cost = |which: usize| median(all.iter().map(|rates| rates[which].1));
    let ratio = |which: usize| median(all.iter().map(|rates| rates[which].0 / rates[0].0));
    println!("{jobs} jobs, {bytes} B, {sync:?}, {rounds} rounds of {seconds} s, medians:");
    println!("  raw loop of one stream  {:7.0}/s  {:6.1} us CPU", rate(0), cost(0));
    println!("  log                     {:7.0}/s  {:6.1} us CPU  x{:.2} of raw", rate(1), cost(1), ratio(1));
    println!("  log, gathering off      {:7.0}/s  {:6.1} us CPU  x{:.2} of raw", rate(2), cost(2), ratio(2));
    let stats = gathering.close()?;
    let commits = stats.commits_waited as f64 * 1e3;
    let us = |sum: u64| sum as f64 / commits;
    let times = stats.commit;
    println!(
        "  per commit: wait {:.1} copy {:.1} write {:.1} sync {:.1} wake {:.1} us; group {:.2}, of {} held back {} ({} \
         in vain)",
        us(times.wait_ns),
        us(times.copy_ns),
        us(times.write_ns),
        us(times.sync_ns),
        us(times.wake_ns),
        stats.grouped_commits as f64 / stats.groups as f64,
        stats.groups,
        stats.gathers,
        stats.gathers_short,
    );
    Ok(())
}
