//! Disturbances of a test, with the values from which on each is noted and makes a test disturbed, as `disturbances.toml` lists them.
//!
//! Waiting for a CPU that the jobs or the database use is saturation: it is what a test is for, and no disturbance.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::check::{CheckId, Outcome};
use crate::column::*;
use crate::format::number;
use crate::record::TestRecord;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disturbance {
    pub check: CheckId,
    pub column: &'static Column,
    #[serde(deserialize_with = "kept")]
    pub words: Kept,
    pub noted_from: f64,
    /// From this value on the test is disturbed; `None` if never.
    pub disturbed_from: Option<f64>,
}

/// None if the file cannot be read, which the tests detect.
pub static DISTURBANCES: LazyLock<Vec<Disturbance>> = LazyLock::new(|| {
    let file = toml::from_str::<BTreeMap<String, Vec<Disturbance>>>(include_str!("../disturbances.toml"));
    file.unwrap_or_default().remove("disturbance").unwrap_or_default()
});

impl CheckId {
    /// Whether it is about others who used the machine, and not about the figures themselves.
    pub fn is_of_disturbance(self) -> bool {
        DISTURBANCES.iter().any(|kind| kind.check == self)
    }
}

pub fn measured_by(column: &Column) -> Option<&'static Disturbance> {
    DISTURBANCES.iter().find(|d| d.column == column)
}

impl Disturbance {
    pub fn is_noted(&self, pct: f64) -> bool {
        pct >= self.noted_from
    }

    pub fn is_disturbing(&self, pct: f64) -> bool {
        self.disturbed_from.is_some_and(|limit| pct >= limit)
    }

    /// `pct` as a multiple of the threshold from which it makes a test disturbed; `None` if it never does.
    pub fn severity(&self, pct: f64) -> Option<f64> {
        Some(pct / self.disturbed_from?)
    }

    /// `other processes on the CPU 23 %`, if that is noted of the test of `record`.
    fn noted(&self, record: &TestRecord) -> Option<String> {
        let pct = record.figure(self.column).filter(|pct| self.is_noted(*pct))?;
        Some(format!("{} {} %", self.words, number(pct, 0)))
    }
}

/// Disturbances of the test of `record`, from its figures: see [`TestRecord::disturbed_by`].
pub fn disturbed_by(record: &TestRecord) -> Option<String> {
    let all: Vec<String> = DISTURBANCES.iter().filter_map(|d| d.noted(record)).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// How far the test of `record` was disturbed: the largest figure as a multiple of the threshold of a disturbed test.
pub fn severity(record: &TestRecord) -> f64 {
    let of = |d: &Disturbance| d.severity(record.figure(d.column)?);
    DISTURBANCES.iter().filter_map(of).fold(0.0, f64::max)
}

/// The kinds, in words, that made the test of `record` disturbed; none of a valid or a refused one.
pub fn kinds(record: &TestRecord) -> Vec<&'static str> {
    if !record.is_disturbed() {
        return Vec::new();
    }
    let failed = |d: &&Disturbance| record.checks.iter().any(|c| c.id == d.check && c.outcome == Outcome::Failed);
    DISTURBANCES.iter().filter(failed).map(|d| d.words).collect()
}

/// Upper bound of what the throughput of a disturbed test would have gained without others, %: as if it could have used
/// all that they took. `None` if they took nearly everything, if other sessions may have held locks and the log too, or the test is not
/// disturbed.
pub fn at_most_higher_pct(record: &TestRecord) -> Option<f64> {
    const MOST: f64 = 0.95;
    let taken = |d: &Disturbance| record.figure(d.column).filter(|pct| d.disturbed_from.is_some() && d.is_noted(*pct));
    let taken = DISTURBANCES.iter().filter_map(taken).sum::<f64>() / 100.0;
    let others = measured_by(OTHER_SESSIONS_PCT).zip(record.figure(OTHER_SESSIONS_PCT));
    let sessions = others.is_some_and(|(kind, pct)| kind.is_noted(pct));
    (record.is_disturbed() && taken < MOST && !sessions).then(|| 100.0 * taken / (1.0 - taken))
}

/// Judges a test that an older version kept as valid although it was disturbed.
pub fn judge_kept(record: &mut TestRecord) {
    let is_beyond = |d: &&Disturbance| record.figure(d.column).is_some_and(|pct| d.is_disturbing(pct));
    let beyond: Vec<CheckId> = DISTURBANCES.iter().filter(is_beyond).map(|d| d.check).collect();
    if !record.valid || beyond.is_empty() {
        return;
    }
    for mut check in std::mem::take(&mut record.checks) {
        if check.outcome == Outcome::Noted && beyond.contains(&check.id) {
            check.outcome = Outcome::Failed;
        }
        record.add_check(check);
    }
}

