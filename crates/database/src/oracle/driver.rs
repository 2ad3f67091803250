//! Sessions by Oracle's own driver. It is a beta: it panics at answers that it does not expect, and it
//! connects without a time limit. Both are handled here.

mod panics;

use std::io;
use std::sync::mpsc::channel;
use std::time::Duration;

use loadline_workload::Arg;
use oracledb::{BindParameters, Config, Connection, DB_TYPE_VARCHAR, Error, ErrorKind, ToDbValue};

use super::address::OraAddress;
use super::knowledge::KNOWLEDGE;
use super::session::{MODULE, OraError, OraSession, Row, SETUP};
use crate::error::TargetError;
use crate::request::Secret;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Time limit of a call, after which its session is lost. It ends calls that the server does not cancel on
/// request (`service.rs`).
const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit of closing a session, after which its thread is abandoned.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// ORA-12514, the listener does not know the service.
const UNKNOWN_SERVICE: usize = 12514;
/// Longest VARCHAR2 that the driver returns without a given length.
const SHORT_TEXT: usize = 4000;

pub(super) fn connect(address: &OraAddress, password: &Secret, name: &str) -> Result<Box<dyn OraSession>, TargetError> {
    connect_within(address, password, name, CONNECT_TIMEOUT)
}

fn connect_within(
    address: &OraAddress,
    password: &Secret,
    name: &str,
    at_most: Duration,
) -> Result<Box<dyn OraSession>, TargetError> {
    crate::tls::choose_cryptography();
    let usage = |e: &Error| TargetError::Usage(format!("{}: {}", address.shown(), redact(&e.to_string(), password)));
    let mut config = Config::default()
        .set_credentials(&address.user, password.expose())
        .set_transport_connect_timeout(Some(at_most.min(Duration::from_secs(10))))
        .set_connect_string(&address.descriptor())
        .and_then(|c| c.set_program("loadline"))
        .map_err(|e| usage(&e))?;
    if let Some(wallet) = &address.wallet {
        config = config.set_wallet_location(wallet.as_str());
    }
    let connected = within(at_most, || oracledb::connect(config))
        .map_err(|e| TargetError::Local(format!("no thread could be started to connect: {e}")))?;
    let unreachable = |what: String| {
        TargetError::Unreachable(format!("{}{what}. Check that the port is the listener's", address.shown()))
    };
    let connection = match connected {
        Some(Ok(outcome)) => outcome.map_err(|e| refusal(&e, address, password))?,
        Some(Err(panic)) => {
            let panic = redact(&panic, password);
            let what = ": the service there is not an Oracle listener that the driver understands";
            return Err(unreachable(format!("{what} (it says: {panic})")));
        }
        None => {
            let limit = at_most.as_secs_f64();
            return Err(unreachable(format!(" accepted the connection but opened no session within {limit:.0} s")));
        }
    };
    let mut session = Wire { connection: Some(connection), secret: password.clone() };
    session.guarded(|c| {
        c.set_call_timeout(Some(CALL_TIMEOUT))?;
        // Sent along with the next call.
        c.set_module(MODULE)?;
        c.set_action(name)
    })?;
    session.execute(SETUP, &[])?;
    Ok(Box::new(session))
}

/// Runs `call` of the driver in a thread of its own. The outer value is `None` after `at_most`: the thread is abandoned then, because
/// the server hangs.
fn within<T: Send + 'static>(
    at_most: Duration,
    call: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Option<Result<T, String>>> {
    let (done, outcome) = channel();
    let run = move || drop(done.send(panics::catch(call)));
    std::thread::Builder::new().name("loadline-oracle".to_owned()).spawn(run)?;
    Ok(outcome.recv_timeout(at_most).ok())
}

fn redact(text: &str, password: &Secret) -> String {
    if password.expose().is_empty() { text.to_owned() } else { text.replace(password.expose(), "…") }
}

/// Why the server refuses the connection, with advice.
fn refusal(e: &Error, address: &OraAddress, password: &Secret) -> TargetError {
    let (shown, said) = (address.shown(), redact(&e.to_string(), password));
    let code = match e.kind() {
        ErrorKind::DbError(db) => db.code(),
        ErrorKind::ListenerRefusedConnection(_, _, _, code) => *code,
        ErrorKind::InvalidServiceName(..) | ErrorKind::InvalidSid(..) => UNKNOWN_SERVICE,
        _ => 0,
    };
    let of_code = u32::try_from(code).ok().and_then(|code| KNOWLEDGE.advice(code));
    let advice = of_code.or(match e.kind() {
        ErrorKind::ListenerRefusedConnection(..) => Some("the listener's log says more"),
        ErrorKind::ServerVersionNotSupported => Some("loadline is made for Oracle 19c and later"),
        ErrorKind::UnexpectedRefuse(_) => Some("the listener gave no reason: its log says more"),
        ErrorKind::WalletUnreadable(_) => Some("wallet must be a folder with ewallet.pem"),
        ErrorKind::TlsOperation => Some("check the certificates, and whether the port speaks TLS"),
        ErrorKind::DbError(_) => Some("the database's alert log may say more"),
        _ => None,
    });
    match advice {
        Some(advice) => TargetError::Refused(format!("{shown} refuses the connection: {said}; {advice}")),
        None => TargetError::Unreachable(format!(
            "no Oracle listener answers at {shown}: {said}. Check host and port, and whether the listener is up"
        )),
    }
}

