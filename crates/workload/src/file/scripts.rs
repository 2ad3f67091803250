//! A workload of pgbench scripts: what a file with the key `script` defines.

use std::sync::Arc;

use loadline_model::Capability;

use super::{evidence, unstated};
use crate::params::{Param, Params};
use crate::script::{MAX_WEIGHT, Mix, SCALE, Script};
use crate::source::{Node, UserError};
use crate::workload::Workload;

/// As pgbench reads it, if one of its own scripts runs.
const SCALE_QUERY: &str = "SELECT count(*) FROM pgbench_branches";

pub(super) fn read(root: Node<'_>) -> Result<Workload, UserError> {
    root.fields(&["code", "summary", "allow-writes", "evidence", "define", "script"])?;
    let given = root.all("define", variable)?;
    let scripts = root.need("script")?;
    let is_builtin = root.all("script", |node| node.opt("builtin", Node::flag))?.contains(&Some(true));
    let mix = Mix::new(root.all("script", script)?, given);
    let mut mix = mix.ok_or_else(|| scripts.error("all weights are 0: nothing would run"))?;
    mix.allow_writes = root.opt("allow-writes", Node::flag)?.unwrap_or_default();
    let scaled = mix.lacks(SCALE);
    mix.scale = (is_builtin && scaled).then_some(SCALE_QUERY);
    let code = root.need("code")?.owned()?;
    let params = Params::new(&code, &[], &Default::default()).map_err(|e| root.error(e.to_string()))?;
    let scale = Param {
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
        summary: root.need("summary")?.owned()?,
        description: "pgbench scripts on tables that are there. A transaction is one execution of a script, whatever \
                      number of the database's transactions it does."
            .to_owned(),
        // One that the user gave is not shown as another.
        params: scaled.then_some(scale).into_iter().collect(),
        needs: vec![Capability::Scripts],
        evidence: root.opt("evidence", |node| evidence(node, &params, &[]))?,
        scripts: Some(Arc::new(mix)),
        ..unstated()
    })
}

fn variable(node: Node<'_>) -> Result<(String, String), UserError> {
    node.fields(&["name", "value"])?;
    Ok((node.need("name")?.raw_text()?.to_owned(), node.need("value")?.raw_text()?.to_owned()))
}

/// A script with its weight. What is wrong with it has its place in the script.
fn script(node: Node<'_>) -> Result<(Script, i64), UserError> {
    node.fields(&["name", "weight", "text", "builtin"])?;
    let weight = node.opt("weight", |weight| weight.number(0..=MAX_WEIGHT))?.unwrap_or(1);
    Ok((Script::read(node.need("name")?.raw_text()?, node.need("text")?.raw_text()?)?, weight))
}
