//! Reports that leave the house: what tells whose platform it is, or which product, is replaced in the runs themselves, before
//! anything is rendered. So it is in no format.
//!
//! Every text of manifest and records is walked as JSON, keys of maps included, so that a new field cannot be forgotten.
//! `names` finds what is to be hidden, `text` replaces it in a text, `product` hides the product.

mod names;
mod product;
mod scripts;
mod text;

use loadline_model::{Manifest, TestRecord};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{ReportError, RunData};
use names::Names;

/// Replaces names of hosts, users and databases, addresses, paths, URLs, identifiers of clouds, and settings that hold them.
/// The same name has the same replacement in all `runs`.
///
/// # Errors
/// A run would not be readable any more with a name replaced.
pub fn redact(runs: &mut [RunData]) -> Result<(), ReportError> {
    let mut names = Names::default();
    for run in runs.iter() {
        names.collect(&run.manifest, &run.records);
    }
    for run in runs {
        names.version.clone_from(&run.manifest.target.version);
        run.manifest.command = names::command(&run.manifest.command);
        names::hide_settings(&mut run.manifest, &mut run.records);
        names::hide_files(&mut run.manifest, &mut run.records);
        names.hide_scripts(run);
        rewrite(run, &mut |text| names.hide(text))?;
    }
    Ok(())
}

/// Replaces products by letters and leaves out what tells them, after [`redact`].
///
/// # Errors
/// A run of arms or levels, whose settings and levels are a product's own words, or an imported one, whose tool is known by the product
/// that it tests; otherwise as [`redact`].
pub fn anonymise(runs: &mut [RunData]) -> Result<(), ReportError> {
    if let Some(run) = runs.iter().find(|run| run.records.iter().any(|r| r.imported.is_some())) {
        return Err(ReportError::NotAnonymousImport(run.manifest.run.clone()));
    }
    redact(runs)?;
    let products: Vec<product::Product> = product::of(runs);
    for (run, product) in runs.iter_mut().zip(&products) {
        if run.manifest.plan.arms.is_some() || run.manifest.plan.levels.is_some() {
            return Err(ReportError::NotAnonymous(run.manifest.run.clone()));
        }
        product::leave_out(run, product);
        rewrite(run, &mut |text| product::without(text, &products))?;
    }
    Ok(())
}

/// Keys whose values are loadline's own words, which reports read.
const OWN: &[&str] = &[
    "started_at", "loadline_version", "state", "severity", "outcome", "driver", "group", "kpis", "swept",
    "fingerprint", "credentials", "arm",
];

/// Applies `change` to every text of `run`.
fn rewrite(run: &mut RunData, change: &mut dyn FnMut(&str) -> String) -> Result<(), ReportError> {
    run.manifest = rewritten::<Manifest>(&run.manifest, change)?;
    run.records = run.records.iter().map(|r| rewritten::<TestRecord>(r, change)).collect::<Result<_, _>>()?;
    run.warnings.iter_mut().for_each(|text| *text = change(text));
    run.notes = std::mem::take(&mut run.notes).into_iter().map(|(of, text)| (change(&of), change(&text))).collect();
    if let Some(published) = &mut run.published {
        published.source = change(&published.source);
        published.findings.iter_mut().for_each(|finding| *finding = change(finding));
    }
    // Pages beside the report show everything.
    run.pages.clear();
    Ok(())
}

fn rewritten<T: Serialize + DeserializeOwned>(
    value: &T,
    change: &mut dyn FnMut(&str) -> String,
) -> Result<T, ReportError> {
    let mut json = serde_json::to_value(value)?;
    walk(&mut json, change);
    serde_json::from_value(json).map_err(ReportError::NotHidden)
}

fn walk(value: &mut Value, change: &mut dyn FnMut(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, change)),
        Value::Object(map) => {
            let mut changed = serde_json::Map::new();
            for (key, mut item) in std::mem::take(map) {
                if !OWN.contains(&key.as_str()) {
                    walk(&mut item, change);
                }
                let key = if is_field(&key) { key } else { change(&key) };
                // Keys that became equal are counts of texts and waits: their sum is that of both.
                let sum = changed.get(&key).and_then(Value::as_u64).zip(item.as_u64());
                changed.insert(key, sum.map_or(item, |(a, b)| Value::from(a + b)));
            }
            *map = changed;
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether `key` is the name of a field, column or parameter of loadline's, which no user chose.
fn is_field(key: &str) -> bool {
    loadline_model::column::column(key).is_some()
        || OWN.contains(&key)
        || (key.contains('_') && key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'))
}
