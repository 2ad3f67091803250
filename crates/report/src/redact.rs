//! Reports that leave the house. The lists of `redact.txt` say which texts of a run stay; every other text is replaced in the run
//! itself, before anything is rendered, so it is in no format. A new field is hidden until a list names it.
//!
//! No text is searched for names: it stays as a whole, or it goes as a whole.

use std::collections::BTreeMap;

use loadline_analyze::compare::codes_in;
use loadline_model::Forced;
use loadline_model::disturbance::{DISTURBANCES, disturbed_by};
use loadline_model::format::number;
use loadline_model::manifest::Calibration;
use loadline_model::{Imported, Json, Letter, Note, Outcome, TestRecord, column};
use serde_json::Value;

use crate::content::platform::of_private_server;
use crate::words::letters;
use crate::{ReportError, RunData};

/// Kind of the codes of workloads.
const WORKLOAD: &str = "WORKLOAD";
/// Instead of a text that does not stay.
const LEFT_OUT: &str = "left out";

/// The lists: lines `NAME: WORDS`, of which several may have one name.
const LISTS: &str = include_str!("redact.txt");

/// The names of all lists with their words, in order.
fn lists() -> impl Iterator<Item = (&'static str, std::str::SplitWhitespace<'static>)> {
    let lines = LISTS.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(": ")).map(|(name, words)| (name, words.split_whitespace()))
}

/// Rest after `begin` in the name of the first list that has a fitting word.
fn named(begin: &str, fits: impl Fn(&str) -> bool) -> Option<&'static str> {
    let named = lists().filter_map(|(name, words)| Some((name.strip_prefix(begin)?, words)));
    named.filter(|(name, _)| !name.contains(' ')).find_map(|(name, mut words)| words.any(&fits).then_some(name))
}

fn is_in(name: &str, fits: impl Fn(&str) -> bool) -> bool {
    lists().any(|(of, mut words)| of.strip_prefix("list ") == Some(name) && words.any(&fits))
}

/// Replaces what identifies the owner of the platforms; if `anonymous`, the products as well. `known` tells whether a word is a name from
/// loadline's catalogue: a workload, parameter or table. Published measurements that come with loadline stay.
///
/// # Errors
/// A field without a rule. Anonymous: a run of arms or levels, whose settings and levels are a product's own words, or an imported one,
/// whose tool is known by the product that it tests.
pub fn redact(runs: &mut [RunData], anonymous: bool, known: &dyn Fn(&str) -> bool) -> Result<(), ReportError> {
    let anonymised = if anonymous { &*runs } else { &[] };
    for RunData { manifest, records, .. } in anonymised {
        let why = match (records.iter().any(|r| r.imported().is_some()), &manifest.plan.paired) {
            (true, _) => "it is imported, and its tool and the names of its work tell the product",
            (false, Some(_)) => {
                "it is a run of arms or of levels, whose settings and levels are the product's own words"
            }
            (false, None) => continue,
        };
        return Err(ReportError::NotAnonymous(manifest.run.clone(), why));
    }
    Hiding { known, anonymous, default_platform: String::new(), numbers: BTreeMap::new() }.hide(runs)
}

struct Hiding<'a> {
    known: &'a dyn Fn(&str) -> bool,
    anonymous: bool,
    /// Name of the run's platform if the user gave none.
    default_platform: String,
    /// Numbers by kind and text.
    numbers: BTreeMap<(&'static str, String), usize>,
}

