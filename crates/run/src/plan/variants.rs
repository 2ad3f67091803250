//! The variants of `loadline ab`: each is a plan of its own, made from the common specification and what the variant changes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use loadline_analyze::paired::looks::Looks;
use loadline_analyze::variants::ERROR;
use loadline_database::{kind_of, redact};
use loadline_model::format::{parse_bytes, parse_duration_s};
use loadline_model::plan::{Jobs, JobsSpec, Plan, PlannedWorkload, SkippedWorkload};
use loadline_model::variant::{Letter, Paired, Variant, VariantSpec};
use loadline_model::{Capability, Driver};
use loadline_workload::Instrument;

use super::sweep::SweepPoints;
use super::{DEFAULT_TARGET, PlanError, PlanSpec, one_plan, value, workloads_of};

/// Default number of pairs: one stalled window does not spoil their interval.
pub const DEFAULT_PAIRS: u32 = 16;
/// Default of the most pairs, with a precision.
pub const DEFAULT_MOST_PAIRS: u32 = 200;

pub(super) fn are_in(spec: &PlanSpec) -> bool {
    let PlanSpec { variant, via, pairs, precision, equivalence, .. } = spec;
    variant.is_some() || via.is_some() || pairs.is_some() || precision.is_some() || equivalence.is_some()
}

/// The plan of `spec` with its variants; the first one's target, settings and workloads are also those of the plan.
pub(super) fn plan(spec: &PlanSpec) -> Result<Plan, PlanError> {
    let arms = given(spec)?;
    let base = PlanSpec {
        jobs: spec.jobs.clone().or_else(|| spec.populations.is_none().then_some(JobsSpec::One(1))),
        setting: spec.setting.as_ref().map(normal_names),
        variant: None,
        via: None,
        driver: spec.driver.or(spec.via.is_some().then_some(Driver::Client)),
        pairs: None,
        precision: None,
        equivalence: None,
        ..spec.clone()
    };
    let specs: Vec<PlanSpec> = arms.iter().map(|arm| spec_of(&base, arm)).collect();
    let mut plans = specs.iter().map(one_plan).collect::<Result<Vec<Plan>, PlanError>>()?;
    let targets: BTreeSet<&str> = plans.iter().map(|plan| plan.target.as_str()).collect();
    // Those that share one would begin on fresh tables and a server that has just changed, and the others not.
    if targets.len() > 1 && targets.len() < plans.len() {
        return value(format!(
            "{} arms are on {} targets: give all of them one target, or each its own",
            plans.len(),
            targets.len()
        ));
    }
    keep_common(&mut plans)?;
    let Some(mut plan) = plans.first().cloned() else { return one_plan(&base) };
    let vias = vias(spec, &plan, arms.len())?;
    let scans = scans_alone(&plan)?;
    if scans {
        // A scan has one job, and its curve an interval of its own.
        plan.jobs = Jobs::List(vec![1]);
    } else {
        windows_at_jobs(&plan)?;
    }
    for (arm, letter) in arms.iter().zip((0..).map(Letter::nth)) {
        let measured = |code: &&String| plan.workloads.iter().any(|w| w.code.eq_ignore_ascii_case(code));
        if let Some(code) = arm.parameters.keys().find(|code| !measured(code)) {
            return value(format!(
                "a parameter of {code} is given for arm {letter}, but {code} is not measured: name it in --workload"
            ));
        }
    }
    let precision = spec.precision()?;
    if scans && precision.is_some() {
        return value(
            "--precision does not apply to scans, which are compared by their curves: leave it out".to_owned(),
        );
    }
    let default = if precision.is_some() { DEFAULT_MOST_PAIRS } else { DEFAULT_PAIRS };
    let pairs = spec.pairs()?.unwrap_or(if scans { 1 } else { default });
    if scans && pairs > 1 {
        return value(format!("--pairs {pairs} does not apply to scans, of which one pair is compared: leave it out"));
    }
    let looks = if precision.is_some() { Looks::declare(pairs as usize, ERROR).pairs } else { vec![pairs as usize] };
    let margin = spec.equivalence()?;
    let labels = labels(&specs, &arms, &vias)?;
    let variant = |(((plan, arm), label), via): (((Plan, VariantSpec), String), Option<String>)| Variant {
        label,
        target: plan.target,
        settings: plan.settings,
        workloads: plan.workloads,
        switch: arm.switch,
        via,
        level: None,
    };
    let variants = plans.into_iter().zip(arms).zip(labels).zip(vias).map(variant).collect();
    let seed = spec.seed.unwrap_or_else(drawn_seed);
    plan.paired = Some(Box::new(Paired { variants, pairs, precision, looks, margin, seed, links: None }));
    Ok(plan)
}

