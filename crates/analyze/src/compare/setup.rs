//! Checks that two sweeps have the same setup: driver, load, program, parameters, data.

use std::collections::BTreeSet;
use std::fmt::Display;

use loadline_model::manifest::Calibration;
use loadline_model::plan::Payload;
use loadline_model::{Driver, TestRecord, format};

use super::Platform;
use crate::kpi::{defined_by_redo, uses_data};
use crate::sweep::Sweep;

/// How much redo a transaction of a workload that is defined by its redo has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DefinedRedo {
    /// From and to, KiB, if a platform recorded it.
    pub(super) kib: Option<[f64; 2]>,
    /// Whether calibration chose a number of rows that meets it.
    pub(super) rows_chosen: bool,
}

/// `50 % compressible`, or `50 % compressible and 25 % duplicates`.
pub(super) fn payload_words(Payload { compressibility, duplicates }: Payload) -> String {
    let copies = duplicates.filter(|share| *share > 0.0);
    let copies = copies.map_or_else(String::new, |share| format!(" and {:.1} % duplicates", share * 100.0));
    format!("{:.0} % compressible{copies}", compressibility * 100.0)
}

pub(super) struct Setup<'a> {
    pub(super) base: &'a Platform<'a>,
    pub(super) a: &'a Sweep,
    pub(super) other: &'a Platform<'a>,
    pub(super) b: &'a Sweep,
}

