//! DBL-22 against `psql \copy`, and loading the data set against DBL-22.
//!
//! psql copies files with the rows of one batch of DBL-22, in text and in binary format, repeatedly into the same table, one
//! transaction each. Its progress is read from its output, in a window that starts after one second, so its start-up is not
//! in the figure.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use loadline_analyze::stats::median;
use loadline_database::{LoadProgress, Target, Work};
use loadline_model::Driver;

use crate::arena::{Args, Outcome, loadline, said_by, target};
use crate::pgbench::{self, MISSING, binary};

/// Format, and its option of `\copy`.
const FORMATS: [(&str, &str); 2] = [("psql \\copy, text", ""), ("psql \\copy, binary", " with (format binary)")];
const TABLE: &str = "\"loadline\".\"dbl_22_heap\"";

pub(crate) fn run(args: &Args) -> Outcome<()> {
    let target = target("postgres-temp:", &args.results)?;
    let (bulk, data) = (Arc::new(Work::of("DBL-22", &[])?), Work::of("DA-SCAN", &[])?);
    let indexed = Arc::new(Work::of("DBL-22", &[("indexes", 1)])?);
    let rows = bulk.params.get("rows") as f64;
    target.create(&bulk)?;
    let info = target.info()?;
    let (socket, port) = pgbench::socket(target.as_ref())?;
    let socket = socket.display().to_string();
    let server = ["-X", "-h", &socket, "-p", &port, "-U", "postgres", "-d", "postgres"].map(str::to_owned);
    let files = tempfile::tempdir()?;
    make_files(target.as_ref(), &bulk, &server, files.path())?;
    println!(
        "{} {}, {rows} rows a transaction, {} s, {} rounds",
        info.product, info.version, args.seconds, args.rounds
    );
    println!("{:>5} {:>5}  {:<20} {:>10}", "round", "jobs", "contender", "rows/s");
    let mut all: BTreeMap<(u32, usize), Vec<f64>> = BTreeMap::new();
    let (mut loading, mut with_keys, mut against_indexed) = (Vec::new(), Vec::new(), Vec::new());
    let cpus = std::thread::available_parallelism()?.get() as u32;
    let mut own_at_cpus = None;
    for round in 0..args.rounds {
        let counts = args.clients.iter().copied().chain((!args.clients.contains(&cpus)).then_some(cpus));
        for jobs in counts {
            for turn in 0..3 {
                let contender = (turn + round as usize) % 3;
                target.reset(&bulk, Driver::Client)?;
                target.settle()?;
                let (name, rows_per_s) = match FORMATS.get(contender) {
                    Some((name, with)) => {
                        (*name, psql(&server, files.path(), contender, with, jobs, args.seconds)? * rows)
                    }
                    None => {
                        ("loadline DBL-22", loadline(&target, &bulk, Driver::Client, jobs, args.seconds)?.tps * rows)
                    }
                };
                println!("{:>5} {jobs:>5}  {name:<20} {rows_per_s:>10.0}", round + 1);
                all.entry((jobs, contender)).or_default().push(rows_per_s);
                if (contender, jobs) == (FORMATS.len(), cpus) {
                    own_at_cpus = Some(rows_per_s);
                }
            }
        }
        target.reset(&indexed, Driver::Client)?;
        target.settle()?;
        let own_indexed = loadline(&target, &indexed, Driver::Client, cpus, args.seconds)?.tps * rows;
        println!("{:>5} {cpus:>5}  {:<20} {own_indexed:>10.0}", round + 1, "DBL-22, 3 indexes");
        target.reset(&bulk, Driver::Client)?;
        target.abilities().data_set.ok_or("the target keeps no data set")?.drop_data_set()?;
        target.settle()?;
        let progress = LoadProgress::default();
        target.load_watched(&data, 1, &progress)?;
        let done = progress.done();
        let fact = done.iter().find(|t| t.table == "fact").ok_or("the data set has no table fact")?;
        println!("{:>5} {:>5}  {:<20} {:>10.0}", round + 1, fact.loaders, "loading the data set", fact.rows_per_s());
        let whole = fact.rows_loaded as f64 / (fact.load_s + fact.finish_s);
        println!("{:>5} {:>5}  {:<20} {whole:>10.0}", round + 1, fact.loaders, "  with its key");
        loading.extend(own_at_cpus.map(|own| fact.rows_per_s() / own));
        with_keys.extend(own_at_cpus.map(|own| whole / own));
        against_indexed.push(whole / own_indexed);
    }
    println!();
    for jobs in &args.clients {
        let of = |contender: usize| all.get(&(*jobs, contender)).cloned().unwrap_or_default();
        let (text, binary, own) = (of(0), of(1), of(2));
        let best = |i: usize| text[i].max(binary[i]);
        let ratios: Vec<f64> = own.iter().enumerate().map(|(i, r)| r / best(i)).collect();
        println!(
            "{jobs} jobs: DBL-22 / the faster psql {:.3} (median of the rounds' ratios)",
            median(&ratios).unwrap_or(f64::NAN)
        );
    }
    let of = |ratios: &[f64]| median(ratios).unwrap_or(f64::NAN);
    println!(
        "loading / DBL-22 with {cpus} jobs {:.3}; with key and statistics {:.3}, against DBL-22 with a key and two \
         indexes {:.3}",
        of(&loading),
        of(&with_keys),
        of(&against_indexed)
    );
    Ok(())
}

