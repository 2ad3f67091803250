//! Reports that leave the house. Lists of fields say which texts of a run stay; every other text is replaced in the run itself, before
//! anything is rendered, so it is in no format. A new field is hidden until a list names it.
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

/// Instead of a text that does not stay.
const LEFT_OUT: &str = "left out";

/// Fields whose texts stay: words of loadline's own, and hardware. A field is the end of its path in `manifest` or `test`, without
/// numbers of array items; `*` stands for anything.
const STAYS: &[&str] = &[
    "manifest.loadline_version", "manifest.started_at", "manifest.state", "machine.cpu_model", "machine.kernel",
    "machine.os", "machine.virtualisation", "storage*.filesystem", "storage*.device", "device_facts*model",
    "probes*.kind", "probes*.engine", "probes*.operation", "data_set.arm", "data_set.fingerprint", "plan.on_node_loss",
    "agents.credentials", "agents.on_loss", "workloads.driver", "doctor.id", "doctor.severity", "test.group",
    "test.driver", "test.arm", "test.started_at", "checks.id", "checks.outcome", "test.data_source", "test.kpis",
    "test.swept", "test.bounded_by", "limit.name", "limit.source", "imported.tool", "files.sha256",
];
/// Fields whose texts stay unless the report is anonymous.
const PRODUCT: &[&str] =
    &["target.kind", "target.product", "target.version", "data_set.path", "levels.levels", "level.level"];
/// Fields whose texts stay if they are [`plain`], and neither a port nor a name.
const PLAIN: &[&str] = &["settings.*", "device_facts.*", "storage*.mount_options", "doctor.value", "imported.version"];
/// Kinds of names, and the fields that hold them. Each name gets a number after its kind, the same in all runs.
const NUMBERED: &[(&str, &[&str])] = &[
    ("run", &["manifest.run", "test.run"]),
    // The platform of a test of arms is the label of its arm.
    (PLATFORM, &["plan.platform", "test.platform", "arms*.label"]),
    ("target", &["plan.target", "target.url", "test.target", "arms.a.target", "arms.b.target"]),
    ("node", &["plan.nodes"]),
    ("standby", &["levels.standbys"]),
    ("hub", &["agents.hub"]),
    ("host", &["machine.host", "target.host", "by_agent.host"]),
    ("agent", &["by_agent.name"]),
    ("interface", &["network.interface"]),
    (
        "path",
        &[
            "target.log_dir", "target.data_dir", "storage*.path", "storage*.mount_point", "storage*.source",
            "probes*.dir",
        ],
    ),
    ("file", &["workload_files.name", "files.name"]),
    (PROGRAM, &["workload_files.text"]),
    ("limit", &["limit.of", "log_writer.of"]),
    (TABLE, &["data_set.table"]),
    (REASON, &["workloads.forced", "test.forced"]),
    (SCRIPT, &["kinds.name"]),
    (VALUE, &["settings.*", "device_facts.*", "storage*.mount_options"]),
    ("version", &["imported.version"]),
    (WORKLOAD, &["workloads.code", "skipped.code", "overhead.workload", "test.workload", "log_writer.workload"]),
];
/// Maps whose keys are not loadline's, and the kinds of their keys.
const KEYS: &[(&str, &str)] = &[
    ("manifest.calibration", WORKLOAD),
    ("parameters", PARAMETER),
    ("test.error_texts", "error"),
    ("settings", SETTING),
    ("waits.sessions", WAIT),
    ("manifest.probes", ROLE),
    ("target.storage", ROLE),
    ("device_facts", FACT),
    ("by_node.per_s", COUNTER),
    ("by_node.gauges", COUNTER),
    ("test.absent", COLUMN),
];
const COLUMN: &str = "column";
const COUNTER: &str = "counter";
const FACT: &str = "fact";
const PARAMETER: &str = "parameter";
const PLATFORM: &str = "platform";
const PROGRAM: &str = "text";
const REASON: &str = "reason";
const ROLE: &str = "role";
const SCRIPT: &str = "script";
const SETTING: &str = "setting";
const TABLE: &str = "table";
const VALUE: &str = "value";
const WAIT: &str = "wait";
const WORKLOAD: &str = "WORKLOAD";

