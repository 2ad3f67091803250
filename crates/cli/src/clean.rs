//! `loadline clean`.

use loadline_database::{kind_of, open};
use loadline_run::reference::{Role, clean_leftovers, writable_dir};

use crate::args::CleanArgs;
use crate::exit::Failure;
use crate::output;

pub(crate) fn clean(args: &CleanArgs) -> Result<u8, Failure> {
    let url = args.target.url();
    let kind = kind_of(&url)?;
    (kind.check_url)(&url)?;
    let request = args.target.request(&args.results);
    let mut removed = (kind.clean_leftovers)(&request)?;
    removed.extend(clean_leftovers(&request.scratch)?);
    if !(kind.is_temporary)(&url) {
        let target = open(&request)?;
        // The reference log was on the filesystem of the database's log. Without a folder there, there was none.
        if let Ok(dir) =
            target.info().map_err(|e| e.to_string()).and_then(|info| writable_dir(&info, Role::Log, &request.scratch))
        {
            removed.extend(clean_leftovers(&dir)?);
        }
        removed.extend(target.clean()?);
    }
    let text = if removed.is_empty() { "nothing of loadline's was found".to_owned() } else { removed.join("\n") };
    output::stdout(format!("{text}\n").as_bytes())?;
    Ok(0)
}
