//! What laws look at: a sheet, its series, and what is known about its workloads.

use std::cell::Cell;

use crate::audit::finding::{Finding, Findings, Severity, shown};
use crate::audit::interval::{Interval, Reading};
use crate::audit::sheet::{Bound, How, Series, Sheet};
use crate::audit::table::Table;

/// What a column of a workload must be, by its definition.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// Code of the workload.
    pub workload: String,
    /// Id of the column.
    pub column: &'static str,
    /// From this, in the unit of the id.
    pub low: f64,
    /// Up to this.
    pub high: f64,
}

/// A sheet with all that laws ask about it.
pub(crate) struct Context<'a> {
    pub(crate) sheet: Sheet<'a>,
    pub(crate) series: Vec<Series>,
    pub(crate) expected: &'a [Expected],
    /// Series of each row.
    of_row: Vec<u32>,
    swept: Option<&'static str>,
    /// The jobs of each row, if they are not those of the column called jobs.
    pub(crate) sessions: Option<Vec<f64>>,
    /// Index of a column with a time before a job began, which the time of a transaction holds.
    pub(crate) lag: Option<usize>,
    known: Known,
}

/// Remembers the columns of ids by the addresses of their texts: laws ask for the same ones in each of a million rows.
struct Known([Cell<(usize, usize, Option<usize>)>; Known::SIZE]);

impl Known {
    const SIZE: usize = 1024;

    fn get(&self, id: &'static str, find: impl Fn() -> Option<usize>) -> Option<usize> {
        let (address, length) = (id.as_ptr() as usize, id.len());
        let place = &self.0[(address.wrapping_mul(0x9e37_79b9) >> 12) % Known::SIZE];
        let (known, of_length, found) = place.get();
        if (known, of_length) == (address, length) {
            return found;
        }
        let found = find();
        place.set((address, length, found));
        found
    }
}

