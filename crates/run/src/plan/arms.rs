//! The plan of a run of two arms: each arm is a plan of its own, made from the common specification and what the arm changes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use loadline_analyze::arms::ERROR;
use loadline_analyze::paired::looks::Looks;
use loadline_database::kind_of;
use loadline_model::Driver;
use loadline_model::arms::{ArmName, ArmSpec};
use loadline_model::format::{parse_bytes, parse_duration_s, parse_share};
use loadline_model::plan::{Arm, Arms, Jobs, JobsSpec, Plan, PlannedWorkload, SkippedWorkload};
use loadline_workload::Workloads;

use super::sweep::SweepPoints;
use super::{DEFAULT_TARGET, PlanError, PlanSpec, one_plan, value, workloads_of};

/// Default number of pairs: one stalled window does not spoil their interval.
pub const DEFAULT_PAIRS: u32 = 16;
/// Default of the most pairs, with a precision.
pub const DEFAULT_MOST_PAIRS: u32 = 200;
/// Default difference up to which arms are equivalent.
pub const DEFAULT_EQUIVALENCE: f64 = 0.02;

/// Whether `spec` has keys of arms.
pub(super) fn are_in(spec: &PlanSpec) -> bool {
    let PlanSpec { arm_a, arm_b, pairs, precision, equivalence, .. } = spec;
    arm_a.is_some() || arm_b.is_some() || pairs.is_some() || precision.is_some() || equivalence.is_some()
}

/// The plan of `spec` with its arms; arm A's target, settings and workloads are also those of the plan.
#[expect(clippy::too_many_lines)]
pub(super) fn plan(spec: &PlanSpec) -> Result<Plan, PlanError> {
    let [a, b] = [&spec.arm_a, &spec.arm_b].map(|arm| {
        let arm = arm.clone().unwrap_or_default();
        ArmSpec { setting: normal_names(&arm.setting), ..arm }
    });
    if spec.platform.is_some() {
        return value("--platform does not apply to two arms: they are named by what they differ in".to_owned());
    }
    if spec.repeat.is_some_and(|n| n != 1) {
        return value("--repeat does not apply to two arms: give --pairs".to_owned());
    }
    if spec.nodes.as_ref().is_some_and(|counts| counts.len() > 1) {
        return value(
            "two arms are measured over one number of nodes: give --nodes once, such as --nodes 1".to_owned(),
        );
    }
    if matches!(spec.jobs, Some(JobsSpec::Word(_))) {
        return value("two arms are compared at given job counts: write --jobs 1,4 instead of auto".to_owned());
    }
    if spec.warmup.as_ref().is_some_and(super::is_auto) {
        return value(
            "two arms need the same time under load before each window, and an automatic warm-up would give the arm that \
             settles later more: write --warmup with a time, such as one that `loadline run --warmup auto` took"
                .to_owned(),
        );
    }
    match (&a.switch, &b.switch) {
        (Some(_), None) => return value(no_way_back(ArmName::A)),
        (None, Some(_)) => return value(no_way_back(ArmName::B)),
        _ => {}
    }
    let jobs = spec.jobs.clone().or_else(|| spec.populations.is_none().then_some(JobsSpec::One(1)));
    let setting = spec.setting.as_ref().map(normal_names);
    let base = PlanSpec {
        jobs,
        setting,
        arm_a: None,
        arm_b: None,
        pairs: None,
        precision: None,
        equivalence: None,
        ..spec.clone()
    };
    let [spec_a, spec_b] = [of_arm(&base, &a), of_arm(&base, &b)];
    let (mut plan, mut other) = (one_plan(&spec_a)?, one_plan(&spec_b)?);
    // Jobs of a workload that only one arm can run show nothing.
    let skipped: Vec<_> = other.skipped.iter().filter(|s| plan.has(&s.code)).cloned().collect();
    plan.skipped.extend(skipped);
    let known = workloads_of(&plan)?;
    let apart = in_one_place(&known, [&plan.target, &other.target], [&mut plan.workloads, &mut other.workloads])?;
    plan.skipped.extend(apart);
    let gone = |code: &str| plan.skipped.iter().any(|s| s.code == code);
    plan.workloads.retain(|w| !gone(&w.code));
    other.workloads.retain(|w| !gone(&w.code));
    if plan.workloads.is_empty() {
        return Err(PlanError::Nothing { target: plan.target.clone(), reasons: super::reasons(&plan.skipped) });
    }
    windows_at_jobs(&plan)?;
    for (arm, spec) in [(ArmName::A, &a), (ArmName::B, &b)] {
        let measured = |code: &&String| plan.workloads.iter().any(|w| w.code.eq_ignore_ascii_case(code));
        if let Some(code) = spec.parameters.keys().find(|code| !measured(code)) {
            return value(format!(
                "a parameter of {code} is given for arm {arm}, but {code} is not measured: name it in --workload"
            ));
        }
    }
    let [label_a, label_b] = labels(&[(&spec_a, &a), (&spec_b, &b)])?;
    let arm = |label, plan: &Plan, spec: ArmSpec| Arm {
        label,
        target: plan.target.clone(),
        settings: plan.settings.clone(),
        workloads: plan.workloads.clone(),
        switch: spec.switch,
    };
    let (a, b) = (arm(label_a, &plan, a), arm(label_b, &other, b));
    let precision = spec.precision.as_deref().map(|text| share("precision", text)).transpose()?;
    let pairs = spec.pairs.unwrap_or(if precision.is_some() { DEFAULT_MOST_PAIRS } else { DEFAULT_PAIRS });
    if !(1..=10_000).contains(&pairs) {
        return value(format!("{pairs} pairs must be between 1 and 10,000"));
    }
    let looks = if precision.is_some() { Looks::declare(pairs as usize, ERROR).pairs } else { vec![pairs as usize] };
    let margin = spec.equivalence.as_deref().map_or(Ok(DEFAULT_EQUIVALENCE), |text| share("equivalence", text))?;
    let seed = spec.seed.unwrap_or_else(drawn_seed);
    plan.arms = Some(Box::new(Arms { a, b, pairs, precision, looks, margin, seed }));
    Ok(plan)
}

