//! A workload of pgbench scripts: what a file with the key `script` defines.

use std::sync::Arc;

use loadline_model::Capability;
use serde::Deserialize;
use toml::Spanned;
use toml::de::DeTable;

use super::facts::query;
use crate::form::within;
use crate::params::{Param, Params};
use crate::script::{MAX_WEIGHT, Mix, Script};
use crate::scripts::{SCALE, Scripts};
use crate::source::{Source, UserError};
use crate::workload::{Evidence, Workload};

/// As pgbench reads it, if one of its own scripts runs.
const SCALE_QUERY: &str = "SELECT count(*) FROM pgbench_branches";

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Form {
    code: String,
    summary: String,
    #[serde(default)]
    allow_writes: bool,
    evidence: Option<Evidence>,
    #[serde(default)]
    define: Vec<Variable>,
    script: Vec<OneScript>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Variable {
    name: String,
    value: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OneScript {
    name: String,
    #[serde(default = "one", deserialize_with = "within::<0, MAX_WEIGHT, _, _>")]
    weight: i64,
    text: String,
    #[serde(default)]
    builtin: bool,
}

fn one() -> i64 {
    1
}

/// Reads the file.
pub(super) fn read(source: &Source, document: Spanned<DeTable<'_>>) -> Result<Workload, UserError> {
    let form: Form = source.form(document)?;
    let mut scripts = Vec::new();
    for script in &form.script {
        let read = Script::read(&script.name, &script.text).map_err(|e| UserError {
            file: e.file,
            line: e.place.line,
            column: e.place.column,
            message: e.what,
        })?;
        scripts.push((read, script.weight));
    }
    let given = form.define.into_iter().map(|v| (v.name, v.value)).collect();
    let mix = Mix::new(scripts, given).ok_or_else(|| source.error("script", "all weights are 0: nothing would run"))?;
    let scaled = mix.lacks(SCALE);
    let builtin = form.script.iter().any(|script| script.builtin);
    let scale = (builtin && scaled).then_some(SCALE_QUERY);
    let code = form.code.trim().to_owned();
    let params = Params::new(&code, &[], &Default::default()).map_err(|e| source.error("", e.to_string()))?;
    let trimmed = |e: Evidence| Evidence { query: e.query.trim().to_owned(), counts: e.counts.trim().to_owned() };
    let evidence = form.evidence.map(trimmed);
    if let Some(evidence) = &evidence {
        query(source, "evidence.query", &evidence.query, &params, &[])?;
    }
    let scale_param = Param {
        name: SCALE.to_owned(),
        default: 1,
        min: 0,
        max: i64::MAX,
        choices: Vec::new(),
        at_most: None,
        meaning: "value of :scale, counted from pgbench_branches for pgbench's own scripts".to_owned(),
    };
    Ok(Workload {
        code,
        summary: form.summary.trim().to_owned(),
        description: "pgbench scripts on tables that are there. A transaction is one execution of a script, whatever \
                      number of the database's transactions it does."
            .to_owned(),
        // One that the user gave is not shown as another.
        params: scaled.then_some(scale_param).into_iter().collect(),
        needs: vec![Capability::Scripts],
        evidence,
        scripts: Some(Scripts { mix: Arc::new(mix), allow_writes: form.allow_writes, scale }),
        ..Workload::default()
    })
}
