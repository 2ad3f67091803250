//! What laws look at: a sheet, its series, and what is known about its workloads.

use super::finding::{Findings, Severity};
use super::interval::Interval;
use super::reason::{Reason, shown};
use super::sheet::{How, Series, Sheet};

/// What is known about a workload by its definition.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// Code of the workload.
    pub workload: String,
    /// Redo of a transaction from this to this, KiB.
    pub redo_kib: Option<(f64, f64)>,
    /// Whether its commits wait for the log.
    pub waits: bool,
}

/// A sheet with all that laws ask about it.
pub(crate) struct Context<'a> {
    pub(crate) sheet: Sheet<'a>,
    pub(crate) series: Vec<Series>,
    pub(crate) expected: &'a [Expected],
    /// The columns whose product are the jobs.
    pub(crate) jobs: Vec<&'static str>,
    /// Series of each row.
    of_row: Vec<u32>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(sheet: Sheet<'a>, expected: &'a [Expected]) -> Context<'a> {
        let series = sheet.series();
        let mut of_row = vec![0; sheet.table.rows()];
        for (index, one) in series.iter().enumerate() {
            one.rows.iter().for_each(|row| of_row[*row] = u32::try_from(index).unwrap_or(u32::MAX));
        }
        Context { sheet, series, expected, jobs: vec!["jobs"], of_row }
    }

    pub(crate) fn rows(&self) -> usize {
        self.sheet.table.rows()
    }

    /// The columns that a name in a formula stands for, as a product, and a factor.
    pub(crate) fn resolve(&self, name: &str) -> Option<(Vec<usize>, f64)> {
        let place = |id: &str| self.sheet.columns.iter().position(|c| c.id == id);
        match name {
            "tps" => Some((vec![place(self.sheet.throughput()?)?], 1.0)),
            "jobs" => Some((self.jobs.iter().map(|id| place(id)).collect::<Option<Vec<_>>>()?, 1.0)),
            "time_ms" if place("commit_latency_ms").is_none() => Some((vec![place("transaction_time_ns_mean")?], 1e-6)),
            "time_ms" => Some((vec![place("commit_latency_ms")?], 1.0)),
            id => Some((vec![place(id)?], 1.0)),
        }
    }

    /// What the figure of `id` in `row` can have been.
    pub(crate) fn interval(&self, id: &str, row: usize) -> Option<Interval> {
        self.sheet.column(id)?.interval(row, false)
    }

    pub(crate) fn value(&self, id: &str, row: usize) -> Option<f64> {
        self.sheet.value(if id == "tps" { self.sheet.throughput()? } else { id }, row)
    }

    /// Whether all columns are known at least as surely as by `how`.
    pub(crate) fn is_sure(&self, columns: &[usize], how: How) -> bool {
        columns.iter().all(|c| self.sheet.columns[*c].how <= how)
    }

    /// Relative error of a rate whose counters are read up to `seconds` late; 0 if the length of the test is not known.
    pub(crate) fn late(&self, row: usize, seconds: f64) -> f64 {
        self.value("elapsed_s", row).filter(|s| *s > 0.0).map_or(0.0, |elapsed| seconds / elapsed)
    }

    /// What is known about the workload of a row.
    pub(crate) fn workload(&self, row: usize) -> Option<&Expected> {
        let code = self.sheet.text("workload", row);
        self.expected.iter().find(|e| e.workload == code)
    }

    /// Which test a row is: its series, the setting that is swept, and its number.
    fn test(&self, row: usize) -> String {
        let label = self.of_row.get(row).and_then(|s| self.series.get(*s as usize)).map_or("", |s| &s.label);
        let settings = self.sheet.swept().into_iter().chain(["test"]).map(|id| (id, self.sheet.text(id, row)));
        let settings = settings.filter(|(_, text)| !text.is_empty()).map(|(id, text)| format!("{id} {text}"));
        let parts = [label.to_owned()].into_iter().filter(|l| !l.is_empty()).chain(settings);
        parts.collect::<Vec<_>>().join(", ").chars().take(100).collect()
    }

    /// Adds a finding about `row`. `columns` are places in the sheet; `recomputed` is of the last one, in the unit of its id.
    pub(crate) fn find(
        &self,
        findings: &mut Findings,
        (law, severity): (&'static str, Severity),
        row: usize,
        columns: &[usize],
        (recomputed, mut why): (Option<f64>, Reason),
    ) {
        why.invalid = severity == Severity::Error && matches!(self.sheet.text("valid", row), "false" | "no");
        let severity = if why.invalid { Severity::Warning } else { severity };
        let make = |mut f: super::Finding| {
            f.row = Some(row + 1);
            f.test = self.test(row);
            let mut places = columns.to_vec();
            places.sort_unstable();
            f.columns = self.ids(&places);
            let Some(target) = columns.last().and_then(|c| self.sheet.columns.get(*c)) else { return f };
            self.sheet.table.cell(row, target.index).clone_into(&mut f.printed);
            f.recomputed = recomputed.map_or_else(String::new, |r| shown(r / target.factor, 5));
            let deviation = target.value(row).zip(recomputed).map(|(p, r)| (p / r - 1.0) * 100.0);
            f.deviation_pct = deviation.filter(|d| d.is_finite());
            f
        };
        findings.push(make, law, severity, why);
    }

    /// Places of columns in the sheet; those that are missing are left out.
    pub(crate) fn places(&self, ids: &[&str]) -> Vec<usize> {
        ids.iter().filter_map(|id| self.resolve(id)).flat_map(|(places, _)| places).collect()
    }

    /// Ids of places in the sheet.
    pub(crate) fn ids(&self, places: &[usize]) -> Vec<&'static str> {
        places.iter().map(|c| self.sheet.columns[*c].id).collect()
    }
}
