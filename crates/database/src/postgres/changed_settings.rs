//! Settings of a user's server that a run changes by ALTER SYSTEM: what they were is kept in loadline's schema until they are put
//! back, so that a killed run can be made good.

use super::knowledge::KNOWLEDGE;
use super::schema;
use super::sql::{SCHEMA, literal};
use super::wire::{Connection, Row};
use crate::dialect::MARK;
use crate::error::TargetError;

/// All that may be changed.
pub(super) const CHANGED: [&str; 2] = ["synchronous_commit", "synchronous_standby_names"];
/// The table of what they were; `value` is NULL if ALTER SYSTEM had not set it.
const TABLE: &str = "changed_settings";

/// A setting as the sessions of the jobs have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Present {
    pub(super) name: &'static str,
    pub(super) value: String,
    /// Where the value comes from: `default`, `configuration file` …
    pub(super) source: String,
    /// Whether it was set by ALTER SYSTEM; `None` if the role may not see that.
    pub(super) by_alter_system: Option<bool>,
}

impl Present {
    /// `on (default)`.
    pub(super) fn shown(&self) -> String {
        let source = if self.by_alter_system == Some(true) { "ALTER SYSTEM" } else { &self.source };
        let value = if self.value.is_empty() { "''" } else { &self.value };
        format!("{value} ({source})")
    }
}

/// The settings now. `c` must not set them for itself.
pub(super) fn present(c: &mut Connection) -> Result<Vec<Present>, TargetError> {
    let names = CHANGED.map(literal).join(", ");
    let rows = c.query(&KNOWLEDGE.queries.text("origins", &[("names", &names)]))?;
    let present = rows.into_iter().filter_map(|row| {
        let row = Row(row);
        let name = CHANGED.into_iter().find(|name| row.get(0) == Some(name))?;
        let in_file = row.get(3).map(|is| is == "t");
        let by_alter_system = if row.get(2) == Some("configuration file") { in_file } else { Some(false) };
        Some(Present { name, value: row.text(1), source: row.text(2), by_alter_system })
    });
    Ok(present.collect())
}

/// Keeps what the settings were, unless an earlier value is kept already. Nothing is changed yet.
pub(super) fn keep(c: &mut Connection, before: &[Present]) -> Result<(), TargetError> {
    schema::ensure(c)?;
    let value = |p: &Present| if p.by_alter_system == Some(true) { literal(&p.value) } else { "NULL".to_owned() };
    let rows: Vec<String> = before.iter().map(|p| format!("({}, {})", literal(p.name), value(p))).collect();
    c.query(&format!(
        "CREATE TABLE IF NOT EXISTS {SCHEMA}.{TABLE} (name text PRIMARY KEY, value text); \
         INSERT INTO {SCHEMA}.{TABLE} VALUES {} ON CONFLICT DO NOTHING",
        rows.join(", ")
    ))
    .map(drop)
}

/// Sets one of [`CHANGED`], or resets it (`None`). The server still has to read its configuration.
pub(super) fn alter(c: &mut Connection, name: &str, value: Option<&str>) -> Result<(), TargetError> {
    let sql = match value {
        Some(value) => format!("ALTER SYSTEM SET {name} = {}", literal(value)),
        None => format!("ALTER SYSTEM RESET {name}"),
    };
    c.query(&sql).map(drop)
}

/// Puts back what a run changed, and forgets it; returns a line for each setting.
///
/// # Errors
/// [`TargetError::Refused`] with the statements for an administrator, if the server refuses one; they stay kept then.
pub(super) fn put_back(c: &mut Connection) -> Result<Vec<String>, TargetError> {
    let in_own_schema = KNOWLEDGE.queries.text("own-table", &[("table", TABLE), ("schema", SCHEMA), ("mark", MARK)]);
    if c.value(&in_own_schema)?.is_none() {
        return Ok(Vec::new());
    }
    let kept = c.query(&format!("SELECT name, value FROM {SCHEMA}.{TABLE} ORDER BY 1"))?;
    let mut lines = Vec::new();
    for row in kept.into_iter().map(Row) {
        let (found, value) = (row.get(0), row.get(1));
        let Some(name) = CHANGED.into_iter().find(|name| found == Some(name)) else { continue };
        let done = alter(c, name, value);
        done.map_err(|e| match e {
            TargetError::Server(e) => TargetError::Refused(format!(
                "the setting {name}, which levels of replication changed, cannot be put back to {}: {e}. Run loadline clean with a role \
                 that may ALTER SYSTEM",
                value.map_or("what it was without ALTER SYSTEM".to_owned(), literal)
            )),
            e => e,
        })?;
        let to = value.map_or("reset".to_owned(), |value| format!("put back to {}", literal(value)));
        lines.push(format!("setting {name}: {to}"));
    }
    c.query("SELECT pg_reload_conf()")?;
    c.query(&format!("DROP TABLE {SCHEMA}.{TABLE}"))?;
    Ok(lines)
}
