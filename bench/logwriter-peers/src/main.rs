//! Compares loadline's reference log writer with the raw device, RocksDB, fjall, raft-engine and PostgreSQL, in interleaved
//! rounds on one filesystem.
//!
//! `cargo run --release --manifest-path bench/logwriter-peers/Cargo.toml -- [--rounds N --seconds S
//! --dir DIR]`. Debian: `apt-get install librocksdb-dev`; PostgreSQL needs loadline's own release
//! build (`cargo build --release`) and an installed server.

mod harness;
mod ours;
mod postgres;
mod raw;
mod rocksdb;
mod rust_peers;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use loadline_logwriter::device::Via;

use harness::{Contender, Figures, Length, Outcome, duel, measure};
use ours::{Device, Ours};
use postgres::Postgres;
use raw::{Raw, Stream};
use table::Table;

/// LGWR-LAT1: 1.5 KiB of redo per commit.
const LAT1: usize = 1536;
/// LGWR-THR: 480 KiB per commit, which does not wait.
const THR: usize = 480 << 10;
const MIB: usize = 1 << 20;

/// Compares loadline's reference log writer with its peers.
#[derive(Debug, Parser)]
struct Cli {
    /// Rounds; each measures every contestant once, in random order (PostgreSQL in every fifth round).
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Length of each window, in seconds (PostgreSQL: at least 3 s).
    #[arg(long, default_value_t = 0.5)]
    seconds: f64,
    /// Directory for all files [default: the current one].
    #[arg(long)]
    dir: Option<PathBuf>,
    /// loadline's release binary, for PostgreSQL.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/release/loadline"))]
    loadline: PathBuf,
    /// Jobs of the commits that wait.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 32])]
    jobs: Vec<usize>,
    /// Only contestants whose name contains one of these words.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// One short round, only to check that everything works.
    #[arg(long)]
    check: bool,
}

/// Log devices. Verdicts use the fastest one, by default the first.
const DEVICES: [Device; 6] = [
    Device::Fdatasync,
    Device::Dsync,
    Device::DirectDsync(Via::SystemCalls),
    Device::DirectDsync(Via::Auto),
    Device::DirectFdatasync(Via::SystemCalls),
    Device::DirectFdatasync(Via::Auto),
];

fn ours_name(device: Device) -> String {
    format!("loadline, {}", device.name())
}

type Run<'a> = Box<dyn Fn(Length) -> Outcome<Figures> + 'a>;

/// One contestant: its table, name and jobs, how to run it, and in every how many rounds.
struct Contestant<'a> {
    table: usize,
    name: String,
    jobs: usize,
    every: usize,
    run: Run<'a>,
}

fn main() -> ExitCode {
    match bench(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("loadline-logwriter-peers: {e}");
            ExitCode::FAILURE
        }
    }
}

fn bench(cli: &Cli) -> Outcome<()> {
    let (rounds, seconds) = if cli.check { (1, 0.2) } else { (cli.rounds.max(1), cli.seconds) };
    let window = Duration::try_from_secs_f64(seconds).map_err(|e| format!("--seconds {seconds}: {e}"))?;
    let length = Length { warmup: window.min(Duration::from_millis(100)), window };
    let place = cli.dir.clone().map_or_else(std::env::current_dir, Ok)?;
    let root = tempfile::Builder::new().prefix("logwriter-peers-").tempdir_in(&place)?;
    raw::prepare(root.path())?;
    let open = Open::all(root.path())?;
    let written = open.bytes_of_a_commit(length)?;
    eprintln!("in {}: {rounds} rounds of {seconds} s each; {written} bytes a commit of one job", place.display());
    let mut list = lat(cli, &open, root.path(), written);
    list.extend(thr(&open, root.path()));
    list.retain(|c| cli.only.is_empty() || cli.only.iter().any(|word| c.name.contains(word.as_str())));

    let mut tables = [
        Table::new(&format!("Commits that wait, {LAT1} bytes each (LGWR-LAT1)"), "commits/s", 1.0),
        Table::new(
            &format!("Commits that do not wait, {} KiB each (LGWR-THR); raw: writes of 1 MiB", THR >> 10),
            "MiB/s",
            MIB as f64,
        ),
    ];
    for round in 0..rounds {
        // Random order, so that nobody profits from its predecessor.
        let mut order: Vec<usize> = (0..list.len()).collect();
        order.sort_by_key(|i| harness::random((round * 1000 + i) as u64, 8));
        let mut results: Vec<Option<Result<Figures, String>>> = list.iter().map(|_| None).collect();
        for i in order {
            let c = &list[i];
            if round % c.every == 0 {
                settle(root.path())?;
                let result = (c.run)(length).map_err(|e| e.to_string());
                match &result {
                    Ok(f) => {
                        eprintln!("round {} {}, {}: {:.0}/s, {:.1} µs", round + 1, c.name, c.jobs, f.rate, f.cpu_us);
                    }
                    Err(e) => eprintln!("round {} {}, {}: {e}", round + 1, c.name, c.jobs),
                }
                results[i] = Some(result);
            }
        }
        for (c, result) in list.iter().zip(results) {
            tables[c.table].add(&c.name, c.jobs, result);
        }
    }
    let duels = duels(&open, root.path(), written, if cli.check { 1 } else { rounds.div_ceil(3) }, length);
    report(cli, &tables, &duels);
    let measured = |c: &Contestant| tables[c.table].ratio((&c.name, c.jobs), (&c.name, c.jobs), |f| f.rate).is_some();
    match list.iter().find(|c| cli.check && !measured(c)) {
        Some(c) => Err(format!("{}, {} jobs, was not measured: see above", c.name, c.jobs).into()),
        None => Ok(()),
    }
}

