//! All that stays open for the whole run: loadline's logs, the peers, the raw streams.

use std::path::{Path, PathBuf};

use loadline_logwriter::device::Via;

use crate::harness::{Contender, Length, Outcome, measure};
use crate::ours::{Device, Ours};
use crate::raw::{Raw, Stream};
use crate::rocksdb;

/// LGWR-LAT1: 1.5 KiB of redo per commit.
pub(crate) const LAT1: usize = 1536;
pub(crate) const MIB: usize = 1 << 20;
/// Raw sequential writes that are not made durable.
pub(crate) const SEQUENTIAL: [(Raw, usize); 2] = [(Raw::DirectMib, MIB), (Raw::DirectLarge, 4 * MIB)];

/// Log devices. Verdicts use the fastest one, by default the first.
pub(crate) const DEVICES: [Device; 6] = [
    Device::Fdatasync,
    Device::Dsync,
    Device::DirectDsync(Via::SystemCalls),
    Device::DirectDsync(Via::Auto),
    Device::DirectFdatasync(Via::SystemCalls),
    Device::DirectFdatasync(Via::Auto),
];

pub(crate) fn ours_name(device: Device) -> String {
    format!("loadline, {}", device.name())
}

/// An open peer, or why it could not be opened.
pub(crate) type Peer = (&'static str, Result<Box<dyn Contender>, String>);

/// All contestants that stay open for the whole run.
pub(crate) struct Open {
    pub(crate) logs: Vec<(Device, Result<Ours, String>)>,
    pub(crate) peers: Vec<Peer>,
    raws: Vec<Stream>,
}

impl Open {
    pub(crate) fn all(root: &Path) -> Outcome<Open> {
        let dir = |name: &str| -> Outcome<PathBuf> {
            let dir = root.join(name);
            std::fs::create_dir(&dir)?;
            Ok(dir)
        };
        let mut logs = Vec::new();
        for device in DEVICES {
            let log = Ours::open(device, &dir(&format!("log-{}", logs.len()))?);
            logs.push((device, log.and_then(|log| log.fill().map(|()| log)).map_err(|e| e.to_string())));
        }
        let peer = |name, open: fn(&Path) -> Outcome<Box<dyn Contender>>| {
            (name, dir(name).and_then(|dir| open(&dir)).map_err(|e| e.to_string()))
        };
        let peers = vec![peer("RocksDB", rocksdb::open)];
        Ok(Open { logs, peers, raws: Vec::new() })
    }

    /// Opens the raw streams; a commit's write has `written` bytes.
    pub(crate) fn raws(&mut self, root: &Path, written: usize) -> Outcome<()> {
        let synced = [Raw::Fdatasync, Raw::Dsync, Raw::DirectDsync, Raw::DirectFdatasync].map(|raw| (raw, written));
        for (raw, bytes) in synced.into_iter().chain(SEQUENTIAL) {
            let dir = root.join(format!("raw-{}", self.raws.len()));
            self.raws.push(Stream::new(raw, &dir, bytes)?);
        }
        Ok(())
    }

    pub(crate) fn raw(&self, raw: Raw) -> Outcome<&Stream> {
        Ok(self.raws.iter().find(|stream| stream.raw == raw).ok_or("the raw streams are not open")?)
    }

    pub(crate) fn log(&self, device: Device) -> Outcome<&Ours> {
        let (_, log) = self.logs.iter().find(|(d, _)| *d == device).ok_or("not a device of this comparison")?;
        Ok(log.as_ref().map_err(Clone::clone)?)
    }

    /// Bytes written by a commit of a single job; the raw writer writes the same.
    pub(crate) fn bytes_of_a_commit(&self, length: Length) -> Outcome<usize> {
        let log = self.logs.iter().find_map(|(_, log)| log.as_ref().ok()).ok_or("no log device can be opened")?;
        let (figures, log_bytes) = measure(log, 1, LAT1, length)?;
        Ok(((log_bytes / figures.rate).round() as usize).next_multiple_of(4096))
    }
}
