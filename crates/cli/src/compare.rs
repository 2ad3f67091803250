//! `loadline compare`: what a run of two arms shows, or which of two stored runs is faster.

use loadline_model::manifest::RunState;
use loadline_report::{Compared, Format, RunData, Terms};
use loadline_run::plan::DEFAULT_EQUIVALENCE;

use crate::args::CompareArgs;
use crate::exit::{self, Failure};
use crate::target::run_folder;
use crate::{output, run, stored};

/// Says what is wrong with stored runs.
fn warn(runs: &[&RunData]) {
    for run in runs {
        run.warnings.iter().for_each(|w| output::say(&format!("warning: {}: {w}", run.manifest.run)));
        if run.manifest.state != RunState::Complete {
            output::say(&format!("warning: {} is not complete: resume it, or it is judged as it is", run.manifest.run));
        }
    }
}

/// Workloads of the plans that the server refused: they have no row.
fn refused(runs: &[&RunData]) -> Vec<String> {
    runs.iter()
        .flat_map(|run| run.manifest.plan.refused())
        .map(|skipped| format!("{}: {}", skipped.code, skipped.reason))
        .collect()
}

pub(crate) fn compare(args: &CompareArgs) -> Result<u8, Failure> {
    let load = |run| stored::load(&run_folder(run, &args.results));
    let mut not_judged = Vec::new();
    let compared = match args.runs.as_slice() {
        [run] => {
            let (stored, data) = load(run)?;
            if args.equivalence.is_some() || args.across_drivers || args.unequal {
                return Err(Failure::usage(
                    "--equivalence, --across-drivers and --unequal are for two runs: what two arms are judged by was set when they were \
                     measured",
                ));
            }
            warn(&[&data]);
            not_judged.extend(refused(&[&data]));
            Compared::of_arms(&data, run::width()).ok_or_else(|| {
                Failure::usage(format!(
                    "{} is not a run of two arms (`loadline ab`): name a second run to compare it with",
                    stored.path().display()
                ))
            })?
        }
        [a, b] => {
            let ((stored_a, a), (stored_b, b)) = (load(a)?, load(b)?);
            if stored_a.path() == stored_b.path() {
                return Err(Failure::usage(format!("{} is named twice", stored_a.path().display())));
            }
            if let Some(run) = [&a, &b].into_iter().find(|data| data.manifest.plan.arms().is_some()) {
                return Err(Failure::usage(format!("{} is a run of two arms: compare it by itself", run.manifest.run)));
            }
            // Levels are compared with the baseline of their own run.
            if let Some(run) = [&a, &b].into_iter().find(|data| data.manifest.plan.levels().is_some()) {
                return Err(Failure::usage(format!(
                    "{} is a run of levels of replication, each of which was measured in turns with a baseline: `loadline report` shows \
                     what they cost",
                    run.manifest.run
                )));
            }
            warn(&[&a, &b]);
            not_judged.extend(refused(&[&a, &b]));
            let terms = Terms {
                margin: args.equivalence.unwrap_or(DEFAULT_EQUIVALENCE),
                across_drivers: args.across_drivers,
                unequal: args.unequal,
            };
            Compared::of_runs(&[a, b], terms, run::width())
        }
        _ => return Err(Failure::usage("name one run of `loadline ab`, or two runs")),
    };
    let text = if args.format == Format::Csv { compared.csv() } else { compared.text().to_owned() };
    output::write(&args.output, text.as_bytes())?;
    let Some(share) = args.fail_if_slower else {
        if compared.counts()[0] == 0 && !compared.has_curves() {
            output::say("nothing was compared: the reasons are in the table");
        }
        return Ok(0);
    };
    let slower = compared.slower_by(share);
    slower.iter().for_each(|text| output::say(&format!("slower: {text}")));
    not_judged.extend(compared.not_judged());
    not_judged.iter().for_each(|text| output::say(&format!("not judged: {text}")));
    if !slower.is_empty() {
        return Ok(exit::FAILED);
    }
    if compared.counts()[0] == 0 || !not_judged.is_empty() {
        // A script must not take that for an answer.
        return Err(Failure::usage(
            "--fail-if-slower cannot be answered for all main figures: a ratio needs an interval, so run with --repeat 3 or more, or `ab` \
             with more --pairs, and compare what both runs have",
        ));
    }
    Ok(0)
}