/// The variants of `spec`, two at least.
fn given(spec: &PlanSpec) -> Result<Vec<VariantSpec>, PlanError> {
    let mut arms = spec.variant.clone().unwrap_or_default();
    arms.resize(arms.len().max(2).max(1 + spec.via.iter().flatten().count()), VariantSpec::default());
    if let Some(n) = arms.iter().position(|arm| spec.via.is_some() && arm.driver == Some(Driver::Database)) {
        return value(format!(
            "arm {} has the database driver, of which no transaction goes through --via",
            Letter::nth(n)
        ));
    }
    if arms.len() > Letter::MOST {
        return value(format!("{} arms are given: {} can be compared in one run", arms.len(), Letter::MOST));
    }
    for arm in &mut arms {
        arm.setting = normal_names(&arm.setting);
    }
    let letter = |has: bool| arms.iter().position(|arm| arm.switch.is_some() == has).map(Letter::nth);
    if let Some((with, without)) = letter(true).zip(letter(false)) {
        let [with, without] = [with, without].map(|letter| letter.to_string().to_lowercase());
        return value(format!(
            "--switch-{with} without --switch-{without}: nothing would bring the other arm back; give a command for each"
        ));
    }
    Ok(arms)
}

/// The proxies of `arms` arms, without passwords: A has none.
fn vias(spec: &PlanSpec, plan: &Plan, arms: usize) -> Result<Vec<Option<String>>, PlanError> {
    let given = spec.via.iter().flatten();
    given.clone().try_for_each(|via| check_via(plan, via))?;
    let shown = given.map(|via| Some(redact(via))).chain(std::iter::repeat(None));
    Ok(std::iter::once(None).chain(shown).take(arms).collect())
}

/// Refuses a proxy of another kind than the target of `plan`, and workloads whose sessions need settings that a pooler would lose.
fn check_via(plan: &Plan, via: &str) -> Result<(), PlanError> {
    let (kind, proxy) = (kind_of(&plan.target)?, kind_of(via)?);
    (proxy.check_url)(via)?;
    let in_process = (kind.capabilities)().missing_drivers.iter().any(|(driver, _)| *driver == Driver::Database);
    if in_process || kind.no_sessions.is_some() {
        return value(format!("--via does not apply to {}: its jobs need no connection to a server", plan.target));
    }
    if proxy.source_key != kind.source_key || (proxy.is_temporary)(via) {
        return value(format!(
            "--via {} is no proxy of {}: give the URL at which the proxy or pooler takes sessions of {}",
            redact(via),
            plan.target,
            kind.product
        ));
    }
    if redact(via) == plan.target {
        return value(format!("--via {} is the target itself: give the URL of the proxy or pooler", plan.target));
    }
    let known = workloads_of(plan)?;
    for workload in plan.workloads.iter().filter_map(|w| known.find(&w.code).ok()) {
        let needs = [Capability::CommitNowait, Capability::ParallelQuery].iter().any(|n| workload.needs.contains(n));
        let reads = workload.scripts.as_ref().is_some_and(|scripts| !scripts.allow_writes);
        if needs || reads || workload.has(Instrument::Device) {
            return value(format!(
                "{} sets what its sessions may do, and a pooler does not keep that: name other workloads{}",
                workload.code,
                if reads { ", or --allow-writes" } else { "" }
            ));
        }
    }
    Ok(())
}

/// Keeps the workloads that all `plans`, one of each variant, can run in one place. The first plan says which are left out: a workload
/// of one variant alone shows nothing.
pub(crate) fn keep_common(plans: &mut [Plan]) -> Result<(), PlanError> {
    let apart = in_one_place(plans)?;
    let Some((first, others)) = plans.split_first_mut() else { return Ok(()) };
    for skipped in others.iter().flat_map(|plan| &plan.skipped).chain(&apart) {
        if first.has(&skipped.code) && !first.skipped.contains(skipped) {
            first.skipped.push(skipped.clone());
        }
    }
    let is_common = |code: &str| others.iter().all(|plan| plan.has(code)) && apart.iter().all(|s| s.code != code);
    first.workloads.retain(|w| is_common(&w.code));
    others.iter_mut().for_each(|plan| plan.workloads.retain(|w| first.has(&w.code)));
    if first.workloads.is_empty() {
        let reasons = super::reasons(&first.skipped);
        return Err(PlanError::Nothing { target: first.target.clone(), reasons });
    }
    Ok(())
}

