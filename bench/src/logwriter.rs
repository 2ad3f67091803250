//! The reference log writer beside raw streams of writes, RocksDB and PostgreSQL, on one filesystem.

mod harness;
mod ours;
mod raw;
#[cfg(feature = "rocksdb")]
mod rocksdb;

use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_logwriter::device::file::Via;
use loadline_model::{Driver, column};
use loadline_storage::Access;

use self::harness::{Contender, Figures, Length, duel, measure};
use self::ours::Ours;
use self::raw::Stream;
use crate::arena::{Arena, ArenaArgs, Outcome};
use crate::rounds::{Contest, Figure, Rounds};

/// LGWR-LAT1: 1.5 KiB of redo per commit.
const LAT1: usize = 1536;
/// LGWR-THR: 480 KiB per commit, which does not wait.
const THR: usize = 480 << 10;
const MIB: usize = 1 << 20;

/// Options of the comparison.
#[derive(Debug, clap::Args)]
pub(crate) struct LogWriterArgs {
    /// Rounds; in each, every contender runs once at each number of jobs
    #[arg(long, default_value_t = 15)]
    rounds: u32,
    /// Seconds per measurement (PostgreSQL: at least 3)
    #[arg(long, default_value_t = 0.5)]
    seconds: f64,
    /// Directory for all files
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Jobs of the commits that wait
    #[arg(long, value_delimiter = ',', default_values_t = [1, 32])]
    jobs: Vec<u32>,
    /// Only log devices whose name contains one of these words
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

/// How a write becomes durable.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    /// `O_DIRECT` by this interface; through the page cache without.
    direct: Option<Via>,
    /// `O_DSYNC`, not fdatasync.
    dsync: bool,
}

const WAYS: [Way; 6] = [
    Way { name: "fdatasync", direct: None, dsync: false },
    Way { name: "O_DSYNC", direct: None, dsync: true },
    Way { name: "O_DIRECT + O_DSYNC, pwrite", direct: Some(Via::SystemCalls), dsync: true },
    Way { name: "O_DIRECT + O_DSYNC, io_uring", direct: Some(Via::Auto), dsync: true },
    Way { name: "O_DIRECT + fdatasync, pwrite", direct: Some(Via::SystemCalls), dsync: false },
    Way { name: "O_DIRECT + fdatasync, io_uring", direct: Some(Via::Auto), dsync: false },
];

/// Measures so many jobs once.
type Run<'a> = Box<dyn Fn(u32) -> Outcome<Figures> + 'a>;

/// A name, and how it is measured.
type Entry<'a> = (String, Run<'a>);

/// Contestants that stay open for the whole run.
struct Open<'a> {
    args: &'a LogWriterArgs,
    root: &'a Path,
    length: Length,
    logs: Vec<(Way, Ours)>,
    /// Writes of the bytes of a commit, synced in the way of the log with the same number.
    synced: Vec<Stream>,
}

pub(crate) fn run(args: &LogWriterArgs) -> Outcome<()> {
    let window = Duration::try_from_secs_f64(args.seconds)?;
    let length = Length { warmup: window.min(Duration::from_millis(100)), window };
    let root = tempfile::Builder::new().prefix("logwriter-").tempdir_in(&args.dir)?;
    let mut open = Open { args, root: root.path(), length, logs: Vec::new(), synced: Vec::new() };
    let is_wanted = |way: &Way| args.only.is_empty() || args.only.iter().any(|word| way.name.contains(word.as_str()));
    for way in WAYS.into_iter().filter(is_wanted) {
        open.logs.extend(there(way.name, Ours::open(way, &open.folder("log", way.name)?)).map(|log| (way, log)));
    }
    let (_, first) = open.logs.first().ok_or("no log device can be opened")?;
    let of_one = measure(first, 1, LAT1, length)?;
    let bytes = ((of_one.log_mib * MIB as f64 / of_one.rate).round() as usize).next_multiple_of(4096);
    for (way, _) in &open.logs {
        let access = Access { direct: way.direct.is_some(), dsync: way.dsync, ..Access::default() };
        open.synced.push(Stream::new(access, !way.dsync, &open.folder("raw", way.name)?, bytes)?);
    }
    println!("{bytes} bytes a commit of one job, {} s a measurement, {} rounds", args.seconds, args.rounds);
    open.turns()?;
    open.waiting()?;
    open.not_waiting()
}

/// The opened contender; without one the reason is printed.
fn there<T>(name: &str, opened: Outcome<T>) -> Option<T> {
    opened.inspect_err(|why| eprintln!("without {name}: {why}")).ok()
}

