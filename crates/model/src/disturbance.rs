//! What disturbs a test, from which value on it is noted, and from which value on the test is invalid. The only place of
//! these thresholds; docs/truth.md lists them.
//!
//! Waiting for a CPU that the jobs or the database use is saturation: it is what a test is for, and no disturbance.

use crate::check::{CheckId, Outcome};
use crate::column::*;
use crate::format::number;
use crate::record::{TestRecord, Validity};

/// A kind of disturbance.
#[derive(Debug, Clone, Copy)]
pub struct Disturbance {
    /// Its check.
    pub check: CheckId,
    /// Its figure, %.
    pub column: &'static Column,
    /// In words, before the value.
    pub words: &'static str,
    /// From this value on it is noted.
    pub noted_from: f64,
    /// From this value on the test is invalid; `None` if never.
    pub invalid_from: Option<f64>,
}

/// All kinds.
pub const DISTURBANCES: [Disturbance; 11] = [
    // An idle server's daemons use 1 to 3 %. A fifth of the CPUs costs a saturated test a fifth of its throughput, more
    // than any figure may be off.
    Disturbance {
        check: CheckId::OtherCpu,
        column: OTHER_CPU_PCT,
        words: "other processes on the CPU",
        noted_from: 5.0,
        invalid_from: Some(20.0),
    },
    // Includes threads of the kernel, which also work for the test: a test of storage costs them a tenth of two CPUs.
    Disturbance {
        check: CheckId::UnknownCpu,
        column: UNKNOWN_CPU_PCT,
        words: "CPU used by unknown processes or the kernel",
        noted_from: 15.0,
        invalid_from: Some(40.0),
    },
    // Next to nothing is stolen on a host with CPUs for all. A tenth is lost throughput and longer tails.
    Disturbance {
        check: CheckId::CpuSteal,
        column: CPU_STEAL_PCT,
        words: "CPU steal",
        noted_from: 1.0,
        invalid_from: Some(10.0),
    },
    // Often on purpose, such as CPUs apart for client and server: any is noted. If others use the rest, `other-cpu` says so.
    Disturbance {
        check: CheckId::CpuAffinity,
        column: CPU_WITHHELD_PCT,
        words: "CPUs withheld from loadline",
        noted_from: 0.1,
        invalid_from: None,
    },
    // A client that had to stop in a tenth of the periods measured its limit, not the database.
    Disturbance {
        check: CheckId::ClientThrottled,
        column: CLIENT_THROTTLED_PCT,
        words: "loadline stopped by its CPU limit",
        noted_from: 1.0,
        invalid_from: Some(10.0),
    },
    // The database's limit is part of the platform: it is noted only.
    Disturbance {
        check: CheckId::DatabaseThrottled,
        column: DATABASE_THROTTLED_PCT,
        words: "database stopped by its CPU limit",
        noted_from: 1.0,
        invalid_from: None,
    },
    // A cool machine has none; the same test is not repeatable with a fifth.
    Disturbance {
        check: CheckId::ThermalThrottling,
        column: THERMAL_THROTTLED_PCT,
        words: "CPU slowed down by heat",
        noted_from: 1.0,
        invalid_from: Some(20.0),
    },
    // Logs of daemons keep a device busy for less than 1 %. The time of others is estimated from bytes: hence twice the
    // threshold of CPU.
    Disturbance {
        check: CheckId::OtherIo,
        column: OTHER_IO_PCT,
        words: "device busy for other processes",
        noted_from: 5.0,
        invalid_from: Some(40.0),
    },
    // What a session costs depends on the server's size, and a monitor's are no harm: it is noted only.
    Disturbance {
        check: CheckId::OtherSessions,
        column: OTHER_SESSIONS_PCT,
        words: "other sessions at work on the server",
        noted_from: 5.0,
        invalid_from: None,
    },
    // Takes CPUs as another process does: the same thresholds as `other-cpu`.
    Disturbance {
        check: CheckId::OtherSessionsCpu,
        column: OTHER_SESSIONS_CPU_PCT,
        words: "other sessions on the server's CPU",
        noted_from: 5.0,
        invalid_from: Some(20.0),
    },
    // Blocks of a table that is larger than the memory cause a little of it by themselves.
    Disturbance {
        check: CheckId::MemoryPressure,
        column: MEMORY_PRESSURE_PCT,
        words: "tasks waiting for memory",
        noted_from: 5.0,
        invalid_from: Some(40.0),
    },
];

/// The kind that `column` measures.
#[must_use]
pub fn measured_by(column: &Column) -> Option<&'static Disturbance> {
    DISTURBANCES.iter().find(|d| d.column == column)
}

