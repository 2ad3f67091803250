//! Published measurements that come with loadline, as runs of their own kind: figures as they were printed. loadline did not make
//! them and has no evidence for them. They are data files of the repository, built into the program; docs/references.md.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::plan::PlanSpec;
use loadline_model::column::{COLUMNS, column};
use loadline_model::format::did_you_mean;
use loadline_model::manifest::{MANIFEST_SCHEMA, RunState, TargetInfo};
use loadline_model::{Detail, Driver, Jobs, Manifest, TestRecord, column as id};
use loadline_workload::{Sweep, Workload};
use serde::Deserialize;

use crate::plan::{PlanError, make_plan};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Reference {
    /// Name on the command line: `exadata-x9m`.
    pub id: String,
    pub platform: String,
    pub summary: String,
    pub source: String,
    pub year: String,
    rows: String,
    table: String,
}

const TABLES: [(&str, &str); 2] = [
    ("log-writer-exadata.csv", include_str!("../../../references/log-writer-exadata.csv")),
    ("data-load-exadata-x4-2.csv", include_str!("../../../references/data-load-exadata-x4-2.csv")),
];

/// All of them. None if the file cannot be read, which the tests detect.
pub static REFERENCES: LazyLock<Vec<Reference>> = LazyLock::new(|| {
    let file: BTreeMap<String, Vec<Reference>> =
        toml::from_str(include_str!("../../../references/references.toml")).unwrap_or_default();
    file.into_values().flatten().collect()
});

pub fn find(name: &str) -> Result<&'static Reference, PlanError> {
    REFERENCES.iter().find(|r| r.id == name).ok_or_else(|| {
        let ids: Vec<&str> = REFERENCES.iter().map(|r| r.id.as_str()).collect();
        let hint = did_you_mean(name, ids.iter().copied());
        PlanError::Value(format!("there is no reference '{name}'{hint} (known: {})", ids.join(", ")))
    })
}

impl Reference {
    pub fn csv(&self) -> String {
        let table = TABLES.iter().find(|(file, _)| *file == self.table);
        let mut lines = table.map_or("", |(_, text)| text).lines();
        let header = lines.next().unwrap_or_default();
        let own = lines.filter(|line| line.split(',').next() == Some(self.rows.as_str()));
        std::iter::once(header).chain(own).map(|line| format!("{line}\n")).collect()
    }

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
            run: self.id.clone(),
            test: number("test")?,
            group: workload.group.to_owned(),
            target: format!("reference:{}", self.id),
            // Procedures in the database ran the transactions.
            driver: Driver::Database,
            nodes: number("nodes")?,
            jobs: number("jobs")?,
            started_at: self.year.clone(),
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

    pub fn manifest(&self, records: &[TestRecord]) -> Result<Manifest, PlanError> {
        let target = TargetInfo { kind: "oracle".to_owned(), product: "Oracle".to_owned(), ..TargetInfo::default() };
        let manifest = unmeasured(&self.label(), target, records)?;
        Ok(Manifest { run: self.id.clone(), started_at: self.year.clone(), ..manifest })
    }
}

/// The manifest of a run with `records` that loadline did not measure: complete, without a plan and a machine. Its name and time are
/// left to the caller.
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
        for reference in REFERENCES.iter() {
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
