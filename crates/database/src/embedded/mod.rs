//! Embedded databases, which run in this process on files of their own: what all of them share. Each says the rest ([`Engine`]).
//!
//! Roles are here, its files ([`files`]), their counters ([`counters`]) and its descriptor ([`knowledge`]). A database that is opened
//! as a library while loadline runs is found by [`library`], and its file operations are counted by [`calls`].

pub(crate) mod calls;
pub(crate) mod counters;
pub(crate) mod files;
pub(crate) mod knowledge;
pub(crate) mod library;

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;

use loadline_model::Column;
use loadline_model::activity::{Topic, View};
use loadline_model::manifest::TargetInfo;

use crate::error::TargetError;
use crate::facts::{Facts, OwnFiles, Runs};
use crate::folder;
use crate::kind::TargetKind;
use crate::render::Rendered;
use crate::request::OpenRequest;
use crate::role::{ClientDriver, Doctor, Observation, Observer, ParallelQueries, Scope, StatisticsViews};
use crate::target::{Abilities, Target};
use crate::view::ViewQuery;
use crate::work::Work;
use crate::workload_tables::{Kept, LoadedTables, LoadsTables};
use counters::{FileObserver, LogCounters};
use files::{EmbeddedFiles, FileNames};
use knowledge::Knowledge;

/// A kind of embedded database.
pub(crate) struct Kind {
    pub(crate) names: &'static FileNames,
    pub(crate) open: fn(&OpenRequest) -> Result<Box<dyn Target>, TargetError>,
    pub(crate) render: fn(&Work) -> Vec<Rendered>,
}

impl TargetKind for Kind {
    fn scheme(&self) -> &'static str {
        self.names.scheme
    }

    fn check_url(&self, url: &str) -> Result<u32, TargetError> {
        self.names.place(url).map(|_| 1)
    }

    fn open(&self, request: &OpenRequest) -> Result<Box<dyn Target>, TargetError> {
        (self.open)(request)
    }

    fn render(&self, work: &Work) -> Vec<Rendered> {
        (self.render)(work)
    }

    fn clean_leftovers(&self, request: &OpenRequest) -> Result<Vec<String>, TargetError> {
        folder::clean_leftovers(&request.scratch, &self.names.temp_prefix())
    }

    fn is_temporary(&self, url: &str) -> bool {
        self.names.place(url).is_ok_and(|place| place.database.is_none())
    }
}

/// An open embedded database, without its engine.
pub(crate) struct Base {
    kind: &'static dyn TargetKind,
    version: String,
    pub(crate) knowledge: &'static Knowledge,
    pub(crate) files: Arc<EmbeddedFiles>,
    pub(crate) facts: Facts,
    pub(crate) counters: Arc<LogCounters>,
    pub(crate) loaded: LoadedTables,
    pub(crate) settings: Chosen,
    /// The database file, opened outside the engine. Closing any descriptor of it releases the engine's locks (fcntl_locking(2),
    /// sqlite.org/howtocorrupt.html, 2.2), so this one is closed after the engine and all sessions.
    pub(crate) file: Arc<File>,
}

impl Base {
    /// Of a database that the engine has opened, with blocks of this size.
    pub(crate) fn new(
        (kind, version): (&'static dyn TargetKind, &str),
        knowledge: &'static Knowledge,
        (files, counters): (Arc<EmbeddedFiles>, Arc<LogCounters>),
        settings: Chosen,
        block_bytes: u64,
    ) -> Result<Base, TargetError> {
        let file = Arc::new(files.open()?);
        let facts = Facts {
            block_bytes: Some(block_bytes),
            own_files: Some(OwnFiles { open: vec![Arc::clone(&file)], named: vec![files.log()] }),
            waits: &knowledge.events,
            empty_query: "SELECT 1",
            ..Facts::for_runs(Runs::InProcess)
        };
        Ok(Base {
            kind,
            version: version.to_owned(),
            knowledge,
            files,
            facts,
            counters,
            loaded: LoadedTables::default(),
            settings,
            file,
        })
    }

    /// An observer of all counters but those `without` a meaning.
    pub(crate) fn observe_files(&self, without: &'static [&'static str]) -> FileObserver {
        let page_size = self.facts.block_bytes.unwrap_or_default();
        FileObserver { counters: Arc::clone(&self.counters), page_size, without }
    }
}

