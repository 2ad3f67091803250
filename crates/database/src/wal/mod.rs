//! `wal:`, the reference log writer as a target: the cost of commits with nothing but a log.
//!
//! It does not run SQL: a statement appends one redo record with the statement's arguments (if it makes the content of many
//! rows itself, a record for each row), and a commit commits the log. Jobs are threads of this process.

mod devices;
mod levels;
mod session;
mod wal_url;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};

use loadline_logwriter::device::Standby;
use loadline_logwriter::{LogConfig, LogWriter};
use loadline_model::manifest::TargetInfo;
use loadline_model::{Finding, Severity};
use loadline_workload::{Commit, Step};

use crate::error::TargetError;
use crate::facts::{Facts, Runs};
use crate::folder::{self, OwnedFolder};
use crate::kind::TargetKind;
use crate::relay::Relay;
use crate::render::Rendered;
use crate::request::OpenRequest;
use crate::role::{Administration, ClientDriver, ClientSession, Doctor, Level, Observation, Observer, Scope};
use crate::target::{Abilities, Target};
use crate::work::Work;
use session::{WalObserver, WalSession, failed};
use wal_url::{SCHEME, WalUrl};

const FOLDER: &str = "loadline-wal";
/// Prefix of temporary folders next to the results.
const TEMP_PREFIX: &str = "loadline-wal-";

pub(crate) struct Kind;

impl TargetKind for Kind {
    fn scheme(&self) -> &'static str {
        SCHEME
    }

    fn check_url(&self, url: &str) -> Result<u32, TargetError> {
        WalUrl::parse(url).map(|_| 1)
    }

    fn open(&self, request: &OpenRequest) -> Result<Box<dyn Target>, TargetError> {
        Ok(Box::new(Wal::open(request)?))
    }

    fn render(&self, work: &Work) -> Vec<Rendered> {
        render(work)
    }

    fn clean_leftovers(&self, request: &OpenRequest) -> Result<Vec<String>, TargetError> {
        let mut removed = folder::clean_leftovers(&request.scratch, TEMP_PREFIX)?;
        for folder in WalUrl::parse(&request.url).map(|a| a.folders()).unwrap_or_default() {
            removed.extend(folder::clean(&folder.join(FOLDER))?);
            removed.extend(folder::clean_leftovers(&folder, TEMP_PREFIX)?);
        }
        Ok(removed)
    }

    fn is_temporary(&self, url: &str) -> bool {
        WalUrl::parse(url).is_ok_and(|a| a.dir.is_none())
    }

    fn levels(&self) -> Vec<Level> {
        levels::levels()
    }
}

static FACTS: LazyLock<Facts> = LazyLock::new(|| Facts::for_runs(Runs::InProcess));

struct Wal {
    address: WalUrl,
    writer: Arc<LogWriter>,
    device: String,
    warnings: Vec<String>,
    standby: Option<Arc<Standby>>,
    /// The link to the standby of levels.
    relay: Option<Arc<Relay>>,
    interrupted: Arc<AtomicBool>,
    /// Removed after everything that writes there has ended.
    folders: Vec<OwnedFolder>,
}

impl Wal {
    fn open(request: &OpenRequest) -> Result<Wal, TargetError> {
        let refuse = |what: &str| Err(TargetError::Usage(format!("the reference log writer {what}")));
        if !request.nodes.is_empty() {
            return refuse("has no nodes: leave out --node");
        }
        if !request.settings.is_empty() {
            return refuse("takes no --setting: its settings are parameters of its URL (see `loadline targets`)");
        }
        let address = WalUrl::parse(&request.url)?;
        if request.replicas > 0 && address.copies().next().is_some() {
            return refuse(
                "makes its standby itself and sets its rule: leave 'standby', 'mirror' and 'flash' out of the URL",
            );
        }
        let mut folders = vec![match &address.dir {
            Some(dir) => OwnedFolder::under(dir, FOLDER)?,
            None => OwnedFolder::temporary(&request.scratch, TEMP_PREFIX)?,
        }];
        for copy in address.copies() {
            folders.push(OwnedFolder::under(copy, FOLDER)?);
        }
        if request.replicas > 0 {
            folders.push(OwnedFolder::temporary(address.dir.as_deref().unwrap_or(&request.scratch), TEMP_PREFIX)?);
        }
        let opened = devices::open(&address, &folders, request.replicas > 0)?;
        let devices::Opened { device, description, warnings, standby, relay } = opened;
        let (writer, _) = LogWriter::open(&config(&address), device)
            .map_err(|e| TargetError::Local(format!("the log in {} cannot be opened: {e}", log_folder(&folders))))?;
        Ok(Wal {
            address,
            writer: Arc::new(writer),
            device: description,
            warnings,
            standby,
            relay,
            interrupted: Arc::clone(&request.interrupted),
            folders,
        })
    }
}

fn log_folder(folders: &[OwnedFolder]) -> String {
    folders.first().map(|f| f.path().display().to_string()).unwrap_or_default()
}

fn config(address: &WalUrl) -> LogConfig {
    LogConfig {
        buffer_bytes: address.buffer_bytes,
        buffer_fraction: address.flush_fraction,
        at_bytes: address.flush_at,
        every: address.flush_every,
        ..LogConfig::default()
    }
}

