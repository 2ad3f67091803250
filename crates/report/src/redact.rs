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
use loadline_model::{Finding, Imported, Outcome, TestRecord, column};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::content::settings::of_private_server;
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

/// Whether `word` is in the list `name`.
fn is_listed(name: &str, word: &str) -> bool {
    lists().any(|(of, mut words)| of == name && words.any(|listed| listed == word))
}

/// The list after `begin` that has a field at which `path` ends: of fields if `begin` is empty, of maps if it is `keys `.
fn kind_at(begin: &str, path: &str) -> Option<&'static str> {
    const OTHERS: [&str; 7] = ["stays", "product", "plain", "scripts", "facts", "units", "words"];
    let kinds = lists().filter_map(|(name, fields)| Some((name.strip_prefix(begin)?, fields)));
    let mut kinds = kinds.filter(|(kind, _)| !OTHERS.contains(kind) && !kind.starts_with("keys "));
    kinds.find_map(|(kind, mut fields)| fields.any(|field| is_at(path, field)).then_some(kind))
}

/// Replaces what identifies the owner of the platforms. `known` tells whether a word is a name from loadline's catalogue: a workload,
/// parameter or table. Published measurements that come with loadline stay.
///
/// # Errors
/// [`ReportError::Json`]: a field without a rule.
pub fn redact(runs: &mut [RunData], known: &dyn Fn(&str) -> bool) -> Result<(), ReportError> {
    Hiding { known, anonymous: false, default_platform: String::new(), numbers: BTreeMap::new() }.hide(runs)
}

/// Replaces the products as well.
///
/// # Errors
/// A run of arms or levels, whose settings and levels are a product's own words, or an imported one, whose tool is known by the product
/// that it tests; otherwise as [`redact`].
pub fn anonymise(runs: &mut [RunData], known: &dyn Fn(&str) -> bool) -> Result<(), ReportError> {
    let mut products: Vec<String> = Vec::new();
    for run in runs.iter_mut() {
        let manifest = &run.manifest;
        if run.records.iter().any(|r| r.imported.is_some()) {
            return Err(ReportError::NotAnonymousImport(manifest.run.clone()));
        }
        if manifest.plan.arms.is_some() || manifest.plan.levels.is_some() {
            return Err(ReportError::NotAnonymous(manifest.run.clone()));
        }
        products.push(format!("{} {}", manifest.target.product, manifest.target.version));
    }
    let mut hiding = Hiding { known, anonymous: true, default_platform: String::new(), numbers: BTreeMap::new() };
    hiding.hide(runs)?;
    for (run, product) in runs.iter_mut().zip(&products) {
        let n = products.iter().position(|p| p == product).unwrap_or_default();
        let before = products[..n].iter().enumerate().filter(|(i, p)| !products[..*i].contains(p)).count();
        let name = format!("Database {}", letters(before));
        let target = &mut run.manifest.target;
        target.settings.clear();
        target.version.clear();
        target.product.clone_from(&name);
        run.manifest.plan.settings.clear();
        run.manifest.doctor.clear();
        run.records.iter_mut().for_each(|r| r.platform.clone_from(&name));
        run.manifest.plan.platform = name;
    }
    Ok(())
}