impl<'a> Setup<'a> {
    pub(super) fn new(base: &'a Platform<'a>, a: &'a Sweep, other: &'a Platform<'a>, b: &'a Sweep) -> Setup<'a> {
        Setup { base, a, other, b }
    }

    pub(super) fn names(&self) -> [&'a str; 2] {
        [self.base.label, self.other.label]
    }

    /// A fact of both platforms: `1 row on 'a', 2 on 'b'`.
    pub(super) fn on_both(&self, x: impl Display, y: impl Display) -> String {
        let [a, b] = self.names();
        format!("{x} on '{a}', {y} on '{b}'")
    }

    /// Where both ran, if that differs, and whether neither has round trips, so that their figures mean the same.
    pub(super) fn drivers(&self) -> Option<(String, bool)> {
        let Setup { base, a, other, b } = self;
        if a.driver == b.driver {
            return None;
        }
        let direct = |p: &Platform<'_>, s: &Sweep| p.in_process || s.driver == Driver::Database;
        let alike = direct(base, a) && direct(other, b);
        let place = |p: &Platform<'_>, s: &Sweep| {
            let place = match s.driver {
                _ if p.in_process => "in loadline's process",
                Driver::Database => "in the database",
                Driver::Client => "at the client, with a round trip for each statement",
            };
            format!("'{}' ran {place}", p.label)
        };
        let said = if alike { ": neither has a client or a network" } else { " (--across-drivers)" };
        Some((format!("{}, {}{said}", place(base, a), place(other, b)), alike))
    }

    /// Why the setups are not compared, if so: the first difference.
    pub(super) fn refused(&self) -> Option<String> {
        let Setup { base, a, other, b } = self;
        if self.drivers().is_some_and(|(_, alike)| !alike) && !(base.across_drivers && other.across_drivers) {
            return Some(format!(
                "different drivers: '{}' was measured with the {} driver, '{}' with the {} driver; measure both with the \
                 plan 'compare' or --driver client, or compare them as they are with --across-drivers",
                base.label, a.driver, other.label, b.driver
            ));
        }
        if self.may_differ() { None } else { self.different().into_iter().next() }
    }

    /// Difference, if the user wants it compared all the same.
    pub(super) fn told(&self) -> Option<Vec<String>> {
        self.may_differ().then(|| self.different())
    }

    fn may_differ(&self) -> bool {
        self.base.unequal && self.other.unequal
    }

    fn different(&self) -> Vec<String> {
        let Setup { base, a, other, b } = self;
        let load = (a.load != b.load).then(|| {
            let (x, y) = (a.load.words(), b.load.words());
            format!("different load: '{}' ran {x}, '{}' {y}", base.label, other.label)
        });
        let jobs = |s: &Sweep| s.points.first().map(|p| p.jobs);
        let swept = (!a.over_jobs() && jobs(a) != jobs(b)).then(|| {
            let (x, y) = (jobs(a).unwrap_or(0), jobs(b).unwrap_or(0));
            let (x, [of_a, of_b]) = (format::counted(x as usize, "job"), self.names());
            format!("different load: '{of_a}' was swept over {} with {x}, '{of_b}' with {y}", a.over)
        });
        let facts = a.facts.or(b.facts);
        let data = base.data_bytes.zip(other.data_bytes).filter(|(x, y)| uses_data(&a.workload, facts) && x != y);
        let data = data.map(|sizes| {
            let [x, y] = [sizes.0, sizes.1].map(|bytes| format!("of {}", format::bytes(bytes as f64)));
            format!("different data: a data set {} (--size)", self.on_both(x, y))
        });
        let payload = base.payload.zip(other.payload).map(|(x, y)| (payload_words(x), payload_words(y)));
        let payload =
            payload.filter(|(x, y)| x != y).map(|(x, y)| format!("different payload: {}", self.on_both(x, y)));
        let all = [load, swept, self.different_program(), self.different_parameters(), data, payload];
        all.into_iter().flatten().collect()
    }

    fn programs(&self) -> [Option<&'a str>; 2] {
        [self.base, self.other].map(|platform| program(platform, &self.a.workload))
    }

    fn calibrations(&self) -> impl Iterator<Item = &'a Calibration> {
        [self.base, self.other].into_iter().filter_map(|p| p.calibration?.get(&self.a.workload))
    }

    /// Whether calibration chose the parameter `name` on either platform.
    fn is_calibrated(&self, name: &str) -> bool {
        self.calibrations().any(|c| c.parameters.contains_key(name))
    }

    pub(super) fn defined_redo(&self) -> Option<DefinedRedo> {
        let kib = self.calibrations().find_map(|c| c.nominal).map(|[min, _, max]| [min / 1024.0, max / 1024.0]);
        let is_users_own = self.programs() != [None; 2];
        let defined = DefinedRedo { kib, rows_chosen: self.is_calibrated("rows") };
        (defined_by_redo(&self.a.group) && !is_users_own).then_some(defined)
    }

    fn different_program(&self) -> Option<String> {
        let [x, y] = self.programs();
        (!x?.lines().map(str::trim_end).eq(y?.lines().map(str::trim_end))).then(|| {
            format!(
                "different work: the workload file of {} differs between '{}' and '{}'",
                self.a.workload, self.base.label, self.other.label
            )
        })
    }

    /// Parameters that differ, except swept and calibrated ones.
    pub(super) fn different_parameters(&self) -> Option<String> {
        let names = [named(self.base, self.a), named(self.other, self.b)];
        // Other tools may not state them: see `not_recorded`.
        if names.iter().any(BTreeSet::is_empty) {
            return None;
        }
        let swept = |name: &str| {
            let varies = |all: &BTreeSet<&str>, s: &Sweep| all.contains(name) && !s.parameters.contains_key(name);
            varies(&names[0], self.a) || varies(&names[1], self.b)
        };
        let shown = |s: &Sweep, name: &str| s.parameters.get(name).map_or("missing".to_owned(), i64::to_string);
        let differing: Vec<String> = names[0]
            .union(&names[1])
            .filter(|name| !self.is_calibrated(name) && !swept(name))
            .filter(|name| self.a.parameters.get(**name) != self.b.parameters.get(**name))
            .map(|name| self.on_both(format!("{name} is {}", shown(self.a, name)), shown(self.b, name)))
            .collect();
        (!differing.is_empty()).then(|| format!("different parameters: {}", differing.join("; ")))
    }

    /// Parts of the setup that only one platform recorded, listed for the base and the other platform that lack them.
    pub(super) fn not_recorded(&self) -> [Vec<&'static str>; 2] {
        let sides = [(self.base, self.a), (self.other, self.b)];
        let parameters = sides.map(|(platform, sweep)| !named(platform, sweep).is_empty());
        let all = [
            (parameters, "parameters of the workload"),
            (self.programs().map(|text| text.is_some()), "file of the workload"),
        ];
        let of =
            |side: usize| all.iter().filter(|(has, _)| !has[side] && has[1 - side]).map(|(_, what)| *what).collect();
        [of(0), of(1)]
    }
}

fn named<'a>(platform: &Platform<'a>, sweep: &Sweep) -> BTreeSet<&'a str> {
    let is_of = |r: &&TestRecord| {
        let swept = r.swept().unwrap_or(crate::sweep::JOBS) == sweep.over;
        r.workload == sweep.workload && r.run == sweep.run && r.driver == sweep.driver && swept
    };
    platform.records.iter().filter(is_of).flat_map(|r| r.parameters.keys()).map(String::as_str).collect()
}

fn program<'a>(platform: &Platform<'a>, code: &str) -> Option<&'a str> {
    let file = platform.workload_files.iter().find(|f| codes_in(&f.text).any(|defined| defined == code))?;
    Some(&file.text)
}

/// Codes of the workloads that the text of a workload file defines.
pub fn codes_in(text: &str) -> impl Iterator<Item = String> {
    let bare = |s: &str| s.trim().trim_matches(['"', '\'']).to_owned();
    text.lines()
        .filter_map(|line| line.split_once('='))
        .filter(move |(key, _)| bare(key) == "code")
        .map(move |(_, value)| bare(value.split('#').next().unwrap_or_default()))
}
