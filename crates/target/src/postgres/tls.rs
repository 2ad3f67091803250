//! Encryption by rustls, with what libpq's `sslmode` means for the server's certificate.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::config::{Config, Env, SslMode};
use crate::error::TargetError;

/// The client configuration for `config`.
///
/// # Errors
/// [`TargetError::Usage`] when the root certificates cannot be had.
pub(super) fn client_config(config: &Config, env: Env<'_>) -> Result<Arc<ClientConfig>, TargetError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    // libpq: with a root certificate given, «require» looks at the certificate as «verify-ca» does.
    let checked = matches!(config.sslmode, SslMode::VerifyCa | SslMode::VerifyFull)
        || (config.sslmode == SslMode::Require && config.sslrootcert.is_some());
    let verifier: Arc<dyn ServerCertVerifier> = if checked {
        let roots = Arc::new(roots(config, env)?);
        let inner = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
            .build()
            .map_err(|e| TargetError::Usage(format!("the root certificates cannot be used: {e}")))?;
        if config.sslmode == SslMode::VerifyFull { inner } else { Arc::new(AnyName(inner)) }
    } else {
        Arc::new(AnyCertificate(Arc::clone(&provider)))
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| TargetError::Usage(format!("TLS cannot be set up: {e}")))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(Arc::new(config))
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
    let mut roots = RootCertStore::empty();
    match file {
        Some(path) => {
            let wrong = |e: String| TargetError::Usage(format!("sslrootcert «{}»: {e}", path.display()));
            let certificates = CertificateDer::pem_file_iter(&path).map_err(|e| wrong(e.to_string()))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|e| wrong(e.to_string()))?;
                roots.add(certificate).map_err(|e| wrong(e.to_string()))?;
            }
            if roots.is_empty() {
                return Err(wrong("the file holds no certificate".into()));
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err(TargetError::Usage(
                    "the system has no root certificates: name a file with sslrootcert=PATH".into(),
                ));
            }
        }
    }
    Ok(roots)
}

/// Looks at the chain but not at the name: `verify-ca`.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.0.verify_server_cert(end_entity, intermediates, name, ocsp, now) {
            // The name is looked at last, when the chain has been found good.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// Takes any certificate: `prefer` and `require`, which protect against listeners only. The
/// handshake's signature is checked all the same.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
