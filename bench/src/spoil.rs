//! Spoils figures in every known way, and shows that the product catches it and lets the control run pass.
//!
//! Runs go through the real `loadline`, as a user's. What came out is kept, and docs/truth.md is made of it (`page.rs`).

mod page;
mod way;
mod ways;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use loadline_collect::os::{CpuShares, CpuTimes};
use loadline_model::check::Outcome as Checked;
use serde::{Deserialize, Serialize};

use crate::arena::Outcome;
use crate::outcomes;
pub(crate) use way::{Beside, LOOP};
use way::{Must, On, Scene, Seen, Way};
use ways::ways;

#[derive(Debug, clap::Args)]
pub(crate) struct SpoilArgs {
    /// Ways [default: all]. 'list' prints their names
    names: Vec<String>,
    /// The loadline that is tried [default: beside this program]
    #[arg(long)]
    loadline: Option<PathBuf>,
    /// Folder of outcomes [default: spoil in cargo's target directory]
    #[arg(long)]
    cache: Option<PathBuf>,
    /// Write all outcomes of the cache into this page, between its markers (docs/truth.md)
    #[arg(long)]
    docs: Option<PathBuf>,
    /// Measure nothing: only write the page
    #[arg(long, requires = "docs")]
    only_docs: bool,
}

/// How a way came out.
#[derive(Debug, Serialize, Deserialize)]
struct Tried {
    name: String,
    date: String,
    /// The server that it ran on, if it was one.
    server: String,
    /// Whether it came out as it must.
    holds: bool,
    seen: String,
    /// Runs of the control run until one was proved and unmarked; `None` if none was.
    clean: Option<usize>,
    /// Fault of the last one that was not clean.
    #[serde(default)]
    unclean: String,
}

