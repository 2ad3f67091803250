//! A fake server for tests: a closure answers, and what was sent is recorded.

use std::sync::{Arc, Mutex, PoisonError};

use super::address::OraAddress;
use super::session::{Bind, OraError, OraSession, Row, SessionId};
use crate::error::TargetError;
use crate::secret::Secret;

/// What was sent: the text and how many values were bound.
pub(super) type Sent = Arc<Mutex<Vec<(String, usize)>>>;

/// The answer to a text.
pub(super) type Answering = Arc<dyn Fn(&str, &[Bind<'_>]) -> Result<Vec<Row>, OraError> + Send + Sync>;

/// The server.
#[derive(Clone)]
pub(super) struct FakeServer {
    pub(super) sent: Sent,
    pub(super) answer: Answering,
    pub(super) version: String,
}

impl FakeServer {
    pub(super) fn new(
        answer: impl Fn(&str, &[Bind<'_>]) -> Result<Vec<Row>, OraError> + Send + Sync + 'static,
    ) -> FakeServer {
        FakeServer { sent: Sent::default(), answer: Arc::new(answer), version: "19.24.0.0.0".into() }
    }

    /// Opens sessions of this server. It lives as long as the test's process.
    pub(super) fn connector(&self) -> &'static super::session::Connector {
        let server = self.clone();
        Box::leak(Box::new(move |_: &OraAddress, _: &Secret, _: &str| -> Result<Box<dyn OraSession>, TargetError> {
            Ok(Box::new(server.clone()))
        }))
    }

    pub(super) fn texts(&self) -> Vec<String> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|(text, _)| text.clone()).collect()
    }

    fn ask(&self, sql: &str, binds: &[Bind<'_>]) -> Result<Vec<Row>, OraError> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).push((sql.to_owned(), binds.len()));
        (self.answer)(sql, binds)
    }
}

/// A row of texts; `∅` is NULL.
pub(super) fn row(values: &[&str]) -> Row {
    values.iter().map(|v| (*v != "∅").then(|| (*v).to_owned())).collect()
}

impl OraSession for FakeServer {
    fn query(&mut self, sql: &str, binds: &[Bind<'_>]) -> Result<Vec<Row>, OraError> {
        self.ask(sql, binds)
    }

    fn execute(&mut self, sql: &str, binds: &[Bind<'_>]) -> Result<u64, OraError> {
        Ok(self.ask(sql, binds)?.len() as u64)
    }

    fn batch(&mut self, sql: &str, rows: &[Vec<Bind<'_>>]) -> Result<u64, OraError> {
        self.ask(sql, rows.first().map_or(&[][..], Vec::as_slice))?;
        Ok(rows.len() as u64)
    }

    fn call(&mut self, block: &str, binds: &[Bind<'_>]) -> Result<Row, OraError> {
        Ok(self.ask(block, binds)?.into_iter().next().unwrap_or_default())
    }

    fn rollback(&mut self) -> Result<(), OraError> {
        Ok(())
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn id(&self) -> Option<SessionId> {
        Some(SessionId { sid: 12, serial: 34567 })
    }
}
