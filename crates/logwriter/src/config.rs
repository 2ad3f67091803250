//! How a log is kept: its buffer, its files, and when it is written.

use std::time::Duration;

use crate::error::LogError;
use crate::layout::Layout;
use crate::record;

/// The settings of a log. [`LogConfig::default`] is as databases come: written at each commit that
/// waits, when the buffer is a third full, at 1 MiB, and every 3 s.
#[derive(Clone, Debug, PartialEq)]
pub struct LogConfig {
    /// Bytes of the buffer: a multiple of the device's block, at least 4 blocks.
    pub buffer_bytes: usize,
    /// A commit that waits has the buffer written at once. Without it, it waits for another rule.
    pub at_commit: bool,
    /// The buffer is written when this share of it has gathered, above 0 and at most 1.
    pub buffer_fraction: Option<f64>,
    /// The buffer is written when this many bytes have gathered.
    pub at_bytes: Option<u64>,
    /// The buffer is written at this interval, if there is anything in it.
    pub every: Option<Duration>,
    /// Whether the writer holds a write back for the jobs that were woken by the one before, where
    /// what it learns of them says that they will be back in less time than a write takes. More
    /// jobs then share a write.
    pub gather: bool,
    /// What the size rules may write without a sync, while nobody waits and the writer is behind:
    /// the next group is full before this one is written. 0 has each group synced. A commit that
    /// waits, a flush and the interval sync in any case.
    pub put_off_bytes: u64,
    /// What becomes of log files that are full.
    pub keep: Keep,
}

/// What becomes of log files that are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All are kept.
    All,
    /// The newest this many are kept (the one that is written to is one of them; at least 2); older
    /// ones are made over into new ones.
    Newest(u64),
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            buffer_bytes: 16 << 20,
            at_commit: true,
            buffer_fraction: Some(1.0 / 3.0),
            at_bytes: Some(1 << 20),
            every: Some(Duration::from_secs(3)),
            gather: true,
            put_off_bytes: 64 << 20,
            keep: Keep::Newest(4),
        }
    }
}

/// The size rules, reduced to bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SizeRules {
    pub(crate) fraction: Option<u64>,
    pub(crate) bytes: Option<u64>,
}

impl LogConfig {
    /// Checks the settings against the device's sizes.
    pub(crate) fn check(&self, layout: Layout) -> Result<(), LogError> {
        let wrong = |what: String| Err(LogError::Config(what));
        if let Some(what) = layout.wrong() {
            return wrong(what);
        }
        let block = layout.block;
        if !(self.buffer_bytes as u64).is_multiple_of(block) || (self.buffer_bytes as u64) < 4 * block {
            return wrong(format!(
                "its buffer has {} bytes; a multiple of the device's block ({block} bytes), at least 4 of them, is \
                 needed",
                self.buffer_bytes
            ));
        }
        if let Some(share) = self.buffer_fraction
            && !(share > 0.0 && share <= 1.0)
        {
            return wrong(format!(
                "the share of the buffer to write it at is {share}; it must be above 0 and at most 1"
            ));
        }
        if self.at_bytes == Some(0) {
            return wrong("the buffer cannot be written at 0 bytes; leave the rule out instead".into());
        }
        if self.every.is_some_and(|every| every < Duration::from_millis(1)) {
            return wrong("the buffer cannot be written more often than once a millisecond by the clock".into());
        }
        if !self.at_commit && self.every.is_none() {
            return wrong("a commit would wait for ever: have it written at commit, or at an interval".into());
        }
        if let Keep::Newest(0 | 1) = self.keep {
            return wrong("at least 2 log files must be kept: the one that is written to, and the one before".into());
        }
        Ok(())
    }

    /// The size rules in bytes. The buffer's share is rounded down to whole bytes.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a usize is within it")]
    pub(crate) fn size_rules(&self) -> SizeRules {
        let fraction = self.buffer_fraction.map(|share| ((self.buffer_bytes as f64 * share) as u64).max(1));
        SizeRules { fraction, bytes: self.at_bytes }
    }

    /// The most payload that a record may have: it and the filling before it fit into the buffer,
    /// and it fits into a file.
    pub(crate) fn most_payload(&self, layout: Layout) -> u64 {
        let space = (self.buffer_bytes as u64 / 2).min(layout.per_file()).min(u64::from(u32::MAX));
        space / record::HEADER as u64 * record::HEADER as u64 - record::HEADER as u64
    }
}
