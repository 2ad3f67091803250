//! Is a load from many agents the load of one process?
//!
//! `-- agents target/release/loadline` (built with `--features hub`). A: one process, B: the same jobs over agents, all on this
//! machine, in pairs of windows in an order that is drawn: 64 agents on `null:?pause=5ms`, whose commits take a time that is known and
//! long enough to leave the CPUs idle most of the time (64 processes need more CPU per transaction than one, because each has caches to
//! fill), and 8 on a private PostgreSQL, with `--delay` behind a link that is as long for both arms.
//! Throughput is the sum over agents, p50 and p99 are of the merged histograms: the intervals of all ratios must hold 1.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use loadline_database::{Link, Relay};
use loadline_model::{ArmName, TestRecord, column};

use crate::arena::{Outcome, Running, target};
use crate::builds::{Figure, TRANSACTIONS, Windows, compare, records};
use crate::pgbench;

/// Options of the comparison.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The program, built with the feature `hub`
    loadline: PathBuf,
    /// Agents on `null:`, with two jobs each; 0: none
    #[arg(long, default_value_t = 64)]
    null: u32,
    /// How long a commit on `null:` takes
    #[arg(long, default_value = "5ms")]
    pause: String,
    /// Agents on PostgreSQL, with two jobs each; 0: none
    #[arg(long, default_value_t = 8)]
    postgres: u32,
    /// One-way delay of the way to PostgreSQL, ms
    #[arg(long, default_value_t = 0.0)]
    delay: f64,
    #[command(flatten)]
    windows: Windows,
}

const FIGURES: [Figure; 3] = [
    TRANSACTIONS,
    ("p50", |r| r.figure(column::TRANSACTION_TIME_NS_P50)),
    ("p99", |r| r.figure(column::TRANSACTION_TIME_NS_P99)),
];

fn start(command: &mut Command) -> Outcome<Running> {
    let name = command.get_program().display().to_string();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Ok(Running(child.map_err(|e| format!("{name}: {e}"))?))
}

pub(crate) fn run(args: &Args) -> Outcome<()> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let _hub = start(Command::new("nats-server").args(["-a", "127.0.0.1", "-p", &port.to_string()]))?;
    for _ in 0..100 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let hub = format!("nats://127.0.0.1:{port}");
    let agents = (1..=args.null.max(args.postgres))
        .map(|n| start(Command::new(&args.loadline).args(["agent", "--hub", &hub, "--name", &format!("a{n}")])));
    let _agents = agents.collect::<Outcome<Vec<Running>>>()?;
    if args.null > 0 {
        pairs(args, &hub, args.null, (&format!("null:?pause={}", args.pause), "LGWR-LAT1"), &[])?;
    }
    if args.postgres > 0 {
        let server = target("postgres-temp:", &args.windows.results)?;
        let (at, port) = pgbench::socket(server.as_ref())?;
        let url = |at: &Path, port: &str| format!("postgres://postgres@/postgres?host={}&port={port}", at.display());
        let work = "LGWR-LAT1,TP-LOOKUP";
        if args.delay > 0.0 {
            let folder = tempfile::Builder::new().prefix("loadline-link-").tempdir_in("/var/tmp")?;
            let server = at.join(format!(".s.PGSQL.{port}"));
            let relay = Relay::start(&folder.path().join(".s.PGSQL.1"), &server)?;
            let delay = Duration::from_secs_f64(args.delay / 1e3);
            relay.set(Link { delay, jitter: Duration::ZERO, bytes_per_s: None });
            println!("\nbehind a link of {} ms each way", args.delay);
            // What carries the link takes CPU time in both arms.
            pairs(args, &hub, args.postgres, (&url(folder.path(), "1"), work), &["--allow-disturbed"])?;
        } else {
            pairs(args, &hub, args.postgres, (&url(&at, &port), work), &[])?;
        }
    }
    Ok(())
}

/// Pairs of one work.
fn pairs(args: &Args, hub: &str, agents: u32, work: (&str, &str), more: &[&str]) -> Outcome<()> {
    let (jobs, seconds) = ((agents * 2).to_string(), format!("{}s", args.windows.seconds));
    println!("\nA: one process, B: {agents} agents; {jobs} jobs");
    let agents = agents.to_string();
    let mut skew: f64 = 0.0;
    compare(&args.windows, &FIGURES, &[work], |arm, (target, workloads)| {
        let mut what = vec!["--target", target, "--workload", workloads, "--jobs", &jobs, "--duration", &seconds];
        what.extend(more);
        if arm == ArmName::B {
            what.extend(["--hub", hub, "--agents", &agents]);
        }
        let records: Vec<TestRecord> = records(&args.loadline, &args.windows.results, &what)?;
        skew = records.iter().flat_map(|r| &r.by_agent).filter_map(|agent| agent.start_skew_ms).fold(skew, f64::max);
        Ok(records)
    })?;
    println!("largest start skew: {skew:.3} ms");
    Ok(())
}
