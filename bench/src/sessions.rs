//! Many sessions: what a transaction costs the client, against pgbench and sysbench.
//!
//! All contenders send SRV-QUERY1's query by primary key, prepared, over the same socket to the same rows. Each reports its
//! transactions once a second, and with each report the CPU time of its whole process is read, loadline's with its sampler of counters.
//! Counted is from the second report to the last: connecting, preparing and what loadline reads once at window start and window end
//! (all processes of the machine) are not in it. The server's own count of commits confirms the transactions of the whole run.
//!
//! A session that is served again at once finds its server process in the CPU's caches. So the share of the busiest tenth of the
//! sessions stands beside the figures, and what the other nine tenths got.

mod stage;
mod turns;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use loadline_database::machine::allow_open_files;
use loadline_load::{Request, run_test};
use loadline_model::Driver;
use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

use crate::arena::{Load, Outcome};
use crate::rounds::Contest;
use crate::{pgbench, sysbench};
use stage::{Product, Stage};
use turns::{Turns, busiest_tenth};

/// Sessions that pgbench can surely open in a second.
const CONNECTED_PER_S: u32 = 100;
/// Warm-up of loadline, s.
const WARMUP_S: f64 = 0.5;

/// Options of the comparison.
#[derive(Debug, clap::Args)]
pub(crate) struct SessionsArgs {
    /// Sessions
    #[arg(long, value_delimiter = ',', default_value = "64,256,1000")]
    clients: Vec<u32>,
    /// Seconds of a run, of which the first two do not count
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(5..))]
    seconds: u32,
    /// Rounds; in each, both contenders run at each number of sessions, in turns first
    #[arg(long, default_value_t = 6)]
    rounds: u32,
    /// Parts to measure
    #[arg(long, value_enum, value_delimiter = ',', default_value = "pgbench,sysbench")]
    parts: Vec<Product>,
    /// Folder for the private servers [default: ./loadline-results]
    #[arg(long, default_value = "loadline-results")]
    results: PathBuf,
}

pub(crate) fn run(args: &SessionsArgs) -> Outcome<()> {
    let [part] = args.parts.as_slice() else {
        return args.parts.iter().try_for_each(|part| alone(args, *part));
    };
    let most = args.clients.iter().copied().max().unwrap_or(1);
    // Of this process: loadline's sessions. The servers are children, which inherit the limit.
    let need = u64::from(most) + 1000;
    if let Some(allowed) = allow_open_files(need).filter(|allowed| *allowed < need) {
        return Err(format!("{need} open files are needed and {allowed} are allowed: raise 'ulimit -Hn'").into());
    }
    against_peer(*part, &Stage::start(*part, args, most)?, args)
}

/// Runs one part in a process of its own: what another has left in memory would be in its figures.
fn alone(args: &SessionsArgs, part: Product) -> Outcome<()> {
    let name = part.to_possible_value().ok_or("a part without a name")?.get_name().to_owned();
    let clients: Vec<String> = args.clients.iter().map(u32::to_string).collect();
    let numbers = [("--seconds", args.seconds), ("--rounds", args.rounds)];
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["sessions", "--parts", &name, "--clients", &clients.join(",")]);
    for (flag, n) in numbers {
        command.arg(flag).arg(n.to_string());
    }
    match command.arg("--results").arg(&args.results).status()?.success() {
        true => Ok(()),
        false => Err(format!("{name} failed").into()),
    }
}

/// `pgbench -S` or sysbench's point select against loadline on a stage.
fn against_peer(product: Product, stage: &Stage, args: &SessionsArgs) -> Outcome<()> {
    let (folder, target) = (tempfile::tempdir()?, stage.arena.target.as_ref());
    match product {
        Product::Postgres => {
            let script = pgbench::lookup_script(folder.path())?;
            compare("pgbench -S -M prepared -j 2", args, stage, |clients, seconds| {
                // Its time begins before it connects, which takes long if the server makes a process for each session.
                let connecting = clients / CONNECTED_PER_S;
                let mut command = pgbench::command(clients, 2, Load::Seconds(seconds + connecting))?;
                command.args(["-P", "1"]).arg("-f").arg(&script).args(pgbench::place(target)?);
                // progress: 1.0 s, 5123.0 tps, lat …
                let reported = |line: &str| {
                    line.strip_prefix("progress: ")?.split(", ").nth(1)?.strip_suffix(" tps")?.parse().ok()
                };
                let (mut readings, text) = watched(command, "pgbench", reported, stage)?;
                // As long as loadline: the longer a backend runs, the more of the shared memory it has mapped.
                readings.truncate(seconds as usize);
                Ok((readings, pgbench::said(&text)?.transactions))
            })
        }
        Product::Mariadb => {
            let (script, socket) = (sysbench::lookup_script(folder.path())?, sysbench::socket(target)?);
            compare("sysbench, one prepared SELECT by key", args, stage, |clients, seconds| {
                let mut command = sysbench::command(&socket, &script, clients, Load::Seconds(seconds));
                command.arg("--report-interval=1");
                // [ 1s ] thds: 64 tps: 12345.67 qps: …
                let reported =
                    |line: &str| line.strip_prefix('[')?.split("tps: ").nth(1)?.split(' ').next()?.parse().ok();
                let (readings, text) = watched(command, sysbench::MISSING, reported, stage)?;
                Ok((readings, sysbench::said(&text)?.transactions))
            })
        }
    }
}

/// Of which readings the server's turns are read.
const WITH_TURNS: [usize; 2] = [1, 3];

/// Progress of a contender at one moment.
struct Reading {
    at: Instant,
    /// CPU time of its process.
    cpu: Duration,
    /// Transactions since the first reading.
    transactions: f64,
    turns: Option<Turns>,
}