/// Describes a transaction in words, because there is no SQL.
fn render(work: &Work) -> Vec<Rendered> {
    fn walk(work: &Work, steps: &[Step], depth: usize, out: &mut String) {
        for step in steps {
            let indent = "  ".repeat(depth);
            match step {
                Step::Bind { .. } => {}
                Step::Repeat { times, body } => {
                    *out += &format!("{indent}repeat {times} times\n");
                    walk(work, body, depth + 1, out);
                }
                Step::Choose { arms, .. } => {
                    let all: u64 = arms.iter().map(|a| a.share).sum();
                    for arm in arms {
                        *out += &format!("{indent}in {} of {all} transactions\n", arm.share);
                        walk(work, &arm.body, depth + 1, out);
                    }
                }
                Step::Bulk { .. } | Step::Compute { .. } => {
                    *out += &format!("{indent}nothing: the log has neither tables nor a language\n");
                }
                Step::Execute { statement } => {
                    let Some(s) = work.program.statements.get(*statement) else { continue };
                    let vars = s.template.vars().collect::<Vec<_>>().join(", ");
                    *out += &match (work.renewed_bytes(&s.template), s.effect.rows()) {
                        (bytes @ 1.., Some(rows)) => {
                            format!("{indent}append {rows} records (key, {bytes} bytes of the job's pool)\n")
                        }
                        _ => format!("{indent}append record ({vars})\n"),
                    };
                }
            }
        }
    }
    let mut text = String::new();
    walk(work, &work.program.body, 0, &mut text);
    text.push_str(match work.program.commit {
        Commit::Wait => "commit, and wait until it is durable",
        Commit::Nowait => "commit, and do not wait",
    });
    vec![Rendered::new("transaction", text).in_words()]
}

fn shown(bytes: u64) -> String {
    loadline_model::format::bytes(bytes as f64)
}

impl Target for Wal {
    fn facts(&self) -> &Facts {
        &FACTS
    }

    fn info(&self) -> Result<TargetInfo, TargetError> {
        let off = |value: Option<String>| value.unwrap_or_else(|| "off".to_owned());
        let a = &self.address;
        let settings = [
            ("device", self.device.clone()),
            ("buffer_bytes", a.buffer_bytes.to_string()),
            ("flush_at_commit", "on".to_owned()),
            ("flush_fraction", off(a.flush_fraction.map(|f| format!("{f:.4}")))),
            ("flush_at_bytes", off(a.flush_at.map(|b| b.to_string()))),
            ("flush_every_ms", off(a.flush_every.map(|d| d.as_millis().to_string()))),
            ("file_bytes", a.file_bytes.to_string()),
        ];
        let directory = log_folder(&self.folders);
        Ok(TargetInfo {
            in_process: true,
            kind: SCHEME.into(),
            product: Kind.facts().product.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            url: a.url.clone(),
            nodes: 1,
            local: true,
            settings: settings.map(|(n, v)| (n.to_owned(), v)).into(),
            log_dir: Some(directory.clone()),
            data_dir: Some(directory),
            notes: [format!("a log and nothing else: {}", self.device)]
                .into_iter()
                .chain(self.warnings.clone())
                .collect(),
            ..TargetInfo::default()
        })
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities { levels: self.relay.is_some().then_some(self as _), ..Abilities::default() }
    }
}

/// The owner files of its folders, locked as long as it is open, keep other runs away.
impl Administration for Wal {
    /// The log's own count of appended records.
    fn evidence(&self, _: &Work) -> Result<Option<i64>, TargetError> {
        Ok(i64::try_from(self.writer.stats().records).ok())
    }

    fn settle(&self) -> Result<Option<String>, TargetError> {
        self.writer.session().and_then(|mut s| s.flush()).map(|()| None).map_err(failed)
    }

    fn clean(&self) -> Result<Vec<String>, TargetError> {
        let mut removed = Vec::new();
        for folder in &self.folders {
            removed.extend(folder.remove()?);
        }
        Ok(removed)
    }
}

impl Doctor for Wal {
    fn doctor(&self) -> Result<Vec<Finding>, TargetError> {
        let mut out = vec![Finding::new("device", Severity::Ok, "device", self.device.as_str(), "")];
        let a = &self.address;
        out.push(Finding::new("buffer", Severity::Ok, "buffer", shown(a.buffer_bytes as u64), ""));
        out.extend(self.warnings.iter().map(|w| Finding::new("copies", Severity::Warning, "copies", "", w.as_str())));
        for folder in &self.folders {
            out.push(devices::filesystem(folder.path()));
        }
        Ok(out)
    }
}

impl ClientDriver for Wal {
    fn client_session(&self, work: &Work, job: u32) -> Result<Box<dyn ClientSession>, TargetError> {
        Ok(Box::new(WalSession::open(&self.writer, work, job, self.address.pause_ns)?))
    }
}

impl Observation for Wal {
    fn observer_of(&self, _: Scope) -> Result<Box<dyn Observer>, TargetError> {
        Ok(Box::new(WalObserver(Arc::clone(&self.writer))))
    }
}

#[cfg(test)]
mod tests;