/// Lets the filesystem finish the work of the previous contestant.
fn settle(dir: &Path) -> Outcome<()> {
    nix::unistd::syncfs(std::fs::File::open(dir)?)?;
    std::thread::sleep(Duration::from_millis(20));
    Ok(())
}

/// An open peer, or why it could not be opened.
type Peer = (&'static str, Result<Box<dyn Contender>, String>);

/// All contestants that stay open for the whole run.
struct Open {
    logs: Vec<(Device, Result<Ours, String>)>,
    peers: Vec<Peer>,
}

impl Open {
    fn all(root: &Path) -> Outcome<Open> {
        let dir = |name: &str| -> Outcome<PathBuf> {
            let dir = root.join(name);
            std::fs::create_dir(&dir)?;
            Ok(dir)
        };
        let mut logs = Vec::new();
        for device in DEVICES {
            let log = Ours::open(device, &dir(&format!("log-{}", logs.len()))?);
            logs.push((device, log.and_then(|log| log.fill().map(|()| log)).map_err(|e| e.to_string())));
        }
        let peer = |name, open: fn(&Path) -> Outcome<Box<dyn Contender>>| {
            (name, dir(name).and_then(|dir| open(&dir)).map_err(|e| e.to_string()))
        };
        let peers = vec![
            peer("RocksDB", rocksdb::open),
            peer("fjall", rust_peers::fjall),
            peer("raft-engine", rust_peers::raft_engine),
        ];
        Ok(Open { logs, peers })
    }

    /// Bytes written by a commit of a single job; the raw writer writes the same.
    fn bytes_of_a_commit(&self, length: Length) -> Outcome<usize> {
        let log = self.logs.iter().find_map(|(_, log)| log.as_ref().ok()).ok_or("no log device can be opened")?;
        let (figures, log_bytes) = measure(log, 1, LAT1, length)?;
        Ok(((log_bytes / figures.rate).round() as usize).next_multiple_of(4096))
    }
}

/// Commits that wait.
fn lat<'a>(cli: &'a Cli, open: &'a Open, root: &'a Path, written: usize) -> Vec<Contestant<'a>> {
    let mut list = Vec::new();
    let mut add = |name: String, jobs, every, run: Run<'a>| list.push(Contestant { table: 0, name, jobs, every, run });
    for raw in [Raw::Fdatasync, Raw::Dsync, Raw::DirectDsync] {
        let stream = Stream::new(raw, root, written);
        let run = move |length| Ok(measure(&stream, 1, written, length)?.0);
        add(format!("raw, {}", raw.name()), 1, 1, Box::new(run));
    }
    for jobs in cli.jobs.iter().copied() {
        for (device, log) in &open.logs {
            let run = move |length| Ok(measure(log.as_ref().map_err(Clone::clone)?, jobs, LAT1, length)?.0);
            add(ours_name(*device), jobs, 1, Box::new(run));
        }
        for (name, peer) in &open.peers {
            let run = move |length| Ok(measure(peer.as_ref().map_err(Clone::clone)?.as_ref(), jobs, LAT1, length)?.0);
            add((*name).to_owned(), jobs, 1, Box::new(run));
        }
        let run = move |length: Length| {
            // A server needs time to warm up: slices below 3 s are useless.
            let window = if cli.check { length.window } else { length.window.max(Duration::from_secs(3)) };
            Postgres::find(&cli.loadline)?.run(root, jobs, Length { window, ..length })
        };
        add("PostgreSQL, in-database".into(), jobs, 5, Box::new(run));
    }
    list
}

/// Commits that do not wait.
fn thr<'a>(open: &'a Open, root: &Path) -> Vec<Contestant<'a>> {
    let stream = Stream::new(Raw::Direct, root, MIB);
    let run = move |length| {
        let (figures, _) = measure(&stream, 1, MIB, length)?;
        Ok(Figures { rate: figures.rate * MIB as f64, ..figures })
    };
    let name = format!("raw, {}", Raw::Direct.name());
    let mut list = vec![Contestant { table: 1, name, jobs: 1, every: 1, run: Box::new(run) }];
    for jobs in [1, 2, 4] {
        for (device, log) in &open.logs {
            // Count what became durable in the window, not what was handed over.
            let run = move |length| {
                let (figures, rate) = measure(&log.as_ref().map_err(Clone::clone)?.nowait(), jobs, THR, length)?;
                Ok(Figures { rate, ..figures })
            };
            list.push(Contestant { table: 1, name: ours_name(*device), jobs, every: 1, run: Box::new(run) });
        }
    }
    list
}