/// Puts workloads at the client in all variants if only some run them inside their database and nobody gave a driver: their ratio
/// would be that of round trips. Returns those that the variants cannot run in one place.
fn in_one_place(plans: &mut [Plan]) -> Result<Vec<SkippedWorkload>, PlanError> {
    let Some(known) = plans.first().map(workloads_of).transpose()? else { return Ok(Vec::new()) };
    let kinds = plans.iter().map(|plan| kind_of(&plan.target)).collect::<Result<Vec<_>, _>>()?;
    let mut apart = Vec::new();
    // Without procedures it runs in loadline's process.
    if kinds.iter().any(|kind| (kind.capabilities)().missing_drivers.iter().any(|(d, _)| *d == Driver::Database)) {
        return Ok(apart);
    }
    let codes: Vec<String> = plans[0].workloads.iter().map(|w| w.code.clone()).collect();
    for code in codes {
        let mut of = Vec::new();
        for (plan, kind) in plans.iter_mut().zip(&kinds) {
            of.extend(plan.workloads.iter_mut().find(|w| w.code == code).map(|w| (w, *kind)));
        }
        let inside = |w: &PlannedWorkload| w.driver == Driver::Database;
        let Some(why) = of.iter().find(|(w, _)| !inside(w)).map(|(w, _)| w.driver_reason.clone()) else { continue };
        if of.len() < kinds.len() || of.iter().any(|(w, _)| w.driver_given) {
            continue;
        }
        let refused = of.iter().filter(|(w, _)| inside(w)).find_map(|(_, kind)| {
            known.find(&code).ok().and_then(|workload| super::refusal(&workload, kind, Driver::Client))
        });
        if let Some(refused) = refused {
            let reason = format!(
                "one arm runs it at the client only ({why}), another inside the database only ({}): to compare them all the same, give \
                 --driver-a and --driver-b",
                refused.reason
            );
            apart.push(SkippedWorkload { code, reason });
            continue;
        }
        for (workload, _) in of.into_iter().filter(|(w, _)| inside(w)) {
            workload.driver = Driver::Client;
            workload.driver_reason = format!("as in the other arm: {why}");
        }
    }
    Ok(apart)
}

/// Whether all workloads scan commit time over redo; refuses a plan of such and others, which need other numbers of pairs.
fn scans_alone(plan: &Plan) -> Result<bool, PlanError> {
    let known = workloads_of(plan)?;
    let is_scan = |code: &str| known.find(code).is_ok_and(|workload| workload.scan.is_some());
    let scan = plan.workloads.iter().find(|w| is_scan(&w.code));
    match scan.zip(plan.workloads.iter().find(|w| !is_scan(&w.code))) {
        Some((scan, other)) => value(format!(
            "{} is one long test that is compared by its curve, and {} in windows: compare them in two runs",
            scan.code, other.code
        )),
        None => Ok(scan.is_some()),
    }
}

