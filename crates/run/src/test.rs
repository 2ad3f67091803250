//! A test as it is made of its evidence: figures with reasons for absent ones, checks and notes.
//!
//! A check is a function that returns a [`Verdict`], or none if there is nothing to check; `steps.rs` gives it its id.

use std::collections::BTreeMap;

use loadline_model::column::NOT_FINITE;
use loadline_model::{Check, CheckId, Column, Detail, Note, Outcome};

pub(crate) const MIB: f64 = 1024.0 * 1024.0;

/// Figures, reasons for absent ones, checks and notes. Precedence, in whatever order they are set: value, first reason of this
/// test, reason of the target, fallback reason.
#[derive(Debug, Clone, Default)]
pub(crate) struct Test {
    /// Figures by column id.
    pub(crate) values: BTreeMap<String, f64>,
    of_test: BTreeMap<String, String>,
    of_target: BTreeMap<String, String>,
    fallback: BTreeMap<String, String>,
    pub(crate) notes: Vec<Note>,
    pub(crate) checks: Vec<Check>,
    /// Whether figures are kept although not proved to be the device's.
    pub(crate) not_the_devices: bool,
    /// The most active of the processes that are neither loadline nor the database, with their CPU time.
    pub(crate) others: String,
    pub(crate) details: Vec<Detail>,
}

/// How a check ended, with a sentence: the value seen, the value allowed, and the counters used.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) outcome: Outcome,
    pub(crate) detail: String,
}

impl Verdict {
    pub(crate) fn new(outcome: Outcome, detail: impl Into<String>) -> Verdict {
        Verdict { outcome, detail: detail.into() }
    }

    /// Compares pairs of counts, each of which may differ by so much. Counts as small as that prove nothing, nor do such that differ by
    /// more than half.
    pub(crate) fn compare(counts: &[([f64; 2], f64)], detail: String) -> Verdict {
        let agree = counts.iter().all(|([a, b], allowed)| (a - b).abs() <= *allowed);
        let few = counts.iter().any(|([a, b], allowed)| a.max(*b) <= *allowed || (a - b).abs() > a.max(*b) / 2.0);
        if agree && few {
            return not_made(format!("{detail}: too few to prove anything; use a longer window"));
        }
        require(agree, detail)
    }
}

pub(crate) fn require(ok: bool, detail: impl Into<String>) -> Verdict {
    Verdict::new(if ok { Outcome::Passed } else { Outcome::Failed }, detail)
}

pub(crate) fn passed(detail: impl Into<String>) -> Verdict {
    Verdict::new(Outcome::Passed, detail)
}

pub(crate) fn noted(detail: impl Into<String>) -> Verdict {
    Verdict::new(Outcome::Noted, detail)
}

pub(crate) fn failed(detail: impl Into<String>) -> Verdict {
    Verdict::new(Outcome::Failed, detail)
}

pub(crate) fn not_made(why: impl Into<String>) -> Verdict {
    Verdict::new(Outcome::NotMade, why)
}

/// A verdict; an error is one too: why a check is not made, or failed before its values are compared.
pub(crate) type Judged = Result<Verdict, Verdict>;

impl Test {
    /// An empty test of a target that lacks these columns.
    pub(crate) fn of_target(absent: impl IntoIterator<Item = (&'static Column, String)>) -> Test {
        let of_target = absent.into_iter().map(|(column, why)| (column.id.to_owned(), why)).collect();
        Test { of_target, ..Test::default() }
    }

    /// Adds the check `id`, if there is something to check.
    pub(crate) fn check(&mut self, id: CheckId, verdict: impl Into<Option<Verdict>>) {
        self.checks.extend(verdict.into().map(|of| Check::new(id, of.outcome, of.detail)));
    }

    /// Adds the check `id` as it was judged.
    pub(crate) fn judge(&mut self, id: CheckId, judged: Judged) {
        self.check(id, judged.unwrap_or_else(|why| why));
    }

    /// Sets the figure of `column`; a value that is not finite becomes absent.
    pub(crate) fn set(&mut self, column: &Column, value: f64) {
        if value.is_finite() {
            self.values.insert(column.id.to_owned(), value);
        } else {
            self.set_absent(column, NOT_FINITE);
        }
    }

    /// Sets why the figure of `column` is absent in this test. The first reason is kept.
    pub(crate) fn set_absent(&mut self, column: &Column, why: impl Into<String>) {
        self.of_test.entry(column.id.to_owned()).or_insert_with(|| why.into());
    }

    pub(crate) fn set_all_absent(&mut self, columns: &[&Column], why: &str) {
        columns.iter().for_each(|column| self.set_absent(column, why));
    }

    /// Sets the figures of `columns`, or the reason for their absence in this test.
    pub(crate) fn set_all<const N: usize>(&mut self, columns: [&Column; N], values: Result<[f64; N], impl AsRef<str>>) {
        match values {
            Ok(values) => columns.into_iter().zip(values).for_each(|(column, value)| self.set(column, value)),
            Err(why) => self.set_all_absent(&columns, why.as_ref()),
        }
    }

    /// Sets why the figure of `column` is absent, unless there is a more specific reason.
    pub(crate) fn set_fallback_reason(&mut self, column: &Column, why: &str) {
        self.fallback.entry(column.id.to_owned()).or_insert_with(|| why.to_owned());
    }

    /// Sets the figure of `column`, or the fallback reason for its absence.
    pub(crate) fn set_or_fallback(&mut self, column: &Column, value: Option<f64>, why: &str) {
        match value {
            Some(value) => self.set(column, value),
            None => self.set_fallback_reason(column, why),
        }
    }

    /// Sets the figure of `column`, or the reason for its absence in this test.
    pub(crate) fn set_or_absent(&mut self, column: &Column, value: Option<f64>, why: impl Into<String>) {
        match value {
            Some(value) => self.set(column, value),
            None => self.set_absent(column, why),
        }
    }

    pub(crate) fn add<T>(&mut self, as_detail: fn(Vec<T>) -> Detail, details: Vec<T>) {
        if !details.is_empty() {
            self.details.push(as_detail(details));
        }
    }

    pub(crate) fn figure(&self, column: &Column) -> Option<f64> {
        self.values.get(column.id).copied()
    }

    /// The figure of `column` for a check, which is not made without it.
    pub(crate) fn known(&self, column: &Column) -> Result<f64, Verdict> {
        self.figure(column).ok_or_else(|| not_made(self.absence_reason(column).unwrap_or("not measured")))
    }

    pub(crate) fn absence_reason(&self, column: &Column) -> Option<&str> {
        let reasons = [&self.of_test, &self.of_target, &self.fallback];
        let reason = reasons.into_iter().find_map(|of| of.get(column.id)).map(String::as_str);
        if !self.values.contains_key(column.id) { reason } else { None }
    }

    pub(crate) fn target_lacks(&self, column: &Column) -> bool {
        self.of_target.contains_key(column.id)
    }

    pub(crate) fn absent(&self) -> BTreeMap<String, String> {
        let all = [&self.fallback, &self.of_target, &self.of_test].into_iter().flatten();
        let absent = all.filter(|(id, _)| !self.values.contains_key(*id));
        absent.map(|(id, why)| (id.clone(), why.clone())).collect()
    }
}
