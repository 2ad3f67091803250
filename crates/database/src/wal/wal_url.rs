//! The URL of a reference log: its folders and how it is written.

use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_logwriter::device::Rule;
use loadline_logwriter::device::file::{FileSync, Via};
use loadline_model::format::{parse_bytes, parse_duration_s};

use crate::error::TargetError;
use crate::pause::pause_ns;
use crate::url::{choice, path, unknown};

pub(super) const SCHEME: &str = "wal";

/// How one copy of the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Device {
    /// With `O_DIRECT` and `O_DSYNC` if the filesystem supports it, else with fdatasync.
    Best,
    Files(FileSync, Option<Via>),
    Pmem,
}

impl Device {
    const NAMES: [(&'static str, Device); 6] = [
        ("best", Device::Best),
        ("fdatasync", Device::Files(FileSync::Fdatasync, None)),
        ("dsync", Device::Files(FileSync::Dsync, None)),
        ("direct", Device::Files(FileSync::Dsync, Some(Via::SystemCalls))),
        ("io_uring", Device::Files(FileSync::Dsync, Some(Via::Auto))),
        ("pmem", Device::Pmem),
    ];
}

/// The rules of a standby, in the order of how far a commit waits.
pub(super) const RULES: [(&str, Rule); 4] =
    [("local", Rule::Local), ("received", Rule::Received), ("written", Rule::Written), ("both", Rule::Both)];

/// A parsed `wal:[DIR][?parameters]`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WalUrl {
    pub(super) url: String,
    /// Parent folder of the log; `None` for a temporary folder next to the results.
    pub(super) dir: Option<PathBuf>,
    pub(super) device: Device,
    /// Folders of further copies. A commit is durable when all copies (or `quorum` of them) have it.
    pub(super) mirrors: Vec<PathBuf>,
    pub(super) quorum: Option<usize>,
    /// Folder of the second copy of a flash log: a commit is durable when the first of both copies has it.
    pub(super) flash: Option<PathBuf>,
    pub(super) standby: Option<PathBuf>,
    /// When a commit is durable with a standby; `None`: when it is written here and there.
    pub(super) rule: Option<Rule>,
    pub(super) buffer_bytes: usize,
    /// The log is written when this share of the buffer is full.
    pub(super) flush_fraction: Option<f64>,
    /// The log is written when this many bytes are in the buffer.
    pub(super) flush_at: Option<u64>,
    /// The log is written at this interval.
    pub(super) flush_every: Option<Duration>,
    pub(super) file_bytes: u64,
    /// Time by which each commit is made longer, ns.
    pub(super) pause_ns: u64,
}

type SetField = fn(&mut WalUrl, &str) -> Result<(), String>;

/// The parameters, each with what sets its field.
const PARAMETERS: [(&str, SetField); 12] = [
    ("device", |a, text| set(&mut a.device, choice("device", text, &Device::NAMES))),
    ("mirror", |a, text| folder(text).map(|dir| a.mirrors.push(dir))),
    ("quorum", |a, text| {
        let number = text.parse().map_err(|_| format!("quorum '{text}' must be a whole number"));
        set(&mut a.quorum, number.map(Some))
    }),
    ("flash", |a, text| set(&mut a.flash, folder(text).map(Some))),
    ("standby", |a, text| set(&mut a.standby, folder(text).map(Some))),
    ("standby-rule", |a, text| set(&mut a.rule, choice("standby-rule", text, &RULES).map(Some))),
    ("buffer", |a, text| {
        let size = bytes("buffer", text, 64 << 10, 1 << 30)?;
        set(&mut a.buffer_bytes, usize::try_from(size).map_err(|e| e.to_string()))
    }),
    ("flush-fraction", |a, text| set(&mut a.flush_fraction, unless_off(text, fraction))),
    ("flush-at", |a, text| set(&mut a.flush_at, unless_off(text, |text| bytes("flush-at", text, 4096, 1 << 30)))),
    ("flush-every", |a, text| set(&mut a.flush_every, unless_off(text, every))),
    ("file-size", |a, text| set(&mut a.file_bytes, bytes("file-size", text, 1 << 20, 16 << 30))),
    ("pause", |a, text| set(&mut a.pause_ns, pause_ns(text).map_err(|e| format!("pause: {e}")))),
];

fn set<T>(field: &mut T, value: Result<T, String>) -> Result<(), String> {
    *field = value?;
    Ok(())
}

