//! What a target makes of a workload, as text: for `loadline workloads CODE`, docs and tests.

use loadline_model::Driver;

/// A piece of SQL as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// What it is: `schema`, `procedure`, `statement 0`, `evidence`.
    pub title: String,
    /// The text.
    pub sql: String,
    /// The driver that alone uses it; `None` for what both do.
    pub driver: Option<Driver>,
    /// Whether it is said in words, because there is no SQL to show.
    pub in_words: bool,
}

impl Rendered {
    /// A piece of SQL.
    pub fn new(title: impl Into<String>, sql: impl Into<String>) -> Rendered {
        Rendered { title: title.into(), sql: sql.into(), driver: None, in_words: false }
    }

    /// The same, used by `driver` alone.
    #[must_use]
    pub fn by(self, driver: Driver) -> Rendered {
        Rendered { driver: Some(driver), ..self }
    }

    /// The same, which is no SQL but words (behind `--` where it stands among SQL).
    #[must_use]
    pub fn in_words(self) -> Rendered {
        Rendered { in_words: true, ..self }
    }
}
