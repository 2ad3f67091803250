//! Published measurements that come with loadline, as runs of their own kind: figures as they were printed. loadline did not make
//! them and has no evidence for them. They are data files of the repository, built into the program; docs/references.md.

use std::collections::BTreeMap;

use crate::plan::PlanSpec;
use loadline_model::column::{COLUMNS, column};
use loadline_model::format::did_you_mean;
use loadline_model::manifest::{MANIFEST_SCHEMA, RunState, TargetInfo};
use loadline_model::{Detail, Driver, Jobs, Manifest, TestRecord, column as id};
use loadline_workload::{Sweep, Workload};

use crate::plan::{PlanError, make_plan};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// Name on the command line: `exadata-x9m`.
    pub id: &'static str,
    /// Name in tables.
    pub platform: &'static str,
    /// Description, in a sentence.
    pub summary: &'static str,
    /// Where the figures come from.
    pub source: &'static str,
    pub year: &'static str,
    /// Name of its rows in `table`.
    rows: &'static str,
    /// Table as it was printed, with loadline's column ids.
    table: &'static str,
}

const LOG_WRITER: &str = include_str!("../../../references/log-writer-exadata.csv");
const LOG_WRITER_SOURCE: &str = "study of log writers on three Oracle platforms, 2021: its tables for Exadata. PL/SQL jobs on two \
     nodes, 300 s a test, figures from AWR reports";
const DATA_LOAD: &str = include_str!("../../../references/data-load-exadata-x4-2.csv");

/// All of them. To add one, put its table into `references/` and name it here.
pub static REFERENCES: &[Reference] = &[
    Reference {
        id: "exadata-x5-2",
        platform: "Exadata X5-2",
        summary: "Oracle on two nodes, log on flash and disk (flash log), 2015",
        source: LOG_WRITER_SOURCE,
        year: "2021",
        rows: "X5-2",
        table: LOG_WRITER,
    },
    Reference {
        id: "exadata-x9m",
        platform: "Exadata X9M-2",
        summary: "Oracle on two nodes, log in persistent memory, 2021",
        source: LOG_WRITER_SOURCE,
        year: "2021",
        rows: "X9M-2",
        table: LOG_WRITER,
    },
    Reference {
        id: "exadata-x4-2",
        platform: "Exadata X4-2",
        summary: "Oracle, conventional inserts by one job with 1 to 100 rows per transaction",
        source: "study of data loading on Exadata X4-2, 2014: its table of conventional inserts by one job",
        year: "2014",
        rows: "X4-2",
        table: DATA_LOAD,
    },
];

/// The reference called `name`.
///
/// # Errors
/// [`PlanError::Value`] with the known names.
pub fn find(name: &str) -> Result<&'static Reference, PlanError> {
    REFERENCES.iter().find(|r| r.id == name).ok_or_else(|| {
        let ids: Vec<&str> = REFERENCES.iter().map(|r| r.id).collect();
        let hint = did_you_mean(name, ids.iter().copied());
        PlanError::Value(format!("there is no reference '{name}'{hint} (known: {})", ids.join(", ")))
    })
}

impl Reference {
    /// Rows with their header, as CSV.
    pub fn csv(&self) -> String {
        let mut lines = self.table.lines();
        let header = lines.next().unwrap_or_default();
        let own = lines.filter(|line| line.split(',').next() == Some(self.rows));
        std::iter::once(header).chain(own).map(|line| format!("{line}\n")).collect()
    }

    /// Tests.
    ///
    /// # Errors
    /// [`PlanError::Value`], which is an internal error.
    pub fn records(&self) -> Result<Vec<TestRecord>, PlanError> {
        let text = self.csv();
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        lines.map(|line| self.record(&header.iter().copied().zip(line.split(',')).collect())).collect()
    }

