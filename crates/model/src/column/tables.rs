//! Tables: the columns that each group shows, and those that only files hold, as `tables.toml` lists them.

use super::list::{DISTURBANCE, REPLICATION, SHARES};
use super::*;
use crate::group::distinct;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    #[serde(deserialize_with = "kept")]
    pub group: Kept,
    #[serde(deserialize_with = "kept")]
    pub title: Kept,
    /// Columns shown in tables after those with which all begin.
    columns: Vec<&'static Column>,
}

/// Columns that files hold after those of tables.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OnlyInFiles {
    /// The only group whose files hold them.
    only: Option<String>,
    /// The only group whose files do not.
    except: Option<String>,
    columns: Vec<&'static Column>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    begin: Vec<&'static Column>,
    table: Vec<Table>,
    files: Vec<OnlyInFiles>,
}

/// No table if the file cannot be read, which the tests detect.
static FILE: LazyLock<File> = LazyLock::new(|| toml::from_str(include_str!("../../tables.toml")).unwrap_or_default());

/// All tables, one a group, in the order in which the groups are named.
pub static TABLES: LazyLock<&[Table]> = LazyLock::new(|| FILE.table.as_slice());

impl Table {
    /// Table of group `group`; groups without one of their own use the log writer's.
    pub fn for_group(group: &str) -> &'static Table {
        static NONE: Table = Table { group: "", title: "", columns: Vec::new() };
        let of = |group: &str| TABLES.iter().find(|t| t.group == group);
        of(group).or_else(|| of("log-writer")).unwrap_or(&NONE)
    }

    pub fn shown(&self) -> Vec<&'static Column> {
        [FILE.begin.as_slice(), &self.columns].concat()
    }

    /// Columns of CSV and JSON: `platform, workload, run, test, …` as in the published studies, then the rest.
    pub fn file_columns(&self) -> impl Iterator<Item = &'static Column> {
        // The first columns after those of published tables.
        const OWN_FIRST: [&Column; 6] = [TARGET, DRIVER, VALID, VALIDITY, INVALID_REASON, ERRORS];
        let shown = self.shown();
        let last_published = shown.iter().position(|c| *c == ELAPSED_S).unwrap_or(shown.len());
        let published = shown.iter().copied().take(last_published + 1).filter(|c| !OWN_FIRST.contains(c));
        let unnamed = COLUMNS.iter().copied().filter(|c| !TABLES.iter().any(|t| t.names(c)));
        let rest = shown.iter().copied().chain(self.also_in_files()).chain(unnamed);
        distinct([PLATFORM, WORKLOAD].into_iter().chain(published).chain(OWN_FIRST).chain(rest)).into_iter()
    }

    /// Columns that follow in CSV and JSON. One that its table shows appears once; columns that no table names come last.
    fn also_in_files(&self) -> impl Iterator<Item = &'static Column> {
        let has = move |part: &&OnlyInFiles| {
            part.only.as_ref().is_none_or(|group| group == self.group)
                && part.except.as_ref().is_none_or(|group| group != self.group)
        };
        let parts = FILE.files.iter().filter(has).flat_map(|part| &part.columns);
        let of_all = [SHARES, DISTURBANCE, REPLICATION].into_iter().flatten();
        Table::for_group("log-writer").columns.iter().chain(parts).chain(of_all).copied()
    }

    fn names(&self, column: &Column) -> bool {
        self.shown().into_iter().chain(self.also_in_files()).any(|c| c == column)
    }
}
