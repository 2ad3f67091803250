//! pgbench's own scripts, on its own tables. Source: PostgreSQL 15, `builtin_script` of `src/bin/pgbench/pgbench.c`.

/// Names and texts.
pub const BUILTINS: &[(&str, &str)] = &[
    ("tpcb-like", include_str!("builtin/tpcb-like.sql")),
    ("simple-update", include_str!("builtin/simple-update.sql")),
    ("select-only", include_str!("builtin/select-only.sql")),
];

/// The full name of a builtin script, and its text. As in pgbench, a prefix will do if only one name begins with it.
#[must_use]
pub fn builtin(name: &str) -> Option<(&'static str, &'static str)> {
    let mut found = BUILTINS.iter().filter(|(known, _)| known.starts_with(name));
    match (found.next(), found.next()) {
        (Some(script), None) => Some(*script),
        _ => None,
    }
}
