//! Disturbances of a test, from which value on each is noted, and from which value on the test is disturbed. The only place of
//! these thresholds; docs/truth.md lists them.
//!
//! Waiting for a CPU that the jobs or the database use is saturation: it is what a test is for, and no disturbance.

use crate::check::{CheckId, Outcome};
use crate::column::*;
use crate::format::number;
use crate::record::TestRecord;

#[derive(Debug, Clone, Copy)]
pub struct Disturbance {
    pub check: CheckId,
    pub column: &'static Column,
    pub words: &'static str,
    pub noted_from: f64,
    /// From this value on the test is disturbed; `None` if never.
    pub disturbed_from: Option<f64>,
}

/// Sessions of others at work, % of one, from which they are noted.
const OTHER_SESSIONS_FROM: f64 = 5.0;

pub const DISTURBANCES: [Disturbance; 11] = [
    // An idle server's daemons use 1 to 3 %. A fifth of the CPUs costs a saturated test a fifth of its throughput, more
    // than any figure may be off.
    kind(CheckId::OtherCpu, OTHER_CPU_PCT, "other processes on the CPU", 5.0, Some(20.0)),
    // Includes threads of the kernel, which also work for the test: a test of storage costs them a tenth of two CPUs.
    kind(CheckId::UnknownCpu, UNKNOWN_CPU_PCT, "CPU used by unknown processes or the kernel", 15.0, Some(40.0)),
    // Next to nothing is stolen on a host with CPUs for all. A tenth is lost throughput and longer tails.
    kind(CheckId::CpuSteal, CPU_STEAL_PCT, "CPU steal", 1.0, Some(10.0)),
    // Often on purpose, such as CPUs apart for client and server: any is noted. If others use the rest, `other-cpu` says so.
    kind(CheckId::CpuAffinity, CPU_WITHHELD_PCT, "CPUs withheld from loadline", 0.1, None),
    // A client that had to stop in a tenth of the periods measured its limit, not the database.
    kind(CheckId::ClientThrottled, CLIENT_THROTTLED_PCT, "loadline stopped by its CPU limit", 1.0, Some(10.0)),
    // The database's limit is part of the platform: it is noted only.
    kind(CheckId::DatabaseThrottled, DATABASE_THROTTLED_PCT, "database stopped by its CPU limit", 1.0, None),
    // A cool machine has none; the same test is not repeatable with a fifth.
    kind(CheckId::ThermalThrottling, THERMAL_THROTTLED_PCT, "CPU slowed down by heat", 1.0, Some(20.0)),
    // Logs of daemons keep a device busy for less than 1 %. The time of others is estimated from bytes: hence twice the
    // threshold of CPU.
    kind(CheckId::OtherIo, OTHER_IO_PCT, "device busy for other processes", 5.0, Some(40.0)),
    // What a session costs depends on the server's size, and a monitor's are no harm: it is noted only.
    kind(CheckId::OtherSessions, OTHER_SESSIONS_PCT, "other sessions at work on the server", OTHER_SESSIONS_FROM, None),
    // Takes CPUs as another process does: the same thresholds as `other-cpu`.
    kind(CheckId::OtherSessionsCpu, OTHER_SESSIONS_CPU_PCT, "other sessions on the server's CPU", 5.0, Some(20.0)),
    // Blocks of a table that is larger than the memory cause a little of it by themselves.
    kind(CheckId::MemoryPressure, MEMORY_PRESSURE_PCT, "tasks waiting for memory", 5.0, Some(40.0)),
];

const fn kind(
    check: CheckId,
    column: &'static Column,
    words: &'static str,
    noted_from: f64,
    disturbed_from: Option<f64>,
) -> Disturbance {
    Disturbance { check, column, words, noted_from, disturbed_from }
}

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

/// How far the test of `record` was disturbed: the largest figure as a multiple of the threshold from which it makes a test
/// disturbed.
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
    let sessions = record.figure(OTHER_SESSIONS_PCT).is_some_and(|pct| pct >= OTHER_SESSIONS_FROM);
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
        for d in DISTURBANCES {
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
