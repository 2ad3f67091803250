//! Kills a committing process (SIGKILL) 200 times. After each kill the log holds every acknowledged commit, in order and
//! without gaps for each job, and nothing that nobody wrote.
//!
//! Only the process dies: the system and its caches live on. `recovery.rs` tests power loss.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{committed, payload};
use crate::log::device::file::{FileConfig, FileDevice};
use crate::log::{CommitMode, Keep, LogConfig, LogWriter, recover};

/// Names the directory to the child, and makes the test be one.
const DIR: &str = "LOADLINE_LOGWRITER_KILL_DIR";
/// Which life of the log this is.
const LIFE: &str = "LOADLINE_LOGWRITER_KILL_LIFE";
/// Begins a line of the child; what else it writes is the test harness's.
const TOLD: &str = "durable";
const JOBS: u64 = 4;
const LOGS: u64 = 10;
const LIVES: u64 = 20;

fn device(dir: &Path) -> FileDevice {
    FileDevice::open(dir, &FileConfig { file_bytes: 256 << 10, block_bytes: 512, ..FileConfig::default() }).unwrap()
}

fn job_name(life: u64, job: u64) -> u64 {
    life * 1000 + job
}

/// Commits until killed. Each commit that is durable is told to the parent: job and number, a line in one write to the pipe.
fn child(dir: &Path, life: u64) -> ! {
    let config = LogConfig { buffer_bytes: 64 << 10, keep: Keep::All, ..LogConfig::default() };
    let (writer, _) = LogWriter::open(&config, Box::new(device(dir))).unwrap();
    std::thread::scope(|scope| {
        for job in 0..JOBS {
            let mut session = writer.session().unwrap();
            scope.spawn(move || {
                let name = job_name(life, job);
                for number in 0.. {
                    let len = 16 + (number * 97 + job * 31) % 900;
                    session.append(&payload(name, number, usize::try_from(len).unwrap())).unwrap();
                    // Every fifth leaves its durability to the next.
                    if number % 5 == 4 {
                        session.commit(CommitMode::Nowait).unwrap();
                        continue;
                    }
                    session.commit(CommitMode::Wait).unwrap();
                    let mut out = std::io::stdout().lock();
                    out.write_all(format!("{TOLD} {name} {number}\n").as_bytes()).unwrap();
                    out.flush().unwrap();
                }
            });
        }
    });
    unreachable!("jobs go on until killed")
}

/// Runs a life and kills it after `delay`, which begins with its start or its first commit. Returns the highest number of
/// each job that is durable as it was told.
fn live_and_die(dir: &Path, life: u64, after_commits: bool, delay: Duration) -> BTreeMap<u64, u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::every_acknowledged_commit_outlives_200_kills", "--nocapture", "--test-threads=1"])
        .env(DIR, dir)
        .env(LIFE, life.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let (running, runs) = std::sync::mpsc::channel();
    let reading = std::thread::spawn(move || {
        let mut told: BTreeMap<u64, u64> = BTreeMap::new();
        // The last line may be cut off by the kill.
        for line in out.split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8(line).unwrap();
            let Some((_, both)) = line.split_once(TOLD) else { continue };
            let numbers: Vec<u64> = both.split_whitespace().map(|number| number.parse().unwrap()).collect();
            let [name, number] = numbers[..] else { continue };
            assert!((job_name(life, 0)..job_name(life, JOBS)).contains(&name), "the pipe was read right: {line}");
            assert!(told.insert(name, number).is_none_or(|before| before < number));
            let _ = running.send(());
        }
        told
    });
    if after_commits {
        runs.recv_timeout(Duration::from_secs(60)).expect("the child commits");
    }
    std::thread::sleep(delay);
    assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
    child.kill().unwrap();
    child.wait().unwrap();
    reading.join().unwrap()
}

/// Kills all lives of a log and checks it after each. Returns the number of lives with a commit, and of commits.
fn all_lives(log: u64) -> (u64, u64) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut told: BTreeMap<u64, u64> = BTreeMap::new();
    let mut lives_with_commits = 0;
    for life in 1..=LIVES {
        // Every other life is cut off anywhere from before its log is open, the rest in mid-run.
        let delay = Duration::from_micros((log * LIVES + life) * 7919 % 50_000);
        let new = live_and_die(dir.path(), life, life % 2 == 0, delay);
        lives_with_commits += u64::from(!new.is_empty());
        told.extend(new);
        let device = device(dir.path());
        let found = committed(recover(&device).unwrap().map(|record| record.unwrap()));
        for (job, numbers) in &found {
            assert!((1..=life).contains(&(job / 1000)) && job % 1000 < JOBS, "nobody wrote as job {job}");
            assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "job {job}: a hole in {numbers:?}");
        }
        for (job, last) in &told {
            let there = found.get(job).map_or(0, |numbers| numbers.len() as u64);
            assert!(there > *last, "life {life}, job {job}: {there} commits there, {last} was acknowledged");
            // At most one commit that waits, and one that does not, were under way.
            assert!(there <= last + 3, "life {life}, job {job}: {there} commits there, {last} was acknowledged last");
        }
    }
    (lives_with_commits, told.values().sum())
}

#[test]
fn every_acknowledged_commit_outlives_200_kills() {
    if let (Some(dir), Ok(life)) = (std::env::var_os(DIR), std::env::var(LIFE)) {
        child(Path::new(&dir), life.parse().unwrap());
    }
    // Mostly waits: two logs at a time.
    let half = |first| (first..LOGS).step_by(2).map(all_lives).fold((0, 0), |all, log| (all.0 + log.0, all.1 + log.1));
    let (even, odd) = std::thread::scope(|scope| {
        let even = scope.spawn(|| half(0));
        let odd = half(1);
        (even.join().unwrap(), odd)
    });
    let (lives_with_commits, commits) = (even.0 + odd.0, even.1 + odd.1);
    assert!(lives_with_commits >= LOGS * LIVES / 2, "{lives_with_commits} lives got as far as a commit");
    assert!(commits > 1000, "{commits} commits in all");
    println!("{} kills, {lives_with_commits} after a commit, {commits} commits", LOGS * LIVES);
}
