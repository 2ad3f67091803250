//! `loadline workloads`, from the catalogue.

use std::path::Path;

use loadline_database::{TARGETS, TargetKind};
use loadline_workload::{CATALOGUE, Workload, find, register};

use crate::args::{ListFormat, WorkloadsArgs};
use crate::drivers::{drivers, runs_with};
use crate::exit::Failure;
use crate::listing::Listing;
use crate::{output, pages};

pub(crate) fn workloads(args: &WorkloadsArgs) -> Result<u8, Failure> {
    if let Some(folder) = &args.pages {
        pages::write(folder)?;
        return Ok(0);
    }
    let for_people = matches!(args.list.format, ListFormat::Text | ListFormat::Md);
    let own = args.workload_file.as_deref().map(from_file).transpose()?;
    let workload = match (&args.code, own) {
        (None, None) => {
            list(CATALOGUE, for_people).write(&args.list)?;
            return Ok(0);
        }
        (None, Some(own)) => own,
        (Some(code), _) => find(code).map_err(|e| Failure::usage(e.to_string()))?,
    };
    if for_people {
        output::write(&args.list.output, pages::page(workload)?.as_bytes())?;
    } else {
        list(&[workload], false).write(&args.list)?;
    }
    Ok(0)
}

/// The workload in a user's file.
fn from_file(path: &Path) -> Result<&'static Workload, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::usage(format!("the workload file {name} cannot be read: {e}")))?;
    register(&name, &text).map_err(|e| Failure::usage(e.to_string()))
}

/// One row per workload. Files get two more columns, too wide for a terminal: drivers, and why not on a target.
fn list(workloads: &[&'static Workload], for_people: bool) -> Listing {
    let mut columns = vec!["code", "group", "summary", "named_for", "kpis", "needs", "targets"];
    if !for_people {
        columns.extend(["drivers", "not_on"]);
    }
    let row = |w: &&'static Workload| {
        let kpis = w.kpis.iter().map(|k| format!("{} [{}]", k.title, k.column.unit));
        let needs = w.needs.iter().map(|n| n.phrase());
        let (on, not_on): (Vec<&TargetKind>, Vec<&TargetKind>) =
            TARGETS.iter().copied().partition(|k| !runs_with(w, k).is_empty());
        let with = |k: &&TargetKind| {
            let names: Vec<&str> = runs_with(w, k).iter().map(|d| d.name()).collect();
            format!("{}={}", k.scheme, names.join("+"))
        };
        let mut row = vec![
            w.code.to_owned(),
            w.group.to_owned(),
            w.summary.to_owned(),
            w.named_for.phrase(),
            kpis.collect::<Vec<_>>().join("; "),
            needs.collect::<Vec<_>>().join("; "),
            on.iter().map(|k| k.scheme).collect::<Vec<_>>().join(" "),
        ];
        if !for_people {
            row.push(on.iter().map(with).collect::<Vec<_>>().join(" "));
            row.push(not_on.iter().map(|k| format!("{}: {}", k.scheme, why_not(w, k))).collect::<Vec<_>>().join("; "));
        }
        row
    };
    Listing { columns, rows: workloads.iter().map(row).collect() }
}

fn why_not(workload: &Workload, kind: &TargetKind) -> String {
    let reasons = drivers(workload, kind).into_iter().filter_map(|(d, refused)| refused.map(|r| (d, r.reason)));
    reasons.map(|(d, reason)| format!("not with the {d} driver: {reason}")).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use loadline_model::Capability;

    use super::*;

    #[test]
    fn what_a_target_cannot_run_is_listed_with_the_reason() {
        // The reference log writer has no rows to read: a workload that needs them is not for it.
        let needs: &[Capability] = &[Capability::Rows];
        let workload: &'static Workload =
            Box::leak(Box::new(Workload { needs, ..shallow(loadline_workload::find("LGWR-LAT1").unwrap()) }));
        let list = list(&[workload], false);
        let cell = |id: &str| &list.rows[0][list.columns.iter().position(|c| *c == id).unwrap()];
        assert!(!cell("targets").split(' ').any(|t| t == "wal"), "{}", cell("targets"));
        assert!(cell("targets").split(' ').any(|t| t == "postgres") && !cell("drivers").contains("wal="));
        assert!(cell("drivers").split(' ').any(|d| d == "postgres=database+client"), "{}", cell("drivers"));
        assert!(
            cell("not_on").starts_with("wal: ") && cell("not_on").contains("client driver: it needs"),
            "{}",
            cell("not_on")
        );
    }

    fn shallow(w: &Workload) -> Workload {
        Workload { ..*w }
    }
}