/// `A`, `B`, … `Z`, `AA`, ….
fn letters(n: usize) -> String {
    let last = char::from(b'A' + (n % 26) as u8);
    if n < 26 { last.to_string() } else { format!("{}{last}", letters(n / 26 - 1)) }
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
        for run in runs.iter_mut().filter(|run| run.published.as_ref().is_none_or(|p| p.imported)) {
            let target = &run.manifest.target;
            self.default_platform = format!("{} {}", target.product, target.version);
            run.manifest.command.clear();
            run.manifest = self.hidden("manifest", &run.manifest)?;
            let arms = run.manifest.arms.iter_mut().flat_map(|arms| arms.iter_mut());
            arms.flat_map(|arm| &mut arm.doctor).chain(&mut run.manifest.doctor).for_each(name_by_id);
            for record in &mut run.records {
                record.figures.retain(|id, _| column::column(id).is_some());
                *record = self.hidden("test", record)?;
                say_by_figures(record);
            }
            // Pages beside the report show everything.
            run.pages.clear();
            run.warnings.iter_mut().for_each(|warning| LEFT_OUT.clone_into(warning));
            let notes = std::mem::take(&mut run.notes).into_keys();
            run.notes = notes.map(|code| (self.key("manifest.calibration", &code), LEFT_OUT.to_owned())).collect();
            if let Some(published) = &mut run.published {
                let imported = run.records.iter().find_map(|r| r.imported.as_ref());
                published.source = imported.map_or(LEFT_OUT.to_owned(), Imported::unchecked);
                for finding in &mut published.findings {
                    *finding = format!("{}{LEFT_OUT}", if finding.starts_with("error") { "error: " } else { "" });
                }
            }
        }
        Ok(())
    }

    fn hidden<T: Serialize + DeserializeOwned>(&mut self, name: &str, value: &T) -> Result<T, ReportError> {
        let mut json = serde_json::to_value(value)?;
        self.walk(name, &mut json);
        Ok(serde_json::from_value(json)?)
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

    /// What stands for `text` of the field at `path`.
    fn text(&mut self, path: &str, text: &str) -> String {
        let is_in = |name: &str| lists().any(|(of, mut fields)| of == name && fields.any(|field| is_at(path, field)));
        let is_excepted = ["port", "_name", "_names"].iter().any(|end| path.ends_with(end));
        let is_plain = is_in("plain") && plain(text) && !is_excepted;
        let stays = is_in("stays") || (is_in("product") && !self.anonymous) || is_plain;
        if text.is_empty() || stays {
            return text.to_owned();
        }
        match kind_at("", path) {
            Some("reason") => self.forced(text),
            // Private servers do not differ in their folders.
            Some("value") if of_private_server(text) => LEFT_OUT.to_owned(),
            Some(kind) => self.numbered(kind, text),
            None => LEFT_OUT.to_owned(),
        }
    }

    /// What stands for `key` of the map at `path`.
    fn key(&mut self, path: &str, key: &str) -> String {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match kind_at("keys ", path) {
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
                let fact = if is_listed("facts", fact) { fact.to_owned() } else { self.numbered("fact", fact) };
                device.map_or(fact.clone(), |device| format!("{}.{fact}", self.numbered("device", device)))
            }
            Some(kind) => self.numbered(kind, key),
            None if key.chars().all(|c| is_word(c) || ".-".contains(c)) => key.to_owned(),
            None => self.numbered("key", key),
        }
    }

    /// What stands for why a test was forced: tests with other reasons are not pooled.
    fn forced(&mut self, why: &str) -> String {
        let mut forced = Forced::from(Some(why.to_owned()));
        forced.refused = forced.refused.map(|why| self.numbered("reason", &why));
        forced.to_string()
    }

    fn numbered(&mut self, kind: &'static str, text: &str) -> String {
        let of_catalogue = matches!(kind, WORKLOAD | "parameter" | "table");
        let known = of_catalogue && (self.known)(text) && !(self.anonymous && text.starts_with("PGBENCH"));
        let known = known || (kind == "script" && is_listed("scripts", text) && !self.anonymous);
        if text.is_empty() || known || (kind == "platform" && text == self.default_platform) {
            return text.to_owned();
        }
        if let Some(code) = text.strip_suffix(Calibration::IN_ARM_B).filter(|_| kind == WORKLOAD) {
            return self.numbered(kind, code) + Calibration::IN_ARM_B;
        }
        let next = self.numbers.keys().filter(|(of, _)| *of == kind).count() + 1;
        let n = *self.numbers.entry((kind, text.to_owned())).or_insert(next);
        if kind == "text" {
            // Comparisons look for the code, and whether texts are equal.
            let codes = codes_in(text).map(|code| format!("code = \"{}\"\n", self.numbered(WORKLOAD, &code)));
            return codes.collect::<String>() + &format!("# {kind}-{n}: {LEFT_OUT}\n");
        }
        format!("{kind}-{n}")
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
            && (digits == bare || is_listed("units", &bare[digits.len()..].to_lowercase()));
        is_number || is_listed("words", &word.to_lowercase())
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
    const CLASSES: [(&str, &[&str]); 6] = [
        ("CPU", &["cpu", "running"]),
        ("replica", &["syncrep", "replic", "standby", "semi"]),
        ("log", &["wal", "redo", "log", "sync", "commit"]),
        ("locks", &["lock", "latch", "mutex", "enq", "pin", "content"]),
        ("client", &["client", "net", "sock"]),
        ("data", &["read", "write", "file", "io", "data", "buffer"]),
    ];
    let event = event.to_lowercase();
    CLASSES.iter().find(|(_, parts)| parts.iter().any(|p| event.contains(p))).map_or("other", |(class, _)| class)
}

fn name_by_id(finding: &mut Finding) {
    finding.subject.clone_from(&finding.id);
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
