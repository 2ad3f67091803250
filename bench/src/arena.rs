//! Common parts of the comparisons with peers: a private server, what peer and loadline did on it, and programs that are run.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use loadline_database::{Observer, OpenRequest, Target, Work, open};
use loadline_load::{Request, Warmup};
use loadline_model::snapshot::counter;
use loadline_model::{Column, Driver, Snapshot, TestRecord, column};
use loadline_run::{alone, calibrate};
use nix::sys::resource::{UsageWho, getrusage};
use nix::unistd::Pid;

use crate::rounds::Contest;

pub(crate) type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Number of payloads of a peer. With probability 1/n a row gets the payload it already holds, which is no work.
pub(crate) const PAYLOADS: usize = 32;

/// Options of the comparison.
#[derive(Debug, clap::Args)]
pub(crate) struct ArenaArgs {
    /// Clients (jobs)
    #[arg(long, value_delimiter = ',', default_value = "1,2,8,32")]
    pub(crate) clients: Vec<u32>,
    /// Seconds per measurement
    #[arg(long, default_value_t = 5)]
    pub(crate) seconds: u32,
    /// Rounds; in each, every contender runs once at each number of clients
    #[arg(long, default_value_t = 5)]
    pub(crate) rounds: u32,
    /// Folder for the private server [default: ./loadline-results]
    #[arg(long, default_value = "loadline-results")]
    pub(crate) results: std::path::PathBuf,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Figure {
    pub(crate) tps: f64,
    pub(crate) cpu_ms_per_1000: f64,
    pub(crate) redo_kib_per_tx: f64,
}

/// Length of a peer's work.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Load {
    /// As many transactions as possible in this number of seconds.
    Seconds(u32),
    /// One transaction per client (or in total): measures the cost of starting the peer.
    Start,
}

/// The peer's own figures.
pub(crate) struct Said {
    pub(crate) tps: f64,
    pub(crate) transactions: f64,
}

/// A private server with the work of a workload, calibrated and loaded.
pub(crate) struct Arena {
    pub(crate) target: Arc<dyn Target>,
    pub(crate) work: Arc<Work>,
}

/// Opens `url`, with private files in `results`.
pub(crate) fn target(url: &str, results: &Path) -> Outcome<Arc<dyn Target>> {
    with_settings(url, results, &BTreeMap::new())
}

/// Opens `url`, with private files in `results`; a private server with these settings.
pub(crate) fn with_settings(url: &str, results: &Path, of: &BTreeMap<String, String>) -> Outcome<Arc<dyn Target>> {
    std::fs::create_dir_all(results)?;
    let mut request = OpenRequest::new(url, std::path::absolute(results)?);
    request.settings.clone_from(of);
    Ok(Arc::from(open(&request)?))
}

impl Arena {
    /// Starts the server behind `url` and prepares it for all drivers and numbers of clients.
    pub(crate) fn open(url: &str, code: &str, args: &ArenaArgs, in_database: bool) -> Outcome<Arena> {
        let target = target(url, &args.results)?;
        let info = target.info()?;
        let work = Work::from_catalogue(code, &[])?;
        let most = args.clients.iter().copied().max().unwrap_or(1);
        let calibration = calibrate::calibrate(&work, |w| calibrate::measure(&target, w, None, &Default::default()))?;
        let work = Arc::new(calibrate::with(&work, &calibration.parameters));
        target.create(&work)?;
        target.load(&work, most)?;
        if in_database {
            target.abilities().driver()?.install(&work)?;
        }
        let payload =
            work.workload.redo.map_or(String::new(), |r| format!(", payload {} bytes", work.params.get(r.payload)));
        println!(
            "{} {}, {code}{payload}, {} s a measurement, {} rounds",
            info.product, info.version, args.seconds, args.rounds
        );
        Ok(Arena { target, work })
    }

    /// Measures all contenders in turns; the first is the peer, which `peer` runs at a number of clients.
    pub(crate) fn compare(
        &self,
        args: &ArenaArgs,
        contenders: &[(&str, Option<Driver>)],
        mut peer: impl FnMut(u32, Load) -> Outcome<Said>,
    ) -> Outcome<()> {
        let contest = Contest {
            points: args.clients.iter().map(|clients| format!("{clients} clients")).collect(),
            contenders: contenders.iter().map(|(name, _)| *name).collect(),
            figures: &[
                ("tps", |f: &Figure| f.tps, 0),
                ("client CPU ms/1000 tx", |f| f.cpu_ms_per_1000, 2),
                ("redo KiB/tx", |f| f.redo_kib_per_tx, 2),
            ],
        };
        let all = contest.measure(args.rounds, |point, contender| {
            let clients = args.clients[point];
            self.target.settle()?;
            match contenders[contender].1 {
                None => self.of_peer(clients, args.seconds, &mut peer),
                Some(driver) => self.loadline(driver, clients, args.seconds),
            }
        })?;
        contest.print(&all, (1..contenders.len()).map(|ours| (ours, 0)));
        Ok(())
    }

