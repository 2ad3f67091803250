//! Settings of a log: buffer, files, and when to write.

use std::time::Duration;

use crate::error::LogError;
use crate::layout::Layout;
use crate::record;

/// Settings of a log. It is written at each commit that waits. [`LogConfig::default`] also writes as databases do: when
/// the buffer is a third full, at 1 MiB, and every 3 s.
#[derive(Clone, Debug, PartialEq)]
pub struct LogConfig {
    /// Size of the buffer, bytes: a multiple of the device's block, at least 4 blocks.
    pub buffer_bytes: usize,
    /// Write when this share of the buffer is filled, above 0 and at most 1.
    pub buffer_fraction: Option<f64>,
    /// Write when this many bytes are in the buffer.
    pub at_bytes: Option<u64>,
    /// Write at this interval, unless the buffer is empty.
    pub every: Option<Duration>,
    /// Most bytes that the size rules may write without a sync, while nobody waits and the writer is behind (the
    /// next group is full before this one is written). 0: sync each group. A waiting commit, a flush and the
    /// interval always sync.
    pub put_off_bytes: u64,
    /// Use of full log files.
    pub keep: Keep,
}

/// Use of full log files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Keep every file.
    All,
    /// Keep this number of the newest files, the current one included (at least 2), and recycle older ones.
    Newest(u64),
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            buffer_bytes: 16 << 20,
            buffer_fraction: Some(1.0 / 3.0),
            at_bytes: Some(1 << 20),
            every: Some(Duration::from_secs(3)),
            put_off_bytes: 64 << 20,
            keep: Keep::Newest(4),
        }
    }
}

/// The size rules in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SizeRules {
    pub(crate) fraction: Option<u64>,
    pub(crate) bytes: Option<u64>,
}

impl LogConfig {
    /// Checks the settings and the device's sizes.
    pub(crate) fn check(&self, layout: Layout) -> Result<(), LogError> {
        let wrong = |what: String| Err(LogError::Config(what));
        if let Some(what) = layout.wrong() {
            return wrong(what);
        }
        let block = layout.block;
        if !(self.buffer_bytes as u64).is_multiple_of(block) || (self.buffer_bytes as u64) < 4 * block {
            return wrong(format!(
                "its buffer has {} bytes; it must be a multiple of the device's block ({block} bytes), at least 4 \
                 blocks",
                self.buffer_bytes
            ));
        }
        if self.buffer_fraction.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
            return wrong("the share of the buffer that triggers a write must be above 0 and at most 1".into());
        }
        if self.at_bytes == Some(0) {
            return wrong("a write cannot be triggered at 0 bytes; leave the rule out instead".into());
        }
        if self.every.is_some_and(|every| every < Duration::from_millis(1)) {
            return wrong("the interval between writes must be at least 1 ms".into());
        }
        if let Keep::Newest(0 | 1) = self.keep {
            return wrong("at least 2 log files must be kept: the current one and the one before it".into());
        }
        Ok(())
    }

    /// The size rules; the share of the buffer is rounded down to whole bytes.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a usize is within it")]
    pub(crate) fn size_rules(&self) -> SizeRules {
        let fraction = self.buffer_fraction.map(|share| ((self.buffer_bytes as f64 * share) as u64).max(1));
        SizeRules { fraction, bytes: self.at_bytes }
    }

    /// Largest payload of a record: the record and the padding before it fit into the buffer, and the record into a
    /// file.
    pub(crate) fn most_payload(&self, layout: Layout) -> u64 {
        let space = (self.buffer_bytes as u64 / 2).min(layout.per_file()).min(u64::from(u32::MAX));
        space / record::HEADER as u64 * record::HEADER as u64 - record::HEADER as u64
    }
}
