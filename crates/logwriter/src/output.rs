//! Writes batches of the buffer to log files. Used by one job at a time.

use crate::Lsn;
use crate::device::{DeviceError, DeviceTimes, LogDevice};
use crate::files::Files;
use crate::layout::{FileHeader, Layout};
use crate::ring::{Batch, Ring};
use crate::stats::GroupCounts;

/// A device and the current file on it.
pub(crate) struct Output {
    device: Box<dyn LogDevice>,
    layout: Layout,
    log: u32,
    epoch: u32,
    current: Option<u64>,
    header: Aligned,
}

/// An aligned block for file headers.
struct Aligned {
    bytes: Vec<u8>,
    from: usize,
    len: usize,
}

impl Aligned {
    fn new(len: usize) -> Self {
        let align = len.max(4096);
        let bytes = vec![0; len + align];
        // `align_offset` may return `usize::MAX` (cannot align); then 0 is as good as any.
        let from = Some(bytes.as_ptr().align_offset(align)).filter(|from| *from < align).unwrap_or(0);
        Self { bytes, from, len }
    }

    fn get(&mut self) -> &mut [u8] {
        &mut self.bytes[self.from..self.from + self.len]
    }
}

impl Output {
    pub(crate) fn new(device: Box<dyn LogDevice>, layout: Layout, log: u32, epoch: u32) -> Self {
        let header = Aligned::new(device.block_bytes());
        Self { device, layout, log, epoch, current: None, header }
    }

    /// Writes a batch, file by file. With `sync`, it and everything before it is durable afterwards. The end of a
    /// file is always synced.
    pub(crate) fn write(
        &mut self,
        ring: &Ring,
        batch: &Batch,
        sync: bool,
        files: &Files,
        now: &dyn Fn() -> u64,
        counts: &GroupCounts,
    ) -> Result<DeviceTimes, DeviceError> {
        let mut sum = DeviceTimes::default();
        let mut at = batch.from;
        while at < batch.to {
            let file = self.layout.file(at);
            if self.current != Some(file) {
                let begun = now();
                self.switch(file, at, files, counts)?;
                counts.switch_ns.add(now().saturating_sub(begun));
            }
            let in_file = self.layout.left_in_file(at);
            let piece = ring.piece(batch, at, in_file);
            let end = Lsn(at.0 + piece.len() as u64);
            let offset = self.layout.offset(at);
            if (sync && end == batch.to) || piece.len() as u64 == in_file {
                let times = self.device.write_and_sync(offset, piece, now)?;
                sum.write_ns += times.write_ns;
                sum.sync_ns += times.sync_ns;
                counts.syncs.add(1);
            } else {
                let begun = now();
                self.device.write(offset, piece)?;
                sum.write_ns += now().saturating_sub(begun);
            }
            counts.writes.add(1);
            counts.blocks.add(piece.len() as u64 / self.layout.block);
            at = end;
        }
        Ok(sum)
    }

    /// Makes everything written durable.
    pub(crate) fn sync(&mut self, now: &dyn Fn() -> u64, counts: &GroupCounts) -> Result<DeviceTimes, DeviceError> {
        let begun = now();
        self.device.sync()?;
        counts.syncs.add(1);
        Ok(DeviceTimes { write_ns: 0, sync_ns: now().saturating_sub(begun) })
    }

    fn switch(&mut self, file: u64, at: Lsn, files: &Files, counts: &GroupCounts) -> Result<(), DeviceError> {
        files.enter(file)?;
        self.device.open_file(file)?;
        self.current = Some(file);
        counts.switches.add(1);
        if at == self.layout.start(file) {
            let header = FileHeader { layout: self.layout, file, log: self.log, epoch: self.epoch };
            header.encode(self.header.get());
            self.device.write(0, self.header.get())?;
            counts.writes.add(1);
            counts.blocks.add(1);
        }
        Ok(())
    }
}
