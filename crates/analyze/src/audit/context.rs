//! What laws look at: a sheet and its series; and what they find there.

use std::cell::RefCell;
use std::collections::HashMap;

use super::finding::{Finding, Severity};
use super::interval::Interval;
use super::reason::{Reason, shown};
use super::sheet::{How, Series, Sheet};

/// Findings of one law about rows of one table that are listed one by one.
const LISTED: usize = 1000;

/// A sheet with all that laws ask about it.
pub(crate) struct Context<'a> {
    pub(crate) sheet: Sheet<'a>,
    pub(crate) series: Vec<Series>,
    /// The setting that changes within a series.
    pub(crate) swept: Option<&'static str>,
    /// The columns whose product are the jobs.
    pub(crate) jobs: Vec<&'static str>,
    /// Series of each row.
    of_row: Vec<u32>,
    found: RefCell<Vec<Finding>>,
    /// Findings about rows, by law and severity.
    counts: RefCell<HashMap<(&'static str, Severity), usize>>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(sheet: Sheet<'a>) -> Context<'a> {
        let (series, swept) = (sheet.series(), sheet.swept());
        let mut of_row = vec![0; sheet.table.rows()];
        for (index, one) in series.iter().enumerate() {
            one.rows.iter().for_each(|row| of_row[*row] = u32::try_from(index).unwrap_or(u32::MAX));
        }
        let (found, counts) = (RefCell::default(), RefCell::default());
        Context { sheet, series, swept, jobs: vec!["jobs"], of_row, found, counts }
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

    /// What the figure of `name` in `row` can have been; `cut` if digits were cut off rather than rounded.
    pub(crate) fn figure(&self, name: &str, row: usize, cut: bool) -> Option<Interval> {
        let (columns, factor) = self.resolve(name)?;
        let mut figures = columns.iter().map(|c| self.sheet.columns[*c].interval(row, cut));
        figures.try_fold(Interval::exact(factor), |all, figure| Some(all.times(figure?)))
    }

    /// What the figure of column `id` in `row` can have been.
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

    /// Places of columns in the sheet; those that are missing are left out.
    pub(crate) fn places(&self, ids: &[&str]) -> Vec<usize> {
        ids.iter().filter_map(|id| self.resolve(id)).flat_map(|(places, _)| places).collect()
    }

    /// Which test a row is: its series, the setting that is swept, and its number.
    fn test(&self, row: usize) -> String {
        let label = self.of_row.get(row).and_then(|s| self.series.get(*s as usize)).map_or("", |s| &s.label);
        let mut parts = if label.is_empty() { Vec::new() } else { vec![label.to_owned()] };
        for id in self.swept.into_iter().chain(["test"]) {
            let text = self.sheet.text(id, row);
            parts.extend((!text.is_empty()).then(|| format!("{id} {text}")));
        }
        parts.join(", ").chars().take(100).collect()
    }

    /// Adds a finding about the table. `columns` are places in the sheet.
    pub(crate) fn about_table(&self, law: &'static str, severity: Severity, columns: &[usize], reason: Reason) {
        let found = self.finding(law, severity, columns, reason);
        self.found.borrow_mut().push(found);
    }

    fn finding(&self, law: &'static str, severity: Severity, columns: &[usize], reason: Reason) -> Finding {
        let columns = columns.iter().map(|c| self.sheet.columns[*c].id).collect();
        let (table, [test, printed, recomputed]) = (self.sheet.table.name.clone(), [const { String::new() }; 3]);
        Finding { severity, table, row: None, test, columns, law, printed, recomputed, deviation_pct: None, reason }
    }

    /// Adds a finding about `row`, unless a thousand rows have the same one. `recomputed` is of the last column, in the unit
    /// of its id; a finding has it in the unit that is printed.
    pub(crate) fn find(
        &self,
        (law, mut severity): (&'static str, Severity),
        row: usize,
        columns: &[usize],
        recomputed: Option<f64>,
        mut reason: Reason,
    ) {
        if severity == Severity::Error && matches!(self.sheet.text("valid", row), "false" | "no") {
            (severity, reason) = (Severity::Warning, Reason::Invalid(Box::new(reason)));
        }
        let mut counts = self.counts.borrow_mut();
        let count = counts.entry((law, severity)).or_insert(0);
        *count += 1;
        if *count > LISTED {
            return;
        }
        let mut places = columns.to_vec();
        places.sort_unstable();
        let mut found = self.finding(law, severity, &places, reason);
        (found.row, found.test) = (Some(row + 1), self.test(row));
        if let Some(target) = columns.last().map(|c| &self.sheet.columns[*c]) {
            self.sheet.table.cell(row, target.index).clone_into(&mut found.printed);
            let factor = self.sheet.factor(target, row);
            found.recomputed = recomputed.map_or_else(String::new, |r| shown(r / factor));
            let deviation = target.value(row).zip(recomputed).map(|(p, r)| (p / r - 1.0) * 100.0);
            found.deviation_pct = deviation.filter(|d| d.is_finite());
        }
        self.found.borrow_mut().push(found);
    }

    /// All findings, the worst first.
    pub(crate) fn findings(self) -> Vec<Finding> {
        for ((law, severity), count) in self.counts.take() {
            if count > LISTED {
                self.about_table(law, severity, &[], Reason::More(count - LISTED));
            }
        }
        let mut all = self.found.into_inner();
        all.sort_by(|a, b| (a.severity, a.law, a.row).cmp(&(b.severity, b.law, b.row)));
        all
    }
}
