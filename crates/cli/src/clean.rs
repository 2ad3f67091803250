//! `loadline clean`.

use loadline_database::{TARGETS, kind_of, open, redact};
use loadline_run::reference::{Role, clean_leftovers, writable_dir};

use crate::args::CleanArgs;
use crate::exit::Failure;
use crate::output;

pub(crate) fn clean(args: &CleanArgs) -> Result<u8, Failure> {
    let url = args.target.url();
    let kind = kind_of(&url)?;
    kind.check_url(&url)?;
    let request = args.target.request(&args.results);
    // Those of all kinds: whoever stopped a run need not know which it was.
    let (mut removed, mut failed) = (Vec::new(), Vec::new());
    for kind in TARGETS {
        match kind.clean_leftovers(&request) {
            Ok(lines) => removed.extend(lines),
            Err(e) => failed.push(e.to_string()),
        }
    }
    if !failed.is_empty() {
        return Err(Failure::failed([removed, failed].concat().join("\n")));
    }
    if !kind.is_temporary(&url) {
        let target = open(&request)?;
        // The reference log was on the filesystem of the database's log. Without a folder there, there was none.
        if let Ok(dir) =
            target.info().map_err(|e| e.to_string()).and_then(|info| writable_dir(&info, Role::Log, &request.scratch))
        {
            removed.extend(clean_leftovers(&dir)?);
        }
        removed.extend(target.clean()?);
    }
    let nothing = || {
        let place =
            if kind.is_temporary(&url) { "/var/tmp".to_owned() } else { format!("/var/tmp and {}", redact(&url)) };
        format!(
            "nothing of loadline's was found in '{}', {place}: other results folders with --results",
            args.results.display()
        )
    };
    let text = if removed.is_empty() { nothing() } else { removed.join("\n") };
    output::stdout(format!("{text}\n").as_bytes())?;
    Ok(0)
}