pub fn why_not_valid(record: &TestRecord) -> &str {
    record.invalid_reason.as_deref().unwrap_or("the record gives no reason")
}

/// Judgement of a test that is not valid, with the reason: `disturbed: other processes on the CPU 23 %`, `refused: 3 of 9 commits are missing`.
pub fn judged(record: &TestRecord) -> String {
    match &record.disturbed_by {
        Some(by) if record.is_disturbed() => format!("disturbed: {by}"),
        _ if record.is_disturbed() => format!("disturbed: {}", kinds(record).join(", ")),
        _ => format!("refused: {}", why_not_valid(record)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Check;
    use crate::record::Validity;

    #[test]
    fn a_quiet_test_is_disturbed_by_nothing() {
        let mut record = TestRecord::blank("X");
        assert_eq!(disturbed_by(&record), None, "nothing could be read");
        DISTURBANCES.iter().for_each(|d| record.set(d.column, 0.0));
        assert_eq!(disturbed_by(&record), None);
        record.set(OTHER_CPU_PCT, 23.4);
        record.set(CPU_STEAL_PCT, 8.0);
        assert_eq!(disturbed_by(&record).as_deref(), Some("other processes on the CPU 23 %; CPU steal 8 %"));
    }

    #[test]
    fn only_disturbances_make_a_test_disturbed_and_a_failed_proof_refuses_it() {
        let of = |checks: &[(CheckId, &str)]| {
            let mut record = TestRecord::blank("X");
            checks.iter().for_each(|(id, why)| record.add_check(Check::new(*id, Outcome::Failed, *why)));
            (record.validity().unwrap(), judged(&record))
        };
        let other = (CheckId::OtherCpu, "disturbed: other processes on the CPU 49 % (most: x 0.9 CPUs)");
        let [cpu, io] = ["other processes on the CPU", "device busy for other processes"];
        assert_eq!(of(&[other]), (Validity::Disturbed, format!("disturbed: {cpu}")));
        assert_eq!(of(&[other, (CheckId::OtherIo, "")]), (Validity::Disturbed, format!("disturbed: {cpu}, {io}")));
        assert_eq!(
            of(&[(CheckId::Rate, "too slow"), other]),
            (Validity::Refused, format!("refused: too slow; {}", other.1))
        );
        assert_eq!(of(&[]).0, Validity::Valid);
    }

    #[test]
    fn what_others_took_bounds_what_a_test_lost() {
        let mut record = TestRecord::blank("X");
        record.set(OTHER_CPU_PCT, 50.0);
        record.set(CPU_STEAL_PCT, 0.5);
        assert_eq!(at_most_higher_pct(&record), None, "nothing says that it was disturbed");
        record.add_check(Check::new(CheckId::OtherCpu, Outcome::Failed, ""));
        assert_eq!(at_most_higher_pct(&record), Some(100.0), "only what can disturb and is noted counts");
        record.set(OTHER_SESSIONS_PCT, 300.0);
        assert_eq!(at_most_higher_pct(&record), None, "locks and the log are not shares of a CPU");
        record.set(OTHER_SESSIONS_PCT, 0.0);
        record.set(OTHER_CPU_PCT, 97.0);
        assert_eq!(at_most_higher_pct(&record), None);
    }

    #[test]
    fn tests_that_older_versions_kept_as_valid_are_disturbed() {
        let read = |pct, proof| {
            let mut record = TestRecord::blank("X");
            record.set(OTHER_CPU_PCT, pct);
            record.add_check(Check::new(CheckId::OtherCpu, Outcome::Noted, "other processes on the CPU"));
            record.add_check(Check::new(CheckId::Rate, proof, "rate"));
            judge_kept(&mut record);
            record.validity().unwrap()
        };
        assert_eq!(read(40.0, Outcome::Passed), Validity::Disturbed);
        assert_eq!(read(10.0, Outcome::Passed), Validity::Valid);
        assert_eq!(read(40.0, Outcome::Failed), Validity::Refused);
    }

    #[test]
    fn each_threshold_is_in_the_docs() {
        let page = include_str!("../../../docs/truth.md");
        assert_eq!(DISTURBANCES.len(), 11);
        for d in DISTURBANCES.iter() {
            let disturbed = d.disturbed_from.map_or("never".to_owned(), |pct| format!("{pct} %"));
            let noted = if d.noted_from < 1.0 { "any".to_owned() } else { format!("{} %", d.noted_from) };
            let end = format!("| {noted} | {disturbed} |");
            let row =
                page.lines().find(|l| l.contains(&format!("`{}`", d.column.id)) && l.contains(&d.check.to_string()));
            let row = row.unwrap_or_else(|| panic!("{} is not in docs/truth.md", d.check));
            assert!(row.ends_with(&end), "{row} does not end with {end}");
            assert!(d.disturbed_from.is_none_or(|pct| pct > d.noted_from), "{}", d.check);
        }
    }
}
