//! Kills a private primary while jobs commit, and asks a standby, as after a failover, for what was acknowledged.
//!
//! Each job changes a row of its own and counts the commits that returned; the row counts its changes. A commit that was
//! acknowledged and is missing at the standby is lost. At levels that wait for the standby there must be none.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};
use std::thread::sleep;
use std::time::{Duration, Instant};

use loadline_database::{OpenRequest, Target, Work, kind_of, open};
use loadline_model::Random;
use loadline_workload::Arg;
use nix::sys::signal::{Signal, kill};

use super::{PATIENCE, settled};
use crate::arena::{Outcome, processes, said_by};
use crate::outcomes::head;
use crate::{pgbench, sysbench};

#[derive(Debug, clap::Args)]
pub(super) struct PrimaryArgs {
    /// Kills at each level
    #[arg(long, default_value_t = 20)]
    kills: u32,
    /// postgres-temp: or mariadb-temp:
    #[arg(long, default_value = "postgres-temp:")]
    target: String,
    /// Levels, or `baseline`, which waits for no replica; by default that and all of one replica
    #[arg(long, value_delimiter = ',')]
    level: Vec<String>,
    /// Standbys: the first is asked, or of a quorum all
    #[arg(long, default_value_t = 1)]
    replicas: u32,
    /// Jobs
    #[arg(long, default_value_t = 4)]
    jobs: u32,
    /// One-way delay of the link, ms
    #[arg(long, default_value_t = 0.0)]
    delay: f64,
    /// Longest time under load before a kill, ms
    #[arg(long, default_value_t = 300)]
    under_load: u64,
    /// Folder for the private servers
    #[arg(long, default_value = "loadline-results")]
    results: PathBuf,
}

const BASELINE: &str = "baseline";

pub(super) fn run(args: &PrimaryArgs) -> Outcome<()> {
    std::fs::create_dir_all(&args.results)?;
    let mut request = OpenRequest::new(&args.target, std::path::absolute(&args.results)?);
    request.replicas = args.replicas;
    let work = Work::from_catalogue("LGWR-LAT1", &[])?;
    let known = kind_of(&args.target)?.levels();
    let of_one = known.iter().filter(|level| level.replicas < 2).map(|level| level.name.clone());
    let all = || std::iter::once(BASELINE.to_owned()).chain(of_one).collect();
    let levels: Vec<String> = if args.level.is_empty() { all() } else { args.level.clone() };
    let delay = Duration::from_secs_f64(args.delay / 1000.0);
    let mut random = Random::new(42);
    let mut sum_lost = 0;
    println!("{}", head("level | kills | acknowledged commits | lost | kills with a loss"));
    for level in &levels {
        let (mut acknowledged, mut lost, mut with_loss) = (0, 0, 0);
        for _ in 0..args.kills {
            let target = open(&request)?;
            target.create(&work)?;
            target.load(&work, args.jobs)?;
            let replication = target.abilities().levels.ok_or("no replicas")?;
            replication.bring_about(Some(level.as_str()).filter(|l| *l != BASELINE), delay)?;
            let time = Duration::from_millis(50 + random.below(args.under_load));
            let data = PathBuf::from(target.info()?.data_dir.ok_or("no data directory")?);
            let replicas = replicas_beside(&data)?;
            let before = counts(&replicas, &work, args.jobs)?;
            let done = commit_until_killed(target.as_ref(), &work, args.jobs, time, &data)?;
            let after = counts(&replicas, &work, args.jobs)?;
            // A job's last commit may have arrived without having been acknowledged.
            let missing = |job: usize| done[job].saturating_sub(after[job].saturating_sub(before[job]));
            let missing: u64 = (0..done.len()).map(missing).sum();
            acknowledged += done.iter().sum::<u64>();
            lost += missing;
            with_loss += u32::from(missing > 0);
        }
        println!("| {level} | {} | {acknowledged} | {lost} | {with_loss} |", args.kills);
        if known.iter().any(|l| l.name == *level && l.waits_for > 0) {
            sum_lost += lost;
        }
    }
    if sum_lost > 0 {
        return Err(format!("{sum_lost} commits are lost that a replica had confirmed").into());
    }
    Ok(())
}

