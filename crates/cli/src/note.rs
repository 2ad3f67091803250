//! `loadline note`: what the user writes on a run.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use loadline_store::{StoredRun, add_note, notes};

use crate::args::NoteArgs;
use crate::exit::Failure;
use crate::output;
use crate::target::run_folder;

/// Most bytes of a note that is read from a file or standard input.
const MOST_NOTE: u64 = 1 << 20;

pub(crate) fn note(args: &NoteArgs) -> Result<u8, Failure> {
    let stored = StoredRun::open(&run_folder(&args.run, &args.results))?;
    if let Some(code) = &args.workload {
        let mut known: Vec<&str> = stored.manifest.plan.workloads.iter().map(|w| w.code.as_str()).collect();
        known.dedup();
        if !known.contains(&code.as_str()) {
            return Err(Failure::usage(format!(
                "run {} has no workload '{code}': it has {}",
                stored.id(),
                known.join(", ")
            )));
        }
    }
    let text = match (&args.text, &args.file) {
        (Some(text), _) => text.clone(),
        (None, Some(file)) => read(file)?,
        (None, None) => {
            let all = notes(stored.path())?;
            let shown = all.iter().filter(|(of, _)| args.workload.as_ref().is_none_or(|code| code == *of));
            let text = shown.map(|(of, text)| if of.is_empty() { text.clone() } else { format!("{of}:\n{text}") });
            output::stdout(text.collect::<Vec<_>>().join("\n").as_bytes())?;
            return Ok(0);
        }
    };
    if text.trim().is_empty() {
        return Err(Failure::usage("the note is empty"));
    }
    let path = add_note(stored.path(), args.workload.as_deref(), &text)?;
    output::say(&format!("note: {} (`loadline report` shows it)", path.display()));
    Ok(0)
}

fn read(file: &Path) -> Result<String, Failure> {
    let bad = |e: std::io::Error| Failure::usage(format!("--file {}: {e}", file.display()));
    let mut text = String::new();
    let most = MOST_NOTE + 1;
    if file == Path::new("-") {
        std::io::stdin().lock().take(most).read_to_string(&mut text).map_err(bad)?;
    } else {
        File::open(file).map_err(bad)?.take(most).read_to_string(&mut text).map_err(bad)?;
    }
    Ok(text)
}