/// Puts workloads at the client in both arms if one arm alone runs them inside its database and nobody gave the drivers: their
/// ratio would be that of round trips. Returns those that the arms cannot run in one place.
pub(crate) fn in_one_place(
    known: &Workloads,
    targets: [&str; 2],
    [of_a, of_b]: [&mut [PlannedWorkload]; 2],
) -> Result<Vec<SkippedWorkload>, PlanError> {
    let kinds = [kind_of(targets[0])?, kind_of(targets[1])?];
    // Without procedures it runs in loadline's process.
    let embedded = kinds.map(|kind| (kind.capabilities)().missing_drivers.iter().any(|(d, _)| *d == Driver::Database));
    let mut apart = Vec::new();
    for a in of_a {
        let Some(b) = of_b.iter_mut().find(|b| b.code == a.code) else { continue };
        if a.driver == b.driver || a.driver_given || b.driver_given || embedded != [false; 2] {
            continue;
        }
        let ((inside, kind), client) =
            if a.driver == Driver::Database { ((a, kinds[0]), b) } else { ((b, kinds[1]), a) };
        match known.find(&inside.code).ok().and_then(|workload| super::refusal(&workload, kind, Driver::Client)) {
            None => {
                inside.driver = Driver::Client;
                inside.driver_reason = format!("as in the other arm: {}", client.driver_reason);
            }
            Some(refused) => apart.push(SkippedWorkload {
                code: inside.code.clone(),
                reason: format!(
                    "one arm runs it at the client only ({}), the other inside the database only ({}): to compare them all the same, \
                     give --driver-a and --driver-b",
                    client.driver_reason, refused.reason
                ),
            }),
        }
    }
    Ok(apart)
}

