//! `loadline note`, `loadline pack` and `loadline unpack`.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use loadline_store::{PACKED, StoreError, StoredRun, add_note, notes};

use crate::args::{NoteArgs, PackArgs, UnpackArgs};
use crate::exit::Failure;
use crate::output;
use crate::target::run_on_disk;

/// Most bytes of a note that is read from a file or standard input.
const MOST_NOTE: u64 = 1 << 20;

pub(crate) fn note(args: &NoteArgs) -> Result<u8, Failure> {
    let stored = StoredRun::open(&run_on_disk(&args.run, &args.results))?;
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

pub(crate) fn pack(args: &PackArgs) -> Result<u8, Failure> {
    let stored = StoredRun::open(&run_on_disk(&args.run, &args.results))?;
    let output = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.{PACKED}", stored.id())));
    if output == Path::new("-") {
        loadline_store::pack(stored.path(), std::io::stdout().lock())?;
        return Ok(0);
    }
    let file = File::create_new(&output).map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => StoreError::Exists(output.clone()).into(),
        _ => Failure::failed(format!("{} cannot be written: {e}", output.display())),
    })?;
    let packed = loadline_store::pack(stored.path(), &file).map_err(Failure::from).and_then(|files| {
        (&file).flush().and_then(|()| file.sync_all()).map_err(|e| Failure::failed(e.to_string()))?;
        Ok(files)
    });
    let files = packed.inspect_err(|_| {
        // Best effort: half a run is of no use.
        let _ = std::fs::remove_file(&output);
    })?;
    output::say(&format!("{files} files with their checksums"));
    output::stdout(format!("{}\n", output.display()).as_bytes())?;
    Ok(0)
}

pub(crate) fn unpack(args: &UnpackArgs) -> Result<u8, Failure> {
    let run = loadline_store::unpack(&args.file, &args.results)?;
    output::stdout(format!("{}\n", run.display()).as_bytes())?;
    Ok(0)
}
