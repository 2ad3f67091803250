//! How fast the machine itself was in two runs: by the limits measured beside their tests, and by the probes before them.

use loadline_analyze::stats::{Ratio, ratio_in_strata};
use loadline_model::format::bytes;
use loadline_model::{TestLimit, TestRecord};
use minijinja::context;

use crate::platform_run::PlatformRun;
use crate::templates::prose;
use crate::words::{grouped, percent, ratio};

/// Differences below this share are not worth a word if nothing tells how sure they are.
const VARIES: f64 = 0.1;

/// How fast the machine was in B against A, or that it is unknown.
pub(crate) fn sentences(a: &PlatformRun<'_>, b: &PlatformRun<'_>) -> Vec<String> {
    let found: Vec<String> = limits(a, b).into_iter().chain(probes(a, b)).collect();
    if !found.is_empty() {
        return found;
    }
    vec!["How fast the machine itself was then is unknown: a run measures that unless it has --no-probe.".to_owned()]
}

/// The tests of one place, and the name of their limit.
fn place(test: &TestRecord) -> Option<(&str, impl PartialEq)> {
    let limit = test.limit().filter(|limit| limit.tps > 0.0)?;
    Some((limit.name.as_str(), (&test.workload, test.jobs, test.driver, &test.parameters)))
}

/// A sentence for each kind of limit that was measured beside the same tests of both.
fn limits(a: &PlatformRun<'_>, b: &PlatformRun<'_>) -> Vec<String> {
    let [a, b] = [a, b].map(|side| &side.run.records);
    let mut names: Vec<&str> = a.iter().filter_map(|r| Some(place(r)?.0)).collect();
    names.sort_unstable();
    names.dedup();
    let sentence = |name: &str| {
        let seen = grouped(a.iter().filter(|r| place(r).is_some_and(|(of, _)| of == name)), |r| place(r));
        let of = |tests: &[TestRecord], at: &TestRecord| -> Vec<f64> {
            let limits: Vec<&TestLimit> =
                tests.iter().filter(|r| place(r) == place(at)).filter_map(|r| r.limit()).collect();
            match limits.as_slice() {
                // It was measured before and after the test.
                [one] if one.samples.iter().all(|tps| *tps > 0.0) && one.samples.len() > 1 => one.samples.clone(),
                all => all.iter().map(|limit| limit.tps).collect(),
            }
        };
        let strata: Vec<(Vec<f64>, Vec<f64>)> = seen.iter().map(|(_, at)| (of(a, at[0]), of(b, at[0]))).collect();
        Some(said(name, &ratio_in_strata(&strata)?))
    };
    names.into_iter().filter_map(sentence).collect()
}

fn said(name: &str, found: &Ratio) -> String {
    let value = found.value;
    let context = context! {
        name,
        differs => found.interval.map_or((value - 1.0).abs() >= VARIES, |i| !i.contains(1.0)),
        slower => value < 1.0,
        by => percent((value - 1.0).abs()),
        measured => [found.n_denominator, found.n_numerator],
        ratio => ratio(value),
        interval => found.interval.map(|i| [ratio(i.low), ratio(i.high)]),
    };
    prose("machine-itself", context)
}

/// Probes of the storage before both runs.
fn probes(a: &PlatformRun<'_>, b: &PlatformRun<'_>) -> Option<String> {
    let (a, b) = (&a.run.manifest.probes, &b.run.manifest.probes);
    let roles = a.keys().filter_map(|role| {
        let (x, y) = (a.get(role)?, b.get(role)?);
        if (x.engine, x.direct, x.file_bytes) != (y.engine, y.direct, y.file_bytes) {
            return Some(context! { role });
        }
        let rates = x.rows.iter().filter_map(|row| {
            let then = y.row(row.operation, row.size_bytes, row.depth)?.per_s / row.per_s;
            let what = format!("{}, {}", row.operation.title().to_lowercase(), bytes(row.size_bytes as f64));
            (then.is_finite() && then > 0.0).then_some((then, what))
        });
        let mut rates: Vec<(f64, String)> = rates.collect();
        rates.sort_by(|x, y| x.0.total_cmp(&y.0));
        let [low, .., high] = rates.as_slice() else { return None };
        Some(context! { role, low, high, middle => rates[rates.len() / 2].0, count => rates.len() })
    });
    let roles: Vec<_> = roles.collect();
    (!roles.is_empty()).then(|| prose("probes", context! { roles }))
}
