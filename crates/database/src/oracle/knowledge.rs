//! Knowledge of Oracle: `oracle.toml`, in the language of [`crate::descriptor`] and [`crate::rules`].

use std::collections::BTreeMap;

use loadline_model::{Column, column};
use serde::Deserialize;

use crate::descriptor::{Counter, Embedded, Product, Release, Routines};
use crate::dialect::Dialect;
use crate::error::{Causes, Meaning};
use crate::facts::WaitEvents;
use crate::rules::Rule;
use crate::view::{Fragments, StatisticsView, ViewQuery};

pub(super) static KNOWLEDGE: Embedded<Knowledge> = Embedded::new("src/oracle.toml", include_str!("../oracle.toml"));

/// The oldest release: nothing in the file differs by version.
pub(super) const RELEASE: Release = Release { product: Product::Oracle, number: [19, 0, 0] };

/// The file, which describes its parts.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Knowledge {
    pub(super) counters: Vec<Counter>,
    pub(super) waits: WaitEvents,
    pub(super) causes: Causes,
    errors: Vec<Meaning>,
    pub(super) lost: Vec<u32>,
    pub(super) secret: Vec<String>,
    fragments: Fragments,
    #[serde(rename = "view")]
    pub(super) views: Vec<View>,
    #[serde(rename = "question")]
    pub(super) questions: Vec<Question>,
    #[serde(rename = "rule")]
    pub(super) rules: Vec<Rule>,
    statistics: Vec<StatisticsView<()>>,
    pub(super) notes: Vec<String>,
    pub(super) queries: BTreeMap<String, String>,
    pub(super) plsql: Routines,
    pub(super) dialect: Dialect,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct View {
    /// Name without `V$` and `GV$`.
    pub(super) name: String,
    /// Columns without a figure if it cannot be read, and what else is lost.
    #[serde(default)]
    columns: Vec<String>,
    #[serde(default)]
    also_missing: String,
    /// The query of name, value and perhaps a second value; `{view}` stands for the view.
    select: String,
}

impl View {
    /// Name for a query, over all instances or this one.
    pub(super) fn named(&self, all_instances: bool) -> String {
        format!("{}V${}", if all_instances { "G" } else { "" }, self.name)
    }

    pub(super) fn grant(&self) -> String {
        format!("GRANT SELECT ON SYS.GV_${0} TO …; GRANT SELECT ON SYS.V_${0} TO … (or SELECT_CATALOG_ROLE)", self.name)
    }

    pub(super) fn query(&self, all_instances: bool) -> String {
        self.select.replace("{view}", &self.named(all_instances))
    }

    pub(super) fn columns(&self) -> impl Iterator<Item = &'static Column> {
        self.columns.iter().filter_map(|id| column::column(id))
    }

    /// Loss if it cannot be read.
    pub(super) fn missing(&self) -> String {
        let also = (!self.also_missing.is_empty()).then(|| self.also_missing.clone());
        self.columns().map(Column::heading).chain(also).collect::<Vec<_>>().join(", ")
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
    pub(super) id: String,
    pub(super) sql: String,
    pub(super) without: String,
    #[serde(default = "public")]
    pub(super) grant: String,
    /// Names of the columns of its first row as facts. Without any, each row is a fact.
    #[serde(default)]
    pub(super) facts: Vec<String>,
}

/// Advice if a question is refused that every user may ask.
pub(super) const PUBLIC: &str = "every user may query this: tell us what the server said";

fn public() -> String {
    PUBLIC.to_owned()
}

impl Knowledge {
    /// Advice on the ORA- message of this number.
    pub(super) fn advice(&self, code: u32) -> Option<&str> {
        Meaning::advice(&self.errors, &code.to_string(), "")
    }

    /// The query of this name, or of a question.
    pub(super) fn query(&self, id: &str) -> &str {
        let question = || self.questions.iter().find(|question| question.id == id).map(|question| &question.sql);
        self.queries.get(id).or_else(question).map_or("", String::as_str)
    }

    /// The queries of the statistics views. `v` begins the names of views; `whose` is the condition of sessions.
    pub(super) fn statistics_views(&self, v: &str, whose: &str) -> impl Iterator<Item = ViewQuery> {
        self.statistics.iter().filter_map(move |view| view.at(RELEASE, &self.fragments, &[("v", v), ("whose", whose)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::selected;

    #[test]
    fn the_file_can_be_read_and_rules_know_their_questions() {
        KNOWLEDGE.checked(|file| &file.counters);
        assert!(KNOWLEDGE.views.iter().all(|view| view.columns().count() == view.columns.len()), "no such column");
        for (name, columns) in
            [("SYSSTAT", &column::REDO_AND_COMMITS[..]), ("OSSTAT", &column::CPU_SHARES), ("THREAD", &column::SWITCHES)]
        {
            let view = KNOWLEDGE.views.iter().find(|view| view.name == name).unwrap();
            assert!(view.columns.iter().eq(columns.iter().map(|column| column.id)), "{name}: {:?}", view.columns);
        }
        for id in ["parameters", "gv$resource_limit", "profile"] {
            assert!(!KNOWLEDGE.query(id).is_empty(), "{id}");
        }
    }

    #[test]
    fn each_query_selects_the_columns_of_its_view() {
        for query in KNOWLEDGE.statistics_views("GV$", "1 = 1") {
            query.assert_whole();
            assert!(!query.sql.contains('{'), "{}", query.sql);
        }
        for question in &KNOWLEDGE.questions {
            assert!(question.facts.len() <= selected(&question.sql), "{}", question.id);
        }
    }
}
