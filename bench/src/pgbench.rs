//! LGWR-LAT1 against pgbench: the same UPDATE on the same table, one transaction each.
//!
//! pgbench runs it as the same kind of transaction as loadline's client driver: prepared, one
//! statement, autocommit. It has no random bytes of its own, so it chooses between a few scripts
//! that each carry another payload: an UPDATE to the value that is already there would be no work.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use loadline_analyze::stats::{geometric_mean, median};
use loadline_collect::CpuSource;
use loadline_model::Driver;
use loadline_model::snapshot::counter;
use loadline_run::calibrate;
use loadline_run::figures::{Identity, output};
use loadline_run::test::{Request, run_test};
use loadline_target::{OpenRequest, Target, Work, open};
use loadline_workload::find;
use nix::sys::resource::{UsageWho, getrusage};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Scripts among which pgbench chooses: the chance that a row gets the payload it holds is one in
/// so many.
const PAYLOADS: usize = 32;

/// How the comparison is made.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Clients (jobs)
    #[arg(long, value_delimiter = ',', default_value = "1,2,8,32")]
    clients: Vec<u32>,
    /// Seconds per measurement
    #[arg(long, default_value_t = 5)]
    seconds: u32,
    /// Rounds; in each, every contender runs once at each number of clients
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Folder for the private server [default: ./loadline-results]
    #[arg(long, default_value = "loadline-results")]
    results: std::path::PathBuf,
}

/// One measurement.
#[derive(Debug, Clone, Copy)]
struct Figure {
    tps: f64,
    cpu_ms_per_1000: f64,
    redo_kib_per_tx: f64,
}

const CONTENDERS: [&str; 3] = ["pgbench", "loadline client", "loadline database"];

pub(crate) fn run(args: &Args) -> Outcome<()> {
    std::fs::create_dir_all(&args.results)?;
    let request = OpenRequest::new("postgres-temp:", std::path::absolute(&args.results)?);
    let target: Arc<dyn Target> = Arc::from(open(&request)?);
    let info = target.info()?;
    // The private server listens on its socket only.
    let socket = info.settings.get("unix_socket_directories").ok_or("the private server has no socket")?;
    let port = info.settings.get("port").map_or("5432", String::as_str);
    let server = ["-h", socket, "-p", port, "-U", "postgres", "postgres"];
    let workload = find("LGWR-LAT1")?;
    let work = Work::new(workload, workload.params(&BTreeMap::new())?, 42, 0.0);
    let most = args.clients.iter().copied().max().unwrap_or(1);
    target.create(&work)?;
    target.load(&work, 1)?;
    let calibration = calibrate::calibrate(&work, |w| calibrate::measure(&target, w))?;
    let work = Arc::new(calibrate::with(&work, &calibration.parameters));
    target.load(&work, most)?;
    target.install(&work)?;
    println!(
        "{} {}, payload {} bytes, {} s a measurement, {} rounds",
        info.product,
        info.version,
        work.params.get("payload"),
        args.seconds,
        args.rounds
    );
    let scripts = tempfile::tempdir()?;
    write_scripts(scripts.path(), &work)?;
    let mut all: BTreeMap<(u32, usize), Vec<Figure>> = BTreeMap::new();
    println!(
        "{:>5} {:>7}  {:<18} {:>9} {:>14} {:>10}",
        "round", "clients", "contender", "tps", "CPU ms/1000 tx", "KiB/tx"
    );
    for round in 0..args.rounds {
        for &clients in &args.clients {
            for turn in 0..CONTENDERS.len() {
                // Another one goes first in each round.
                let contender = (turn + round as usize) % CONTENDERS.len();
                target.settle()?;
                let figure = match contender {
                    0 => pgbench(&target, &work, &server, scripts.path(), clients, args.seconds)?,
                    1 => loadline(&target, &work, Driver::Client, clients, args.seconds)?,
                    _ => loadline(&target, &work, Driver::Database, clients, args.seconds)?,
                };
                println!(
                    "{:>5} {clients:>7}  {:<18} {:>9.0} {:>14.2} {:>10.2}",
                    round + 1,
                    CONTENDERS[contender],
                    figure.tps,
                    figure.cpu_ms_per_1000,
                    figure.redo_kib_per_tx
                );
                all.entry((clients, contender)).or_default().push(figure);
            }
        }
    }
    println!("\n{}", summary(&args.clients, &all));
    Ok(())
}

/// Medians over the rounds of the ratios within a round, and their geometric means.
fn summary(clients: &[u32], all: &BTreeMap<(u32, usize), Vec<Figure>>) -> String {
    let mut out = String::new();
    for (contender, name) in CONTENDERS.iter().enumerate().skip(1) {
        let _ = writeln!(out, "{name} / pgbench (median of the rounds' ratios)");
        let (mut tps, mut cpu) = (Vec::new(), Vec::new());
        for c in clients {
            let (Some(theirs), Some(ours)) = (all.get(&(*c, 0)), all.get(&(*c, contender))) else { continue };
            let ratio = |of: fn(&Figure) -> f64| {
                median(&ours.iter().zip(theirs).map(|(o, t)| of(o) / of(t)).collect::<Vec<_>>()).unwrap_or(f64::NAN)
            };
            let (t, u) = (ratio(|f| f.tps), ratio(|f| f.cpu_ms_per_1000));
            let _ = writeln!(out, "  {c:>3} clients: tps {t:.3}, client CPU {u:.3}");
            tps.push(t);
            cpu.push(u);
        }
        let mean = |v: &[f64]| geometric_mean(v).unwrap_or(f64::NAN);
        let _ = writeln!(out, "  geometric mean: tps {:.3}, client CPU {:.3}", mean(&tps), mean(&cpu));
    }
    out
}

