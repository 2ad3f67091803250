//! The log writer beside a raw loop of the same writes and syncs, in rounds that take turns.
//!
//! `measure DIR [JOBS [BYTES [SECONDS [ROUNDS [fdatasync|dsync]]]]]`
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use loadline_logwriter::device::file::{FileConfig, FileDevice, FileSync};
use loadline_logwriter::{Commit, LogConfig, LogDevice, LogWriter, Stats};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// CPU time of this process so far, in seconds.
fn cpu() -> Result<f64> {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF)?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// Commits per second and CPU seconds per commit of a raw loop that writes the blocks a commit of
/// `bytes` takes, and syncs, in a file made ready as the log's are.
fn raw(dir: &Path, bytes: usize, seconds: f64, sync: FileSync) -> Result<(f64, f64)> {
    let dir = dir.join("raw");
    std::fs::create_dir_all(&dir)?;
    let config = FileConfig { sync, ..FileConfig::default() };
    let mut maker = FileDevice::open(&dir, &config)?.file_maker();
    maker.make(0, None)?;
    let mut options = OpenOptions::new();
    options.write(true);
    if sync == FileSync::Dsync {
        options.custom_flags(libc::O_DSYNC);
    }
    let file = options.open(dir.join("redo-0000000000.log"))?;
    let block = vec![0x5A; (bytes + 64).next_multiple_of(config.block_bytes)];
    let (begun, cpu_begun) = (Instant::now(), cpu()?);
    let (mut at, mut commits) = (0, 0);
    while begun.elapsed().as_secs_f64() < seconds {
        file.write_all_at(&block, at)?;
        if sync == FileSync::Fdatasync {
            file.sync_data()?;
        }
        at = if at + 2 * block.len() as u64 > config.file_bytes { 0 } else { at + block.len() as u64 };
        commits += 1;
    }
    Ok((f64::from(commits) / begun.elapsed().as_secs_f64(), (cpu()? - cpu_begun) / f64::from(commits)))
}

fn log(
    dir: &Path,
    jobs: usize,
    bytes: usize,
    seconds: f64,
    sync: FileSync,
    mode: Commit,
    gather: bool,
) -> Result<(f64, f64, Stats)> {
    let dir = dir.join("log");
    std::fs::create_dir_all(&dir)?;
    let device = FileDevice::open(&dir, &FileConfig { sync, ..FileConfig::default() })?;
    let (writer, _) = LogWriter::open(&LogConfig { gather, ..LogConfig::default() }, Box::new(device))?;
    let record = vec![0x5A; bytes];
    let stop = AtomicBool::new(false);
    let before = writer.stats();
    let (begun, cpu_begun) = (Instant::now(), cpu()?);
    std::thread::scope(|scope| -> Result<()> {
        let running: Vec<_> = (0..jobs)
            .map(|_| {
                let mut session = writer.session()?;
                let (record, stop) = (&record, &stop);
                Ok(scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        session.append(record)?;
                        session.commit(mode)?;
                    }
                    Ok::<_, loadline_logwriter::LogError>(())
                }))
            })
            .collect::<Result<_>>()?;
        std::thread::sleep(Duration::from_secs_f64(seconds));
        stop.store(true, Ordering::Relaxed);
        for job in running {
            job.join().map_err(|_| "a job panicked")??;
        }
        Ok(())
    })?;
    let stats = writer.close()?;
    let commits = (stats.commits - before.commits) as f64;
    Ok((commits / begun.elapsed().as_secs_f64(), (cpu()? - cpu_begun) / commits, stats))
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().ok_or("name a directory")?;
    let jobs: usize = args.next().map_or(Ok(1), |arg| arg.parse())?;
    let bytes: usize = args.next().map_or(Ok(1536), |arg| arg.parse())?;
    let seconds: f64 = args.next().map_or(Ok(2.0), |arg| arg.parse())?;
    let rounds: usize = args.next().map_or(Ok(5), |arg| arg.parse())?;
    let sync = if args.next().as_deref() == Some("dsync") { FileSync::Dsync } else { FileSync::Fdatasync };
    let mode = if args.next().as_deref() == Some("nowait") { Commit::Nowait } else { Commit::Wait };
    let dir = tempfile::tempdir_in(dir)?;
    println!("round   raw/s  raw us cpu |   log/s  log us cpu  group  fill KiB |  held ungathered/s");
    for round in 0..rounds {
        let (raw_rate, raw_cpu) = raw(dir.path(), bytes, seconds, sync)?;
        let (rate, cpu, stats) = log(dir.path(), jobs, bytes, seconds, sync, mode, true)?;
        let (plain, _, _) = log(dir.path(), jobs, bytes, seconds, sync, mode, false)?;
        let groups = stats.groups as f64;
        println!(
            "{round:5} {raw_rate:7.0} {:11.1} | {rate:7.0} {:11.1} {:6.2} {:9.1} | {:5.2} {plain:7.0}  x{:.2}",
            raw_cpu * 1e6,
            cpu * 1e6,
            stats.grouped_commits as f64 / groups,
            stats.fill_sum_bytes as f64 / groups / 1024.0,
            stats.gathers as f64 / groups,
            rate / raw_rate,
        );
        let n = stats.commits_waited.max(1) as f64 * 1e3;
        let c = stats.commit;
        println!(
            "      us: wait {:.1} copy {:.1} write {:.1} sync {:.1} wake {:.1}; gathers short {} of {}, triggers {:?}, switch ms {}, full ms {}",
            c.wait_ns as f64 / n,
            c.copy_ns as f64 / n,
            c.write_ns as f64 / n,
            c.sync_ns as f64 / n,
            c.wake_ns as f64 / n,
            stats.gathers_short,
            stats.gathers,
            stats.triggers,
            stats.switch_ns / 1_000_000,
            stats.buffer_full_ns / 1_000_000,
        );
    }
    Ok(())
}