    fn record(&self, cells: &BTreeMap<&str, &str>) -> Result<TestRecord, PlanError> {
        let broken =
            |e: String| PlanError::Value(format!("loadline's own reference '{}' cannot be read: {e}", self.id));
        let number = |id: &str| {
            let text = cells.get(id).copied().unwrap_or_default();
            text.parse::<u32>().map_err(|e| broken(format!("{id} '{text}': {e}")))
        };
        let code = cells.get("workload").copied().unwrap_or_default();
        let workload = loadline_workload::find(code).map_err(|e| broken(e.to_string()))?;
        let mut record = TestRecord {
            platform: self.label(),
            run: self.id.to_owned(),
            test: number("test")?,
            group: workload.group.to_owned(),
            target: format!("reference:{}", self.id),
            // Procedures in the database ran the transactions.
            driver: Driver::Database,
            nodes: number("nodes")?,
            jobs: number("jobs")?,
            started_at: self.year.to_owned(),
            kpis: workload.kpis.iter().map(|k| k.column.id.to_owned()).collect(),
            ..TestRecord::blank(&workload.code)
        };
        for (name, text) in cells {
            let Some(column) = column(name).filter(|c| !KEYS.contains(&c.id)) else { continue };
            record.set(column, text.parse().map_err(|e| broken(format!("{name} '{text}': {e}")))?);
        }
        derive(&mut record, &workload);
        for column in COLUMNS.iter().filter(|c| !KEYS.contains(&c.id)) {
            if record.figure(column).is_none() {
                record.leave_out(column, "the publication does not print it");
            }
        }
        Ok(record)
    }

    fn label(&self) -> String {
        format!("{} (published)", self.platform)
    }

    /// The manifest of a run with its `records`.
    ///
    /// # Errors
    /// It makes no plan: an internal error.
    pub fn manifest(&self, records: &[TestRecord]) -> Result<Manifest, PlanError> {
        let target = TargetInfo { kind: "oracle".to_owned(), product: "Oracle".to_owned(), ..TargetInfo::default() };
        let manifest = unmeasured(&self.label(), target, records)?;
        Ok(Manifest { run: self.id.to_owned(), started_at: self.year.to_owned(), ..manifest })
    }
}

/// The manifest of a run with `records` that loadline did not measure: complete, without a plan and a machine. Its name and time are
/// left to the caller.
///
/// # Errors
/// It makes no plan: an internal error.
pub fn unmeasured(platform: &str, target: TargetInfo, records: &[TestRecord]) -> Result<Manifest, PlanError> {
    let mut plan = make_plan(&PlanSpec { target: Some("null:".to_owned()), ..PlanSpec::default() })?;
    platform.clone_into(&mut plan.platform);
    plan.target.clear();
    plan.workloads.clear();
    plan.skipped.clear();
    plan.jobs = Jobs::List(records.iter().map(|r| r.jobs).collect());
    plan.size_bytes = 0;
    Ok(Manifest {
        schema: MANIFEST_SCHEMA,
        plan,
        target: TargetInfo { nodes: records.iter().map(|r| r.nodes).max().unwrap_or(1), ..target },
        state: RunState::Complete,
        ..Manifest::default()
    })
}

const KEYS: [&str; 6] = ["platform", "workload", "run", "test", "nodes", "jobs"];

/// Figures that follow from those printed, and the parameter that was swept.
fn derive(record: &mut TestRecord, workload: &Workload) {
    if let (None, Some(tps)) = (record.figure(id::COMMIT_THROUGHPUT_TPS), record.figure(id::TX_PER_S)) {
        record.set(id::COMMIT_THROUGHPUT_TPS, tps);
    }
    if let Sweep::Parameter { name, column, .. } = &workload.sweep
        && let Some(value) = record.figure(column)
    {
        record.details.push(Detail::Swept(column.id.to_owned()));
        record.parameters.insert(name.clone(), value as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_can_be_read_and_have_the_rows_that_were_printed() {
        let rows = |id: &str| find(id).unwrap().records().unwrap();
        assert_eq!(rows("exadata-x5-2").len() + rows("exadata-x9m").len(), 61);
        assert_eq!(rows("exadata-x4-2").len(), 8);
        for reference in REFERENCES {
            let records = reference.records().unwrap();
            let manifest = reference.manifest(&records).unwrap();
            assert!(manifest.plan.platform.ends_with("(published)"), "{}", reference.id);
            assert_eq!(reference.csv().lines().count(), records.len() + 1);
            for r in &records {
                assert!(r.figure(id::COMMIT_THROUGHPUT_TPS) > Some(0.0) && r.valid && r.checks.is_empty(), "{r:?}");
                assert!(r.absent.contains_key(id::TRANSACTION_TIME_NS_P99.id), "its absence has a reason");
            }
        }
        let x9m = rows("exadata-x9m");
        let peak = x9m.iter().filter(|r| r.workload == "LGWR-LAT1").filter_map(|r| r.figure(id::COMMIT_THROUGHPUT_TPS));
        assert_eq!(peak.fold(0.0, f64::max), 367_848.0);
        assert_eq!(rows("exadata-x4-2")[7].parameters["rows"], 100);
    }
}
