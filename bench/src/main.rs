//! Speed of loadline itself, as ratios to peers in one interleaved run: single runs on a shared machine are not comparable.
//!
//! `cargo run --release -p loadline-bench -- pgbench` compares LGWR-LAT1 with pgbench, `-- select` SRV-QUERY1 with it,
//! `-- scripts` pgbench scripts run by loadline with pgbench, `-- sysbench` with sysbench, `-- load` DBL-22 with `psql \copy`, and `-- fio` the device probe with fio.
//! `-- procedures` compares log-writer workloads with procedures by hand, `-- forms` forms of their statements.
//! `-- named` shows what bounds each workload at its peak, against the component that it is named for; it is no comparison.
//! `-- servers` runs plans on servers of many versions and says which tests are valid; it is no comparison either.
//! `-- spoil` spoils figures in every known way and shows that each is caught, and holds percentiles against known stalls.
//! `-- arms` holds `loadline ab` against equal arms on a real server and planted differences, `-- turns` against long windows;
//! `-- statistics` holds the statistics of two arms and of warm-ups against simulated truth.
//! `-- warmups` holds methods that find the end of a warm-up against real ones.
//! `-- replica-kills` kills a primary while jobs commit and counts what its standby lacks, at each level.
//! `-- sessions` compares loadline with pgbench and sysbench at many sessions, and shows what a session costs;
//! `-- peer` is a scripted server for as many as wanted.
//! `-- agents` compares a load over agents with the same of one process.
//! `-- builds` compares two builds of loadline under the same work, such as musl and glibc.
//! `-- report` shows time and memory of a report on a run of 1,000 tests.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod agents;
mod arena;
mod arms;
mod builds;
mod fio;
mod forms;
mod load;
mod named;
mod outcomes;
mod peer;
mod pgbench;
mod procedures;
mod replica_kills;
mod report;
mod scripts;
mod servers;
mod sessions;
mod short;
mod spoil;
mod statistics;
mod sysbench;
mod warmups;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measures loadline against its peers, interleaved on the same private server.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// LGWR-LAT1 against pgbench with the same statement on the same private PostgreSQL
    Pgbench(arena::Args),
    /// SRV-QUERY1 against `pgbench -S` with the same query on the same private PostgreSQL
    Select(arena::Args),
    /// pgbench's own scripts run by loadline against pgbench, on the same tables of the same private PostgreSQL
    Scripts(scripts::Args),
    /// LGWR-LAT1 against sysbench with the same statement on the same private MariaDB
    Sysbench(arena::Args),
    /// DBL-22 against `psql \copy` with the same rows, and loading the data set against DBL-22
    Load(arena::Args),
    /// Log-writer workloads against PL/pgSQL procedures by hand, on the same private PostgreSQL
    Procedures(procedures::ProcedureArgs),
    /// Redo rate of many forms of statements for the rows of a log-writer workload, on any target
    Forms(forms::FormArgs),
    /// The device probe against fio on the same file
    Fio(fio::Args),
    /// What bounds each workload at its peak, against the component that it is named for
    Named(named::Args),
    /// Plans on real servers of many versions, fetched from package registries
    Servers(servers::Args),
    /// Every known way to spoil a figure, with the check that must catch it and a clean twin; percentiles against known stalls
    Spoil(spoil::Args),
    /// `loadline ab` against equal arms on a real server, and against differences that are known
    Arms(arms::Args),
    /// A load over agents against the same of one process: sums and percentiles
    Agents(agents::Args),
    /// `loadline ab` with short windows against the same arms in long windows in turns: the same answer, in which time?
    Turns(arms::TurnsArgs),
    /// Two builds of loadline under the same work in pairs: transactions per second and CPU of each
    Builds(builds::Args),
    /// `loadline report` over a run of 1,000 tests: time and memory
    Report(report::Args),
    /// The statistics of two arms and of warm-ups against simulated truth: coverage, power, price (docs/statistics.md)
    Statistics(statistics::Args),
    /// Kills a primary while jobs commit, and asks its standby for what was acknowledged, at each level
    ReplicaKills(replica_kills::Args),
    /// Many sessions: client CPU and tps against pgbench and sysbench; memory and time to open against a scripted server
    Sessions(sessions::Args),
    /// A scripted server that speaks PostgreSQL's or MySQL's protocol and does no work, until Ctrl-C
    Peer(peer::Args),
    /// When each method would open the window after real restarts of PostgreSQL, and how far from the plateau
    Warmups(warmups::Args),
}

fn main() -> ExitCode {
    let done = |result: arena::Outcome<()>| result.map(|()| ExitCode::SUCCESS);
    let result = match Cli::parse().command {
        Command::Pgbench(args) => done(pgbench::run(&args)),
        Command::Select(args) => done(pgbench::select(&args)),
        Command::Scripts(args) => done(scripts::run(&args)),
        Command::Sysbench(args) => done(sysbench::run(&args)),
        Command::Load(args) => done(load::run(&args)),
        Command::Procedures(args) => done(procedures::run(&args)),
        Command::Forms(args) => done(forms::run(&args)),
        Command::Fio(args) => done(fio::run(&args)),
        Command::Named(args) => named::run(&args),
        Command::Servers(args) => servers::run(&args),
        Command::Spoil(args) => spoil::run(&args),
        Command::Arms(args) => done(arms::run(&args)),
        Command::Agents(args) => done(agents::run(&args)),
        Command::Turns(args) => done(arms::turns(&args)),
        Command::Builds(args) => done(builds::run(&args)),
        Command::Warmups(args) => done(warmups::run(&args)),
        Command::ReplicaKills(args) => done(replica_kills::run(&args)),
        Command::Sessions(args) => done(sessions::run(&args)),
        Command::Peer(args) => done(peer::run(&args)),
        Command::Report(args) => done(report::run(&args)),
        Command::Statistics(args) => {
            statistics::run(&args);
            Ok(ExitCode::SUCCESS)
        }
    };
    match result {
        Ok(code) => code,
        Err(e) => {
            eprintln!("loadline-bench: {e}");
            ExitCode::FAILURE
        }
    }
}