impl WalUrl {
    pub(super) fn parse(url: &str) -> Result<WalUrl, TargetError> {
        let usage = |what: String| TargetError::Usage(format!("'{url}': {what}"));
        let Some(rest) = url.strip_prefix("wal:") else {
            return Err(usage("the URL of a reference log is wal: or wal:/dir".into()));
        };
        let (path, query) = rest.split_once('?').map_or((rest, ""), |(p, q)| (p, q));
        let mut a = WalUrl {
            url: url.to_owned(),
            dir: (!path.is_empty()).then(|| folder(path)).transpose().map_err(usage)?,
            device: Device::Best,
            mirrors: Vec::new(),
            quorum: None,
            flash: None,
            standby: None,
            rule: None,
            buffer_bytes: 16 << 20,
            flush_fraction: Some(1.0 / 3.0),
            flush_at: Some(1 << 20),
            flush_every: Some(Duration::from_secs(3)),
            file_bytes: 64 << 20,
            pause_ns: 0,
        };
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let known = PARAMETERS.iter().find(|(known, _)| *known == name);
            let (_, set) = known.ok_or_else(|| usage(unknown(name, &PARAMETERS.map(|(known, _)| known))))?;
            set(&mut a, value).map_err(usage)?;
        }
        a.consistent().map_err(usage)?;
        Ok(a)
    }

    /// Folders of all copies but the first.
    pub(super) fn copies(&self) -> impl Iterator<Item = &Path> {
        self.mirrors.iter().chain(&self.flash).chain(&self.standby).map(PathBuf::as_path)
    }

    pub(super) fn folders(&self) -> Vec<PathBuf> {
        self.dir.iter().map(PathBuf::as_path).chain(self.copies()).map(Path::to_owned).collect()
    }

    fn consistent(&self) -> Result<(), String> {
        let kinds = [!self.mirrors.is_empty(), self.flash.is_some(), self.standby.is_some()];
        if kinds.iter().filter(|k| **k).count() > 1 {
            return Err("give one of 'mirror', 'flash' and 'standby'".into());
        }
        if self.rule.is_some() && self.standby.is_none() {
            return Err("'standby-rule' needs a 'standby'".into());
        }
        if self.mirrors.len() > 2 {
            return Err(format!("{} mirrors: at most two are allowed besides the first copy", self.mirrors.len()));
        }
        match self.quorum {
            Some(_) if self.mirrors.is_empty() => Err("'quorum' needs a 'mirror'".into()),
            Some(n) if n == 0 || n > self.mirrors.len() + 1 => {
                Err(format!("quorum {n} must be between 1 and the number of copies, {}", self.mirrors.len() + 1))
            }
            _ => Ok(()),
        }
    }
}

fn folder(value: &str) -> Result<PathBuf, String> {
    path(value).ok_or_else(|| format!("'{value}' is not a folder"))
}

/// Parses a size; it must be a multiple of 4 KiB.
fn bytes(name: &str, value: &str, min: u64, max: u64) -> Result<u64, String> {
    let shown = |b: u64| loadline_model::format::bytes(b as f64);
    let size = parse_bytes(value).map_err(|e| format!("{name}: {e}"))?;
    if !(min..=max).contains(&size) || size % 4096 != 0 {
        return Err(format!("{name} {value} must be a multiple of 4 KiB between {} and {}", shown(min), shown(max)));
    }
    Ok(size)
}

fn unless_off<T>(value: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<Option<T>, String> {
    if value.eq_ignore_ascii_case("off") { Ok(None) } else { parse(value).map(Some) }
}

fn fraction(value: &str) -> Result<f64, String> {
    let parsed = match value.split_once('/') {
        Some((a, b)) => a.trim().parse::<f64>().ok().zip(b.trim().parse::<f64>().ok()).map(|(a, b)| a / b),
        None => value.parse().ok(),
    };
    match parsed.filter(|f| *f > 0.0 && *f <= 1.0) {
        Some(f) => Ok(f),
        None => Err(format!("flush-fraction '{value}' must be above 0 and at most 1, such as 1/3, or off")),
    }
}

fn every(value: &str) -> Result<Duration, String> {
    let seconds = parse_duration_s(value).map_err(|e| format!("flush-every: {e}"))?;
    if !(0.001..=3600.0).contains(&seconds) {
        return Err(format!("flush-every {value} must be between 1ms and 1h, or off"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        let a = WalUrl::parse("wal:").unwrap();
        assert_eq!((a.dir, a.device, a.flush_at), (None, Device::Best, Some(1 << 20)));
        let a = WalUrl::parse("wal:/x%20y?device=dsync&flush-fraction=off&flush-at=off&flush-every=off").unwrap();
        assert_eq!((a.dir, a.device), (Some("/x y".into()), Device::Files(FileSync::Dsync, None)));
        assert_eq!((a.flush_fraction, a.flush_at, a.flush_every), (None, None, None));
        let a = WalUrl::parse("wal:/x?buffer=1536KiB&flush-fraction=1/3&mirror=/y&mirror=/z&quorum=2").unwrap();
        assert_eq!((a.buffer_bytes, a.mirrors.len(), a.quorum), (1536 << 10, 2, Some(2)));
        let a = WalUrl::parse("wal:/x?standby=/s&standby-rule=received").unwrap();
        assert_eq!((a.standby, a.rule), (Some("/s".into()), Some(Rule::Received)));
    }
}
