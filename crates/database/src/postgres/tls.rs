//! What libpq's `sslmode` means for the server's certificate.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};

use super::config::{Config, SslMode};
use crate::env::Env;
use crate::error::TargetError;
use crate::tls::{self, Check};

/// The client configuration for `config`.
///
/// # Errors
/// [`TargetError::Usage`] when the root certificates cannot be had.
pub(super) fn client_config(config: &Config, env: Env<'_>) -> Result<Arc<ClientConfig>, TargetError> {
    tls::client_config(match config.sslmode {
        SslMode::VerifyFull => Check::ChainAndName(roots(config, env)?),
        SslMode::VerifyCa => Check::Chain(roots(config, env)?),
        // libpq: with a root certificate given, «require» looks at the certificate as «verify-ca» does.
        SslMode::Require if config.sslrootcert.is_some() => Check::Chain(roots(config, env)?),
        _ => Check::None,
    })
}

/// The authorities: `sslrootcert`, else `~/.postgresql/root.crt` if it is there, else (and for
/// `sslrootcert=system`) those of the operating system.
fn roots(config: &Config, env: Env<'_>) -> Result<RootCertStore, TargetError> {
    let own = env("HOME").map(|h| PathBuf::from(h).join(".postgresql/root.crt")).filter(|p| p.is_file());
    let file = match config.sslrootcert.as_deref() {
        Some("system") => None,
        Some(path) => Some(PathBuf::from(path)),
        None => own,
    };
    tls::roots(file.as_deref(), "sslrootcert")
}