/// Refuses workloads of which no window is like another at the same number of jobs.
pub(super) fn windows_at_jobs(plan: &Plan) -> Result<(), PlanError> {
    let known = workloads_of(plan)?;
    for w in &plan.workloads {
        let points = SweepPoints::of(&known, w);
        if let Some(swept) = points.parameter {
            return value(format!(
                "{0} is swept over '{1}', and windows are compared at one value: set it in a plan file (under [parameters.{0}]), \
                 or, of two arms, with --parameter-a {0}.{1}=N and the same for B",
                w.code, swept.name
            ));
        }
        if !points.over_jobs {
            return value(format!(
                "{} is one long test, and what is compared are windows: name other workloads",
                w.code
            ));
        }
    }
    Ok(())
}

/// A seed of this run alone. With the same order in every run, what happens at the same time in every run would look like a
/// difference.
pub(super) fn drawn_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_left(32)
}

fn no_way_back(given: ArmName) -> String {
    let (given, other) = if given == ArmName::A { ("a", "b") } else { ("b", "a") };
    format!(
        "--switch-{given} without --switch-{other}: nothing would bring the other arm back; give a command for both"
    )
}

/// Settings under one spelling of their names: case, and `-` or `_`, do not distinguish them.
fn normal_names(settings: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    settings.iter().map(|(name, value)| (name.to_ascii_lowercase().replace('-', "_"), value.clone())).collect()
}

/// The specification of an arm.
fn of_arm(base: &PlanSpec, arm: &ArmSpec) -> PlanSpec {
    let mut spec = base.clone();
    spec.target = arm.target.clone().or(spec.target);
    spec.driver = arm.driver.or(spec.driver);
    if !arm.setting.is_empty() {
        spec.setting.get_or_insert_default().extend(arm.setting.clone());
    }
    for (code, of) in &arm.parameters {
        let all = spec.parameters.get_or_insert_default();
        // Codes are compared without case.
        let known = all.keys().find(|known| known.eq_ignore_ascii_case(code)).cloned();
        all.entry(known.unwrap_or_else(|| code.clone())).or_default().extend(of.clone());
    }
    spec
}

/// What distinguishes the arms, in words; an error if nothing does.
fn labels(arms: &[(&PlanSpec, &ArmSpec); 2]) -> Result<[String; 2], PlanError> {
    let [(a, _), (b, _)] = arms;
    let mut names = [const { Vec::new() }; 2];
    let target = |spec: &PlanSpec| loadline_database::redact(spec.target.as_deref().unwrap_or(DEFAULT_TARGET));
    if !same_address(&target(a), &target(b)) {
        names.iter_mut().zip([a, b]).for_each(|(n, spec)| n.push(target(spec)));
    }
    let none = BTreeMap::new();
    let settings = [a, b].map(|spec| spec.setting.as_ref().unwrap_or(&none));
    for name in differing(settings[0], settings[1]) {
        for (n, of) in names.iter_mut().zip(settings) {
            n.push(of.get(name).map_or_else(|| format!("{name} as it is"), |value| format!("{name}={value}")));
        }
    }
    if a.driver != b.driver {
        let word =
            |spec: &PlanSpec| spec.driver.map_or_else(|| "preferred driver".to_owned(), |d| format!("{d} driver"));
        names.iter_mut().zip([a, b]).for_each(|(n, spec)| n.push(word(spec)));
    }
    if a.parameters != b.parameters {
        for (n, (_, arm)) in names.iter_mut().zip(arms) {
            let of = arm
                .parameters
                .iter()
                .flat_map(|(code, of)| of.iter().map(move |(name, v)| format!("{code}.{name}={v}")));
            let given: Vec<String> = of.collect();
            n.push(if given.is_empty() { "parameters as they are".to_owned() } else { given.join(", ") });
        }
    }
    let switches = arms.map(|(_, arm)| arm.switch.as_deref());
    let reads = |switch: Option<&str>| switch.is_some_and(|text| text.contains(ARM_VARIABLE));
    if switches[0] != switches[1] || reads(switches[0]) {
        for ((n, switch), arm) in names.iter_mut().zip(switches).zip(ArmName::ALL) {
            let with = if switches[0] == switches[1] { format!(" ({ARM_VARIABLE}={arm})") } else { String::new() };
            n.extend(switch.map(|text| shortened(text) + &with));
        }
    }
    if names.iter().all(Vec::is_empty) {
        return value(format!(
            "arms A and B are the same: let them differ in --setting-a and --setting-b, --target-…, --driver-…, --parameter-… or \
             --switch-… (one command for both must have {ARM_VARIABLE} in its text, which is A or B)"
        ));
    }
    let mut labels = ["", ""].map(str::to_owned);
    for (((label, named), (_, arm)), name) in labels.iter_mut().zip(names).zip(arms).zip(ArmName::ALL) {
        let given = arm.label.as_deref().map(str::trim);
        if given.is_some_and(|label| label.is_empty() || label.chars().any(char::is_control)) {
            return value(format!("the label of arm {name} must have a character, and no line break"));
        }
        *label = format!("{name}: {}", given.map_or_else(|| named.join(", "), str::to_owned));
    }
    Ok(labels)
}

