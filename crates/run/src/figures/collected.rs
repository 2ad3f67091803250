//! Collects the figures of a test, with reasons for absent ones, notes and checks.

use std::collections::BTreeMap;

use loadline_model::column::NOT_FINITE;
use loadline_model::{Check, Column, DataSource, TestLimit};

/// Figures, reasons for absent ones, notes and checks. [`Figures::add`] merges them in any order. Precedence: value,
/// reason of this test, reason of the target, fallback reason.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    values: BTreeMap<String, f64>,
    of_test: BTreeMap<String, String>,
    of_target: BTreeMap<String, String>,
    fallback: BTreeMap<String, String>,
    /// Notes for the reader.
    pub(crate) notes: Vec<String>,
    /// Checks.
    pub(crate) checks: Vec<Check>,
    /// Source of the blocks that the database read.
    pub(crate) data_source: Option<DataSource>,
    /// Whether figures are kept although not proved to be the device's.
    pub(crate) not_the_devices: bool,
    /// The most active of the processes that are neither loadline nor the database, with their CPU time.
    pub(crate) others: String,
    /// What the machine allows for the same work.
    pub(crate) limit: Option<TestLimit>,
}

impl Figures {
    /// Empty, with the columns that the target lacks.
    pub(crate) fn of_target(absent: impl IntoIterator<Item = (&'static Column, String)>) -> Figures {
        let of_target = absent.into_iter().map(|(column, why)| (column.id.to_owned(), why)).collect();
        Figures { of_target, ..Figures::default() }
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

    /// The same for several columns.
    pub(crate) fn set_all_absent(&mut self, columns: &[&Column], why: &str) {
        columns.iter().for_each(|column| self.set_absent(column, why));
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

    /// The figure of `column`, if set.
    pub(crate) fn figure(&self, column: &Column) -> Option<f64> {
        self.values.get(column.id).copied()
    }

    /// Why the figure of `column` is absent, if it is.
    pub(crate) fn absence_reason(&self, column: &Column) -> Option<&str> {
        let reasons = [&self.of_test, &self.of_target, &self.fallback];
        reasons
            .into_iter()
            .find_map(|of| of.get(column.id))
            .map(String::as_str)
            .filter(|_| !self.values.contains_key(column.id))
    }

    /// Whether the target lacks `column`.
    pub(crate) fn target_lacks(&self, column: &Column) -> bool {
        self.of_target.contains_key(column.id)
    }

    /// Merges `other`.
    pub(crate) fn add(&mut self, other: Figures) {
        let Figures {
            values,
            of_test,
            of_target,
            fallback,
            notes,
            checks,
            data_source,
            not_the_devices,
            others,
            limit,
        } = other;
        self.values.extend(values);
        for (mine, theirs) in
            [(&mut self.of_test, of_test), (&mut self.of_target, of_target), (&mut self.fallback, fallback)]
        {
            theirs.into_iter().for_each(|(id, why)| {
                mine.entry(id).or_insert(why);
            });
        }
        self.notes.extend(notes);
        self.checks.extend(checks);
        self.data_source = self.data_source.or(data_source);
        self.not_the_devices |= not_the_devices;
        self.others += &others;
        self.limit = self.limit.take().or(limit);
    }

    /// The figures, and the reasons for absent ones.
    pub(crate) fn columns(&mut self) -> Columns {
        let mut absent = std::mem::take(&mut self.fallback);
        absent.append(&mut self.of_target);
        absent.append(&mut self.of_test);
        let values = std::mem::take(&mut self.values);
        absent.retain(|id, _| !values.contains_key(id));
        Columns { values, absent }
    }
}

/// Values of a record's columns, and reasons for absent ones.
pub(crate) struct Columns {
    pub(crate) values: BTreeMap<String, f64>,
    pub(crate) absent: BTreeMap<String, String>,
}