/// Runs a peer, which reports its rate since the last report in lines that `reported` knows. Returns a reading with each,
/// and all that it said.
fn watched(
    mut command: Command,
    name: &str,
    reported: impl Fn(&str) -> Option<f64>,
    stage: &Stage,
) -> Outcome<(Vec<Reading>, String)> {
    let (output, input) = std::io::pipe()?;
    command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input);
    let mut child = command.spawn().map_err(|e| format!("{name}: {e}"))?;
    // It holds the pipe's other end, which must close when the child ends.
    drop(command);
    let clock = clock_getcpuclockid(Pid::from_raw(child.id() as i32))?;
    let (mut readings, mut text): (Vec<Reading>, String) = (Vec::new(), String::new());
    for line in BufReader::new(output).lines() {
        let (at, line) = (Instant::now(), line?);
        // A report of 0 before all others is of the time in which it connects.
        if let Some(tps) = reported(&line).filter(|tps| *tps > 0.0 || !readings.is_empty()) {
            let cpu = Duration::from(clock_gettime(clock)?);
            let transactions =
                readings.last().map_or(0.0, |last| last.transactions + tps * (at - last.at).as_secs_f64());
            let turns = WITH_TURNS.contains(&readings.len()).then(|| stage.turns());
            readings.push(Reading { at, cpu, transactions, turns });
        }
        text = text + &line + "\n";
    }
    match child.wait()?.success() {
        true => Ok((readings, text)),
        false => Err(format!("{name} failed: {text}").into()),
    }
}

/// One contender in one round.
struct Figure {
    tps: f64,
    /// CPU time per transaction, µs.
    cpu_us: f64,
    /// Share of the busiest tenth of the sessions.
    busiest: Option<f64>,
}

impl Figure {
    /// Transactions per second of all sessions but the busiest tenth.
    fn others_tps(&self) -> f64 {
        self.tps * (1.0 - self.busiest.unwrap_or(f64::NAN))
    }
}

/// Measures peer and loadline in turns and prints the ratios.
fn compare(
    peer: &str,
    args: &SessionsArgs,
    stage: &Stage,
    of_peer: impl Fn(u32, u32) -> Outcome<(Vec<Reading>, f64)>,
) -> Outcome<()> {
    println!("loadline against {peer}: {}, {} rounds of {} s", stage.name()?, args.rounds, args.seconds);
    let of_loadline = |jobs, seconds| {
        loadline(stage, stage.arena.request(Driver::Client, jobs, (WARMUP_S, f64::from(seconds) - WARMUP_S)))
    };
    let contest = Contest {
        points: args.clients.iter().map(|clients| format!("{clients} sessions")).collect(),
        contenders: vec!["peer", "loadline"],
        figures: &[
            ("tps", |f: &Figure| f.tps, 0),
            ("tps without the busiest tenth", Figure::others_tps, 0),
            ("CPU µs/tx", |f| f.cpu_us, 2),
        ],
    };
    let all = contest.measure(args.rounds, |point, contender| {
        let clients = args.clients[point];
        match contender {
            0 => figure(stage, clients, args.seconds, &of_peer),
            _ => figure(stage, clients, args.seconds, &of_loadline),
        }
    })?;
    contest.print(&all, [(1, 0)]);
    Ok(())
}

/// One run of a contender, which returns its readings and its transactions in all.
fn figure(
    stage: &Stage,
    clients: u32,
    seconds: u32,
    contender: &impl Fn(u32, u32) -> Outcome<(Vec<Reading>, f64)>,
) -> Outcome<Figure> {
    let before = stage.counted()?;
    let (readings, said) = contender(clients, seconds)?;
    stage.confirm(before, said, clients)?;
    let [_, first, .., last] = readings.as_slice() else {
        return Err(format!("{} reports in {seconds} s are too few", readings.len()).into());
    };
    let transactions = last.transactions - first.transactions;
    let cpu_us = (last.cpu - first.cpu).as_secs_f64() * 1e6;
    let mut turns = readings.iter().filter_map(|r| r.turns.as_ref());
    let between = turns.next().zip(turns.next());
    Ok(Figure {
        tps: transactions / (last.at - first.at).as_secs_f64(),
        cpu_us: cpu_us / transactions,
        busiest: between.and_then(|(before, after)| busiest_tenth([before, after], clients)),
    })
}

/// loadline's client driver.
fn loadline(stage: &Stage, test: Request) -> Outcome<(Vec<Reading>, f64)> {
    let mut readings: Vec<Reading> = Vec::new();
    // Reading the server's turns is the bench's work, not loadline's.
    let mut ours = Duration::ZERO;
    let cpu_of = |clock| clock_gettime(clock).map(Duration::from).unwrap_or_default();
    let measured = run_test(&test, &mut (), |tick| {
        let transactions = tick.jobs.iter().map(|job| job.completed).sum::<u64>() as f64;
        let (at, cpu) = (Instant::now(), cpu_of(ClockId::CLOCK_PROCESS_CPUTIME_ID) - ours);
        let before = cpu_of(ClockId::CLOCK_THREAD_CPUTIME_ID);
        let turns = WITH_TURNS.contains(&readings.len()).then(|| stage.turns());
        ours += cpu_of(ClockId::CLOCK_THREAD_CPUTIME_ID) - before;
        readings.push(Reading { at, cpu, transactions, turns });
    })?;
    if let Some(why) = measured.jobs.iter().find_map(|job| job.lost.clone()) {
        return Err(why.into());
    }
    if measured.merged.errors_total > 0 {
        return Err(format!("errors: {:?}", measured.merged.error_texts).into());
    }
    Ok((readings, measured.merged.total as f64))
}