/// The variable that tells a command of the user's which arm it brings about.
pub(crate) const ARM_VARIABLE: &str = "LOADLINE_ARM";
/// Most characters of a command in the name of an arm.
const MOST_OF_COMMAND: usize = 48;

/// The beginning of a command, on one line.
fn shortened(command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().collect();
    let line = words.join(" ");
    if line.chars().count() <= MOST_OF_COMMAND {
        return line;
    }
    line.chars().take(MOST_OF_COMMAND - 1).chain(['…']).collect()
}

/// Whether two addresses are the same, and their options as well: `1ms` is `1000us`.
fn same_address(a: &str, b: &str) -> bool {
    let options = |url: &str| {
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let value = |text: &str| match (parse_duration_s(text), parse_bytes(text)) {
            (Ok(s), _) => format!("{} ns", (s * 1e9).round()),
            (_, Ok(bytes)) => format!("{bytes} bytes"),
            _ => text.to_owned(),
        };
        let of =
            |pair: &str| pair.split_once('=').map_or((pair.to_owned(), None), |(k, v)| (k.to_owned(), Some(value(v))));
        (place.to_owned(), query.split('&').filter(|pair| !pair.is_empty()).map(of).collect::<BTreeMap<_, _>>())
    };
    options(a) == options(b)
}

/// Names of settings that two arms have with different values, or one of them alone.
pub(crate) fn differing<'a>(a: &'a BTreeMap<String, String>, b: &'a BTreeMap<String, String>) -> BTreeSet<&'a String> {
    a.keys().chain(b.keys()).filter(|name| a.get(*name) != b.get(*name)).collect()
}

/// The share that `text` gives for `what`.
fn share(what: &str, text: &str) -> Result<f64, PlanError> {
    parse_share(text).map_err(|e| PlanError::Value(format!("{what}: {e}")))
}

/// Whether both arms name the same target.
#[must_use]
pub fn same_target(arms: &Arms) -> bool {
    arms.a.target == arms.b.target
}

/// Whether the arms' databases are of one kind, so that the same rows are the same work.
#[must_use]
pub fn same_kind(arms: &Arms) -> bool {
    let scheme = |arm: &Arm| kind_of(&arm.target).map(|kind| kind.source_key).ok();
    scheme(&arms.a) == scheme(&arms.b)
}

