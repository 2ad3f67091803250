//! Knowledge of an embedded database: `sqlite.toml` and `duckdb.toml`, in the language of [`crate::dialect`].

use std::collections::BTreeMap;

use loadline_model::activity::{Topic, View};
use serde::Deserialize;

use super::Chosen;
use crate::descriptor::Routines;
use crate::dialect::Dialect;
use crate::facts::WaitEvents;
use crate::rules::Rule;
use crate::view::{ViewQuery, column};

/// The file, which describes its parts.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Knowledge {
    /// Names of settings that the user may choose, in the order in which they are made.
    pub(crate) settings: Vec<String>,
    pub(crate) notes: Vec<Note>,
    /// Topics without a view, and why.
    pub(crate) absent: Vec<(Topic, String)>,
    settings_title: String,
    /// The database's own values of settings; those that differ are shown, or all if there are none.
    #[serde(default)]
    pub(crate) defaults: BTreeMap<String, String>,
    /// Parts of texts of errors, by what they mean, whose kind alone does not tell.
    #[serde(default)]
    pub(crate) errors: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    pub(crate) queries: Routines,
    #[serde(default)]
    pub(crate) events: WaitEvents,
    #[serde(rename = "rule")]
    pub(super) rules: Vec<Rule>,
    pub(crate) dialect: Dialect,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Note {
    pub(crate) text: String,
    unless_given: Option<String>,
    /// Only if a setting has this value.
    is: Option<(String, String)>,
}

impl Note {
    pub(super) fn applies(&self, chosen: &Chosen, shown: &BTreeMap<String, String>) -> bool {
        let not_given = self.unless_given.as_ref().is_none_or(|name| !chosen.is_given(name));
        not_given && self.is.as_ref().is_none_or(|(name, value)| shown.get(name) == Some(value))
    }
}

impl Knowledge {
    pub(super) fn settings_view(&self, shown: &BTreeMap<String, String>) -> View {
        let row = |(name, value): (&String, &String)| {
            if self.defaults.is_empty() {
                return Some(vec![Some(name.clone()), Some(value.clone())]);
            }
            let default = self.defaults.get(name).filter(|default| *default != value)?;
            Some(vec![Some(name.clone()), Some(value.clone()), Some(default.clone())])
        };
        let columns = ["key name", "text value", "text default"];
        let columns = if self.defaults.is_empty() { &columns[..2] } else { &columns[..] };
        let columns = columns.iter().filter_map(|text| column(text)).collect();
        ViewQuery::new(Topic::Settings, &self.settings_title, columns).with(shown.iter().filter_map(row).collect())
    }
}