fn loadline(target: &Arc<dyn Target>, work: &Arc<Work>, driver: Driver, jobs: u32, seconds: u32) -> Outcome<Figure> {
    let request = Request {
        target: Arc::clone(target),
        work: Arc::clone(work),
        driver,
        jobs,
        warmup_s: 1.0,
        duration_s: f64::from(seconds),
        rate_tps: None,
        cpu: CpuSource::Local,
        disk: None,
        interrupted: Arc::new(AtomicBool::new(false)),
    };
    let evidence_before = target.evidence(work)?;
    let measured = run_test(&request, |_, _| ())?;
    let identity = Identity {
        platform: String::new(),
        run: String::new(),
        test: 1,
        repetition: 1,
        target: String::new(),
        forced: None,
        evidence_before,
        evidence_after: target.evidence(work).map_err(|e| e.to_string()),
        counter_lag_s: target.counter_lag_s(),
        cpus: std::thread::available_parallelism()?.get() as u32,
    };
    let record = output(&request, &measured, &identity).record;
    if let Some(why) = &record.invalid_reason {
        eprintln!("INVALID ({driver} driver, {jobs} jobs): {why}");
    }
    let figure = |id: &str| record.figure(id).ok_or_else(|| format!("no figure {id}: {:?}", record.absent.get(id)));
    Ok(Figure {
        tps: figure("commit_throughput_tps")?,
        cpu_ms_per_1000: figure("client_cpu_us_per_tx")?,
        redo_kib_per_tx: figure("redo_kib_per_tx")?,
    })
}

/// pgbench's scripts, one a payload.
fn write_scripts(dir: &Path, work: &Work) -> Outcome<()> {
    let own = work.params.get("own-rows");
    for i in 0..PAYLOADS {
        let script = format!(
            "\\set id :client_id * {own} + random(0, {})\nUPDATE \"loadline\".\"lgwr_lat1_redo\" SET n = n + 1, payload = :p{i} WHERE id = :id;\n",
            own - 1
        );
        std::fs::write(dir.join(format!("{i}.sql")), script)?;
    }
    Ok(())
}

fn pgbench(
    target: &Arc<dyn Target>,
    work: &Work,
    server: &[&str],
    scripts: &Path,
    clients: u32,
    seconds: u32,
) -> Outcome<Figure> {
    let pool = work.pool(0);
    let bytes = work.params.get("payload") as usize;
    let program = binary("pgbench")?;
    let mut command = Command::new(&program);
    command.args([
        "-n",
        "-M",
        "prepared",
        "-c",
        &clients.to_string(),
        "-j",
        &clients.to_string(),
        "-T",
        &seconds.to_string(),
    ]);
    for i in 0..PAYLOADS {
        let hex = pool[i * 1990..i * 1990 + bytes].iter().fold(String::from("\\x"), |mut s, b| {
            let _ = write!(s, "{b:02x}");
            s
        });
        command.arg("-D").arg(format!("p{i}={hex}")).arg("-f").arg(scripts.join(format!("{i}.sql")));
    }
    let mut observer = target.observer()?;
    let redo = |s: &loadline_model::Snapshot| s.counters.get(counter::REDO_BYTES).copied().unwrap_or(f64::NAN);
    let (before, cpu_before) = (redo(&observer.snapshot()?), children_cpu_s()?);
    let out = command.args(server).stdin(Stdio::null()).output()?;
    let (after, cpu_after) = (redo(&observer.snapshot()?), children_cpu_s()?);
    let text = String::from_utf8_lossy(&out.stdout);
    if !out.status.success() {
        return Err(format!("{} failed: {}", program, String::from_utf8_lossy(&out.stderr)).into());
    }
    let number = |what: &str| -> Outcome<f64> {
        let rest = text.split(what).nth(1).ok_or_else(|| format!("pgbench did not say «{what}»: {text}"))?;
        let digits: String = rest.trim_start().chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        Ok(digits.parse()?)
    };
    let done = number("actually processed:")?;
    Ok(Figure {
        tps: number("tps =")?,
        cpu_ms_per_1000: (cpu_after - cpu_before) / done * 1e6,
        redo_kib_per_tx: (after - before) / done / 1024.0,
    })
}

/// CPU time of children that have ended, s.
fn children_cpu_s() -> Outcome<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// A PostgreSQL program: the newest installed.
fn binary(name: &str) -> Outcome<String> {
    let mut found: Vec<_> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path().join("bin").join(name))
        .filter(|p| p.exists())
        .collect();
    found.sort();
    Ok(found.pop().map_or(name.to_owned(), |p| p.display().to_string()))
}