/// loadline's log with one job, alternating with a raw stream that syncs in the same way: device, name of the raw stream,
/// and ratios per round.
type Duel = (Device, &'static str, Vec<Result<f64, String>>);

fn duels(open: &Open, root: &Path, written: usize, rounds: usize, length: Length) -> Vec<Duel> {
    let raw = |device| match device {
        Device::Fdatasync => Raw::Fdatasync,
        Device::Dsync => Raw::Dsync,
        Device::DirectDsync(_) => Raw::DirectDsync,
        Device::DirectFdatasync(_) => Raw::DirectFdatasync,
    };
    let mut list: Vec<Duel> = DEVICES.iter().map(|d| (*d, raw(*d).name(), Vec::new())).collect();
    let length = Length { window: length.window * 3, ..length };
    for _ in 0..rounds {
        for ((device, _, ratios), (_, log)) in list.iter_mut().zip(&open.logs) {
            let stream = Stream::new(raw(*device), root, written);
            let result = log.as_ref().map_err(Clone::clone).and_then(|log| {
                let (ours, raw) = duel((log, LAT1), (&stream, written), length).map_err(|e| e.to_string())?;
                eprintln!("in turns: {}: {ours:.0}/s, raw {raw:.0}/s", ours_name(*device));
                Ok(ours / raw)
            });
            ratios.push(result);
        }
    }
    list
}

/// Prints both tables, and compares the results with the goals of issue 4.
fn report(cli: &Cli, tables: &[Table; 2], duels: &[Duel]) {
    let [lat, thr] = tables;
    let raw = format!("raw, {}", Raw::Fdatasync.name());
    let sequential = format!("raw, {}", Raw::Direct.name());
    let rate = |f: &Figures| f.rate;
    let best = |table: &Table, base: (&str, usize), jobs: usize| {
        let ratio = |d: &Device| table.ratio((&ours_name(*d), jobs), base, rate).map(|r| (*d, r));
        DEVICES.iter().filter_map(ratio).max_by(|a, b| a.1.total_cmp(&b.1))
    };
    let many = cli.jobs.iter().copied().max().unwrap_or(1);
    let chosen = best(lat, (&raw, 1), many).map_or(Device::Fdatasync, |(d, _)| d);
    let name = ours_name(chosen);
    print!("\n{}", lat.text(&[(&raw, 1, "to raw"), (&name, 1, "to loadline, 1"), (&name, many, "to loadline, all")]));
    print!("\n{}\n", thr.text(&[(&sequential, 1, "to raw")]));
    let say = |what: &str, found: Option<f64>, wanted: f64, least: bool| {
        let met = found.map(|f| if least { f >= wanted } else { f < wanted });
        let met = match met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "not measured",
        };
        let found = found.map_or_else(|| "–".to_owned(), |f| format!("{f:.3}"));
        println!("{met:>12}  {found:>7} {} {wanted}  {what}", if least { "≥" } else { "<" });
    };
    println!("loadline below is '{name}', the fastest at {many} jobs; each figure is a median over the rounds");
    for (device, raw, ratios) in duels {
        let found = table::median(ratios.iter().filter_map(|r| r.as_ref().ok().copied()).collect());
        let what = format!("{}, 1 job, to raw {raw}, same bytes, in turns of a few commits", ours_name(*device));
        say(&what, found, 0.95, true);
        if let Some(Err(why)) = ratios.iter().find(|r| r.is_err()) {
            println!("{:>12}  {what}: {why}", "failed");
        }
    }
    say(&format!("{many} jobs to one raw stream"), lat.ratio((&name, many), (&raw, 1), rate), 3.0, true);
    for peer in ["RocksDB", "fjall", "raft-engine", "PostgreSQL, in-database"] {
        for jobs in cli.jobs.iter().copied() {
            say(&format!("commits/s to {peer}, {jobs} jobs"), lat.ratio((&name, jobs), (peer, jobs), rate), 1.0, true);
            say(
                &format!("CPU a commit to {peer}, {jobs} jobs"),
                lat.cpu_ratio((&name, jobs), (peer, jobs)),
                1.0,
                false,
            );
        }
    }
    for jobs in [1, 2, 4] {
        let found = best(thr, (&sequential, 1), jobs);
        let on = found.map_or("no device", |(d, _)| d.name());
        say(&format!("THR with {jobs} jobs to the rate of sequential writes ({on})"), found.map(|(_, r)| r), 0.9, true);
    }
}