/// The engine of an embedded database.
pub(crate) trait Engine: LoadsTables + Doctor + ClientDriver + Send + Sync + Sized {
    fn base(&self) -> &Base;

    /// Settings that decide speed, as they are.
    fn shown_settings(&self) -> Result<BTreeMap<String, String>, TargetError>;

    fn parallel_queries(&self) -> Option<&dyn ParallelQueries> {
        None
    }

    /// Reads the counters.
    fn observe(&self) -> Box<dyn Observer> {
        Box::new(self.base().observe_files(&[]))
    }

    /// Removes all but the `kept` tables, or the files if there are none.
    fn remove_but(&self, kept: &dyn Fn() -> Result<Kept, TargetError>) -> Result<Vec<String>, TargetError> {
        let kept: Vec<String> = kept()?.iter().map(|stem| self.dialect().plain_name(stem)).collect();
        if kept.is_empty() {
            return self.base().files.remove();
        }
        let removed = self.with_loader(|loader| loader.drop_tables(|name| !kept.iter().any(|k| k == name)))?;
        Ok(removed.into_iter().map(|name| format!("table {name}")).collect())
    }
}

impl<T: Engine> Target for T {
    fn facts(&self) -> &Facts {
        &self.base().facts
    }

    fn info(&self) -> Result<TargetInfo, TargetError> {
        let (base, settings) = (self.base(), self.shown_settings()?);
        let notes = base.knowledge.notes.iter().filter(|note| note.applies(&base.settings, &settings));
        let notes = notes.map(|note| note.text.clone()).collect();
        Ok(TargetInfo { settings, notes, ..base.files.info(&base.kind.product, &base.version) })
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities { tables: Some(self), parallel_queries: self.parallel_queries(), ..Abilities::default() }
    }
}

impl<T: Engine> Observation for T {
    fn observer_of(&self, scope: Scope) -> Result<Box<dyn Observer>, TargetError> {
        match scope {
            Scope::Jobs => Ok(self.observe()),
            Scope::All => Err(TargetError::Unsupported(format!(
                "{} runs inside the process that uses it, and nothing counts the work of other processes: name a server",
                self.base().kind.product
            ))),
        }
    }

    fn absent_columns(&self) -> Vec<(&'static Column, String)> {
        self.base().kind.uncounted("")
    }
}

impl<T: Engine> StatisticsViews for T {
    fn views(&self) -> Result<Vec<View>, TargetError> {
        let absent = |(topic, why): &(Topic, String)| ViewQuery::new(*topic, topic.title(), Vec::new()).absent(why);
        let mut views: Vec<View> = self.base().knowledge.absent.iter().map(absent).collect();
        views.push(self.base().knowledge.settings_view(&self.shown_settings()?));
        Ok(views)
    }
}

/// Settings in the order of the descriptor.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chosen {
    pub(crate) all: Vec<(String, String)>,
    /// Names of those that the user gave.
    given: Vec<String>,
}

impl Chosen {
    /// The user's, and loadline's own values of the others that have one. `wanted`: what a value must be, if it is wrong.
    pub(crate) fn new(
        request: &OpenRequest,
        kind: &dyn TargetKind,
        knowledge: &Knowledge,
        own: impl Fn(&str) -> Option<String>,
        wanted: impl Fn(&str, &str) -> Option<&'static str>,
    ) -> Result<Chosen, TargetError> {
        let (product, known) = (&kind.product, &knowledge.settings);
        if !request.nodes.is_empty() {
            return Err(TargetError::Usage(format!("{product} has no nodes: leave out --node")));
        }
        for (name, value) in &request.settings {
            if !known.contains(name) {
                let near = loadline_model::format::did_you_mean(name, known.iter().map(String::as_str));
                let why = format!("loadline sets no '{name}' of {product}{near} (known: {})", known.join(", "));
                return Err(TargetError::Usage(why));
            }
            if let Some(wanted) = wanted(name, value) {
                return Err(TargetError::Usage(format!(
                    "setting {name} = '{value}' is not valid: it must be {wanted}"
                )));
            }
        }
        let value = |name: &String| request.settings.get(name).cloned().or_else(|| own(name));
        let all = known.iter().filter_map(|name| Some((name.clone(), value(name)?))).collect();
        Ok(Chosen { all, given: request.settings.keys().cloned().collect() })
    }

    /// Value of a setting that loadline or the user chose.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.all.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.given.iter().any(|given| given == name)
    }
}

#[cfg(test)]
pub(crate) mod tests;
