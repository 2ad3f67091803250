//! Kills a private primary while jobs commit, and asks a standby, as after a failover, for what was acknowledged.
//!
//! Each job changes a row of its own and counts the commits that returned; the row counts its changes. A commit that was
//! acknowledged and is missing at the standby is lost. At levels that wait for the standby there must be none.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use loadline_database::{Link, OpenRequest, Target, Work, kind_of, open};
use loadline_workload::Arg;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::arena::{Outcome, children, said_by};
use crate::{pgbench, sysbench};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
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
/// Time for the standby to replay what it has received.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn run(args: &Args) -> Outcome<()> {
    std::fs::create_dir_all(&args.results)?;
    let mut request = OpenRequest::new(&args.target, std::path::absolute(&args.results)?);
    request.replicas = args.replicas;
    let work = Work::of("LGWR-LAT1", &[])?;
    let known = (kind_of(&args.target)?.levels)();
    let of_one = known.iter().filter(|level| level.replicas < 2).map(|level| level.name.clone());
    let all = || std::iter::once(BASELINE.to_owned()).chain(of_one).collect();
    let levels: Vec<String> = if args.level.is_empty() { all() } else { args.level.clone() };
    let link = Link { delay: Duration::from_secs_f64(args.delay / 1000.0), ..Link::default() };
    let mut draw = 42_u64;
    let mut sum_lost = 0;
    println!("| level | kills | acknowledged commits | lost | kills with a loss |\n| --- | --- | --- | --- | --- |");
    for level in &levels {
        let (mut acknowledged, mut lost, mut with_loss) = (0, 0, 0);
        for _ in 0..args.kills {
            let target = open(&request)?;
            target.create(&work)?;
            target.load(&work, args.jobs)?;
            target
                .abilities()
                .replication
                .ok_or("no replicas")?
                .bring_about(Some(level.as_str()).filter(|l| *l != BASELINE), link)?;
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let time = Duration::from_millis(50 + (draw >> 33) % args.under_load.max(1));
            let primary = PathBuf::from(target.info()?.data_dir.ok_or("no data directory")?);
            let servers = Servers::beside(&primary)?;
            let before = servers.counts(&work, args.jobs)?;
            let done = commit_until_killed(target.as_ref(), &work, args.jobs, time, &servers)?;
            let after = servers.counts(&work, args.jobs)?;
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

/// A private primary and its replicas.
struct Servers {
    is_postgres: bool,
    /// Process of the primary.
    primary: i32,
    /// Sockets of the replicas; of PostgreSQL their folders.
    replicas: Vec<PathBuf>,
}

impl Servers {
    /// Those beside the primary with this data folder.
    fn beside(primary: &Path) -> Outcome<Servers> {
        let postmaster = primary.join("postmaster.pid");
        let folder = primary.ancestors().nth(2).ok_or("no folder")?;
        if postmaster.exists() {
            let file = std::fs::read_to_string(postmaster)?;
            let primary = file.lines().next().unwrap_or_default().trim().parse()?;
            return Ok(Servers { is_postgres: true, primary, replicas: standbys_in(folder)? });
        }
        let own = primary.parent().ok_or("no folder")?.join("socket/s");
        let mut replicas = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let socket = entry?.path().join("socket/s");
            if socket.exists() && socket != own {
                replicas.push(socket);
            }
        }
        let file = mariadb(&own, "SELECT @@pid_file")?;
        let primary = std::fs::read_to_string(file)?.trim().parse()?;
        Ok(Servers { is_postgres: false, primary, replicas })
    }

    /// Changes of each job's row, as the replicas have them that a failover would choose: the one that has most.
    fn counts(&self, work: &Work, jobs: u32) -> Outcome<Vec<u64>> {
        let mut best = vec![0; jobs as usize];
        let ids: Vec<String> = (0..jobs).map(|job| work.start(job).first_key.to_string()).collect();
        let rows = format!("SELECT n FROM loadline.lgwr_lat1_redo WHERE id IN ({}) ORDER BY id", ids.join(", "));
        for replica in &self.replicas {
            // The position must stand still, and what was received must be applied.
            let state = if self.is_postgres {
                "SELECT pg_last_wal_replay_lsn(), (SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming')"
            } else {
                "SELECT @@gtid_slave_pos, (SELECT SUM(n) FROM loadline.lgwr_lat1_redo), (SELECT STATE FROM \
                 information_schema.PROCESSLIST WHERE COMMAND = 'Slave_SQL')"
            };
            let (begin, mut last, mut same) = (Instant::now(), String::new(), 0);
            while same < 3 {
                if begin.elapsed() > PATIENCE {
                    return Err(format!("what the replica applies does not stand still: {last}").into());
                }
                let now = self.ask(replica, state)?;
                // Of MariaDB's words: it waits for more, and has applied all that it received.
                let idle = self.is_postgres || now.contains("has read all relay log");
                same = if now == last && idle { same + 1 } else { 0 };
                last = now;
            }
            let found: Vec<u64> = self.ask(replica, &rows)?.lines().map(str::parse).collect::<Result<_, _>>()?;
            best.iter_mut().zip(found).for_each(|(best, n)| *best = n.max(*best));
        }
        Ok(best)
    }

    fn ask(&self, replica: &Path, sql: &str) -> Outcome<String> {
        if self.is_postgres { psql(replica, sql) } else { mariadb(replica, sql) }
    }
}

/// Folders of the sockets of PostgreSQL's standbys in `folder`.
fn standbys_in(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let dir = entry?.path();
        if dir.join("data/standby.signal").exists() {
            // standby1 is the first that levels name.
            let name = std::fs::read_to_string(dir.join("postgresql.conf"))?;
            let name = name.split_once("primary_slot_name = '").and_then(|(_, rest)| rest.split_once('\''));
            found.push((name.map(|(name, _)| name.to_owned()), dir.join("socket")));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, socket)| socket).collect())
}

fn psql(socket: &Path, sql: &str) -> Outcome<String> {
    let place = ["-h", &socket.display().to_string(), "-U", "postgres", "postgres"].map(str::to_owned);
    said_by(pgbench::psql(&place)?.args(["-c", sql]), pgbench::MISSING)
}

fn mariadb(socket: &Path, sql: &str) -> Outcome<String> {
    said_by(sysbench::mariadb(socket).args(["-e", sql]), "apt-get install mariadb-server")
}

/// Lets the jobs commit for `time`, kills all processes of the primary, and returns how many commits each had acknowledged.
fn commit_until_killed(
    target: &dyn Target,
    work: &Work,
    jobs: u32,
    time: Duration,
    servers: &Servers,
) -> Outcome<Vec<u64>> {
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
    std::thread::sleep(time);
    kill_all(servers.primary)?;
    threads.into_iter().map(|thread| thread.join().map_err(|_| "a job panicked".into())).collect()
}

/// Kills a server at once, as a crash of its machine would, and waits until no process is left.
fn kill_all(primary: i32) -> Outcome<()> {
    // Its processes are in process groups of their own.
    let mut all = vec![primary];
    all.extend(children(primary));
    for pid in &all {
        let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
    }
    // One that began meanwhile ends when it notices.
    let begin = Instant::now();
    while all.iter().any(|pid| lives(*pid)) {
        if begin.elapsed() > PATIENCE {
            return Err("processes of the primary do not end".into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}