/// Folders of the sockets of the replicas of a private primary with this `data` folder; of PostgreSQL's in the order of their names.
pub(super) fn replicas_beside(data: &Path) -> Outcome<Vec<PathBuf>> {
    let primary = data.parent().ok_or("no folder")?;
    let mut found = Vec::new();
    for entry in std::fs::read_dir(primary.parent().ok_or("no folder")?)? {
        let dir = entry?.path();
        let config = std::fs::read_to_string(dir.join("postgresql.conf")).unwrap_or_default();
        let name = config.split_once("primary_slot_name = '").and_then(|(_, rest)| rest.split_once('\''));
        if name.is_some() || dir != primary && dir.join("socket/s").exists() {
            found.push((name.map(|(name, _)| name.to_owned()), dir.join("socket")));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, socket)| socket).collect())
}

/// Changes of each job's row, as the replicas have them that a failover would choose: the one that has most.
fn counts(replicas: &[PathBuf], work: &Work, jobs: u32) -> Outcome<Vec<u64>> {
    let mut best = vec![0; jobs as usize];
    let ids: Vec<String> = (0..jobs).map(|job| work.start(job).first_key.to_string()).collect();
    let rows = format!("SELECT n FROM loadline.lgwr_lat1_redo WHERE id IN ({}) ORDER BY id", ids.join(", "));
    for replica in replicas {
        // The position must stand still, and what was received must be applied.
        let state = if is_mariadb(replica) {
            "SELECT @@gtid_slave_pos, (SELECT SUM(n) FROM loadline.lgwr_lat1_redo), (SELECT STATE FROM \
             information_schema.PROCESSLIST WHERE COMMAND = 'Slave_SQL')"
        } else {
            "SELECT pg_last_wal_replay_lsn(), (SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming')"
        };
        let (begin, mut last, mut same) = (Instant::now(), String::new(), 0);
        while same < 3 {
            if begin.elapsed() > PATIENCE {
                return Err(format!("what the replica applies does not stand still: {last}").into());
            }
            let now = ask(replica, state)?;
            // Of MariaDB's words: it waits for more, and has applied all that it received.
            let idle = !is_mariadb(replica) || now.contains("has read all relay log");
            same = if now == last && idle { same + 1 } else { 0 };
            last = now;
        }
        let found: Vec<u64> = ask(replica, &rows)?.lines().map(str::parse).collect::<Result<_, _>>()?;
        best.iter_mut().zip(found).for_each(|(best, n)| *best = n.max(*best));
    }
    Ok(best)
}

/// Whether the server whose socket is in `folder` is a MariaDB.
fn is_mariadb(folder: &Path) -> bool {
    folder.join("s").exists()
}

/// Answer of the server whose socket is in `folder`.
pub(super) fn ask(folder: &Path, sql: &str) -> Outcome<String> {
    if is_mariadb(folder) {
        return said_by(sysbench::mariadb(&folder.join("s")).args(["-e", sql]), "apt-get install mariadb-server");
    }
    let place = ["-h", &folder.display().to_string(), "-U", "postgres", "postgres"].map(str::to_owned);
    said_by(pgbench::psql(&place)?.args(["-c", sql]), pgbench::MISSING)
}

/// Lets the jobs commit for `time`, kills all processes of the primary with this `data` folder, as a crash of its machine would, and
/// returns how many commits each had acknowledged.
fn commit_until_killed(target: &dyn Target, work: &Work, jobs: u32, time: Duration, data: &Path) -> Outcome<Vec<u64>> {
    let sessions = (0..jobs).map(|job| target.client_session(work, job)).collect::<Result<Vec<_>, _>>()?;
    let start = Arc::new(Barrier::new(jobs as usize + 1));
    let threads: Vec<_> = sessions
        .into_iter()
        .zip(0..)
        .map(|(mut session, job)| {
            let (start, id) = (Arc::clone(&start), work.start(job).first_key);
            std::thread::spawn(move || {
                start.wait();
                let mut done = 0_u64;
                while session.execute_and_commit(0, &[Arg::Bytes(&done.to_ne_bytes()), Arg::Int(id)]).is_ok() {
                    done += 1;
                }
                done
            })
        })
        .collect();
    start.wait();
    sleep(time);
    let left = settled(|| {
        let all = processes(data);
        for process in &all {
            let _ = kill(*process, Signal::SIGKILL);
        }
        Ok(all)
    })?;
    if !left.is_empty() {
        return Err(format!("processes of the primary do not end: {left:?}").into());
    }
    threads.into_iter().map(|thread| thread.join().map_err(|_| "a job panicked".into())).collect()
}
