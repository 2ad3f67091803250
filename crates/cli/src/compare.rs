//! `loadline compare`: what a run of two arms shows, or which of two stored runs is faster.

use loadline_model::manifest::RunState;
use loadline_report::{Compared, Format, RunData, Terms};
use loadline_run::plan::DEFAULT_EQUIVALENCE;

use crate::args::CompareArgs;
use crate::exit::{self, Failure};
use crate::{output, run, source};

/// Says what is wrong with stored runs.
fn warn(runs: &[RunData]) {
    for run in runs {
        run.warnings.iter().for_each(|w| output::say(&format!("warning: {}: {w}", run.manifest.run)));
        if run.manifest.state != RunState::Complete {
            output::say(&format!("warning: {} is not complete: resume it, or it is judged as it is", run.manifest.run));
        }
    }
}

pub(crate) fn compare(args: &CompareArgs) -> Result<u8, Failure> {
    let (_, runs) = source::load_all(&args.runs, &args.results)?;
    if runs.len() == 1 && (args.equivalence.is_some() || args.across_drivers || args.unequal) {
        return Err(Failure::usage(
            "--equivalence, --across-drivers and --unequal are for two runs: what two arms are judged by was set when they were measured",
        ));
    }
    let terms = Terms {
        margin: args.equivalence.unwrap_or(DEFAULT_EQUIVALENCE),
        across_drivers: args.across_drivers,
        unequal: args.unequal,
    };
    let compared = Compared::new(&runs, terms).map_err(|e| Failure::usage(e.to_string()))?;
    warn(&runs);
    // Workloads of the plans that the server refused have no row.
    let refused = runs.iter().flat_map(|run| run.manifest.plan.refused());
    let mut not_judged: Vec<String> = refused.map(|skipped| format!("{}: {}", skipped.code, skipped.reason)).collect();
    let text = if args.list.format == Format::Csv { compared.csv() } else { compared.text(run::width()) };
    output::write(&args.list.output, text.as_bytes())?;
    let Some(share) = args.fail_if_slower else {
        if compared.counts()[0] == 0 && !compared.has_curves {
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
