//! Sessions by Oracle's own driver. It is a beta: it panics at answers that it does not expect, and it
//! connects without a time limit. Both are handled here.

mod panics;

use std::sync::mpsc::channel;
use std::time::Duration;

use oracledb::{BindParameters, Config, Connection, DB_TYPE_VARCHAR, Error, ErrorKind, ToDbValue};

use super::address::OraAddress;
use super::session::{Bind, MODULE, OraError, OraSession, Row, SETUP, SessionId};
use crate::error::TargetError;
use crate::secret::Secret;

/// Whether the driver is built in.
pub(super) const BUILT_IN: bool = true;

/// Never called: the driver is built in.
pub(super) fn missing(address: &str) -> TargetError {
    TargetError::Unsupported(format!("{address}: the Oracle driver cannot be used"))
}

/// Time limit of opening a session.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Time limit of a call, after which its session is lost. It ends calls that the server does not cancel on
/// request (`cancel.rs`).
const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit of closing a session, after which its thread is abandoned.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest VARCHAR2 that the driver returns without a given length.
const SHORT_TEXT: usize = 4000;

/// Opens a session.
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
    // The thread is abandoned if the server hangs.
    let (done, connected) = channel();
    let spawned = std::thread::Builder::new().name("loadline-connect".to_owned()).spawn(move || {
        let outcome = panics::catch(|| oracledb::connect(config));
        let _ = done.send(outcome);
    });
    spawned.map_err(|e| TargetError::Local(format!("no thread could be started to connect: {e}")))?;
    let connection = match connected.recv_timeout(at_most) {
        Ok(Ok(Ok(connection))) => connection,
        Ok(Ok(Err(e))) => return Err(refusal(&e, address, password)),
        Ok(Err(panic)) => {
            return Err(TargetError::Unreachable(format!(
                "{}: the service there is not an Oracle listener that the driver understands (it says: {}). Check that the \
                 port is the listener's",
                address.shown(),
                redact(&panic, password)
            )));
        }
        Err(_) => {
            return Err(TargetError::Unreachable(format!(
                "{} accepted the connection but opened no session within {:.0} s. Check that the port is the listener's",
                address.shown(),
                at_most.as_secs_f64()
            )));
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

/// `text` with the password masked.
fn redact(text: &str, password: &Secret) -> String {
    if password.expose().is_empty() { text.to_owned() } else { text.replace(password.expose(), "…") }
}

/// Why the server refuses the connection, with advice.
fn refusal(e: &Error, address: &OraAddress, password: &Secret) -> TargetError {
    let shown = address.shown();
    let said = redact(&e.to_string(), password);
    let code = match e.kind() {
        ErrorKind::DbError(db) => Some(db.code()),
        ErrorKind::ListenerRefusedConnection(_, _, _, code) => Some(*code),
        _ => None,
    };
    let advice = match (e.kind(), code) {
        (_, Some(1017)) => "user or password is wrong",
        (_, Some(28000)) => "the account is locked: ALTER USER … ACCOUNT UNLOCK",
        (_, Some(28001)) => "the password has expired: set a new one",
        (_, Some(1045)) => "the user may not log in: GRANT CREATE SESSION TO …",
        (_, Some(1033 | 1034 | 1109 | 12528)) => "the database is not open yet: wait until it is up, and try again",
        (_, Some(18 | 20 | 2391 | 12516 | 12519 | 12520)) => {
            "no more sessions are allowed: raise processes (or the profile's SESSIONS_PER_USER), or use fewer jobs"
        }
        (ErrorKind::InvalidServiceName(..) | ErrorKind::InvalidSid(..), _) | (_, Some(12505 | 12514)) => {
            "the listener knows no such service: `lsnrctl services` lists them"
        }
        (ErrorKind::ListenerRefusedConnection(..), _) => "the listener's log says more",
        (ErrorKind::ServerVersionNotSupported, _) => "loadline is made for Oracle 19c and later",
        (ErrorKind::UnexpectedRefuse(_), _) => "the listener gave no reason: its log says more",
        (ErrorKind::WalletUnreadable(_), _) => "wallet must be a folder with ewallet.pem",
        (ErrorKind::TlsOperation, _) => "check the certificates, and whether the port speaks TLS",
        (ErrorKind::DbError(_), _) => "the database's alert log may say more",
        _ => "",
    };
    if advice.is_empty() {
        return TargetError::Unreachable(format!(
            "no Oracle listener answers at {shown}: {said}. Check host and port, and whether the listener is up"
        ));
    }
    TargetError::Refused(format!("{shown} refuses the connection: {said}; {advice}"))
}

/// A session of the driver.
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
        let Some(connection) = self.connection.take() else { return };
        let (done, closed) = channel();
        let spawned = std::thread::Builder::new().name("loadline-close".to_owned()).spawn(move || {
            let _ = panics::catch(|| drop(connection));
            let _ = done.send(());
        });
        if spawned.is_ok() {
            let _ = closed.recv_timeout(CLOSE_TIMEOUT);
        }
    }
}

