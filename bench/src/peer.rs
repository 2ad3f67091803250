//! The scripted server as a program: `loadline-bench peer --protocol postgres --socket /tmp/.s.PGSQL.5432`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use loadline_peer::{Listen, Options, Peer, Protocol, raise_open_files};

use crate::arena::Outcome;

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Speaks {
    Postgres,
    Mysql,
}

/// Options of the scripted server.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Protocol
    #[arg(long, value_enum)]
    protocol: Speaks,
    /// Listen at this Unix socket; PostgreSQL's clients expect the name .s.PGSQL.PORT
    #[arg(long, value_name = "PATH", conflicts_with = "listen", required_unless_present = "listen")]
    socket: Option<PathBuf>,
    /// Listen at this address
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Time from a statement to its answer, e.g. 1ms
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = delay)]
    delay: Duration,
    /// Rows that each statement returns or changes
    #[arg(long, default_value_t = 1)]
    rows: u32,
    /// Socket of a real server, to which all sessions but those of jobs are passed on
    #[arg(long, value_name = "PATH")]
    behind: Option<PathBuf>,
    /// Threads
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    threads: u8,
    /// Sessions for which the limit of open files must suffice
    #[arg(long, default_value_t = 100_000)]
    sessions: u32,
}

fn delay(text: &str) -> Result<Duration, String> {
    let seconds = loadline_model::format::parse_duration_s(text)?;
    let delay = Duration::try_from_secs_f64(seconds).ok().filter(|delay| *delay <= Duration::from_secs(3600));
    delay.ok_or_else(|| format!("'{text}' is no delay from 0s to 1h"))
}

/// Serves until the process is ended; says once a second what has changed.
pub(crate) fn run(args: &Args) -> Outcome<()> {
    // Beside the sessions: libraries, event loops, those that are passed on.
    if let Err(why) = raise_open_files(u64::from(args.sessions) + 100) {
        eprintln!("loadline-bench: {why}");
    }
    let protocol = match args.protocol {
        Speaks::Postgres => Protocol::Postgres,
        Speaks::Mysql => Protocol::Mysql,
    };
    let listen = match (&args.socket, args.listen) {
        (Some(path), _) => Listen::Unix(path.clone()),
        (None, Some(address)) => Listen::Tcp(address),
        (None, None) => return Err("give --socket or --listen".into()),
    };
    let mut options = Options::new(protocol, listen);
    (options.delay, options.rows, options.threads) = (args.delay, args.rows, args.threads.into());
    options.behind.clone_from(&args.behind);
    let peer = Peer::start(&options)?;
    match peer.address() {
        Some(address) => println!("listening at {address}"),
        None => println!("listening"),
    }
    let mut said = (0, 0);
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let now = (peer.open(), peer.statements());
        if said != now {
            said = now;
            println!("{} sessions open, {} opened, {} statements", now.0, peer.opened(), now.1);
        }
    }
}
