//! Figures of a test as they are computed, with what belongs to them.

use std::collections::BTreeMap;

use loadline_model::column::NOT_FINITE;
use loadline_model::{Check, Column, TestLimit};

/// Figures, the reasons of those that are missing, notes and checks. Those that were computed apart are put
/// together with [`Figures::add`], in any order: a value goes before a reason, a reason of this very test before
/// one that holds for the target, and that before a fallback.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    values: BTreeMap<String, f64>,
    left_out: BTreeMap<String, String>,
    of_target: BTreeMap<String, String>,
    fallback: BTreeMap<String, String>,
    /// What a reader should know besides.
    pub(crate) notes: Vec<String>,
    /// Checks that were made.
    pub(crate) checks: Vec<Check>,
    /// Where the blocks came from that the database read.
    pub(crate) data_source: Option<&'static str>,
    /// Whether figures are kept that are not proved to be the device's.
    pub(crate) not_the_devices: bool,
    /// What the hardware allows.
    pub(crate) limit: Option<TestLimit>,
}

impl Figures {
    /// No figures yet of a target that lacks some columns.
    pub(crate) fn of_target(absent: impl IntoIterator<Item = (&'static Column, String)>) -> Figures {
        let of_target = absent.into_iter().map(|(column, why)| (column.id.to_owned(), why)).collect();
        Figures { of_target, ..Figures::default() }
    }

    /// Sets the figure of `column`; a value that is not finite is missing instead.
    pub(crate) fn set(&mut self, column: &Column, value: f64) {
        if value.is_finite() {
            self.values.insert(column.id.to_owned(), value);
        } else {
            self.leave_out(column, NOT_FINITE);
        }
    }

    /// Says why the figure of `column` is missing in this test. The first reason stays.
    pub(crate) fn leave_out(&mut self, column: &Column, why: impl Into<String>) {
        self.left_out.entry(column.id.to_owned()).or_insert_with(|| why.into());
    }

    /// The same for several.
    pub(crate) fn leave_all_out(&mut self, columns: &[&Column], why: &str) {
        columns.iter().for_each(|column| self.leave_out(column, why));
    }

    /// Says why the figure of `column` is missing, if nobody knows better.
    pub(crate) fn fall_back(&mut self, column: &Column, why: &str) {
        self.fallback.entry(column.id.to_owned()).or_insert_with(|| why.to_owned());
    }

    /// Sets the figure of `column`, or says why it is missing if nobody knows better.
    pub(crate) fn set_or(&mut self, column: &Column, value: Option<f64>, why: &str) {
        match value {
            Some(value) => self.set(column, value),
            None => self.fall_back(column, why),
        }
    }

    /// Sets the figure of `column`, or says why it is missing in this test.
    pub(crate) fn set_or_leave_out(&mut self, column: &Column, value: Option<f64>, why: impl Into<String>) {
        match value {
            Some(value) => self.set(column, value),
            None => self.leave_out(column, why),
        }
    }

    /// The figure of `column`, if it is there.
    pub(crate) fn figure(&self, column: &Column) -> Option<f64> {
        self.values.get(column.id).copied()
    }

    /// Why the figure of `column` is missing, if it is.
    pub(crate) fn why_absent(&self, column: &Column) -> Option<&str> {
        let reasons = [&self.left_out, &self.of_target, &self.fallback];
        reasons
            .into_iter()
            .find_map(|of| of.get(column.id))
            .map(String::as_str)
            .filter(|_| !self.values.contains_key(column.id))
    }

    /// Whether the target says that it lacks `column`.
    pub(crate) fn target_lacks(&self, column: &Column) -> bool {
        self.of_target.contains_key(column.id)
    }

    /// Adds those that were computed apart.
    pub(crate) fn add(&mut self, other: Figures) {
        let Figures { values, left_out, of_target, fallback, notes, checks, data_source, not_the_devices, limit } =
            other;
        self.values.extend(values);
        for (mine, theirs) in
            [(&mut self.left_out, left_out), (&mut self.of_target, of_target), (&mut self.fallback, fallback)]
        {
            theirs.into_iter().for_each(|(id, why)| {
                mine.entry(id).or_insert(why);
            });
        }
        self.notes.extend(notes);
        self.checks.extend(checks);
        self.data_source = self.data_source.or(data_source);
        self.not_the_devices |= not_the_devices;
        self.limit = self.limit.take().or(limit);
    }

    /// The figures, and the reasons of those that are missing.
    pub(crate) fn columns(&mut self) -> Columns {
        let mut absent = std::mem::take(&mut self.fallback);
        absent.append(&mut self.of_target);
        absent.append(&mut self.left_out);
        let values = std::mem::take(&mut self.values);
        absent.retain(|id, _| !values.contains_key(id));
        Columns { values, absent }
    }
}

/// What stands in a record's columns.
pub(crate) struct Columns {
    pub(crate) values: BTreeMap<String, f64>,
    pub(crate) absent: BTreeMap<String, String>,
}