/// Job counts of the plan.
#[must_use]
pub fn job_counts(plan: &Plan) -> &[u32] {
    match &plan.jobs {
        Jobs::List(list) => list,
        Jobs::Auto { .. } => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::make_plan;

    fn spec(a: ArmSpec, b: ArmSpec) -> PlanSpec {
        let (target, workload) = (Some("postgres-temp:".to_owned()), Some(vec!["LGWR-LAT25".to_owned()]));
        PlanSpec { target, workload, arm_a: Some(a), arm_b: Some(b), ..PlanSpec::default() }
    }

    fn set(name: &str, value: &str) -> ArmSpec {
        ArmSpec { setting: [(name.to_owned(), value.to_owned())].into(), ..ArmSpec::default() }
    }

    #[test]
    fn both_arms_run_a_workload_in_one_place_unless_told() {
        let drivers = |a: &str, b: &str, code: &str, given: Option<Driver>| {
            let [a, b] = [a, b].map(|url| ArmSpec { target: Some(url.to_owned()), ..ArmSpec::default() });
            let b = ArmSpec { driver: given, ..b };
            let spec = PlanSpec { workload: Some(vec![code.to_owned()]), ..spec(a, b) };
            let arms = make_plan(&spec).unwrap().arms.unwrap();
            [arms.a.workloads[0].driver, arms.b.workloads[0].driver]
        };
        let (database, client) = (Driver::Database, Driver::Client);
        let [postgres, mariadb] = ["postgres-temp:", "mariadb-temp:"];
        assert_eq!(drivers(postgres, mariadb, "LGWR-LAT1", None), [client; 2], "MariaDB cannot in its procedures");
        assert_eq!(drivers(mariadb, postgres, "TP-LIGHT", None), [client; 2]);
        assert_eq!(drivers(postgres, mariadb, "PLS-ADD", None), [database; 2]);
        assert_eq!(drivers(postgres, mariadb, "LGWR-LAT1", Some(client)), [database, client], "on purpose");
        assert_eq!(drivers(postgres, "sqlite:", "LGWR-LAT1", None), [database, client], "neither has a client");
    }

    #[test]
    fn arms_are_named_by_what_they_differ_in() {
        let labels = |a, b| {
            let arms = make_plan(&spec(a, b)).unwrap().arms.unwrap();
            [arms.a.label.clone(), arms.b.label.clone()]
        };
        assert_eq!(
            labels(set("wal_compression", "off"), set("wal_compression", "on")),
            ["A: wal_compression=off", "B: wal_compression=on"]
        );
        assert_eq!(labels(ArmSpec::default(), set("fsync", "off")), ["A: fsync as it is", "B: fsync=off"]);
        let url = "postgres://ann:tops3cret@host/db".to_owned();
        let other = ArmSpec { target: Some(url), ..ArmSpec::default() };
        assert_eq!(labels(ArmSpec::default(), other), ["A: postgres-temp:", "B: postgres://ann@host/db"]);
        let client = ArmSpec { driver: Some(Driver::Client), ..ArmSpec::default() };
        assert_eq!(labels(client, ArmSpec::default()), ["A: client driver", "B: preferred driver"]);
        let rows = BTreeMap::from([("lgwr-lat25".to_owned(), BTreeMap::from([("rows".to_owned(), 50)]))]);
        let more = ArmSpec { parameters: rows, ..ArmSpec::default() };
        let arms = make_plan(&spec(ArmSpec::default(), more)).unwrap().arms.unwrap();
        assert_eq!(arms.b.label, "B: lgwr-lat25.rows=50");
        let switch = |text: &str| ArmSpec { switch: Some(text.to_owned()), ..ArmSpec::default() };
        let one = "./mount.sh $LOADLINE_ARM";
        let both = [one, one].map(switch);
        let [a, b] = both;
        assert_eq!(labels(a, b), ["A", "B"].map(|arm| format!("{arm}: {one} (LOADLINE_ARM={arm})")));
        let long = "psql -qh /run -U postgres -c 'alter system set full_page_writes=off' -c 'select pg_reload_conf()'";
        let [a, b] = labels(switch(long), ArmSpec { label: Some("fpw".into()), ..switch(&format!("{long} ")) });
        assert!(a.ends_with('…') && a.chars().count() < 60 && b == "B: fpw", "{a}, {b}");
        assert_eq!(arms.b.workloads[0].parameters["rows"], 50);
        assert!(arms.a.workloads[0].parameters.is_empty());
    }

    #[test]
    fn what_is_common_holds_for_both_arms_and_is_no_difference() {
        let common = Some(BTreeMap::from([("work_mem".to_owned(), "8MB".to_owned())]));
        let plan = make_plan(&PlanSpec { setting: common, ..spec(set("a.x", "1"), set("a.x", "2")) }).unwrap();
        let arms = plan.arms.as_ref().unwrap();
        assert!([&arms.a, &arms.b].iter().all(|arm| arm.settings["work_mem"] == "8MB"));
        assert_eq!((plan.settings.clone(), job_counts(&plan)), (arms.a.settings.clone(), &[1][..]));
        assert_eq!((arms.pairs, arms.looks.as_slice()), (DEFAULT_PAIRS, &[DEFAULT_PAIRS as usize][..]));
        assert!(arms.a.label == "A: a.x=1" && same_target(arms) && same_kind(arms));
        let part = |jobs, rate| loadline_model::plan::PopulationSpec { jobs, rate, think: None };
        let mixed = PlanSpec {
            populations: Some(vec![part(2, None), part(1, Some(5.0))]),
            driver: Some(Driver::Client),
            ..spec(set("x", "1"), set("x", "2"))
        };
        assert_eq!(job_counts(&make_plan(&mixed).unwrap()), [3]);
        let precise =
            make_plan(&PlanSpec { precision: Some("2%".into()), ..spec(set("x", "1"), set("x", "2")) }).unwrap();
        let arms = precise.arms.unwrap();
        assert!(arms.looks.len() > 1 && arms.looks.last() == Some(&(DEFAULT_MOST_PAIRS as usize)), "{:?}", arms.looks);
    }

    #[test]
    fn arms_that_cannot_be_compared_are_refused() {
        let refused = |spec: PlanSpec, says: &str| {
            let e = make_plan(&spec).unwrap_err().to_string();
            assert!(e.contains(says), "'{e}' does not contain '{says}'");
        };
        let two = || spec(set("x", "1"), set("x", "2"));
        refused(spec(set("x", "1"), set("x", "1")), "are the same");
        refused(PlanSpec { arm_a: None, arm_b: None, pairs: Some(4), ..two() }, "are the same");
        refused(PlanSpec { repeat: Some(3), ..two() }, "--pairs");
        refused(PlanSpec { jobs: Some(JobsSpec::Word("auto".into())), ..two() }, "--jobs 1,4");
        refused(PlanSpec { pairs: Some(0), ..two() }, "0 pairs");
        refused(PlanSpec { equivalence: Some("0".into()), ..two() }, "equivalence: '0'");
        refused(PlanSpec { workload: Some(vec!["LGWR-SIZE".into()]), ..two() }, "LGWR-SIZE is one long test");
        refused(PlanSpec { workload: Some(vec!["DBL-11".into()]), ..two() }, "[parameters.DBL-11]");
        refused(PlanSpec { platform: Some("x".into()), ..two() }, "--platform");
        refused(PlanSpec { nodes: Some(vec![1, 2]), ..two() }, "--nodes");
        let rows = BTreeMap::from([("LGWR-LAT1".to_owned(), BTreeMap::from([("rows".to_owned(), 5)]))]);
        let other = ArmSpec { parameters: rows, ..ArmSpec::default() };
        refused(spec(other, ArmSpec::default()), "LGWR-LAT1 is given for arm A");
        let to = |url: &str| ArmSpec { target: Some(url.to_owned()), ..ArmSpec::default() };
        refused(spec(to("null:?pause=1ms"), to("null:?pause=1000us")), "are the same");
        let command = |text: &str| ArmSpec { switch: Some(text.into()), ..ArmSpec::default() };
        refused(spec(command("./x.sh"), command("./x.sh")), "LOADLINE_ARM in its text");
        refused(spec(ArmSpec { label: Some(" ".into()), ..set("x", "1") }, set("x", "2")), "label of arm A");
        refused(spec(set("Work-Mem", "1MB"), set("work_mem", "1MB")), "are the same");
        let switched = ArmSpec { switch: Some("true".into()), ..ArmSpec::default() };
        refused(spec(switched, ArmSpec::default()), "--switch-a without --switch-b");
    }
}
