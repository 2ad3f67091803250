//! `loadline clean`.

use loadline_database::{kind_of, open};

use crate::args::CleanArgs;
use crate::exit::Failure;
use crate::output;

pub(crate) fn clean(args: &CleanArgs) -> Result<u8, Failure> {
    let url = args.target.url();
    let kind = kind_of(&url)?;
    (kind.check_url)(&url)?;
    let request = args.target.request(&args.results);
    let mut removed = (kind.clean_leftovers)(&request)?;
    if !(kind.is_temporary)(&url) {
        removed.extend(open(&request)?.clean()?);
    }
    let text = if removed.is_empty() { "nothing of loadline's was found".to_owned() } else { removed.join("\n") };
    output::stdout(format!("{text}\n").as_bytes())?;
    Ok(0)
}