/// Scripts that pgbench has.
const SCRIPTS: &[&str] = &["builtin:tpcb-like", "builtin:simple-update", "builtin:select-only"];
/// What the kernel tells of a device.
const FACTS: &[&str] = &[
    "model", "size", "scheduler", "rotational", "write_cache", "logical_block_size", "physical_block_size",
    "nr_requests", "fua", "dax", "dm_name", "dm_kind", "md_level", "backing_file", "slaves", "disk",
    "filesystem_devices",
];
/// Units of numbers.
const UNITS: &[&str] = &[
    "", "%", "b", "k", "m", "g", "t", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib", "ns", "us", "ms", "s", "min",
    "h", "d",
];
/// Words of settings and mount options that tell nobody's name.
const WORDS: &[&str] = &[
    "on", "off", "yes", "no", "true", "false", "none", "default", "auto", "always", "never", "try", "minimal", "local",
    "replica", "logical", "remote_write", "remote_apply", "full", "normal", "extra", "fsync", "fdatasync", "open_sync",
    "open_datasync", "fsync_writethrough", "o_direct", "o_direct_no_fsync", "o_dsync", "littlesync", "nosync", "lz4",
    "zstd", "pglz", "snappy", "zlib", "wal", "delete", "truncate", "persist", "memory", "row", "statement", "mixed",
    "rw", "ro", "relatime", "noatime", "nodiratime", "lazytime", "barrier", "nobarrier", "data", "ordered",
    "writeback", "write", "back", "through", "journal", "discard", "nodiscard", "mq-deadline", "bfq", "kyber",
    "repeatable-read", "read-committed", "repeatable", "read", "committed", "serializable", "utf8", "utf8mb4", "utc",
    "kib", "mib", "gib", "%", "errors", "remount-ro", "inode64", "attr2", "noquota", "logbufs", "logbsize", "seclabel",
    "stripe", "ssd", "dax",
];

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
        let is_in = |list: &[&str]| list.iter().any(|field| is_at(path, field));
        let is_excepted = ["port", "_name", "_names"].iter().any(|end| path.ends_with(end));
        let is_plain = is_in(PLAIN) && plain(text) && !is_excepted;
        let stays = is_in(STAYS) || (is_in(PRODUCT) && !self.anonymous) || is_plain;
        if text.is_empty() || stays {
            return text.to_owned();
        }
        match NUMBERED.iter().find(|(_, fields)| is_in(fields)) {
            Some((REASON, _)) => self.forced(text),
            // Private servers do not differ in their folders.
            Some((VALUE, _)) if of_private_server(text) => LEFT_OUT.to_owned(),
            Some((kind, _)) => self.numbered(kind, text),
            None => LEFT_OUT.to_owned(),
        }
    }

    /// What stands for `key` of the map at `path`.
    fn key(&mut self, path: &str, key: &str) -> String {
        let kind = KEYS.iter().find(|(map, _)| is_at(path, map)).map(|(_, kind)| *kind);
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match kind {
            // A setting with a dot is an extension's, or anybody's.
            Some(SETTING) if key.chars().all(is_word) => key.to_owned(),
            Some(WAIT) if self.anonymous => class(key).to_owned(),
            Some(WAIT) if is_wait(key) => key.to_owned(),
            Some(WAIT) => "other".to_owned(),
            Some(ROLE) if ["log", "data"].contains(&key) => key.to_owned(),
            Some(COUNTER) if key.starts_with("loadline.") => key.to_owned(),
            Some(COLUMN) if column::column(key).is_some() => key.to_owned(),
            Some(FACT) => {
                let (device, fact) = key.rsplit_once('.').map_or((None, key), |(device, fact)| (Some(device), fact));
                let fact = if FACTS.contains(&fact) { fact.to_owned() } else { self.numbered(FACT, fact) };
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
        forced.refused = forced.refused.map(|why| self.numbered(REASON, &why));
        forced.to_string()
    }

    fn numbered(&mut self, kind: &'static str, text: &str) -> String {
        let of_catalogue = matches!(kind, WORKLOAD | PARAMETER | TABLE);
        let known = of_catalogue && (self.known)(text) && !(self.anonymous && text.starts_with("PGBENCH"));
        let known = known || (kind == SCRIPT && SCRIPTS.contains(&text) && !self.anonymous);
        if text.is_empty() || known || (kind == PLATFORM && text == self.default_platform) {
            return text.to_owned();
        }
        if let Some(code) = text.strip_suffix(Calibration::IN_ARM_B).filter(|_| kind == WORKLOAD) {
            return self.numbered(kind, code) + Calibration::IN_ARM_B;
        }
        let next = self.numbers.keys().filter(|(of, _)| *of == kind).count() + 1;
        let n = *self.numbers.entry((kind, text.to_owned())).or_insert(next);
        if kind == PROGRAM {
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

/// Whether `text` is only numbers with units and [`WORDS`].
fn plain(text: &str) -> bool {
    let mut words = text.split(|c: char| c.is_whitespace() || ",=()[]".contains(c)).filter(|word| !word.is_empty());
    words.all(|word| {
        let bare = word.trim_start_matches(['-', '+']);
        let digits = bare.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
        let is_number = digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.chars().all(|c| c.is_ascii_digit() || "./".contains(c))
            && digits.matches(['.', '/']).count() < 2
            && UNITS.contains(&bare[digits.len()..].to_lowercase().as_str());
        is_number || WORDS.contains(&word.to_lowercase().as_str())
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