impl Open<'_> {
    fn folder(&self, kind: &str, name: &str) -> Outcome<PathBuf> {
        let folder = self.root.join(format!("{kind} {name}"));
        std::fs::create_dir(&folder)?;
        Ok(folder)
    }

    /// A contender by one of its ways.
    fn entry<'a>(&self, name: &str, contender: &'a dyn Contender, bytes: usize) -> Entry<'a> {
        let length = self.length;
        (name.to_owned(), Box::new(move |jobs| measure(contender, jobs, bytes, length)))
    }

    /// Each log with one job and the raw stream of its way, alternating every few commits on one thread.
    fn turns(&self) -> Outcome<()> {
        let length = Length { window: self.length.window * 3, ..self.length };
        let points = self.logs.iter().map(|(way, _)| way.name.to_owned()).collect();
        let contest =
            Contest { points, contenders: vec!["raw", "loadline"], figures: &[("commits/s", |rate| *rate, 0)] };
        let mut all: Rounds<f64> = self.logs.iter().map(|_| vec![Vec::new(), Vec::new()]).collect();
        for _ in 0..self.args.rounds.div_ceil(3) {
            for (((_, log), stream), found) in self.logs.iter().zip(&self.synced).zip(&mut all) {
                let rates = duel([(stream, stream.bytes), (log, LAT1)], length)?;
                found.iter_mut().zip(rates).for_each(|(of_one, rate)| of_one.push(rate));
            }
        }
        println!("\nCommits that wait, one job in turns of a few commits with a raw stream: at least 0.97");
        contest.print(&all, [(1, 0)]);
        Ok(())
    }

    /// Commits that wait: each log to the peers and to one raw stream.
    fn waiting(&self) -> Outcome<()> {
        #[cfg(feature = "rocksdb")]
        let rocksdb = rocksdb::RocksDb::open(&self.folder("peer", "RocksDB")?)?;
        let mut peers: Vec<Entry<'_>> = vec![self.entry("raw", &self.synced[0], self.synced[0].bytes)];
        #[cfg(feature = "rocksdb")]
        peers.push(self.entry("RocksDB", &rocksdb, LAT1));
        peers.extend(there("PostgreSQL", self.postgres()).map(|run| ("PostgreSQL".to_owned(), run)));
        let logs = self.logs.iter().map(|(way, log)| self.entry(way.name, log, LAT1)).collect();
        println!("\nCommits that wait: 1 at least to each peer, with many jobs 3 to raw; CPU below 1");
        self.contest(peers, logs, &self.args.jobs, &[("commits/s", |f| f.rate, 0), ("CPU µs", |f| f.cpu_us, 1)])
    }

    /// Commits that do not wait: what became durable in the window, not what was handed over.
    fn not_waiting(&self) -> Outcome<()> {
        let access = Access { direct: true, ..Access::default() };
        let raw = |name, bytes| Stream::new(access, false, &self.folder("raw", name)?, bytes);
        // The log's groups grow to about 4 MiB.
        let raws = [("raw 1 MiB", raw("1 MiB", MIB)?), ("raw 4 MiB", raw("4 MiB", 4 * MIB)?)];
        let peers = raws.iter().map(|(name, stream)| self.entry(name, stream, stream.bytes)).collect();
        let logs: Vec<(Way, Ours)> = self.logs.iter().map(|(way, log)| (*way, log.nowait())).collect();
        let logs = logs.iter().map(|(way, log)| self.entry(way.name, log, THR)).collect();
        println!("\nCommits that do not wait: 0.9 at least to raw 1 MiB");
        self.contest(peers, logs, &[1, 2, 4], &[("MiB/s", |f| f.log_mib, 0)])
    }

    fn contest(
        &self,
        peers: Vec<Entry<'_>>,
        logs: Vec<Entry<'_>>,
        jobs: &[u32],
        figures: &[Figure<Figures>],
    ) -> Outcome<()> {
        let count = peers.len();
        let all: Vec<Entry<'_>> = peers.into_iter().chain(logs).collect();
        let contest = Contest {
            points: jobs.iter().map(|jobs| format!("{jobs} jobs")).collect(),
            contenders: all.iter().map(|(name, _)| name.as_str()).collect(),
            figures,
        };
        let found = contest.measure(self.args.rounds, |point, contender| {
            // The filesystem finishes the work of the contender before.
            nix::unistd::syncfs(std::fs::File::open(self.root)?)?;
            std::thread::sleep(Duration::from_millis(20));
            (all[contender].1)(jobs[point])
        })?;
        contest.print(&found, (count..all.len()).flat_map(|ours| (0..count).map(move |peer| (ours, peer))));
        Ok(())
    }

    /// LGWR-LAT1 inside a private PostgreSQL.
    fn postgres(&self) -> Outcome<Run<'static>> {
        let args = ArenaArgs {
            clients: self.args.jobs.clone(),
            seconds: (self.args.seconds.ceil() as u32).max(3),
            rounds: self.args.rounds,
            results: self.root.to_owned(),
        };
        let arena = Arena::open("postgres-temp:", "LGWR-LAT1", &args, true)?;
        Ok(Box::new(move |jobs| {
            let record = arena.measured(Driver::Database, jobs, args.seconds)?;
            let figure = |column| record.figure(column).unwrap_or(f64::NAN);
            let cpu =
                [column::SERVER_CPU_USER_US_PER_TX, column::SERVER_CPU_SYS_US_PER_TX, column::CLIENT_CPU_US_PER_TX];
            let cpu_us = cpu.into_iter().map(figure).sum();
            Ok(Figures { rate: figure(column::COMMIT_THROUGHPUT_TPS), cpu_us, log_mib: f64::NAN })
        }))
    }
}
