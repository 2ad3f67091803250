//! Speed of loadline itself, as ratios to peers or to another build in one interleaved run: single runs on a shared machine are not
//! comparable. And whether loadline's figures, checks and statistics say the truth.
//!
//! `cargo run --release -p loadline-bench -- --help` lists what there is; `builds` is the gate of each change.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod arena;
mod arms;
mod builds;
mod fio;
mod kills;
mod logwriter;
mod noisy;
mod outcomes;
mod pgbench;
mod procedures;
mod rounds;
mod scripts;
mod servers;
mod sessions;
mod short;
mod spoil;
mod statistics;
mod sysbench;

use std::process::ExitCode;

use clap::Parser;

/// Measures loadline against its peers and other builds, interleaved, and against known truth
#[derive(Debug, Parser)]
enum Command {
    /// Two builds of loadline under the same work in pairs: throughput and CPU of each; can fail if the new one is slower
    Builds(builds::BuildsArgs),
    /// LGWR-LAT1 against pgbench with the same statement on the same private PostgreSQL
    Pgbench(arena::ArenaArgs),
    /// SRV-QUERY1 against `pgbench -S` with the same query on the same private PostgreSQL
    Select(arena::ArenaArgs),
    /// pgbench's own scripts run by loadline against pgbench, on the same tables of the same private PostgreSQL
    Scripts(scripts::ScriptsArgs),
    /// LGWR-LAT1 against sysbench with the same statement on the same private MariaDB
    Sysbench(arena::ArenaArgs),
    /// Log-writer workloads against PL/pgSQL procedures by hand, on the same private PostgreSQL
    Procedures(procedures::ProcedureArgs),
    /// The device probe against fio on the same file
    Fio(fio::FioArgs),
    /// The reference log writer against raw streams of writes, RocksDB (`--features rocksdb`) and PostgreSQL
    LogWriter(logwriter::LogWriterArgs),
    /// Plans on real servers of many versions, fetched from package registries
    Servers(servers::ServersArgs),
    /// Every known way to spoil a figure, with the check that must catch it and a control run
    Spoil(spoil::SpoilArgs),
    /// `loadline ab` against equal arms on a real server, and against differences that are known
    Arms(arms::ArmsArgs),
    /// The statistics of two arms and of warm-ups against simulated truth: coverage, power, price (docs/statistics.md)
    Statistics(statistics::StatisticsArgs),
    /// Kills loadline at random moments under `run`, `ab` and `replica-cost`, resumes the run, and counts what is lost; `kills primary` kills a
    /// server instead
    Kills(kills::KillsArgs),
    /// Runs beside a scripted neighbour and quiet ones in turns: tests that end valid, the time that takes, and whether second tries are biased
    Noisy(noisy::NoisyArgs),
    /// Many sessions: client CPU and tps against pgbench and sysbench
    Sessions(sessions::SessionsArgs),
}

fn main() -> ExitCode {
    let done = |result: arena::Outcome<()>| result.map(|()| ExitCode::SUCCESS);
    let result = match Command::parse() {
        Command::Builds(args) => builds::run(&args),
        Command::Pgbench(args) => done(pgbench::run(&args)),
        Command::Select(args) => done(pgbench::select(&args)),
        Command::Scripts(args) => done(scripts::run(&args)),
        Command::Sysbench(args) => done(sysbench::run(&args)),
        Command::Procedures(args) => done(procedures::run(&args)),
        Command::Fio(args) => done(fio::run(&args)),
        Command::LogWriter(args) => done(logwriter::run(&args)),
        Command::Servers(args) => servers::run(&args),
        Command::Spoil(args) => spoil::run(&args),
        Command::Arms(args) => done(arms::run(&args)),
        Command::Statistics(args) => {
            statistics::run(&args);
            Ok(ExitCode::SUCCESS)
        }
        Command::Noisy(args) => done(noisy::run(&args)),
        Command::Kills(args) => kills::run(&args),
        Command::Sessions(args) => done(sessions::run(&args)),
    };
    match result {
        Ok(code) => code,
        Err(e) => {
            eprintln!("loadline-bench: {e}");
            ExitCode::FAILURE
        }
    }
}
