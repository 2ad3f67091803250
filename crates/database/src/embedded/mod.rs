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

use loadline_model::activity::{Topic, View};
use loadline_model::manifest::TargetInfo;
use loadline_model::{Column, Finding};

use crate::descriptor::Embedded;
use crate::error::TargetError;
use crate::facts::{Facts, OwnFiles, Runs};
use crate::folder;
use crate::kind::TargetKind;
use crate::render::Rendered;
use crate::request::OpenRequest;
use crate::role::{ClientDriver, Doctor, Observation, Observer, ParallelQueries, Scope, StatisticsViews};
use crate::rules::{self, Known};
use crate::target::{Abilities, Target};
use crate::view::ViewQuery;
use crate::work::Work;
use crate::workload_tables::{Kept, LoadedTables, LoadsTables};
use counters::{FileObserver, LogCounters};
use files::{EmbeddedFiles, FileNames};
use knowledge::Knowledge;

pub(crate) struct Kind {
    pub(crate) names: &'static FileNames,
    pub(crate) knowledge: &'static Embedded<Knowledge>,
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
    kind: &'static Kind,
    version: String,
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
        (kind, version): (&'static Kind, &str),
        (files, counters): (Arc<EmbeddedFiles>, Arc<LogCounters>),
        settings: Chosen,
        block_bytes: u64,
    ) -> Result<Base, TargetError> {
        let (file, version) = (Arc::new(files.open()?), version.to_owned());
        let facts = Facts {
            block_bytes: Some(block_bytes),
            own_files: Some(OwnFiles { open: vec![Arc::clone(&file)], named: vec![files.log()] }),
            waits: &kind.knowledge.events,
            empty_query: "SELECT 1",
            ..Facts::for_runs(Runs::InProcess)
        };
        Ok(Base { kind, version, files, facts, counters, loaded: LoadedTables::default(), settings, file })
    }

    /// An observer of all counters but those `without` a meaning.
    pub(crate) fn observe_files(&self, without: &'static [&'static str]) -> FileObserver {
        let page_size = self.facts.block_bytes.unwrap_or_default();
        FileObserver { counters: Arc::clone(&self.counters), page_size, without }
    }
}

pub(crate) trait Engine: LoadsTables + ClientDriver + Send + Sync + Sized {
    fn base(&self) -> &Base;

    /// Facts that the doctor's rules look at, beside settings and version.
    fn examine(&self) -> Result<BTreeMap<&'static str, String>, TargetError>;

    /// See [`Doctor::refuses`].
    fn refusal_of(&self, _: &Work) -> Option<String> {
        None
    }

    /// Settings that decide speed, as they are.
    fn shown_settings(&self) -> Result<BTreeMap<String, String>, TargetError>;

    fn parallel_queries(&self) -> Option<&dyn ParallelQueries> {
        None
    }

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
        let notes = base.kind.knowledge.notes.iter().filter(|note| note.applies(&base.settings, &settings));
        let directory = Some(base.files.directory().display().to_string());
        Ok(TargetInfo {
            in_process: true,
            kind: base.kind.scheme().into(),
            product: base.kind.facts().product.clone(),
            version: base.version.clone(),
            url: base.files.url(),
            nodes: 1,
            local: true,
            notes: notes.map(|note| note.text.clone()).collect(),
            settings,
            log_dir: directory.clone(),
            data_dir: directory,
            ..TargetInfo::default()
        })
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities { tables: Some(self), parallel_queries: self.parallel_queries(), ..Abilities::default() }
    }
}

impl<T: Engine> Doctor for T {
    fn doctor(&self) -> Result<Vec<Finding>, TargetError> {
        let (base, mut facts) = (self.base(), self.examine()?);
        facts.insert("version", base.version.clone());
        let known = Known { settings: &self.shown_settings()?, facts };
        let mut findings = rules::judge(&base.kind.knowledge.rules, &known);
        findings.push(base.files.filesystem());
        Ok(findings)
    }

    fn refuses(&self, work: &Work) -> Option<String> {
        self.refusal_of(work)
    }
}

impl<T: Engine> Observation for T {
    fn observer_of(&self, scope: Scope) -> Result<Box<dyn Observer>, TargetError> {
        match scope {
            Scope::Jobs => Ok(self.observe()),
            Scope::All => Err(TargetError::Unsupported(format!(
                "{} runs inside the process that uses it, and nothing counts the work of other processes: name a server",
                self.base().kind.facts().product
            ))),
        }
    }

    fn absent_columns(&self) -> Vec<(&'static Column, String)> {
        self.base().kind.facts().uncounted("")
    }
}

impl<T: Engine> StatisticsViews for T {
    fn views(&self) -> Result<Vec<View>, TargetError> {
        let absent = |(topic, why): &(Topic, String)| ViewQuery::new(*topic, topic.title(), Vec::new()).absent(why);
        let knowledge = self.base().kind.knowledge;
        let mut views: Vec<View> = knowledge.absent.iter().map(absent).collect();
        views.push(knowledge.settings_view(&self.shown_settings()?));
        Ok(views)
    }
}

/// Settings in the order of the descriptor.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chosen {
    pub(crate) all: Vec<(String, String)>,
    given: Vec<String>,
}

impl Chosen {
    /// The user's, and loadline's own values of the others that have one. `wanted`: what a value must be, if it is wrong.
    pub(crate) fn new(
        request: &OpenRequest,
        kind: &Kind,
        own: impl Fn(&str) -> Option<String>,
        wanted: impl Fn(&str, &str) -> Option<&'static str>,
    ) -> Result<Chosen, TargetError> {
        let (product, known) = (&kind.facts().product, &kind.knowledge.settings);
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