struct Wire {
    /// `Some` until the session is dropped.
    connection: Option<Connection>,
    secret: Secret,
}

impl Wire {
    /// Runs `f`; a panic of the driver loses the session.
    fn guarded<T>(&self, f: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, OraError> {
        let gone = || OraError { code: None, text: "the session is closed".into(), lost: true };
        let connection = self.connection.as_ref().ok_or_else(gone)?;
        match panics::catch(|| f(connection)) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(e)) => Err(self.failed(&e)),
            Err(panic) => {
                let panic = redact(&panic, &self.secret);
                let text = format!("the driver does not understand the server's answer ({panic}): the session is lost");
                Err(OraError { code: None, text, lost: true })
            }
        }
    }

    fn failed(&self, e: &Error) -> OraError {
        let text = redact(&e.to_string(), &self.secret);
        match e.kind() {
            ErrorKind::DbError(db) => OraError::numbered(u32::try_from(db.code()).unwrap_or(0), text),
            // A wrong request leaves the session as it was.
            ErrorKind::NoDataFound
            | ErrorKind::WrongNumPositionalBinds(..)
            | ErrorKind::UnsupportedConversion(..)
            | ErrorKind::InvalidColumnIndex(_)
            | ErrorKind::ValueWasNull => OraError { code: None, text, lost: false },
            // After a timeout or an unreadable answer the session's state is unknown.
            _ => OraError { code: None, text, lost: true },
        }
    }
}

/// The driver logs off and waits for the answer without a time limit; this sets one.
impl Drop for Wire {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            let _ = within(CLOSE_TIMEOUT, || drop(connection));
        }
    }
}

fn values<'a>(args: &[Arg<'a>]) -> Vec<Box<dyn ToDbValue + 'a>> {
    let value = |arg: &Arg<'a>| match *arg {
        Arg::Int(i) => Box::new(i) as Box<dyn ToDbValue + 'a>,
        Arg::Bytes(bytes) => Box::new(bytes),
    };
    args.iter().map(value).collect()
}

fn refs<'v, 'a>(values: &'v [Box<dyn ToDbValue + 'a>]) -> Vec<&'v (dyn ToDbValue + 'a)> {
    values.iter().map(AsRef::as_ref).collect()
}

fn texts(row: &oracledb::Row, count: usize) -> Result<Row, Error> {
    (0..count).map(|i| row.get::<Option<String>>(i)).collect()
}

impl OraSession for Wire {
    fn query(&mut self, sql: &str, args: &[Arg<'_>]) -> Result<Vec<Row>, OraError> {
        let values = values(args);
        self.guarded(|c| {
            let cursor = c.query(sql, &refs(&values))?;
            let columns = cursor.columns().len();
            cursor.map(|row| texts(&row?, columns)).collect()
        })
    }

    fn execute(&mut self, sql: &str, args: &[Arg<'_>]) -> Result<u64, OraError> {
        let values = values(args);
        self.guarded(|c| Ok(c.execute(sql, &refs(&values))?.rows_affected()))
    }

    fn batch(&mut self, sql: &str, columns: usize, args: &[Arg<'_>]) -> Result<u64, OraError> {
        let values = values(args);
        let refs = refs(&values);
        let rows: Vec<_> = refs.chunks(columns.max(1)).collect();
        self.guarded(|c| Ok(c.execute_batch(sql, BindParameters::Slice(&rows))?.rows_affected()))
    }

    fn call(&mut self, block: &str, args: &[Arg<'_>], outs: &[usize]) -> Result<Row, OraError> {
        let mut values = values(args);
        for most in outs {
            // The driver allocates as much for the result as it sends.
            let long = || Box::new(" ".repeat(*most)) as Box<dyn ToDbValue>;
            values.push(if *most <= SHORT_TEXT { Box::new(DB_TYPE_VARCHAR) } else { long() });
        }
        self.guarded(|c| texts(&c.execute(block, &refs(&values))?.out_bind_data(), outs.len()))
    }

    fn rollback(&mut self) -> Result<(), OraError> {
        self.guarded(Connection::rollback)
    }

    fn version(&self) -> String {
        self.guarded(|c| Ok(c.version()?.to_string())).unwrap_or_default()
    }

    fn id(&self) -> Option<String> {
        self.guarded(|c| Ok(format!("{}, {}", c.session_id()?, c.serial_num()?))).ok()
    }
}

#[cfg(test)]
mod tests;