impl Hiding<'_> {
    fn hide(&mut self, runs: &mut [RunData]) -> Result<(), ReportError> {
        for run in runs {
            let target = &run.manifest.target;
            self.default_platform = format!("{} {}", target.product, target.version);
            let product = letters(self.number("product", &self.default_platform.clone()) - 1);
            if run.published.as_ref().is_none_or(|p| p.imported) {
                self.hide_run(run)?;
            }
            if self.anonymous {
                let RunData { manifest, records, .. } = run;
                manifest.target.settings.clear();
                manifest.target.version.clear();
                manifest.target.product = format!("Database {product}");
                manifest.plan.settings.clear();
                manifest.plan.facts.remove("database-version");
                manifest.doctor.clear();
                manifest.plan.platform.clone_from(&manifest.target.product);
                records.iter_mut().for_each(|r| r.platform.clone_from(&manifest.target.product));
            }
        }
        Ok(())
    }

    fn hide_run(&mut self, run: &mut RunData) -> Result<(), ReportError> {
        run.manifest.command.clear();
        run.manifest = self.hidden("manifest", &run.manifest)?;
        let findings =
            run.manifest.variants.iter_mut().flat_map(|found| &mut found.doctor).chain(&mut run.manifest.doctor);
        findings.for_each(|finding| finding.subject.clone_from(&finding.id));
        for record in &mut run.records {
            record.figures.retain(|id, _| column::column(id).is_some());
            *record = TestRecord { tries: record.tries, ..self.hidden("test", record)? };
            if self.anonymous {
                // Only one product has them.
                record.notes.retain(|n| !matches!(n, Note::ScriptCommits { .. } | Note::NewLogFiles { .. }));
            }
            say_by_figures(record);
        }
        // Pages beside the report show everything.
        run.pages.clear();
        run.warnings.iter_mut().for_each(|warning| LEFT_OUT.clone_into(warning));
        let notes = std::mem::take(&mut run.notes).into_keys();
        run.notes = notes.map(|code| (self.key("manifest.calibration", &code), LEFT_OUT.to_owned())).collect();
        if let Some(published) = &mut run.published {
            let imported = run.records.iter().find_map(|r| r.imported());
            published.source = imported.map_or(LEFT_OUT.to_owned(), Imported::unchecked);
            for finding in &mut published.findings {
                finding.said = format!("{}{LEFT_OUT}", if finding.is_error { "error: " } else { "" });
            }
        }
        Ok(())
    }

    fn hidden<T: Json>(&mut self, name: &str, value: &T) -> Result<T, ReportError> {
        let mut json = value.to_json()?;
        self.walk(name, &mut json);
        Ok(T::from_json(json.to_string().as_bytes())?)
    }

    fn walk(&mut self, path: &str, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(path, text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(path, item)),
            Value::Object(map) => {
                let mut hidden = serde_json::Map::new();
                for (key, mut item) in std::mem::take(map) {
                    // A dot of a key begins no field.
                    self.walk(&format!("{path}.{}", key.replace('.', "_")), &mut item);
                    let key = self.key(path, &key);
                    // Equal keys are of counts.
                    let sum = hidden.get(&key).and_then(Value::as_u64).zip(item.as_u64());
                    hidden.insert(key, sum.map_or(item, |(a, b)| Value::from(a.saturating_add(b))));
                }
                *map = hidden;
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Replacement of `text` of the field at `path`.
    fn text(&mut self, path: &str, text: &str) -> String {
        let here = |name: &str| is_in(name, |field| is_at(path, field));
        let is_excepted = ["port", "_name", "_names"].iter().any(|end| path.ends_with(end));
        let is_plain = here("plain") && plain(text) && !is_excepted;
        let stays = here("stays") || (here("product") && !self.anonymous) || is_plain;
        if text.is_empty() || stays {
            return text.to_owned();
        }
        match named("", |field| is_at(path, field)) {
            Some("reason") => self.forced(text),
            // Private servers do not differ in their folders.
            Some("value") if of_private_server(text) => LEFT_OUT.to_owned(),
            Some(kind) => self.numbered(kind, text),
            None => LEFT_OUT.to_owned(),
        }
    }

    /// Replacement of `key` of the map at `path`.
    fn key(&mut self, path: &str, key: &str) -> String {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match named("keys ", |map| is_at(path, map)) {
            // A setting with a dot is an extension's, or anybody's.
            Some("setting") if key.chars().all(is_word) => key.to_owned(),
            Some("wait") if self.anonymous => class(key).to_owned(),
            Some("wait") if is_wait(key) => key.to_owned(),
            Some("wait") => "other".to_owned(),
            Some("role") if ["log", "data"].contains(&key) => key.to_owned(),
            Some("counter") if key.starts_with("loadline.") => key.to_owned(),
            Some("column") if column::column(key).is_some() => key.to_owned(),
            Some("fact") => {
                let (device, fact) = key.rsplit_once('.').map_or((None, key), |(device, fact)| (Some(device), fact));
                let fact =
                    if is_in("facts", |known| known == fact) { fact.to_owned() } else { self.numbered("fact", fact) };
                device.map_or(fact.clone(), |device| format!("{}.{fact}", self.numbered("device", device)))
            }
            Some(kind) => self.numbered(kind, key),
            None if key.chars().all(|c| is_word(c) || ".-".contains(c)) => key.to_owned(),
            None => self.numbered("key", key),
        }
    }

    /// Replacement of why a test was forced: tests with other reasons are not pooled.
    fn forced(&mut self, why: &str) -> String {
        let mut forced = Forced::from(Some(why.to_owned()));
        forced.refused = forced.refused.map(|why| self.numbered("reason", &why));
        forced.to_string()
    }

    fn numbered(&mut self, kind: &'static str, text: &str) -> String {
        let of_catalogue = matches!(kind, WORKLOAD | "parameter" | "table");
        let known = of_catalogue && (self.known)(text) && !(self.anonymous && text.starts_with("PGBENCH"));
        let known = known || (kind == "script" && is_in("scripts", |known| known == text) && !self.anonymous);
        if text.is_empty() || known || (kind == "platform" && text == self.default_platform) {
            return text.to_owned();
        }
        let (code, arm) = Calibration::of_key(text);
        if kind == WORKLOAD && arm != Letter::A {
            return Calibration::key(&self.numbered(kind, code), arm);
        }
        let n = self.number(kind, text);
        if kind == "text" {
            // Comparisons look for the code, and whether texts are equal.
            let codes = codes_in(text).map(|code| format!("code = \"{}\"\n", self.numbered(WORKLOAD, &code)));
            return codes.collect::<String>() + &format!("# {kind}-{n}: {LEFT_OUT}\n");
        }
        format!("{kind}-{n}")
    }

    /// The number of `text` among those of its kind, from 1.
    fn number(&mut self, kind: &'static str, text: &str) -> usize {
        let next = self.numbers.keys().filter(|(of, _)| *of == kind).count() + 1;
        *self.numbers.entry((kind, text.to_owned())).or_insert(next)
    }
}

/// Whether `path` ends with `field`, or with what follows its `*` after what precedes it.
fn is_at(path: &str, field: &str) -> bool {
    let (begin, end) = field.split_once('*').unwrap_or(("", field));
    path.strip_suffix(end).is_some_and(|rest| match begin {
        "" => rest.is_empty() || rest.ends_with('.'),
        begin => rest.contains(begin),
    })
}

/// Whether `text` is only numbers with units and listed words.
fn plain(text: &str) -> bool {
    let mut words = text.split(|c: char| c.is_whitespace() || ",=()[]".contains(c)).filter(|word| !word.is_empty());
    words.all(|word| {
        let bare = word.trim_start_matches(['-', '+']);
        let digits = bare.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
        let is_number = digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.chars().all(|c| c.is_ascii_digit() || "./".contains(c))
            && digits.matches(['.', '/']).count() < 2
            && (digits == bare || is_in("units", |unit| bare[digits.len()..].eq_ignore_ascii_case(unit)));
        is_number || is_in("words", |known| word.eq_ignore_ascii_case(known))
    })
}

/// Whether `event` is written as databases name waits: `IO:WALSync`, `wait/io/file/sql/binlog`, `log file switch (checkpoint
/// incomplete)`, `Disk file operations I/O`.
fn is_wait(event: &str) -> bool {
    let rest = if event.starts_with("wait/") { event.replace('/', "") } else { event.replace("I/O", "") };
    rest.chars().all(|c| c.is_ascii_alphanumeric() || "_:*&-() ".contains(c))
}

/// The class of a wait, from the words in its name.
fn class(event: &str) -> &'static str {
    let event = event.to_lowercase();
    named("class ", |part| event.contains(part)).unwrap_or("other")
}

/// Says anew what follows from figures and from ids of checks.
fn say_by_figures(record: &mut TestRecord) {
    if record.disturbed_by.is_some() {
        record.disturbed_by = disturbed_by(record);
    }
    for check in &mut record.checks {
        let kind = DISTURBANCES.iter().find(|kind| kind.check == check.id);
        if let Some((kind, pct)) = kind.and_then(|kind| Some((kind, record.figures.get(kind.column.id)?))) {
            check.detail = format!("{} {} %", kind.words, number(*pct, 0));
        }
    }
    if record.invalid_reason.is_some() {
        let failed = record.checks.iter().filter(|c| c.outcome == Outcome::Failed);
        let ids: Vec<String> = failed.map(|check| check.id.to_string()).collect();
        record.invalid_reason = Some(format!("failed: {}", ids.join(", ")));
    }
}
