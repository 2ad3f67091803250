//! `loadline workloads`: everything comes from the registry.

use std::collections::BTreeMap;
use std::fmt::Write;

use loadline_model::Driver;
use loadline_model::column::column;
use loadline_target::{TARGETS, TargetKind, Work};
use loadline_workload::{CATALOGUE, Workload, find};

use crate::args::{ListFormat, WorkloadsArgs};
use crate::exit::Failure;
use crate::listing::Listing;
use crate::output;

/// Seed and compressibility have no influence on what is rendered.
const SEED: u64 = 0;

pub(crate) fn workloads(args: &WorkloadsArgs) -> Result<u8, Failure> {
    let Some(code) = &args.code else {
        list().write(&args.list)?;
        return Ok(0);
    };
    let workload = find(code).map_err(|e| Failure::usage(e.to_string()))?;
    match args.list.format {
        ListFormat::Text | ListFormat::Md => output::write(&args.list.output, about(workload)?.as_bytes())?,
        ListFormat::Csv | ListFormat::Json => {
            let mut list = list();
            list.rows.retain(|row| row[0] == workload.code);
            list.write(&args.list)?;
        }
    }
    Ok(0)
}

fn list() -> Listing {
    let rows = CATALOGUE.iter().map(|w| {
        let kpis = w.kpis.iter().map(|k| format!("{} [{}]", k.title, unit(k.column)));
        let needs = w.needs.iter().map(|n| n.phrase());
        let targets = TARGETS.iter().filter(|k| drivers(w, k).iter().any(|(_, reason)| reason.is_none()));
        vec![
            w.code.to_owned(),
            w.group.to_owned(),
            w.summary.to_owned(),
            kpis.collect::<Vec<_>>().join("; "),
            needs.collect::<Vec<_>>().join("; "),
            targets.map(|k| k.scheme).collect::<Vec<_>>().join(" "),
        ]
    });
    Listing { columns: vec!["code", "group", "summary", "kpis", "needs", "targets"], rows: rows.collect() }
}

fn unit(id: &str) -> &'static str {
    column(id).map_or("", |c| c.unit)
}

/// Each driver, with the reason why the target cannot run the workload with it.
fn drivers(workload: &Workload, kind: &TargetKind) -> Vec<(Driver, Option<String>)> {
    let capabilities = (kind.capabilities)();
    Driver::ALL.iter().map(|d| (*d, capabilities.refusal(*d, workload.needs))).collect()
}

/// All about one workload, as Markdown that reads well as plain text.
fn about(w: &'static Workload) -> Result<String, Failure> {
    let params = w.params(&BTreeMap::new()).map_err(|e| Failure::failed(e.to_string()))?;
    let work = Work::new(w, params, SEED, 0.0);
    let mut out = format!("# {}: {}\n\n{}\n\n", w.code, w.summary, w.description);
    // Writing to a string cannot fail.
    let _ = writeln!(out, "Group: {}\n\nSpoiled by: {}\n\n## Figures\n", w.group().title, w.spoiled_by);
    for kpi in w.kpis {
        let meaning = column(kpi.column).map_or("", |c| c.meaning);
        let _ = writeln!(out, "- {} [{}] ({}): {meaning}", kpi.title, unit(kpi.column), kpi.column);
    }
    let _ = writeln!(out, "\n## Parameters\n");
    for p in w.params {
        let _ = writeln!(out, "- {} = {} ({} to {}): {}", p.name, p.default, p.min, p.max, p.meaning);
    }
    if let Some(r) = w.redo {
        let kib = |b: f64| b / 1024.0;
        let _ = writeln!(
            out,
            "\nRedo per transaction: {:.1} to {:.1} KiB, calibrated to {:.1} KiB where the target's log allows it.",
            kib(r.min),
            kib(r.max),
            kib(r.nominal)
        );
    }
    let _ = writeln!(out, "\n## Needs\n");
    for need in w.needs {
        let _ = writeln!(out, "- {}", need.phrase());
    }
    for kind in TARGETS {
        let _ = writeln!(out, "\n## On {} ({}:)\n", kind.product, kind.scheme);
        for (driver, refusal) in drivers(w, kind) {
            let _ = writeln!(out, "- {driver} driver: {}", refusal.map_or("yes".to_owned(), |r| format!("no: {r}")));
        }
        for piece in (kind.render)(&work) {
            let _ = writeln!(out, "\n{}:\n\n```sql\n{}\n```", piece.title, piece.sql.trim_end());
        }
    }
    Ok(out)
}
