//! Opening and closing a log.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use crate::Lsn;
use crate::config::LogConfig;
use crate::device::LogDevice;
use crate::engine::{Clock, Engine};
use crate::error::{LogError, RecoverError};
use crate::files::Files;
use crate::layout::Layout;
use crate::output::Output;
use crate::record::{Kind, payload_sum, space};
use crate::recover::{Recovered, recover};
use crate::ring::ring;
use crate::session::LogSession;
use crate::state::State;
use crate::stats::{GroupCounts, Sessions, Stats};
use crate::sync::{Arc, AtomicU32, Mutex, Ordering, thread};

/// A log open for writing. Dropping it closes it; [`LogWriter::close`] also reports errors.
pub struct LogWriter {
    engine: Arc<Engine>,
    threads: Vec<thread::JoinHandle<()>>,
    next_session: AtomicU32,
    most: u64,
}

impl LogWriter {
    /// Opens the log on a device, or creates one. Reads an existing log to its end, marks the end with a durable opening
    /// record, and continues after it.
    ///
    /// # Errors
    /// A setting is invalid, the log cannot be read or was made with other sizes, or the device cannot be written.
    pub fn open(config: &LogConfig, device: Box<dyn LogDevice>) -> Result<(Self, Recovered), LogError> {
        Self::open_with_clock(config, device, Box::new(loadline_storage::now_ns))
    }

    /// Like [`LogWriter::open`], with a clock.
    ///
    /// # Errors
    /// As [`LogWriter::open`].
    pub fn open_with_clock(
        config: &LogConfig,
        device: Box<dyn LogDevice>,
        clock: Box<Clock>,
    ) -> Result<(Self, Recovered), LogError> {
        let layout = Layout { block: device.block_bytes() as u64, file_bytes: device.file_bytes() };
        config.check(layout)?;
        let have = device.files().map_err(RecoverError::from)?;
        let mut records = recover(device.as_ref())?;
        for record in &mut records {
            record?;
        }
        let recovered = records.so_far();
        drop(records);

        let start = layout.block_up(recovered.end);
        let first = layout.file(start);
        let log = if recovered.log == 0 { identity() } else { recovered.log };
        let openings = || LogError::Config("it has been opened 4294967295 times: start a new one".into());
        let epoch = recovered.epoch.checked_add(1).ok_or_else(openings)?;
        let memory = ring(config.buffer_bytes, layout, log, epoch, start);
        let no_memory = || LogError::Config(format!("no memory for a buffer of {} bytes", config.buffer_bytes));
        let (ring, cursor) = memory.ok_or_else(no_memory)?;
        let files = Files::new(device.file_maker(), &have, first, config.keep);
        let engine = Engine {
            ring,
            state: Mutex::new(State::new(cursor, config)),
            output: Mutex::new(Output::new(device, layout, log, epoch)),
            files,
            clock,
            groups: GroupCounts::default(),
            sessions: Sessions::default(),
            keeper: std::sync::OnceLock::new(),
            every_ns: config.every.map(|every| u64::try_from(every.as_nanos()).unwrap_or(u64::MAX)),
        };
        let mut writer = Self {
            engine: Arc::new(engine),
            threads: Vec::new(),
            next_session: AtomicU32::new(1),
            most: config.most_payload(layout),
        };
        writer.start("log file", |engine| engine.files.run())?;
        writer.begin(recovered.end)?;
        writer.start("log keeper", Engine::keep)?;
        if let Some(keeper) = writer.threads.last() {
            let _ = writer.engine.keeper.set(keeper.thread().clone());
        }
        Ok((writer, recovered))
    }

    /// Writes the opening record and makes it durable. From now on nothing left by an earlier opening can be taken for a
    /// record of this one.
    fn begin(&self, end: Lsn) -> Result<(), LogError> {
        let mut port = self.engine.ring.port();
        let payload = end.0.to_le_bytes();
        let mut state = crate::locked(&self.engine.state);
        let header = state.cursor.header(state.cursor.next(), Kind::Open, 0, 8);
        if let Some(mut claim) = state.cursor.claim(&mut port, space(payload.len())) {
            claim.put(0, &header.encode(payload_sum([&payload[..]])));
            claim.put(crate::record::HEADER as u64, &payload);
        }
        drop(state);
        self.session()?.flush()
    }

    fn start(&mut self, name: &'static str, run: impl FnOnce(&Engine) + Send + 'static) -> Result<(), LogError> {
        let engine = Arc::clone(&self.engine);
        let thread = thread::Builder::new().name(name.into()).spawn(move || run(&engine));
        self.threads.push(thread.map_err(|cause| LogError::Thread(name, std::sync::Arc::new(cause)))?);
        Ok(())
    }

    /// A session for one job.
    ///
    /// # Errors
    /// [`LogError::Sessions`] after 4,294,967,294 of them.
    pub fn session(&self) -> Result<LogSession, LogError> {
        let number = self.next_session.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| next.checked_add(1));
        let number = number.map_err(|_| LogError::Sessions)?;
        Ok(LogSession::new(Arc::clone(&self.engine), number, self.most))
    }

    /// Figures since the log was opened. Takes no lock that commits take.
    pub fn stats(&self) -> Stats {
        self.engine.sessions.stats(&self.engine.groups)
    }

    /// Makes everything appended durable, ends the log's threads, and returns the final figures. Sessions still open get
    /// [`LogError::Closed`].
    ///
    /// # Errors
    /// [`LogError::Stopped`] if the last write failed or the log had stopped before.
    pub fn close(mut self) -> Result<Stats, LogError> {
        let flushed = self.session().and_then(|mut session| session.flush());
        self.end();
        flushed.map(|()| self.stats())
    }

    fn end(&mut self) {
        self.engine.stop(LogError::Closed);
        crate::locked(&self.engine.state).over = true;
        self.engine.wake_keeper();
        self.engine.files.end();
        for thread in self.threads.drain(..) {
            // A thread of the log panics only if a device does, which has stopped the log.
            let _ = thread.join();
        }
        // Wait for a write in progress.
        drop(crate::locked(&self.engine.output));
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            let _ = self.session().and_then(|mut session| session.flush());
            self.end();
        }
    }
}

/// A number for a new log, not 0.
fn identity() -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "any 32 bits will do")]
    let drawn = RandomState::new().hash_one(Duration::ZERO) as u32;
    drawn.max(1)
}
