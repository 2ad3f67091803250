//! `loadline report` over a run of many tests: time and memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use serde_json::Value;

use crate::arena::{Outcome, children_cpu_s, said_by};

/// Files that are stored beside each test's record.
const BESIDE: [(&str, &str); 3] = [("series", "csv"), ("histograms", "hlog"), ("snapshots", "json")];
/// How to get the loadline that is measured.
const MISSING: &str = "cargo build --release, or give --loadline FILE";
const FORMATS: [&str; 5] = ["csv", "text", "md", "json", "html"];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Tests of the run that is reported on
    #[arg(long, default_value_t = 1_000)]
    tests: usize,

    /// Folder of a run whose tests are repeated; without it a short one on SQLite is made
    #[arg(long)]
    run: Option<PathBuf>,

    /// The loadline that is measured
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/release/loadline"))]
    loadline: PathBuf,
}

pub(crate) fn run(args: &Args) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let few = args.run.clone().map_or_else(|| short_run(&args.loadline, folder.path()), Ok)?;
    let many = folder.path().join("many");
    repeat(&few, &many, args.tests)?;
    println!(
        "{} tests\n{:<6} {:>8} {:>8} {:>16} {:>10}",
        args.tests, "format", "s", "CPU s", "most so far, MiB", "KiB"
    );
    for format in FORMATS {
        let output = folder.path().join(format);
        let (begun, cpu_s) = (Instant::now(), children_cpu_s()?);
        let mut report = Command::new(&args.loadline);
        report.arg("report").arg(&many).args(["--format", format, "--output"]).arg(&output);
        said_by(&mut report, MISSING)?;
        println!(
            "{format:<6} {:>8.2} {:>8.2} {:>16.0} {:>10}",
            begun.elapsed().as_secs_f64(),
            children_cpu_s()? - cpu_s,
            getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss() as f64 / 1024.0,
            fs::metadata(&output)?.len() / 1024
        );
    }
    Ok(())
}

/// A run of nine short tests.
fn short_run(loadline: &Path, results: &Path) -> Outcome<PathBuf> {
    let mut run = Command::new(loadline);
    run.args(["run", "--target", "sqlite:", "--workload", "LGWR-LAT1,TP-LIGHT,STO-READ", "--jobs", "1,2,4"]);
    run.args(["--duration", "2s", "--warmup", "1s", "--size", "64MB", "--force", "--results"]).arg(results);
    let said = run.output().map_err(|e| format!("{}: {e}; {MISSING}", loadline.display()))?;
    let made = fs::read_dir(results)?.flatten().map(|e| e.path()).find(|p| p.join("tests.jsonl").exists());
    made.ok_or_else(|| String::from_utf8_lossy(&said.stderr).into())
}

/// A run folder at `many` with `tests` tests: those of `few` again and again, as repetitions and with more jobs.
fn repeat(few: &Path, many: &Path, tests: usize) -> Outcome<()> {
    let lines = fs::read_to_string(few.join("tests.jsonl"))?;
    let records: Vec<Value> = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    for (folder, _) in BESIDE {
        fs::create_dir_all(many.join(folder))?;
    }
    fs::copy(few.join("manifest.json"), many.join("manifest.json"))?;
    let mut out = String::new();
    for (i, record) in records.iter().cycle().take(tests).enumerate() {
        let (test, round) = (i + 1, i / records.len());
        let mut copy = record.clone();
        copy.as_object_mut().map(|fields| fields.remove("checksum"));
        copy["test"] = test.into();
        copy["repetition"] = (1 + round % 3).into();
        copy["jobs"] = (record["jobs"].as_u64().unwrap_or(1) + 4 * (round as u64 / 3)).into();
        out += &format!("{copy}\n");
        for (folder, extension) in BESIDE {
            let file = |run: &Path, test: &dyn std::fmt::Display| run.join(folder).join(format!("{test}.{extension}"));
            fs::copy(file(few, &record["test"]), file(many, &test))?;
        }
    }
    Ok(fs::write(many.join("tests.jsonl"), out)?)
}