pub(crate) fn run(args: &SpoilArgs) -> Outcome<ExitCode> {
    let ways = ways()?;
    if args.names.iter().any(|name| name == "list") {
        ways.all.iter().for_each(|way| println!("{:<22} {}", way.name, way.does));
        return Ok(ExitCode::SUCCESS);
    }
    let cache = outcomes::folder(args.cache.as_deref(), "spoil")?;
    let beside = std::env::current_exe()?.with_file_name("loadline");
    let loadline = args.loadline.clone().unwrap_or(beside);
    if !loadline.exists() {
        return Err(
            format!("{} not found: cargo build -p loadline-cli, or give --loadline FILE", loadline.display()).into()
        );
    }
    let runs = outcomes::runs(&cache)?;
    let mut bench = Bench { loadline: &loadline, runs: runs.path(), control_runs: BTreeMap::new() };
    let named = |name: &str| args.names.is_empty() || args.names.iter().any(|n| n == name);
    if let Some(unknown) = args.names.iter().find(|n| !ways.all.iter().any(|w| w.name == **n)) {
        return Err(format!("no way '{unknown}': `spoil list`").into());
    }
    let mut good = true;
    for way in ways.all.iter().filter(|way| !args.only_docs && named(&way.name)) {
        let tried = bench.try_way(way)?;
        good &= tried.holds && tried.clean.is_some();
        println!("{}", tried.line());
        outcomes::store(&cache, &way.name, &tried)?;
    }
    if let Some(docs) = &args.docs {
        let page = std::fs::read_to_string(docs)?;
        std::fs::write(docs, page::with(&page, &ways, &outcomes::all(&cache)?)?)?;
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Where runs are made, and the clean ones that were.
struct Bench<'a> {
    loadline: &'a Path,
    runs: &'a Path,
    /// By what they are measured on and their arguments.
    control_runs: BTreeMap<(On, String), Vec<Seen>>,
}

/// Runs of a control run, on a machine that others may disturb; and of one that must not be disturbed.
const CONTROL_RUNS: usize = 2;
const QUIET_CONTROL_RUNS: usize = 5;
/// Longest wait for a quiet machine.
const QUIET_WAIT: Duration = Duration::from_secs(10);

impl Bench<'_> {
    /// Does `make` in a scene of its own; also returns the server's version.
    fn scene<T>(&self, way: &Way, make: impl FnOnce(&Scene<'_>) -> Outcome<T>) -> Outcome<(T, String)> {
        let folder = outcomes::runs(self.runs)?;
        let scene = Scene { loadline: self.loadline, results: folder.path(), way, server: Default::default() };
        let done = make(&scene)?;
        let version = scene.server.get().map_or_else(String::new, |server| server.version.clone());
        Ok((done, version))
    }

    fn try_way(&mut self, way: &Way) -> Outcome<Tried> {
        let (spoiled, server) = match self.scene(way, |s| ways::spoiled(way, s)) {
            Ok((seen, server)) => (judge(&way.must, &seen), server),
            Err(e) => (Verdict { holds: false, seen: format!("could not be tried: {e}") }, String::new()),
        };
        let Verdict { holds, seen } = spoiled;
        let (clean, unclean) = self.clean(way)?;
        Ok(Tried { name: way.name.clone(), date: outcomes::today(), server, holds, seen, clean, unclean })
    }

    /// Runs of the control run until one was clean. Ways with the same run share them.
    /// Others may disturb a control run, as long as the check that is tried does not say so.
    fn clean(&mut self, way: &Way) -> Outcome<(Option<usize>, String)> {
        let mut unclean = String::new();
        let key = (way.on.clone(), way.run.clone());
        for run in 0..if way.disturbs() { QUIET_CONTROL_RUNS } else { CONTROL_RUNS } {
            let made = self.control_runs.get(&key).map_or(0, Vec::len);
            if made <= run {
                if way.disturbs() {
                    wait_for_quiet()?;
                }
                let (seen, _) = self.scene(way, |s| s.run(&[]))?;
                self.control_runs.entry(key.clone()).or_default().push(seen);
            }
            match why_unclean(&way.must, &self.control_runs[&key][run]) {
                None => return Ok((Some(run + 1), unclean)),
                Some(why) => unclean = why,
            }
        }
        Ok((None, unclean))
    }
}

/// Waits for a second in which the CPUs were idle, but not for ever: what disturbs a control run must not be a neighbour.
fn wait_for_quiet() -> Outcome<()> {
    let deadline = Instant::now() + QUIET_WAIT;
    let mut before = CpuTimes::local()?;
    while Instant::now() < deadline {
        sleep(Duration::from_secs(1));
        let now = CpuTimes::local()?;
        if CpuShares::between(&before, &now).is_some_and(|shares| shares.idle_pct > 95.0) {
            break;
        }
        before = now;
    }
    Ok(())
}

/// Whether a spoiled run came out as it must, and what was seen.
struct Verdict {
    holds: bool,
    seen: String,
}

fn judge(must: &Must, seen: &Seen) -> Verdict {
    let found = match must {
        Must::Fail(id) => seen.check(*id, Checked::Failed).map(|c| c.detail.clone()),
        Must::Note(id) if seen.holds() => seen.check(*id, Checked::Noted).map(|c| c.detail.clone()),
        Must::Say(text) => seen.mark(text),
        Must::Refuse(code, text) if seen.code == *code && seen.records.is_empty() => seen.mark(text),
        Must::Note(_) | Must::Refuse(..) => None,
        Must::Show(column, least) => seen.shown(column, *least),
        Must::Withstand(_) | Must::Escape(_) => seen.holds().then(|| "proved".to_owned()),
    };
    Verdict { holds: found.is_some(), seen: found.unwrap_or_else(|| came_out(seen)) }
}

fn why_unclean(must: &Must, control: &Seen) -> Option<String> {
    let marked = match must {
        Must::Fail(id) | Must::Note(id) => {
            control.check(*id, Checked::Failed).or(control.check(*id, Checked::Noted)).map(|c| c.detail.clone())
        }
        Must::Say(text) => control.mark(text),
        Must::Show(column, least) => control.shown(column, *least),
        Must::Refuse(..) | Must::Withstand(_) | Must::Escape(_) => None,
    };
    marked.or_else(|| (!control.holds()).then(|| came_out(control)))
}

/// How a run ended.
fn came_out(seen: &Seen) -> String {
    let refused = seen.records.iter().filter(|r| !r.is_usable());
    let refused: Vec<&str> = refused.filter_map(|r| r.invalid_reason.as_deref()).collect();
    match (refused.is_empty(), seen.records.is_empty()) {
        (false, _) => format!("refused: {}", refused.join("; ")),
        (true, false) if seen.code == 0 => {
            format!("proved: {}", seen.marks().collect::<Vec<_>>().join("; "))
        }
        _ => format!("exit code {}: {}", seen.code, seen.said.trim()),
    }
}

impl Tried {
    fn line(&self) -> String {
        let verdict = if self.holds { "ok " } else { "NOT" };
        let clean = match self.clean {
            Some(1) => "control run passes".to_owned(),
            Some(n) => format!("control run passes in run {n}"),
            None => format!("CONTROL RUN FAILS: {}", self.unclean),
        };
        format!("{verdict} {:<22} {clean}; {}", self.name, self.seen)
    }
}