    fn of_peer(
        &self,
        clients: u32,
        seconds: u32,
        peer: &mut impl FnMut(u32, Load) -> Outcome<Said>,
    ) -> Outcome<Figure> {
        // Reading its scripts, connecting and preparing is no work of a transaction: loadline's own CPU
        // time is that of the window alone.
        let cold = children_cpu_s()?;
        peer(clients, Load::Start)?;
        let start_s = children_cpu_s()? - cold;
        let mut observer = self.target.observer()?;
        let redo = |s: &Snapshot| s.counters.get(counter::REDO_BYTES).copied().unwrap_or(f64::NAN);
        let (before, cpu_before) = (observer.snapshot()?, children_cpu_s()?);
        let evidence = self.target.evidence(&self.work)?.unwrap_or(0);
        let said = peer(clients, Load::Seconds(seconds))?;
        let cpu_after = children_cpu_s()?;
        let after = published(observer.as_mut(), commits(&before) + said.transactions)?;
        // The rows themselves are asked: a transaction that changed nothing would be no peer. Where none is
        // changed, the server's count of commits tells (with those of the peer's own start).
        let (done, what, other) = match &self.work.workload.evidence {
            Some(_) => ((self.target.evidence(&self.work)?.unwrap_or(0) - evidence) as f64, "rows were changed", 0.0),
            None => (commits(&after) - commits(&before), "commits were counted", 10.0),
        };
        let off = (done - said.transactions).abs();
        if off.is_nan() || off > f64::from(clients) + other + said.transactions * 0.001 {
            return Err(format!("the peer says {} transactions, and {done} {what}", said.transactions).into());
        }
        Ok(Figure {
            tps: said.tps,
            cpu_ms_per_1000: (cpu_after - cpu_before - start_s) / said.transactions * 1e6,
            redo_kib_per_tx: (redo(&after) - redo(&before)) / said.transactions / 1024.0,
        })
    }

    /// A test with these seconds of warm-up and window.
    pub(crate) fn request(&self, driver: Driver, jobs: u32, (warmup_s, duration_s): (f64, f64)) -> Request {
        let warmup = Warmup::Seconds(warmup_s);
        Request { driver, warmup, duration_s, ..Request::new(&self.target, &self.work, jobs) }
    }

    /// A test of loadline; it is said if it is not valid.
    pub(crate) fn measured(&self, driver: Driver, jobs: u32, seconds: u32) -> Outcome<TestRecord> {
        let mut request = self.request(driver, jobs, (1.0, f64::from(seconds)));
        // As in a run, and as peers do: the rows of the window before would be in caches.
        let draws = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64;
        request.work = Arc::new(Work { draws, ..Work::clone(&self.work) });
        let record = alone::measure(&request)?;
        if let Some(why) = &record.invalid_reason {
            eprintln!("NOT VALID ({driver} driver, {jobs} jobs): {why}");
        }
        Ok(record)
    }

    pub(crate) fn loadline(&self, driver: Driver, jobs: u32, seconds: u32) -> Outcome<Figure> {
        let record = self.measured(driver, jobs, seconds)?;
        let figure = |column: &Column| {
            record.figure(column).ok_or_else(|| format!("no figure {column}: {:?}", record.why_absent(column)))
        };
        Ok(Figure {
            tps: figure(column::COMMIT_THROUGHPUT_TPS)?,
            // Absent if the database runs in this process and the kernel does not count the CPU time of threads.
            cpu_ms_per_1000: figure(column::CLIENT_CPU_US_PER_TX).unwrap_or(f64::NAN),
            redo_kib_per_tx: figure(column::REDO_KIB_PER_TX)?,
        })
    }
}

/// Commits that the server has counted so far.
pub(crate) fn commits(seen: &Snapshot) -> f64 {
    seen.counters.get(counter::COMMITS).copied().unwrap_or(f64::NAN)
}

/// The server's counts once it has published so many commits, or three seconds later: a session publishes its last ones when it
/// ends, a moment after its client.
pub(crate) fn published(observer: &mut dyn Observer, expected: f64) -> Outcome<Snapshot> {
    let mut seen = observer.snapshot()?;
    for _ in 0..30 {
        if commits(&seen) >= expected {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        seen = observer.snapshot()?;
    }
    Ok(seen)
}

/// Runs `command` and returns what it prints.
///
/// # Errors
/// It cannot be run (`missing` says how to get it), or fails: with all that it said.
pub(crate) fn said_by(command: &mut Command, missing: &str) -> Outcome<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let out = command.stdin(Stdio::null()).output().map_err(|e| format!("{program}: {e}; {missing}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let said = text(&out.stdout);
    if out.status.success() { Ok(said) } else { Err(format!("{program}: {said}{}", text(&out.stderr)).into()) }
}

pub(crate) fn number_after(text: &str, what: &str) -> Outcome<f64> {
    let rest = text.split(what).nth(1).ok_or_else(|| format!("nobody said '{what}': {text}"))?;
    let digits: String = rest.trim_start().chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    Ok(digits.parse()?)
}

/// CPU time of children that have ended, s.
pub(crate) fn children_cpu_s() -> Outcome<f64> {
    cpu_s(UsageWho::RUSAGE_CHILDREN)
}

/// CPU time so far, s.
pub(crate) fn cpu_s(who: UsageWho) -> Outcome<f64> {
    let usage = getrusage(who)?;
    let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// Processes that work in `folder` or name it in their command line.
pub(crate) fn processes(folder: &Path) -> Vec<Pid> {
    let name = folder.display().to_string();
    let of_process = |id: i32| {
        let command = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let works_there = std::fs::read_link(format!("/proc/{id}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        works_there || String::from_utf8_lossy(&command).contains(&name)
    };
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    ids.filter(|id| of_process(*id)).map(Pid::from_raw).collect()
}
