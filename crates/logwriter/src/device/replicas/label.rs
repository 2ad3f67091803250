//! Labels of a replica set: each member stores which members are up to date, the rule of durability, and the
//! generation of the set.
//!
//! A member that dropped out and returns has an older label, so it is never taken for the current log. A label is
//! replaced atomically (new file, sync, rename) before anything else is acknowledged.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::Rule;
use crate::device::DeviceError;

const TITLE: &str = "loadline replica 1";

/// The label of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    /// The set's identity.
    pub(crate) set: u64,
    /// This member's index in the set.
    pub(crate) member: usize,
    /// How many members the set has.
    pub(crate) members: usize,
    /// Counts the changes of `current`.
    pub(crate) generation: u64,
    /// Second phase: every current member has this generation's label. Nothing is written to the log before.
    pub(crate) open: bool,
    /// Rule of durability of this generation.
    pub(crate) rule: Rule,
    /// Whether the set continues when members are lost.
    pub(crate) degrade: bool,
    /// The members that take part in this generation.
    pub(crate) current: Vec<usize>,
}

impl Label {
    pub(crate) fn encode(&self) -> String {
        let mut text = format!(
            "{TITLE}\nset {:016x}\nmember {} of {}\ngeneration {}\nphase {}\nrule {}\ndegrade {}\ncurrent",
            self.set,
            self.member,
            self.members,
            self.generation,
            if self.open { "open" } else { "opening" },
            match self.rule {
                Rule::All => "all".to_owned(),
                Rule::Quorum(n) => format!("quorum {n}"),
                Rule::Member(i) => format!("member {i}"),
            },
            self.degrade,
        );
        for member in &self.current {
            let _ = write!(text, " {member}");
        }
        text.push('\n');
        let sum = crc32fast::hash(text.as_bytes());
        let _ = writeln!(text, "sum {sum:08x}");
        text
    }

    /// Parses `text`; `None` if it is damaged or not a label.
    pub(crate) fn decode(text: &str) -> Option<Label> {
        let (body, sum) = text.split_at_checked(text.len().checked_sub("sum 00000000\n".len())?)?;
        let sum = u32::from_str_radix(sum.strip_prefix("sum ")?.strip_suffix('\n')?, 16).ok()?;
        (sum == crc32fast::hash(body.as_bytes())).then_some(())?;
        let mut lines = body.lines();
        (lines.next()? == TITLE).then_some(())?;
        let mut value = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned);
        let set = u64::from_str_radix(&value("set")?, 16).ok()?;
        let member = value("member")?;
        let (member, members) = member.split_once(" of ")?;
        let generation = value("generation")?.parse().ok()?;
        let open = value("phase")? == "open";
        let rule = value("rule")?;
        let rule = match rule.split_once(' ') {
            None if rule == "all" => Rule::All,
            Some(("quorum", n)) => Rule::Quorum(n.parse().ok()?),
            Some(("member", i)) => Rule::Member(i.parse().ok()?),
            _ => return None,
        };
        let degrade = value("degrade")?.parse().ok()?;
        let current = value("current")?.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        let (member, members) = (member.parse().ok()?, members.parse().ok()?);
        Some(Label { set, member, members, generation, open, rule, degrade, current })
    }
}

/// Storage of a member's label.
pub(crate) trait LabelStore: Send {
    /// The text of the label, if there is one.
    fn load(&mut self) -> Result<Option<String>, DeviceError>;
    /// Replaces the text, atomically and durably.
    fn store(&mut self, text: &str) -> Result<(), DeviceError>;
}

/// A label as a file beside the log files.
#[derive(Debug)]
pub(crate) struct FileLabel(PathBuf);

impl FileLabel {
    pub(crate) fn in_dir(dir: &Path) -> FileLabel {
        FileLabel(dir.join("replica.label"))
    }

    fn failed(&self, action: &'static str, source: io::Error) -> DeviceError {
        DeviceError::Io {
            action,
            what: self.0.display().to_string(),
            source,
            advice: "Check that this user may write there and that there is space".to_owned(),
        }
    }
}

impl LabelStore for FileLabel {
    fn load(&mut self) -> Result<Option<String>, DeviceError> {
        match fs::read_to_string(&self.0) {
            Ok(text) => Ok(Some(text)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(self.failed("read", e)),
        }
    }

    fn store(&mut self, text: &str) -> Result<(), DeviceError> {
        let beside = self.0.with_extension("new");
        let replace = || {
            let mut file = File::create(&beside)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&beside, &self.0)?;
            match self.0.parent() {
                Some(dir) => File::open(dir)?.sync_all(),
                None => Ok(()),
            }
        };
        replace().map_err(|e| self.failed("write", e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(rule: Rule) -> Label {
        Label { set: 7, member: 1, members: 3, generation: 12, open: true, rule, degrade: false, current: vec![0, 2] }
    }

    #[test]
    fn a_label_reads_back_and_any_changed_byte_is_detected() {
        for rule in [Rule::All, Rule::Quorum(2), Rule::Member(1)] {
            let text = label(rule).encode();
            assert_eq!(Label::decode(&text), Some(label(rule)));
            for at in 0..text.len() {
                let mut bad = text.clone().into_bytes();
                bad[at] ^= 1;
                let bad = String::from_utf8(bad).unwrap();
                assert_ne!(Label::decode(&bad), Some(label(rule)), "byte {at} of {text}");
                assert_eq!(Label::decode(&text[..at]), None, "cut at {at}");
            }
        }
    }

    #[test]
    fn a_label_in_a_file_is_replaced_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = FileLabel::in_dir(dir.path());
        assert_eq!(store.load().unwrap(), None);
        store.store("first").unwrap();
        store.store("second").unwrap();
        assert_eq!(store.load().unwrap().as_deref(), Some("second"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
        drop(dir);
        assert!(store.store("third").unwrap_err().to_string().contains("replica.label"));
    }
}
