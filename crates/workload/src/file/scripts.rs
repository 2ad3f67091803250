//! A workload of pgbench scripts: what a file with the key `script` defines.

use crate::script::{MAX_WEIGHT, Mix, Script};
use loadline_model::Capability;

use super::facts::{GROUP, KPIS, NOTHING_SPOILS, evidence};
use super::reader::{Fields, Source};
use super::{UserError, intern};
use crate::params::{Param, Params};
use crate::scripts::{SCALE, Scripts};
use crate::workload::Workload;

/// Keys of such a file.
pub(super) const KEYS: &[&str] = &["code", "summary", "allow-writes", "evidence", "define", "script"];
/// As pgbench reads it, if one of its own scripts runs.
const SCALE_QUERY: &str = "SELECT count(*) FROM pgbench_branches";

const PARAMS: &[Param] = &[Param {
    name: SCALE,
    default: 1,
    min: 0,
    max: i64::MAX,
    meaning: "value of :scale, counted from pgbench_branches for pgbench's own scripts",
}];

/// Reads the file; `code` is read already.
pub(super) fn read(source: &Source<'_>, fields: &Fields<'_, '_>, code: &'static str) -> Result<Workload, UserError> {
    let (mut scripts, mut builtin) = (Vec::new(), false);
    for value in fields.list("script")? {
        let f = source.fields(value, "a script", &["name", "weight", "text", "builtin"])?;
        let name = f.text("name")?;
        let weight = f.optional("weight").map_or(Ok(1), |v| source.integer(v, "the weight", (0, MAX_WEIGHT)))?;
        let text = f.required("text")?;
        let Some(text) = text.get_ref().as_str() else {
            return Err(source.error(text.span(), "the text of a script must be a string in quotes"));
        };
        builtin |= f.optional("builtin").is_some_and(|v| v.get_ref().as_bool() == Some(true));
        let script = Script::read(name, text).map_err(|e| UserError {
            file: e.file,
            line: e.place.line,
            column: e.place.column,
            message: e.what,
        })?;
        scripts.push((script, weight));
    }
    let mut given = Vec::new();
    for value in fields.list("define")? {
        let f = source.fields(value, "a variable", &["name", "value"])?;
        let text = f.required("value")?;
        let value = text.get_ref().as_str().ok_or_else(|| source.error(text.span(), "a value must be in quotes"))?;
        given.push((f.text("name")?.to_owned(), value.to_owned()));
    }
    let allow_writes = fields.optional("allow-writes").is_some_and(|v| v.get_ref().as_bool() == Some(true));
    let mix =
        Mix::new(scripts, given).ok_or_else(|| fields.error("all weights are 0: nothing would run".to_owned()))?;
    let scaled = mix.lacks(SCALE);
    let scale = (builtin && scaled).then_some(SCALE_QUERY);
    let params = Params::new(code, &[], &[], &[], &Default::default()).map_err(|e| fields.error(e.to_string()))?;
    let summary = intern(fields.text("summary")?);
    Ok(Workload {
        code,
        group: GROUP,
        summary,
        description: "pgbench scripts on tables that are there. A transaction is one execution of a script, whatever \
                      number of the database's transactions it does.",
        spoiled_by: NOTHING_SPOILS,
        kpis: KPIS,
        // One that the user gave is not shown as another.
        params: if scaled { PARAMS } else { &[] },
        needs: &[Capability::Scripts],
        evidence: fields.optional("evidence").map(|v| evidence(source, v, &params, &[])).transpose()?,
        scripts: Some(Box::leak(Box::new(Scripts { mix, allow_writes, scale }))),
        ..Workload::BASE
    })
}
