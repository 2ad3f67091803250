//! Sources that the user names: stored runs, as reports take them, and tables of results: files, standard input, published ones.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use loadline_live::read_run;
use loadline_model::format::did_you_mean;
use loadline_report::RunData;
use loadline_run::references::find;
use loadline_store::StoredRun;

use crate::exit::Failure;
use crate::output;
use crate::target::run_folder;

/// Largest table that is read. A million rows have about 100 MiB.
const LARGEST: u64 = 1 << 30;

/// Prefix of the names of published tables.
pub(crate) const PREFIX: &str = "reference:";

/// Everything about a stored run; its warnings are those of the data.
pub(crate) fn load(path: &Path) -> Result<(StoredRun, RunData), Failure> {
    let (stored, data) = read_run(path)?;
    if let Some(published) = &data.published {
        output::say(&format!("{}: {}", stored.id(), published.source));
    }
    Ok((stored, data))
}

/// Stored runs of which none is named twice.
pub(crate) fn load_all(runs: &[PathBuf], results: &Path) -> Result<(Vec<StoredRun>, Vec<RunData>), Failure> {
    let (mut all, mut data): (Vec<StoredRun>, Vec<RunData>) = Default::default();
    for run in runs {
        let (stored, read) = load(&run_folder(run, results))?;
        if all.iter().any(|other| other.path() == stored.path()) {
            return Err(Failure::usage(format!("{} is named twice", stored.path().display())));
        }
        all.push(stored);
        data.push(read);
    }
    Ok((all, data))
}

/// Refuses a workload that is named, but of which there is no test.
pub(crate) fn check_workloads<'a>(named: &[String], there: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
    let there: BTreeSet<&str> = there.collect();
    let Some(unknown) = named.iter().find(|code| !there.contains(code.as_str())) else { return Ok(()) };
    let near = did_you_mean(unknown, there.iter().copied());
    let there = there.into_iter().collect::<Vec<_>>().join(", ");
    Err(Failure::usage(format!("--workload {unknown}: there is no test of it{near}; there are {there}")))
}

/// The text of what is no file and no run, with its name: `-` is standard input, `reference:ID` a published table.
pub(crate) fn text(source: &Path) -> Result<Option<(String, String)>, Failure> {
    let name = source.to_string_lossy();
    if name == "-" {
        let name = "standard input";
        return Ok(Some((text_of(std::io::stdin().lock(), LARGEST, name)?, name.to_owned())));
    }
    let Some(id) = name.strip_prefix(PREFIX) else { return Ok(None) };
    let reference = find(id).map_err(|e| Failure::usage(e.to_string()))?;
    Ok(Some((reference.csv(), name.into_owned())))
}

pub(crate) fn text_of_file(path: &Path) -> Result<String, Failure> {
    let name = format!("'{}'", path.display());
    let file = std::fs::File::open(path)
        .map_err(|e| Failure::usage(format!("{name} cannot be read: {e}; name a run or a table of results")))?;
    text_of(file, LARGEST, &name)
}

/// All of `input`, if it is text of at most `largest` bytes.
fn text_of(input: impl Read, largest: u64, name: &str) -> Result<String, Failure> {
    let wrong = |what: String| Failure::usage(format!("{name} {what}"));
    let mut bytes = Vec::new();
    input.take(largest + 1).read_to_end(&mut bytes).map_err(|e| wrong(format!("cannot be read: {e}")))?;
    if bytes.len() as u64 > largest {
        return Err(wrong(format!("is larger than {} MiB: no table of results is so large", largest >> 20)));
    }
    if bytes.iter().take(4096).any(|byte| *byte == 0) {
        return Err(wrong(
            "is no text in UTF-8 or Latin-1; UTF-16, which Excel and PowerShell write, must be saved as UTF-8"
                .to_owned(),
        ));
    }
    Ok(String::from_utf8(bytes).unwrap_or_else(|e| e.into_bytes().into_iter().map(char::from).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_or_no_text_is_refused() {
        let said = |bytes: &[u8]| text_of(bytes, 1 << 20, "it").map_err(|e| e.message);
        assert_eq!(said(b"a,b\n1,2\n").unwrap(), "a,b\n1,2\n");
        assert!(said(&vec![b'1'; (1 << 20) + 1]).unwrap_err().contains("larger than 1 MiB"));
        assert!(said(b"\xff\xfea\0b\0").unwrap_err().contains("saved as UTF-8"));
    }
}