impl Disturbance {
    /// Whether `pct` is noted.
    #[must_use]
    pub fn is_noted(&self, pct: f64) -> bool {
        pct >= self.noted_from
    }

    /// Whether `pct` makes a test invalid.
    #[must_use]
    pub fn is_invalid(&self, pct: f64) -> bool {
        self.invalid_from.is_some_and(|limit| pct >= limit)
    }

    /// `other processes on the CPU 23 %`, if that is noted of the test of `record`.
    fn of(&self, record: &TestRecord) -> Option<String> {
        let pct = record.figure(self.column).filter(|pct| self.is_noted(*pct))?;
        Some(format!("{} {} %", self.words, number(pct, 0)))
    }
}

/// What disturbed the test of `record`, from its figures: see [`TestRecord::disturbed_by`].
#[must_use]
pub fn disturbed_by(record: &TestRecord) -> Option<String> {
    let all: Vec<String> = DISTURBANCES.iter().filter_map(|d| d.of(record)).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// The kinds in words that only `--allow-disturbed` kept from making the test of `record` invalid.
#[must_use]
pub fn allowed(record: &TestRecord) -> Vec<&'static str> {
    let invalid = |d: &&Disturbance| record.figure(d.column).is_some_and(|pct| d.is_invalid(pct));
    DISTURBANCES.iter().filter(|_| record.valid).filter(invalid).map(|d| d.words).collect()
}

/// Why an invalid test is so, in short: if it was only disturbed, by what and how much.
#[must_use]
pub fn why_invalid(record: &TestRecord) -> String {
    match (&record.disturbed_by, &record.invalid_reason) {
        (Some(disturbed), _) if record.validity() == Some(Validity::Disturbed) => format!("disturbed: {disturbed}"),
        (_, Some(reason)) => reason.clone(),
        (_, None) => "the record gives no reason".to_owned(),
    }
}

/// As [`why_invalid`], for a list of many tests: without shares, which differ from test to test.
#[must_use]
pub fn why_invalid_in_common(record: &TestRecord) -> String {
    if record.validity() != Some(Validity::Disturbed) {
        return why_invalid(record);
    }
    let failed = |d: &&Disturbance| record.checks.iter().any(|c| c.id == d.check && c.outcome == Outcome::Failed);
    let kinds: Vec<&str> = DISTURBANCES.iter().filter(failed).map(|d| d.words).collect();
    format!("disturbed: {}", kinds.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Check;

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
    fn disturbed_tests_have_one_reason_each_kind() {
        let why = |checks: &[(CheckId, &str)]| {
            let mut record = TestRecord::blank("X");
            checks.iter().for_each(|(id, why)| record.add_check(Check::new(*id, Outcome::Failed, *why)));
            why_invalid_in_common(&record)
        };
        let other = (CheckId::OtherCpu, "disturbed: other processes on the CPU 49 % (most: x 0.9 CPUs)");
        assert_eq!(why(&[other]), "disturbed: other processes on the CPU");
        assert_eq!(
            why(&[other, (CheckId::OtherIo, "disturbed")]),
            "disturbed: other processes on the CPU, device busy for other processes"
        );
        assert_eq!(
            why(&[(CheckId::Rate, "too slow"), other]),
            format!("too slow; {}", other.1),
            "something else is wrong, too"
        );
        assert_eq!(why(&[]), "the record gives no reason");
    }

    #[test]
    fn each_kind_has_a_check_and_each_such_check_a_kind() {
        for id in CheckId::ALL {
            assert_eq!(id.is_of_disturbance(), DISTURBANCES.iter().any(|kind| kind.check == *id), "{id}");
        }
    }

    #[test]
    fn each_threshold_is_in_the_docs() {
        let page = include_str!("../../../docs/truth.md");
        for d in DISTURBANCES {
            let invalid = d.invalid_from.map_or("never".to_owned(), |pct| format!("{pct} %"));
            let noted = if d.noted_from < 1.0 { "any".to_owned() } else { format!("{} %", d.noted_from) };
            let end = format!("| {noted} | {invalid} |");
            let row =
                page.lines().find(|l| l.contains(&format!("`{}`", d.column.id)) && l.contains(&d.check.to_string()));
            let row = row.unwrap_or_else(|| panic!("{} is not in docs/truth.md", d.check));
            assert!(row.ends_with(&end), "{row} does not end with {end}");
            assert!(d.invalid_from.is_none_or(|pct| pct > d.noted_from), "{}", d.check);
        }
    }
}