/// Refuses workloads of which no window is like another at the same number of jobs.
pub(super) fn windows_at_jobs(plan: &Plan) -> Result<(), PlanError> {
    let known = workloads_of(plan)?;
    for w in &plan.workloads {
        let points = SweepPoints::new(&known, w);
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

/// Settings under one spelling of their names: case, and `-` or `_`, do not distinguish them.
fn normal_names(settings: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    settings.iter().map(|(name, value)| (name.to_ascii_lowercase().replace('-', "_"), value.clone())).collect()
}

fn spec_of(base: &PlanSpec, arm: &VariantSpec) -> PlanSpec {
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

/// Distinction of the variants, in words; an error if one is the same as another.
fn labels(specs: &[PlanSpec], arms: &[VariantSpec], vias: &[Option<String>]) -> Result<Vec<String>, PlanError> {
    let target = |n: usize| redact(specs[n].target.as_deref().unwrap_or(DEFAULT_TARGET));
    let none = BTreeMap::new();
    let settings: Vec<_> = specs.iter().map(|spec| spec.setting.as_ref().unwrap_or(&none)).collect();
    let switch = |n: usize| arms[n].switch.as_deref();
    let reads = |n: usize| switch(n).is_some_and(|text| text.contains(ARM_VARIABLE));
    let is_same: [&dyn Fn(usize, usize) -> bool; 6] = [
        &|m, n| same_address(&target(m), &target(n)),
        &|m, n| settings[m] == settings[n],
        &|m, n| specs[m].driver == specs[n].driver,
        &|m, n| specs[m].parameters == specs[n].parameters,
        &|m, n| switch(m) == switch(n) && !reads(n),
        &|m, n| vias[m] == vias[n],
    ];
    let all = 0..specs.len();
    for (m, n) in all.clone().flat_map(|n| (0..n).map(move |m| (m, n))) {
        if is_same.iter().all(|is_same| is_same(m, n)) {
            return value(format!(
                "arms {} and {} are the same: let them differ in --setting-a and --setting-b, --target-…, --driver-…, --parameter-…, --via or \
                 --switch-… (one command for both must have {ARM_VARIABLE} in its text, which is A or B)",
                Letter::nth(m),
                Letter::nth(n)
            ));
        }
    }
    let [targets, _, drivers, parameters, switches, ways] = is_same.map(|is_same| all.clone().any(|n| !is_same(0, n)));
    let names = differing(settings.iter().copied());
    let label = |(n, arm): (usize, &VariantSpec)| {
        let letter = Letter::nth(n);
        let mut named: Vec<String> = targets.then(|| target(n)).into_iter().collect();
        named.extend(names.iter().map(|name| match settings[n].get(*name) {
            Some(value) => format!("{name}={value}"),
            None => format!("{name} as it is"),
        }));
        if drivers {
            named.push(specs[n].driver.map_or_else(|| "preferred driver".to_owned(), |d| format!("{d} driver")));
        }
        if parameters {
            let all =
                arm.parameters.iter().flat_map(|(code, of)| of.iter().map(move |(k, v)| format!("{code}.{k}={v}")));
            let given = all.collect::<Vec<_>>().join(", ");
            named.push(if given.is_empty() { "parameters as they are".to_owned() } else { given });
        }
        if let Some(text) = switch(n)
            && switches
        {
            let is_shared = all.clone().any(|other| other != n && switch(other) == switch(n));
            let with = if is_shared { format!(" ({ARM_VARIABLE}={letter})") } else { String::new() };
            named.push(shortened(text) + &with);
        }
        if ways {
            named.push(vias[n].as_ref().map_or_else(|| "direct".to_owned(), |via| format!("through {via}")));
        }
        let given = arm.label.as_deref().map(str::trim);
        if given.is_some_and(|label| label.is_empty() || label.chars().any(char::is_control)) {
            return value(format!("the label of arm {letter} must have a character, and no line break"));
        }
        Ok(format!("{letter}: {}", given.map_or_else(|| named.join(", "), str::to_owned)))
    };
    arms.iter().enumerate().map(label).collect()
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

/// Names of settings that do not have the same value in all of `settings`.
pub(crate) fn differing<'a>(settings: impl Iterator<Item = &'a BTreeMap<String, String>>) -> BTreeSet<&'a String> {
    let all: Vec<_> = settings.collect();
    let is_same = |name: &&String| all.windows(2).all(|pair| pair[0].get(*name) == pair[1].get(*name));
    all.iter().flat_map(|of| of.keys()).filter(|name| !is_same(name)).collect()
}

/// Whether the databases of two variants are of one kind, so that the same rows are the same work.
pub(crate) fn same_kind(plan: &Plan, [a, b]: [&Variant; 2]) -> bool {
    let [a, b] = [a, b].map(|variant| kind_of(plan.target_of(variant)).map(|kind| kind.source_key).ok());
    a == b
}

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

    fn spec(a: VariantSpec, b: VariantSpec) -> PlanSpec {
        let (target, workload) = (Some("postgres-temp:".to_owned()), Some(vec!["LGWR-LAT25".to_owned()]));
        PlanSpec { target, workload, variant: Some(vec![a, b]), ..PlanSpec::default() }
    }

    fn variants(spec: &PlanSpec) -> Vec<Variant> {
        make_plan(spec).unwrap().paired.unwrap().variants
    }

    fn labels(variant: Vec<VariantSpec>) -> Vec<String> {
        let spec = spec(VariantSpec::default(), VariantSpec::default());
        variants(&PlanSpec { variant: Some(variant), ..spec }).into_iter().map(|variant| variant.label).collect()
    }

    fn set(name: &str, value: &str) -> VariantSpec {
        VariantSpec { setting: [(name.to_owned(), value.to_owned())].into(), ..VariantSpec::default() }
    }

    #[test]
    fn both_arms_run_a_workload_in_one_place_unless_told() {
        let drivers = |a: &str, b: &str, code: &str, given: Option<Driver>| {
            let [a, b] = [a, b].map(|url| VariantSpec { target: Some(url.to_owned()), ..VariantSpec::default() });
            let b = VariantSpec { driver: given, ..b };
            let spec = PlanSpec { workload: Some(vec![code.to_owned()]), ..spec(a, b) };
            variants(&spec).iter().map(|variant| variant.workloads[0].driver).collect::<Vec<_>>()
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
    fn variants_are_named_by_what_they_differ_in() {
        let default = VariantSpec::default;
        let client = || VariantSpec { driver: Some(Driver::Client), ..default() };
        let other = VariantSpec { target: Some("postgres://ann:tops3cret@host/db".to_owned()), ..default() };
        let switch = |text: &str| VariantSpec { switch: Some(text.to_owned()), ..default() };
        let one = "./mount.sh $LOADLINE_ARM";
        let switched = ["A", "B"].map(|arm| format!("{arm}: {one} (LOADLINE_ARM={arm})"));
        let three = vec![set("x", "1"), set("x", "2"), VariantSpec { setting: set("x", "1").setting, ..client() }];
        for (variants, said) in [
            (
                vec![set("wal_compression", "off"), set("wal_compression", "on")],
                ["A: wal_compression=off", "B: wal_compression=on"].as_slice(),
            ),
            (vec![default(), set("fsync", "off")], &["A: fsync as it is", "B: fsync=off"]),
            (vec![default(), other], &["A: postgres-temp:", "B: postgres://ann@host/db"]),
            (vec![client(), default()], &["A: client driver", "B: preferred driver"]),
            (vec![switch(one), switch(one)], &switched.each_ref().map(String::as_str)),
            (three, &["A: x=1, preferred driver", "B: x=2, preferred driver", "C: x=1, client driver"]),
        ] {
            assert_eq!(labels(variants), said);
        }
        let long = "psql -qh /run -U postgres -c 'alter system set full_page_writes=off' -c 'select pg_reload_conf()'";
        let labelled = VariantSpec { label: Some("fpw".into()), ..switch(&format!("{long} ")) };
        let long = labels(vec![switch(long), labelled]);
        assert!(long[0].ends_with('…') && long[0].chars().count() < 60 && long[1] == "B: fpw", "{long:?}");
        let rows = BTreeMap::from([("lgwr-lat25".to_owned(), BTreeMap::from([("rows".to_owned(), 50)]))]);
        let variants = variants(&spec(default(), VariantSpec { parameters: rows, ..default() }));
        assert_eq!(variants[1].label, "B: lgwr-lat25.rows=50");
        assert_eq!(variants[1].workloads[0].parameters["rows"], 50);
        assert!(variants[0].workloads[0].parameters.is_empty());
    }

    #[test]
    fn what_is_common_holds_for_both_arms_and_is_no_difference() {
        let common = Some(BTreeMap::from([("work_mem".to_owned(), "8MB".to_owned())]));
        let plan = make_plan(&PlanSpec { setting: common, ..spec(set("a.x", "1"), set("a.x", "2")) }).unwrap();
        let arms = plan.paired.as_ref().unwrap();
        assert!(arms.variants.iter().all(|arm| arm.settings["work_mem"] == "8MB"));
        assert_eq!((plan.settings.clone(), job_counts(&plan)), (arms.variants[0].settings.clone(), &[1][..]));
        assert_eq!((arms.pairs, arms.looks.as_slice()), (DEFAULT_PAIRS, &[DEFAULT_PAIRS as usize][..]));
        assert!(arms.variants[0].label == "A: a.x=1" && same_kind(&plan, [&arms.variants[0], &arms.variants[1]]));
        let part = |jobs, rate| loadline_model::plan::PopulationSpec { jobs, rate, think: None };
        let mixed = PlanSpec {
            populations: Some(vec![part(2, None), part(1, Some(5.0))]),
            driver: Some(Driver::Client),
            ..spec(set("x", "1"), set("x", "2"))
        };
        assert_eq!(job_counts(&make_plan(&mixed).unwrap()), [3]);
        let precision = Some(loadline_model::plan::ShareSpec::Share(0.02));
        let precise = make_plan(&PlanSpec { precision, ..spec(set("x", "1"), set("x", "2")) }).unwrap();
        let arms = precise.paired.unwrap();
        assert!(arms.looks.len() > 1 && arms.looks.last() == Some(&(DEFAULT_MOST_PAIRS as usize)), "{:?}", arms.looks);
    }

    #[test]
    fn a_scan_is_measured_once_in_each() {
        let scan = PlanSpec { workload: Some(vec!["LGWR-SIZE".into()]), ..spec(set("x", "1"), set("x", "2")) };
        let plan = make_plan(&scan).unwrap();
        assert_eq!((plan.paired.as_ref().unwrap().pairs, job_counts(&plan)), (1, &[1][..]));
    }
}
