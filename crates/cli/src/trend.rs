//! `loadline trend`: histories of stored runs.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use loadline_model::manifest::RunState;
use loadline_report::{RunData, Trended};
use loadline_store::{StoredRun, parse_rfc3339, runs_in};

use crate::args::{TrendArgs, VerdictFormat};
use crate::exit::{self, Failure};
use crate::output;
use crate::stored::check_workloads;

pub(crate) fn trend(args: &TrendArgs) -> Result<u8, Failure> {
    let mut runs = read(&args.folders)?;
    check_workloads(&args.workload, runs.iter().flat_map(|run| &run.records).map(|r| r.workload.as_str()))?;
    if !args.workload.is_empty() {
        runs.iter_mut().for_each(|run| run.records.retain(|r| args.workload.contains(&r.workload)));
    }
    let trended = Trended::of(&runs, args.figure.as_deref()).map_err(|e| Failure::usage(e.to_string()))?;
    let text = match args.format {
        VerdictFormat::Csv => trended.csv(),
        VerdictFormat::Text => trended.text(),
    };
    output::write(&args.output, text.as_bytes())?;
    let [series, judged] = trended.counts();
    if series == 0 {
        let why = "nothing was followed: no valid test has such a figure";
        if args.fail_if_slower.is_some() {
            // A script must not take that for an answer.
            return Err(Failure::usage(format!("{why}, and --fail-if-slower cannot be answered")));
        }
        output::say(why);
        return Ok(exit::FAILED);
    }
    let ended = trended.not_in_newest();
    for (n, says) in [
        (series - judged, "are too short: of those nothing can be shown"),
        (ended, "have no figure in the newest run: what is shown of them is older"),
    ] {
        if args.fail_if_slower.is_some() && n > 0 {
            output::say(&format!("{n} of {series} series {says}"));
        }
    }
    let slower = args.fail_if_slower.map_or_else(Vec::new, |share| trended.slower_by(share));
    slower.iter().for_each(|text| output::say(&format!("slower: {text}")));
    Ok(if slower.is_empty() { 0 } else { exit::FAILED })
}

/// The runs in `folders`, the oldest first. What cannot be followed is left out with a warning.
fn read(folders: &[PathBuf]) -> Result<Vec<RunData>, Failure> {
    let mut runs: Vec<(SystemTime, RunData)> = Vec::new();
    for path in folders.iter().map(|folder| runs_of(folder)).collect::<Result<Vec<_>, _>>()?.into_iter().flatten() {
        match known(&path, &runs) {
            Ok(run) => runs.push(run),
            Err(why) => output::say(&format!("warning: {} is left out: {why}", path.display())),
        }
    }
    if runs.is_empty() {
        let named: Vec<String> = folders.iter().map(|f| format!("'{}'", f.display())).collect();
        return Err(Failure::usage(format!(
            "no run to follow in {}: name the folder that holds the runs",
            named.join(", ")
        )));
    }
    runs.sort_by(|(a, of_a), (b, of_b)| a.cmp(b).then_with(|| of_a.manifest.run.cmp(&of_b.manifest.run)));
    Ok(runs.into_iter().map(|(_, run)| run).collect())
}

fn runs_of(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let wrong =
        |what: &str| Err(Failure::usage(format!("'{}' {what}: name the folder that holds the runs", folder.display())));
    match std::fs::metadata(folder) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => wrong("does not exist"),
        Ok(found) if !found.is_dir() => wrong("is a file"),
        Ok(_) if folder.join("manifest.json").exists() => wrong("is a single run"),
        _ => Ok(runs_in(folder)?),
    }
}

/// The run at `path` with its start, unless it cannot be followed or is among `runs` already.
fn known(path: &Path, runs: &[(SystemTime, RunData)]) -> Result<(SystemTime, RunData), String> {
    let stored = StoredRun::open(path).map_err(|e| e.to_string())?;
    let m = &stored.manifest;
    let started = parse_rfc3339(&m.started_at).ok_or_else(|| format!("its start '{}' is no time", m.started_at))?;
    if m.plan.arms.is_some() {
        return Err("it is a run of two arms (`loadline compare` shows it)".to_owned());
    }
    if m.plan.levels.is_some() {
        return Err("it is a run of levels of replication (`loadline report` shows it)".to_owned());
    }
    if runs.iter().any(|(time, run)| *time == started && run.manifest.run == m.run) {
        return Err(format!("it is the run {} once more", m.run));
    }
    if m.state != RunState::Complete {
        output::say(&format!("warning: {} is not complete: its tests count as they are", m.run));
    }
    stored.warnings.iter().for_each(|w| output::say(&format!("warning: {}: {w}", m.run)));
    Ok((started, RunData::new(stored.manifest, stored.records, Vec::new())))
}
