//! The device probe against fio: the same file, block size, depth and engine, in turns.
//!
//! Both use the probe's test file, which has no name: fio opens it through `/proc`. CPU is that of the process on both
//! sides. fio reports only its own thread. If io_uring syncs the file in kernel threads, their CPU is missing there; then
//! the CPU of the whole fio is used, minus that of a fio with a single I/O.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use loadline_analyze::stats::median;
use loadline_model::format::parse_bytes;
use loadline_model::probe::Operation;
use loadline_storage::probe::{Point, ProbeOptions, ProbeSession};
use serde_json::Value;

use crate::arena::{Outcome, children_cpu_s, said_by};
use crate::rounds::Contest;

const MISSING: &str = "apt-get install fio";

/// Options of the comparison.
#[derive(Debug, clap::Args)]
pub(crate) struct FioArgs {
    /// Directory to measure
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Rounds; in each, both measure every point once
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// Seconds per measurement
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Size of the test file
    #[arg(long, default_value = "1GiB", value_parser = parse_bytes)]
    size: u64,
    /// Only operations whose name contains this, e.g. fdatasync
    #[arg(long, default_value = "")]
    only: String,
}

/// Operations that both measure, each with sizes, KiB, and depths.
const POINTS: [(Operation, &[u64], &[u32]); 5] = [
    (Operation::SyncWriteFdatasyncPrealloc, &[4, 64, 1024], &[1]),
    (Operation::SyncWriteDsyncPrealloc, &[4, 64, 1024], &[1]),
    (Operation::RandomRead, &[4, 8, 16], &[1, 32]),
    (Operation::SequentialRead, &[1024], &[1, 8]),
    (Operation::SequentialWrite, &[1024], &[1, 8]),
];

#[derive(Debug, Clone, Copy)]
struct Figure {
    per_s: f64,
    cpu_us: f64,
}

pub(crate) fn run(args: &FioArgs) -> Outcome<()> {
    let stop = AtomicBool::new(false);
    let options = ProbeOptions { size: Some(args.size), ..ProbeOptions::default() };
    let mut session = ProbeSession::open(&args.dir, &options, &stop)?;
    if let (_, Some(reason)) = session.engine() {
        return Err(format!("the comparison is of io_uring: {reason}").into());
    }
    session.fill(600.0, |_, _| ())?;
    let file = session.peer_path();
    let baseline = median(&(0..9).map(|_| idle(&file)).collect::<Outcome<Vec<f64>>>()?).unwrap_or(0.0);
    println!(
        "{} file in {}, {} s a measurement, {} rounds; fio's start takes {:.0} ms of CPU",
        loadline_model::format::bytes(session.file_bytes as f64),
        args.dir.display(),
        args.seconds,
        args.rounds,
        baseline * 1e3
    );
    let mut points: Vec<Point> = Vec::new();
    for (operation, sizes, depths) in POINTS.into_iter().filter(|(o, ..)| o.id().contains(&args.only)) {
        let each = sizes.iter().flat_map(|kib| depths.iter().map(move |depth| (kib << 10, *depth)));
        points.extend(each.map(|(size, depth)| Point { operation, size, depth }));
    }
    let name = |p: &Point| format!("{} {} KiB {}", p.operation.id(), p.size >> 10, p.depth);
    let contest = Contest {
        points: points.iter().map(name).collect(),
        contenders: vec!["fio", "loadline"],
        figures: &[("1/s", |f: &Figure| f.per_s, 0), ("CPU µs", |f| f.cpu_us, 2)],
    };
    let all = contest.measure(args.rounds, |point, contender| {
        let point = &points[point];
        if contender == 0 {
            return fio(&file, point, args, baseline);
        }
        let row = session.measure(point, args.seconds)?.ok_or("nothing completed")?;
        Ok(Figure { per_s: row.per_s, cpu_us: row.cpu_ns_per_op / 1e3 })
    })?;
    contest.print(&all, [(1, 0)]);
    Ok(())
}

fn command(file: &Path, point: &Point) -> Command {
    use Operation as O;
    let mut command = Command::new("fio");
    command.args(["--name=peer", "--ioengine=io_uring", "--direct=1", "--allow_file_create=0", "--overwrite=1"]);
    command.args(["--norandommap=1", "--randrepeat=0", "--output-format=json"]);
    command.arg(format!("--filename={}", file.display()));
    command.arg(format!("--bs={}", point.size)).arg(format!("--iodepth={}", point.depth));
    command.arg(match point.operation {
        O::RandomRead => "--rw=randread",
        O::SequentialRead => "--rw=read",
        _ => "--rw=write",
    });
    match point.operation {
        O::SyncWriteFdatasyncPrealloc => drop(command.arg("--fdatasync=1")),
        O::SyncWriteDsyncPrealloc => drop(command.arg("--sync=dsync")),
        _ => {}
    }
    command.stderr(Stdio::inherit());
    command
}

/// CPU time of a fio with a single read, s.
fn idle(file: &Path) -> Outcome<f64> {
    let before = children_cpu_s()?;
    let point = Point { operation: Operation::RandomRead, size: 4096, depth: 1 };
    said_by(command(file, &point).args(["--number_ios=1"]), MISSING)?;
    Ok(children_cpu_s()? - before)
}

fn fio(file: &Path, point: &Point, args: &FioArgs, baseline: f64) -> Outcome<Figure> {
    let before = children_cpu_s()?;
    let runtime = format!("--runtime={:.0}ms", args.seconds * 1e3);
    let said = said_by(command(file, point).args(["--time_based=1", &runtime]), MISSING)?;
    let all_cpu = children_cpu_s()? - before - baseline;
    let said: Value = serde_json::from_str(&said)?;
    let reads = matches!(point.operation, Operation::RandomRead | Operation::SequentialRead);
    let part = &said["jobs"][0][if reads { "read" } else { "write" }];
    let number = |key: &str| part[key].as_f64().ok_or_else(|| format!("fio says no {key}"));
    let own = |key: &str| said["jobs"][0][key].as_f64().ok_or_else(|| format!("fio says no {key}"));
    let cpu = match point.operation {
        Operation::SyncWriteFdatasyncPrealloc => all_cpu,
        _ => (own("usr_cpu")? + own("sys_cpu")?) / 100.0 * own("job_runtime")? / 1e3,
    };
    let (count, runtime_ms) = (number("total_ios")?, number("runtime")?);
    if said["jobs"][0]["error"] != 0 || count < 1.0 || runtime_ms < 1.0 {
        return Err(format!("fio did nothing: {part}").into());
    }
    Ok(Figure { per_s: count / runtime_ms * 1e3, cpu_us: cpu / count * 1e6 })
}
