//! Compares loadline's reference log writer with the raw device, RocksDB and PostgreSQL, in interleaved
//! rounds on one filesystem.
//!
//! `cargo run --release --manifest-path bench/logwriter-peers/Cargo.toml -- [--rounds N --seconds S
//! --dir DIR]`. Debian: `apt-get install librocksdb-dev`; PostgreSQL needs loadline's own release
//! build (`cargo build --release`) and an installed server.

mod harness;
mod open;
mod ours;
mod pairs;
mod postgres;
mod raw;
mod rocksdb;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use harness::{Figures, Length, Outcome, measure};
use open::{DEVICES, LAT1, MIB, Open, SEQUENTIAL, ours_name};
use ours::Device;
use pairs::Pairs;
use postgres::Postgres;
use raw::Raw;
use table::Table;

/// LGWR-THR: 480 KiB per commit, which does not wait.
const THR: usize = 480 << 10;

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
    /// Parts to run [default: all].
    #[arg(long, value_enum, value_delimiter = ',', hide_default_value = true, default_values_t = [Part::Lat, Part::Thr, Part::Turns, Part::Postgres])]
    parts: Vec<Part>,
    /// Only contestants whose name contains one of these words.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// One short round, only to check that everything works.
    #[arg(long)]
    check: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Commits that wait.
    Lat,
    /// Commits that do not wait.
    Thr,
    /// One job and a raw stream on one thread, in turns of a few commits.
    Turns,
    /// One job between two slices of it and PostgreSQL.
    Postgres,
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
    let mut open = Open::all(root.path())?;
    let written = open.bytes_of_a_commit(length)?;
    open.raws(root.path(), written)?;
    eprintln!("in {}: {rounds} rounds of {seconds} s each; {written} bytes a commit of one job", place.display());
    let mut list = if cli.parts.contains(&Part::Lat) { lat(cli, &open, root.path()) } else { Vec::new() };
    if cli.parts.contains(&Part::Thr) {
        list.extend(thr(&open));
    }
    list.retain(|c| cli.only.is_empty() || cli.only.iter().any(|word| c.name.contains(word.as_str())));

    let mut tables = [
        Table::new(&format!("Commits that wait, {LAT1} bytes each (LGWR-LAT1)"), "commits/s", 1.0),
        Table::new(&format!("Commits that do not wait, {} KiB each (LGWR-THR)", THR >> 10), "MiB/s", MIB as f64),
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
    let chosen = |d: &Device| cli.only.is_empty() || cli.only.iter().any(|word| ours_name(*d).contains(word.as_str()));
    let devices: Vec<Device> = DEVICES.into_iter().filter(chosen).collect();
    let mut pairs = Vec::new();
    if cli.parts.contains(&Part::Turns) {
        pairs.extend(pairs::turns(&open, &devices, rounds.div_ceil(3), length));
    }
    if cli.parts.contains(&Part::Postgres) {
        pairs.extend(pairs::postgres(&open, &devices, &cli.loadline, root.path(), rounds, length));
    }
    report(cli, &tables, &pairs);
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

/// Commits that wait.
fn lat<'a>(cli: &'a Cli, open: &'a Open, root: &'a Path) -> Vec<Contestant<'a>> {
    let mut list = Vec::new();
    let mut add = |name: String, jobs, every, run: Run<'a>| list.push(Contestant { table: 0, name, jobs, every, run });
    for raw in [Raw::Fdatasync, Raw::Dsync, Raw::DirectDsync] {
        let run = move |length| {
            let stream = open.raw(raw)?;
            Ok(measure(stream, 1, stream.bytes, length)?.0)
        };
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
fn thr<'a>(open: &'a Open) -> Vec<Contestant<'a>> {
    let mut list = Vec::new();
    for (raw, bytes) in SEQUENTIAL {
        let run = move |length| {
            let (figures, _) = measure(open.raw(raw)?, 1, bytes, length)?;
            Ok(Figures { rate: figures.rate * bytes as f64, ..figures })
        };
        let name = format!("raw, {}", raw.name());
        list.push(Contestant { table: 1, name, jobs: 1, every: 1, run: Box::new(run) });
    }
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

/// Prints both tables, and compares the results with the goals.
fn report(cli: &Cli, tables: &[Table; 2], pairs: &[Pairs]) {
    let [lat, thr] = tables;
    let raw = format!("raw, {}", Raw::Fdatasync.name());
    let [sequential, large] = SEQUENTIAL.map(|(raw, _)| format!("raw, {}", raw.name()));
    let rate = |f: &Figures| f.rate;
    let many = cli.jobs.iter().copied().max().unwrap_or(1);
    let ratios = DEVICES.iter().filter_map(|d| Some((*d, lat.ratio((&ours_name(*d), many), (&raw, 1), rate)?)));
    let chosen = ratios.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(Device::Fdatasync, |(d, _)| d);
    let name = ours_name(chosen);
    print!("\n{}", lat.text(&[(&raw, 1, "to raw"), (&name, 1, "to loadline, 1"), (&name, many, "to loadline, all")]));
    print!("\n{}\n", thr.text(&[(&sequential, 1, "to 1 MiB"), (&large, 1, "to 4 MiB")]));
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
    for Pairs { what, wanted, ratios } in pairs {
        let found: Vec<f64> = ratios.iter().filter_map(|r| r.as_ref().ok().copied()).collect();
        let (low, high) = table::quartiles(&found).unwrap_or_default();
        let what = format!("{what}: {} pairs, half of them {low:.2} to {high:.2}", found.len());
        say(&what, table::median(found), *wanted, true);
        if let Some(Err(why)) = ratios.iter().find(|r| r.is_err()) {
            println!("{:>12}  {what}: {why}", "failed");
        }
    }
    say(&format!("{many} jobs to one raw stream"), lat.ratio((&name, many), (&raw, 1), rate), 3.0, true);
    for peer in ["RocksDB", "PostgreSQL, in-database"] {
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
    for (device, jobs) in DEVICES.iter().flat_map(|device| [1, 2, 4].map(|jobs| (ours_name(*device), jobs))) {
        let what = format!("THR: {device}, {jobs} jobs, to {sequential}");
        say(&what, thr.ratio((&device, jobs), (&sequential, 1), rate), 0.9, true);
    }
}
