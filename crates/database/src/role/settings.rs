//! The settings of a private server that runs.

use crate::error::TargetError;
use crate::request::OpenRequest;
use crate::target::Target;

/// Changes the settings of a private server; its data stay.
pub trait Settings {
    /// Gives the server the settings of `request` in place of those given before, and restarts it if one of them needs that
    /// or with `restart`. Returns the target opened anew, because what it knew of the server may have changed, and whether
    /// the server was restarted. A server that does not start with them is started with its former settings.
    ///
    /// # Errors
    /// The server's own words if it knows no such setting or does not take its value.
    fn switch(&self, request: &OpenRequest, restart: bool) -> Result<(Box<dyn Target>, bool), TargetError>;

    /// Value of a setting as the server states it now; `None` if it has no such setting.
    ///
    /// # Errors
    /// If the server does not answer.
    fn setting(&self, name: &str) -> Result<Option<String>, TargetError>;
}