/// The binds in the driver's types.
fn values<'a>(binds: &[Bind<'a>]) -> Vec<Box<dyn ToDbValue + 'a>> {
    binds
        .iter()
        .map(|bind| match *bind {
            Bind::Int(i) => Box::new(i) as Box<dyn ToDbValue + 'a>,
            Bind::Raw(bytes) => Box::new(bytes),
            Bind::Out(most) if most <= SHORT_TEXT => Box::new(DB_TYPE_VARCHAR),
            // The driver allocates as much for the result as it sends.
            Bind::Out(most) => Box::new(" ".repeat(most)),
        })
        .collect()
}

fn texts(row: &oracledb::Row, count: usize) -> Result<Row, Error> {
    (0..count).map(|i| row.get::<Option<String>>(i)).collect()
}

impl OraSession for Wire {
    fn query(&mut self, sql: &str, binds: &[Bind<'_>]) -> Result<Vec<Row>, OraError> {
        let values = values(binds);
        let refs: Vec<&dyn ToDbValue> = values.iter().map(AsRef::as_ref).collect();
        self.guarded(|c| {
            let cursor = c.query(sql, &refs)?;
            let columns = cursor.columns().len();
            cursor.map(|row| texts(&row?, columns)).collect()
        })
    }

    fn execute(&mut self, sql: &str, binds: &[Bind<'_>]) -> Result<u64, OraError> {
        let values = values(binds);
        let refs: Vec<&dyn ToDbValue> = values.iter().map(AsRef::as_ref).collect();
        self.guarded(|c| Ok(c.execute(sql, &refs)?.rows_affected()))
    }

    fn batch(&mut self, sql: &str, rows: &[Vec<Bind<'_>>]) -> Result<u64, OraError> {
        let values: Vec<Vec<Box<dyn ToDbValue + '_>>> = rows.iter().map(|r| values(r)).collect();
        let refs: Vec<Vec<&dyn ToDbValue>> = values.iter().map(|r| r.iter().map(AsRef::as_ref).collect()).collect();
        let slices: Vec<&[&dyn ToDbValue]> = refs.iter().map(Vec::as_slice).collect();
        self.guarded(|c| Ok(c.execute_batch(sql, BindParameters::Slice(&slices))?.rows_affected()))
    }

    fn call(&mut self, block: &str, binds: &[Bind<'_>]) -> Result<Row, OraError> {
        let values = values(binds);
        let refs: Vec<&dyn ToDbValue> = values.iter().map(AsRef::as_ref).collect();
        let outs = binds.iter().filter(|b| matches!(b, Bind::Out(_))).count();
        self.guarded(|c| texts(&c.execute(block, &refs)?.out_bind_data(), outs))
    }

    fn rollback(&mut self) -> Result<(), OraError> {
        self.guarded(Connection::rollback)
    }

    fn version(&self) -> String {
        self.guarded(|c| Ok(c.version()?.to_string())).unwrap_or_default()
    }

    fn id(&self) -> Option<SessionId> {
        let number = |n: usize| u32::try_from(n).unwrap_or_default();
        self.guarded(|c| Ok(SessionId { sid: number(c.session_id()?), serial: number(c.serial_num()?) })).ok()
    }
}

#[cfg(test)]
mod tests;
