//! The variants of `loadline ab`: each is a plan of its own, made from the common specification and what the variant changes.

use std::collections::{BTreeMap, BTreeSet};

use loadline_analyze::paired::verdict::declare;
use loadline_analyze::variants::ERROR;
use loadline_database::{kind_of, redact};
use loadline_model::Driver;
use loadline_model::plan::{Jobs, JobsSpec, Plan, PlannedWorkload, SkippedWorkload};
use loadline_model::variant::{Letter, Paired, Variant, VariantSpec};

use super::features::drawn_seed;
use super::sweep::SweepPoints;
use super::{DEFAULT_TARGET, PlanError, PlanSpec, add_parameters, one_plan, value, workloads_of};

/// Default number of pairs: one stalled window does not spoil their interval.
pub const DEFAULT_PAIRS: u32 = 16;
pub const DEFAULT_MOST_PAIRS: u32 = 200;
/// The variable that tells a command of the user's which arm it brings about.
pub(crate) const ARM_VARIABLE: &str = "LOADLINE_ARM";
/// Most characters of a command in the name of an arm.
const MOST_OF_COMMAND: usize = 48;

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
        driver: spec.driver.or(spec.via.is_some().then_some(Driver::Client)),
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
    arms.iter().filter_map(|arm| arm.via.as_ref()).try_for_each(|via| check_via(&plan, via))?;
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
    let default = if precision.is_some() { DEFAULT_MOST_PAIRS } else { DEFAULT_PAIRS };
    let pairs = spec.pairs()?.unwrap_or(if scans { 1 } else { default });
    if scans && pairs > 1 {
        return value(format!("--pairs {pairs} does not apply to scans, of which one pair is compared: leave it out"));
    }
    let looks = if precision.is_some() { declare(pairs as usize, ERROR) } else { vec![pairs as usize] };
    let margin = spec.equivalence()?;
    let labels = labels(&specs, &arms)?;
    let variant = |((plan, arm), label): ((Plan, VariantSpec), String)| Variant {
        label,
        target: plan.target,
        settings: plan.settings,
        workloads: plan.workloads,
        switch: arm.switch,
        via: arm.via.as_deref().map(redact),
        level: None,
    };
    let variants = plans.into_iter().zip(arms).zip(labels).map(variant).collect();
    let seed = spec.seed.unwrap_or_else(drawn_seed);
    plan.paired = Some(Box::new(Paired { variants, pairs, precision, looks, margin, seed, links: None }));
    Ok(plan)
}

/// The variants of `spec`, two at least.
fn given(spec: &PlanSpec) -> Result<Vec<VariantSpec>, PlanError> {
    let mut arms = spec.variant.clone().unwrap_or_default();
    let vias = || spec.via.iter().flatten();
    arms.resize(arms.len().max(2).max(1 + vias().count()), VariantSpec::default());
    arms.iter_mut().skip(1).zip(vias()).for_each(|(arm, via)| arm.via = Some(via.clone()));
    if let Some(n) = arms.iter().position(|arm| spec.via.is_some() && arm.driver == Some(Driver::Database)) {
        let arm = Letter::nth(n);
        return value(format!("arm {arm} has the database driver, of which no transaction goes through --via"));
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

/// Refuses a proxy of another kind than the target of `plan`.
fn check_via(plan: &Plan, via: &str) -> Result<(), PlanError> {
    let (kind, proxy) = (kind_of(&plan.target)?, kind_of(via)?);
    proxy.check_url(via)?;
    let in_process = kind.capabilities().missing_drivers.iter().any(|(driver, _)| *driver == Driver::Database);
    let (shown, target, product) = (redact(via), &plan.target, &kind.product);
    if in_process || kind.no_sessions.is_some() {
        return value(format!("--via does not apply to {target}: its jobs need no connection to a server"));
    }
    if proxy.source_key != kind.source_key || proxy.is_temporary(via) {
        let url = format!("give the URL at which the proxy or pooler takes sessions of {product}");
        return value(format!("--via {shown} is no proxy of {target}: {url}"));
    }
    if shown == *target {
        return value(format!("--via {target} is the target itself: give the URL of the proxy or pooler"));
    }
    Ok(())
}

/// Keeps the workloads that all `plans`, one of each variant, can run in one place. The first plan says which others are left out.
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
    if kinds.iter().any(|kind| kind.capabilities().missing_drivers.iter().any(|(d, _)| *d == Driver::Database)) {
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
            known.find(&code).ok().and_then(|workload| super::refusal(&workload, *kind, Driver::Client))
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
        add_parameters(spec.parameters.get_or_insert_default(), code, of.clone());
    }
    spec
}

/// Names of settings that do not have the same value in all of `settings`.
pub(crate) fn differing<'a>(settings: impl Iterator<Item = &'a BTreeMap<String, String>>) -> BTreeSet<&'a String> {
    let all: Vec<_> = settings.collect();
    let is_same = |name: &&String| all.windows(2).all(|pair| pair[0].get(*name) == pair[1].get(*name));
    all.iter().flat_map(|of| of.keys()).filter(|name| !is_same(name)).collect()
}

/// Whether the databases of two variants are of one kind, so that the same rows are the same work.
pub(crate) fn same_kind(plan: &Plan, [a, b]: [&Variant; 2]) -> bool {
    let [a, b] = [a, b].map(|variant| kind_of(plan.target_of(variant)).map(|kind| &kind.source_key).ok());
    a == b
}

/// Distinction of the variants, in words; an error if one is the same as another.
fn labels(specs: &[PlanSpec], arms: &[VariantSpec]) -> Result<Vec<String>, PlanError> {
    let target = |n: usize| redact(specs[n].target.as_deref().unwrap_or(DEFAULT_TARGET));
    let none = BTreeMap::new();
    let settings: Vec<_> = specs.iter().map(|spec| spec.setting.as_ref().unwrap_or(&none)).collect();
    let switch = |n: usize| arms[n].switch.as_deref();
    let way = |n: usize| arms[n].via.as_deref().map(redact);
    let reads = |n: usize| switch(n).is_some_and(|text| text.contains(ARM_VARIABLE));
    let is_same: [&dyn Fn(usize, usize) -> bool; 6] = [
        &|m, n| target(m) == target(n),
        &|m, n| settings[m] == settings[n],
        &|m, n| specs[m].driver == specs[n].driver,
        &|m, n| specs[m].parameters == specs[n].parameters,
        &|m, n| switch(m) == switch(n) && !reads(n),
        &|m, n| way(m) == way(n),
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
            named.push(way(n).map_or_else(|| "direct".to_owned(), |via| format!("through {via}")));
        }
        let given = arm.label.as_deref().map(str::trim);
        if given.is_some_and(|label| label.is_empty() || label.chars().any(char::is_control)) {
            return value(format!("the label of arm {letter} must have a character, and no line break"));
        }
        Ok(format!("{letter}: {}", given.map_or_else(|| named.join(", "), str::to_owned)))
    };
    arms.iter().enumerate().map(label).collect()
}

/// The beginning of a command, on one line.
fn shortened(command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().collect();
    let line = words.join(" ");
    if line.chars().count() <= MOST_OF_COMMAND {
        return line;
    }
    line.chars().take(MOST_OF_COMMAND - 1).chain(['…']).collect()
}
