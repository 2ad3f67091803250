//! `loadline references`: the published measurements that come with loadline.

use loadline_report::{Published, RunData};
use loadline_run::references::{REFERENCES, Reference, find};

use crate::args::ReferencesArgs;
use crate::audit;
use crate::exit::Failure;
use crate::source::PREFIX;
use crate::{listing, output};

pub(crate) fn references(args: &ReferencesArgs) -> Result<u8, Failure> {
    match &args.id {
        Some(id) => output::write(&args.list.output, found(id)?.csv().as_bytes()).map(|()| 0),
        None => {
            let columns = ["reference", "platform", "published", "workloads", "tests", "summary", "source"];
            listing::write(&args.list, &columns, REFERENCES.iter().map(row).collect::<Result<_, _>>()?)
        }
    }
}

/// The run that `--with reference:ID` names.
pub(crate) fn named(text: &str) -> Result<RunData, Failure> {
    let id = text.strip_prefix(PREFIX).ok_or_else(|| {
        Failure::usage(format!("--with '{text}': write {PREFIX}ID, such as {PREFIX}{}", REFERENCES[0].id))
    })?;
    let reference = found(id)?;
    let records = reference.records()?;
    let manifest = reference.manifest(&records)?;
    let published = Published {
        imported: false,
        source: reference.source.to_owned(),
        findings: audit::findings(&reference.csv(), id)?,
    };
    Ok(RunData { published: Some(published), ..RunData::new(manifest, records, Vec::new()) })
}

/// `exadata-x9m`, also as `--with` has it.
fn found(id: &str) -> Result<&'static Reference, Failure> {
    Ok(find(id.strip_prefix(PREFIX).unwrap_or(id))?)
}

fn row(reference: &Reference) -> Result<Vec<String>, Failure> {
    let records = reference.records()?;
    let mut workloads: Vec<&str> = records.iter().map(|r| r.workload.as_str()).collect();
    workloads.dedup();
    Ok(vec![
        reference.id.to_owned(),
        reference.platform.to_owned(),
        reference.year.to_owned(),
        workloads.join(" "),
        records.len().to_string(),
        reference.summary.to_owned(),
        reference.source.to_owned(),
    ])
}
