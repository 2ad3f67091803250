//! Checks of the server's certificate by libpq's `sslmode`.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};

use super::config::Config;
use crate::env::Env;
use crate::error::TargetError;
use crate::tls;

/// The client configuration for `config`.
pub(super) fn client_config(config: &Config, env: Env<'_>) -> Result<Arc<ClientConfig>, TargetError> {
    tls::client_config(config.sslmode, config.sslrootcert.is_some(), || roots(config, env))
}

/// The authorities: `sslrootcert`, else `~/.postgresql/root.crt` if it exists, else (and for `sslrootcert=system`) those
/// of the operating system.
fn roots(config: &Config, env: Env<'_>) -> Result<RootCertStore, TargetError> {
    let own = env("HOME").map(|h| PathBuf::from(h).join(".postgresql/root.crt")).filter(|p| p.is_file());
    let file = match config.sslrootcert.as_deref() {
        Some("system") => None,
        Some(path) => Some(PathBuf::from(path)),
        None => own,
    };
    tls::roots(file.as_deref(), "sslrootcert")
}
