//! Which server a session leads to.

use super::connect::Endpoint;
use super::wire::Connection;
use crate::error::{TargetError, unless_refused};

/// Identity of a server instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    /// Of the database cluster: equal for a primary, its standbys and copies. `None` without the privilege to see it.
    pub(super) system: Option<String>,
    /// Of the instance: its name if it is a private server, which may be restarted, else its start time.
    instance: String,
    /// Whether it is a standby.
    pub(super) standby: bool,
}

impl Identity {
    /// The server of `c`.
    pub(super) fn read(c: &mut Connection, endpoint: &Endpoint, private: bool) -> Result<Identity, TargetError> {
        let instance =
            if private { "current_setting('cluster_name')" } else { "date_part('epoch', pg_postmaster_start_time())" };
        let row = c.row(&format!("SELECT ({instance})::text, pg_is_in_recovery()"))?;
        let system = unless_refused(c.value("SELECT system_identifier::text FROM pg_control_system()"))?;
        // Two servers may have been started at the same time: without the identifier the address distinguishes them.
        let place = if system.is_none() { endpoint.config.place() } else { String::new() };
        Ok(Identity { system, instance: format!("{place} {}", row.text(0)), standby: row.is_true(1) })
    }

    /// Refuses a further server, at `endpoint`, unless it is a standby of the first.
    pub(super) fn check_standby(
        &self,
        endpoint: &Endpoint,
        first: &Identity,
        at: &Endpoint,
    ) -> Result<(), TargetError> {
        let (shown, at) = (&endpoint.config.shown, &at.config.shown);
        if first.standby {
            return Err(TargetError::Refused(format!(
                "'{at}' is a read-only standby: give its primary in the URL, and standbys with --node, or for levels with --standby"
            )));
        }
        match (&first.system, &self.system) {
            _ if !self.standby => Err(TargetError::Refused(format!(
                "'{shown}' is no standby of '{at}', but a server of its own: nodes are instances of one database. Measure each by \
                 itself, and set their runs side by side (loadline report RUN RUN)"
            ))),
            (Some(a), Some(b)) if a == b => Ok(()),
            (Some(a), Some(b)) => Err(TargetError::Refused(format!(
                "'{shown}' is a standby of another primary: its system identifier is {b}, and that of the URL's server is {a}"
            ))),
            _ => Err(TargetError::Refused(format!(
                "'{shown}' is a standby, and whether it is one of the URL's server is unknown: GRANT EXECUTE ON FUNCTION \
                 pg_catalog.pg_control_system() to the role"
            ))),
        }
    }
}
