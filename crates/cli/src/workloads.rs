//! `loadline workloads`, from the catalogue.

use std::path::Path;
use std::sync::Arc;

use loadline_database::{TARGETS, TargetKind};
use loadline_report::Format;
use loadline_workload::{CATALOGUE, Workload, find, read_file};

use crate::args::{ListArgs, WorkloadsArgs};
use crate::exit::Failure;
use crate::pages::{self, drivers, runs_with};
use crate::{listing, output};

pub(crate) fn workloads(args: &WorkloadsArgs) -> Result<u8, Failure> {
    if let Some(folder) = &args.pages {
        pages::write(folder)?;
        return Ok(0);
    }
    let own = args.workload_file.as_deref().map(from_file).transpose()?;
    let workload = match &args.code {
        None => own,
        Some(code) => match own.filter(|w| w.code.eq_ignore_ascii_case(code)) {
            None => Some(find(code).map_err(|e| Failure::usage(e.to_string()))?),
            own => own,
        },
    };
    let Some(format) = args.format else {
        let workload = workload.ok_or_else(|| Failure::usage("--format toml shows one workload: name its code"))?;
        output::write(&args.output, toml(&workload)?.as_bytes())?;
        return Ok(0);
    };
    let for_people = matches!(format, Format::Text | Format::Markdown);
    let list_args = ListArgs { format, output: args.output.clone() };
    match workload {
        None => listing::write(&list_args, &COLUMNS[..if for_people { 3 } else { 9 }], rows(&CATALOGUE)),
        Some(workload) if for_people => output::write(&args.output, pages::page(&workload)?.as_bytes()).map(|()| 0),
        Some(workload) => listing::write(&list_args, &COLUMNS, rows(&[workload])),
    }
}

/// The text of the file that defines `workload`, as a user's own. A limit that computes only the queries of this workload
/// is left out: its successor then has those that follow from its statements.
fn toml(workload: &Workload) -> Result<String, Failure> {
    if workload.scripts.is_some() {
        let code = &workload.code;
        return Err(Failure::usage(format!("{code} is made of pgbench scripts and has no workload file to show")));
    }
    let is_own = workload.limits.iter().any(|limit| limit.is_of_one_workload());
    let lines = workload.text().lines().filter(|line| !(is_own && line.starts_with("limits = ")));
    Ok(lines.flat_map(|line| [line, "\n"]).collect())
}

/// The workload in a user's file.
fn from_file(path: &Path) -> Result<Arc<Workload>, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::usage(format!("the workload file {name} cannot be read: {e}")))?;
    read_file(&name, &text).map_err(|e| Failure::usage(e.to_string()))
}

/// Columns of the list of workloads. Those from the fourth on are too wide for a terminal.
const COLUMNS: [&str; 9] = ["code", "group", "summary", "named_for", "kpis", "needs", "targets", "drivers", "not_on"];

fn rows(workloads: &[Arc<Workload>]) -> Vec<Vec<String>> {
    let row = |w: &Arc<Workload>| {
        let kpis = w.kpis.iter().map(|k| format!("{} [{}]", k.title, k.column.unit));
        let needs = w.needs.iter().map(|n| n.phrase());
        let (on, not_on): (Vec<&dyn TargetKind>, Vec<&dyn TargetKind>) =
            TARGETS.iter().copied().partition(|k| !runs_with(w, *k).is_empty());
        let with = |k: &&dyn TargetKind| {
            let names: Vec<&str> = runs_with(w, *k).iter().map(|d| d.name()).collect();
            format!("{}={}", k.scheme(), names.join("+"))
        };
        vec![
            w.code.clone(),
            w.group.clone(),
            w.summary.clone(),
            w.named_for.phrase(),
            kpis.collect::<Vec<_>>().join("; "),
            needs.collect::<Vec<_>>().join("; "),
            on.iter().map(|k| k.scheme()).collect::<Vec<_>>().join(" "),
            on.iter().map(with).collect::<Vec<_>>().join(" "),
            not_on.iter().map(|k| format!("{}: {}", k.scheme(), why_not(w, *k))).collect::<Vec<_>>().join("; "),
        ]
    };
    workloads.iter().map(row).collect()
}

fn why_not(workload: &Workload, kind: &dyn TargetKind) -> String {
    let reasons = drivers(workload, kind).into_iter().filter_map(|(d, refused)| refused.map(|r| (d, r.reason)));
    reasons.map(|(d, reason)| format!("not with the {d} driver: {reason}")).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use loadline_model::Capability;
    use loadline_workload::Program;

    use super::*;

    #[test]
    fn what_a_target_cannot_run_is_listed_with_the_reason() {
        // The reference log writer has no rows to read: a workload that needs them is not for it.
        let mut of = Workload::clone(&find("LGWR-LAT1").unwrap());
        of.needs = vec![Capability::Rows];
        let rows = rows(&[Arc::new(of)]);
        let cell = |id: &str| &rows[0][COLUMNS.iter().position(|c| *c == id).unwrap()];
        assert!(!cell("targets").split(' ').any(|t| t == "wal"), "{}", cell("targets"));
        assert!(cell("targets").split(' ').any(|t| t == "postgres") && !cell("drivers").contains("wal="));
        assert!(cell("drivers").split(' ').any(|d| d == "postgres=database+client"), "{}", cell("drivers"));
        assert!(
            cell("not_on").starts_with("wal: ") && cell("not_on").contains("client driver: it needs"),
            "{}",
            cell("not_on")
        );
    }

    #[test]
    fn every_file_is_the_way_to_ones_own() {
        for workload in CATALOGUE.iter() {
            let own = read_file("mine.toml", &toml(workload).unwrap().replacen(&workload.code, "MINE", 1)).unwrap();
            assert_eq!((own.redo, &own.tables, &own.params), (workload.redo, &workload.tables, &workload.params));
            let [own, shown] = [&own, workload].map(|w| w.make(&w.params(&Default::default()).unwrap()));
            // SQL, rows and draws follow from these. Only places in the file are in one of the two.
            let statements = |program: &Program| {
                program.statements.iter().map(|s| (s.template.clone(), s.effect)).collect::<Vec<_>>()
            };
            assert_eq!((statements(&own), own.body, own.commit), (statements(&shown), shown.body, shown.commit));
        }
    }
}