/// Makes psql write the rows of a batch in both formats.
fn make_files(target: &dyn Target, work: &Work, server: &[String], dir: &Path) -> Outcome<()> {
    let mut session = target.client_session(work, 0)?;
    session.begin()?;
    session.bulk(0, 0, work.params.get("rows") as u32)?;
    session.commit()?;
    for (i, (_, with)) in FORMATS.iter().enumerate() {
        let command = format!("\\copy {TABLE} to '{}'{with}", dir.join(i.to_string()).display());
        said_by(Command::new(binary("psql")?).args(server).arg("-c").arg(command), MISSING)?;
    }
    Ok(())
}

/// A psql that copies the same file repeatedly.
fn copier(server: &[String], file: &Path, with: &str) -> Outcome<Child> {
    // Its words are read as they come.
    let mut child = Command::new("stdbuf")
        .arg("-oL")
        .arg(binary("psql")?)
        .args(server)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut commands = child.stdin.take().ok_or("psql has no input")?;
    let command = format!("\\copy {TABLE} from '{}'{with}\n", file.display());
    // Ends with psql.
    std::thread::spawn(move || while commands.write_all(command.as_bytes()).is_ok() {});
    Ok(child)
}

/// Copies per second of `jobs` psql processes, in total.
fn psql(server: &[String], dir: &Path, format: usize, with: &str, jobs: u32, seconds: u32) -> Outcome<f64> {
    let done = Arc::new(AtomicU64::new(0));
    let mut children = Vec::new();
    for _ in 0..jobs {
        let mut child = copier(server, &dir.join(format.to_string()), with)?;
        let said = BufReader::new(child.stdout.take().ok_or("psql has no output")?);
        let done = Arc::clone(&done);
        std::thread::spawn(move || {
            for _ in said.lines().map_while(Result::ok).filter(|line| line.starts_with("COPY ")) {
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
        children.push(child);
    }
    std::thread::sleep(Duration::from_secs(1));
    let (before, began) = (done.load(Ordering::Relaxed), Instant::now());
    std::thread::sleep(Duration::from_secs(u64::from(seconds)));
    let copies = done.load(Ordering::Relaxed) - before;
    let rate = copies as f64 / began.elapsed().as_secs_f64();
    for mut child in children {
        child.kill()?;
        child.wait()?;
    }
    Ok(rate)
}
