//! `loadline compare`: what a run of two arms shows, or which of two stored runs is faster.

use loadline_report::{arms_csv, arms_text};

use crate::args::{CompareArgs, ListFormat};
use crate::exit::Failure;
use crate::target::run_folder;
use crate::{output, report, run};

pub(crate) fn compare(args: &CompareArgs) -> Result<u8, Failure> {
    let [run] = args.runs.as_slice() else {
        return Err(Failure::usage("comparing two runs is not made yet: `loadline report A B` sets them side by side"));
    };
    let (folder, data) = report::load(&run_folder(run, &args.results))?;
    if data.manifest.plan.arms.is_none() {
        return Err(Failure::usage(format!(
            "{} is not a run of two arms (`loadline ab`): `loadline report A B` sets two runs side by side",
            folder.display()
        )));
    }
    let text = match args.list.format {
        ListFormat::Csv => arms_csv(&data),
        ListFormat::Text => arms_text(&data, run::width()),
        other => return Err(Failure::usage(format!("format {other:?} is not one of text, csv").to_lowercase())),
    };
    output::write(&args.list.output, text.as_bytes())?;
    Ok(0)
}