impl<'a> Context<'a> {
    pub(crate) fn new(sheet: Sheet<'a>, expected: &'a [Expected]) -> Context<'a> {
        let series = sheet.series();
        let mut of_row = vec![0; sheet.table.rows()];
        for (index, one) in series.iter().enumerate() {
            for row in &one.rows {
                of_row[*row] = u32::try_from(index).unwrap_or(u32::MAX);
            }
        }
        let swept = sheet.swept();
        let known = Known(std::array::from_fn(|_| Cell::new((0, 0, None))));
        Context { sheet, series, expected, of_row, swept, sessions: None, lag: None, known }
    }

    pub(crate) fn rows(&self) -> std::ops::Range<usize> {
        0..self.sheet.table.rows()
    }

    /// The id that stands for `id`: `tps` is the column of throughput.
    pub(crate) fn resolve(&self, id: &'static str) -> Option<&'static str> {
        Some(self.column(id)?.id)
    }

    fn column(&self, id: &'static str) -> Option<&Bound> {
        let find = || {
            let id = if id == "tps" { self.sheet.throughput()? } else { id };
            self.sheet.columns.iter().position(|c| c.id == id)
        };
        self.sheet.columns.get(self.known.get(id, find)?)
    }

    pub(crate) fn has(&self, id: &'static str) -> bool {
        self.resolve(id).is_some()
    }

    /// What the figure of `id` in `row` can have been.
    pub(crate) fn interval(&self, id: &'static str, row: usize, reading: Reading) -> Option<Interval> {
        Some(Interval::of(self.column(id)?.figure(row)?, reading))
    }

    pub(crate) fn value(&self, id: &'static str, row: usize) -> Option<f64> {
        self.column(id)?.figure(row).map(|f| f.value)
    }

    /// How many sessions there were: each has one transaction under way.
    pub(crate) fn jobs(&self, row: usize, reading: Reading) -> Option<Interval> {
        match &self.sessions {
            Some(all) => all.get(row).filter(|jobs| **jobs > 0.0).map(|jobs| Interval::exact(*jobs)),
            None => self.interval("jobs", row, reading),
        }
    }

    /// Whether it is said what columns are: by ids of ours, or by the user.
    pub(crate) fn is_sure(&self, ids: &[&'static str]) -> bool {
        ids.iter().filter_map(|id| self.column(id)).all(|c| c.how != How::Inferred)
    }

    /// Relative error of a rate whose counters are read up to `seconds` late; 0 if the length of the test is not known.
    pub(crate) fn late(&self, row: usize, seconds: f64) -> f64 {
        self.value("elapsed_s", row).filter(|s| *s > 0.0).map_or(0.0, |elapsed| seconds / elapsed)
    }

    /// Relative error of throughput × time from transactions that began before the window, one of each job: the longest, or
    /// what is usually the longest; 0 if the length of the test is not known.
    pub(crate) fn edges(&self, row: usize) -> f64 {
        let mean = self.value("commit_latency_ms", row).map(|ms| ms / 1e3);
        let mean = mean.or_else(|| self.value("transaction_time_ns_mean", row).map(|ns| ns / 1e9));
        let longest = self.value("transaction_time_ns_max", row).map(|ns| ns / 1e9);
        self.late(row, longest.or(mean.map(|s| 5.0 * s)).unwrap_or(0.0))
    }

    /// Whether the table itself calls the test of a row invalid.
    fn is_invalid(&self, row: usize) -> bool {
        matches!(self.sheet.text("valid", row).to_lowercase().as_str(), "false" | "no")
    }

    /// Which test a row is: its series, the setting that is swept, and its number.
    pub(crate) fn test(&self, row: usize) -> String {
        let series = self.of_row.get(row).and_then(|s| self.series.get(*s as usize));
        let mut parts: Vec<String> = series.map(|s| s.label.clone()).filter(|l| !l.is_empty()).into_iter().collect();
        for id in self.swept.iter().chain(["test"].iter()) {
            let text = self.sheet.text(id, row);
            if !text.is_empty() {
                parts.push(format!("{id} {text}"));
            }
        }
        parts.join(", ").chars().take(100).collect()
    }

    /// Makes a finding about `row`. `printed` and `recomputed` are of column `target`, in the unit of its id.
    #[expect(clippy::too_many_arguments, reason = "these are the fields of a finding")]
    pub(crate) fn about_row(
        &self,
        law: &'static str,
        severity: Severity,
        row: usize,
        columns: &[&'static str],
        target: &'static str,
        recomputed: Option<f64>,
        message: String,
    ) -> Finding {
        let target = self.resolve(target).unwrap_or(target);
        let printed = self.sheet.value(target, row);
        let deviation = printed.zip(recomputed).filter(|(_, r)| *r != 0.0).map(|(p, r)| (p / r - 1.0) * 100.0);
        // In the unit that is printed.
        let column = self.sheet.column(target);
        let elapsed = column.filter(|c| c.counted).and_then(|_| self.sheet.value("elapsed_s", row));
        let factor = column.map_or(1.0, |c| c.factor) / elapsed.unwrap_or(1.0);
        let invalid = self.is_invalid(row) && severity == Severity::Error;
        Finding {
            severity: if invalid { Severity::Warning } else { severity },
            table: self.sheet.table.name.clone(),
            row: Some(row + 1),
            test: self.test(row),
            columns: columns.iter().filter_map(|id| self.resolve(id)).collect(),
            law,
            printed: if column.is_some_and(|c| c.derived) {
                printed.map_or_else(String::new, |p| shown(p, 6))
            } else {
                self.sheet.text(target, row).to_owned()
            },
            recomputed: recomputed.map_or_else(String::new, |r| shown(r / factor, 5)),
            deviation_pct: deviation.filter(|d| d.is_finite()),
            message: if invalid { format!("{message}; the table itself calls this test invalid") } else { message },
        }
    }

    /// Adds a warning about a row, unless a thousand of them are listed. Of its columns, the second part is that whose figure is
    /// compared with `recomputed`, in the unit of its id.
    pub(crate) fn warn(
        &self,
        findings: &mut Findings,
        (law, row): (&'static str, usize),
        (columns, target): (&[&'static str], &'static str),
        recomputed: Option<f64>,
        message: String,
    ) {
        if findings.wants(law, Severity::Warning) {
            findings.push(self.about_row(law, Severity::Warning, row, columns, target, recomputed, message));
        }
    }

    /// Makes a finding about the whole table.
    pub(crate) fn about_table(
        &self,
        law: &'static str,
        severity: Severity,
        columns: &[&'static str],
        message: String,
    ) -> Finding {
        let columns = columns.iter().filter_map(|id| self.resolve(id)).collect();
        Finding { columns, ..Context::finding(self.sheet.table, law, severity, message) }
    }

    /// A finding about a table.
    pub(crate) fn finding(table: &Table, law: &'static str, severity: Severity, message: String) -> Finding {
        Finding {
            severity,
            table: table.name.clone(),
            row: None,
            test: String::new(),
            columns: Vec::new(),
            law,
            printed: String::new(),
            recomputed: String::new(),
            deviation_pct: None,
            message,
        }
    }
}
