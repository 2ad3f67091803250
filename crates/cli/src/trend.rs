//! `loadline trend`: histories of stored runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use loadline_model::manifest::RunState;
use loadline_report::{RunData, Trended};
use loadline_store::{StoredRun, parse_rfc3339, runs_in};

use crate::args::TrendArgs;
use crate::exit::{self, Failure};
use crate::output;
use crate::source::check_workloads;

pub(crate) fn trend(args: &TrendArgs) -> Result<u8, Failure> {
    let mut runs = read(&args.folders)?;
    check_workloads(&args.workload, runs.iter().flat_map(|run| &run.records).map(|r| r.workload.as_str()))?;
    if !args.workload.is_empty() {
        runs.iter_mut().for_each(|run| run.records.retain(|r| args.workload.contains(&r.workload)));
    }
    let trended = Trended::new(&runs, args.figure.as_deref()).map_err(|e| Failure::usage(e.to_string()))?;
    let text = trended.render(args.list.format).map_err(|e| Failure::failed(e.to_string()))?;
    output::write(&args.list.output, text.as_bytes())?;
    let [series, short, ended] = trended.counts();
    if series == 0 {
        let why = "nothing was followed: no valid test has such a figure";
        // A script must not take that for an answer.
        return Err(if args.fail_if_slower.is_some() { Failure::usage(why) } else { Failure::failed(why) });
    }
    let Some(share) = args.fail_if_slower else { return Ok(0) };
    for (n, says) in [
        (short, "are too short: of those nothing can be shown"),
        (ended, "have no figure in the newest run: what is shown of them is older"),
    ] {
        if n > 0 {
            output::say(&format!("{n} of {series} series {says}"));
        }
    }
    let slower = trended.slower_by(share);
    slower.iter().for_each(|text| output::say(&format!("slower: {text}")));
    Ok(if slower.is_empty() { 0 } else { exit::FAILED })
}

/// The runs in `folders`, the oldest first. What cannot be followed is left out with a warning.
fn read(folders: &[PathBuf]) -> Result<Vec<RunData>, Failure> {
    let mut runs = BTreeMap::new();
    for folder in folders {
        for path in runs_in(folder).map_err(|e| Failure::usage(e.to_string()))? {
            let left_out = match known(&path) {
                Ok((started, run)) => runs
                    .insert((started, run.manifest.run.clone()), run)
                    .map(|run| format!("it is the run {} once more", run.manifest.run)),
                Err(why) => Some(why),
            };
            left_out.iter().for_each(|why| output::say(&format!("warning: {} is left out: {why}", path.display())));
        }
    }
    if runs.is_empty() {
        let shown = folders.iter().map(|folder| format!("'{}'", folder.display())).collect::<Vec<_>>().join(", ");
        return Err(Failure::usage(format!("no run to follow in {shown}: name the folder that holds the runs")));
    }
    Ok(runs.into_values().collect())
}

/// The run at `path` with its start, unless it cannot be followed.
fn known(path: &Path) -> Result<(SystemTime, RunData), String> {
    let stored = StoredRun::open(path).map_err(|e| e.to_string())?;
    let m = &stored.manifest;
    let started = parse_rfc3339(&m.started_at).ok_or_else(|| format!("its start '{}' is no time", m.started_at))?;
    if m.plan.paired.is_some() {
        return Err("it compares arms or levels (`loadline report` shows it)".to_owned());
    }
    if m.state != RunState::Complete {
        output::say(&format!("warning: {} is not complete: its tests count as they are", m.run));
    }
    stored.warnings.iter().for_each(|w| output::say(&format!("warning: {}: {w}", m.run)));
    Ok((started, RunData::new(stored.manifest, stored.records, Vec::new())))
}
