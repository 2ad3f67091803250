//! A workload rendered as SQL text: for `loadline workloads CODE`, docs and tests.

use loadline_model::Driver;
use loadline_workload::{Piece, Statement, Table};

use crate::dialect::Dialect;
use crate::work::Work;

pub(crate) fn tables(work: &Work, dialect: &Dialect) -> Vec<Rendered> {
    let mut out = Vec::new();
    for table in &work.workload.tables {
        let title = format!("table {}", table.name);
        out.push(Rendered::new(&*title, dialect.text(&dialect.create(work, table))));
        let later = dialect.later(work, table);
        if !later.is_empty() {
            out.push(Rendered::new(format!("{title}, when it is loaded"), dialect.text(&later)));
        }
    }
    out
}

/// The statements of the client driver, each followed by `end`.
pub(crate) fn statements(work: &Work, dialect: &Dialect, end: &str) -> Vec<Rendered> {
    let statement = |(i, sql): (usize, String)| Rendered::new(format!("statement {i}"), sql + end).by(Driver::Client);
    let all = work.program.statements.iter().map(|s| dialect.statement(work, &s.template));
    all.enumerate().map(statement).collect()
}

/// All that a job inside the process of its database sends, with the variables of each statement.
pub(crate) fn in_process(
    work: &Work,
    dialect: &Dialect,
    session: Option<Rendered>,
    begin: &str,
    sql: impl Fn(&Statement) -> String,
) -> Vec<Rendered> {
    let table = |t: &Table| Rendered::new(format!("table {}", t.name), dialect.text(&dialect.create(work, t)));
    let statement = |(i, s): (usize, &Statement)| {
        let name =
            |(n, var): (usize, &str)| format!("{} = {var}", dialect.placeholder.replace("{n}", &(n + 1).to_string()));
        let vars = s.template.vars().enumerate().map(name).collect::<Vec<_>>().join(", ");
        let used = s.template.pieces.iter().any(|p| matches!(p, Piece::Var(_)));
        let note = if used { format!(" -- {vars}") } else { String::new() };
        Rendered::new(format!("statement {i}"), sql(s) + &note)
    };
    let mut out: Vec<Rendered> = work.workload.tables.iter().map(table).chain(session).collect();
    out.push(Rendered::new("begin", begin));
    out.extend(work.program.statements.iter().enumerate().map(statement));
    out.push(Rendered::new("commit", "COMMIT"));
    out.extend(queries(work, dialect, ""));
    out
}

/// Queries that run before or after a test, each with its purpose and followed by `end`.
pub(crate) fn queries(work: &Work, dialect: &Dialect, end: &str) -> Vec<Rendered> {
    let workload = &work.workload;
    let evidence = workload.evidence.iter().map(|e| ("evidence".to_owned(), &e.query));
    let consistency = workload.consistency.iter().map(|c| (format!("must be 0: {}", c.what), &c.query));
    let unchanged = workload.unchanged.iter().map(|c| (format!("must not change: {}", c.what), &c.query));
    let all = evidence.chain(consistency).chain(unchanged);
    all.filter_map(|(title, query)| Some(Rendered::new(title, dialect.query(work, query).ok()? + end))).collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// Title: `schema`, `procedure`, `statement 0`, `evidence`.
    pub title: String,
    pub sql: String,
    /// The only driver that uses it; `None` if both do.
    pub driver: Option<Driver>,
    /// Whether it is a description in words, because there is no SQL.
    pub in_words: bool,
}

impl Rendered {
    pub fn new(title: impl Into<String>, sql: impl Into<String>) -> Rendered {
        Rendered { title: title.into(), sql: sql.into(), driver: None, in_words: false }
    }

    /// This view, used by `driver` only.
    #[must_use]
    pub fn by(self, driver: Driver) -> Rendered {
        Rendered { driver: Some(driver), ..self }
    }

    /// This statement in words instead of SQL (shown behind `--` among SQL).
    #[must_use]
    pub fn in_words(self) -> Rendered {
        Rendered { in_words: true, ..self }
    }
}
