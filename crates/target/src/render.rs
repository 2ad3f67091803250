//! What a target makes of a workload, as text: for `loadline workloads CODE`, docs and tests.

/// A piece of SQL as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// What it is: `schema`, `procedure`, `statement 0`, `evidence`.
    pub title: String,
    /// The text.
    pub sql: String,
}

impl Rendered {
    /// A piece of SQL.
    pub fn new(title: impl Into<String>, sql: impl Into<String>) -> Rendered {
        Rendered { title: title.into(), sql: sql.into() }
    }
}
