//! TLS with rustls: how strictly the server's certificate is checked.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::error::TargetError;

/// How a TCP connection is encrypted. The products have the same five modes under different names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SslMode {
    Disable,
    /// If the server supports it.
    Prefer,
    /// Always; the certificate is not checked: protects against eavesdropping only.
    Require,
    /// Always; the certificate must be signed by a known authority.
    VerifyCa,
    /// As before, and the certificate must be issued to the host name.
    VerifyName,
}

/// Sets the cryptography of drivers that leave it to rustls, unless it is set already. With two libraries built in (that of
/// Oracle's driver and ours), rustls has no default and would panic.
pub fn choose_cryptography() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// A client configuration for `mode`. `roots` returns the known authorities. If the user `named` one, [`SslMode::Require`] checks like
/// [`SslMode::VerifyCa`] (as libpq and libmariadb do).
pub(crate) fn client_config(
    mode: SslMode,
    named: bool,
    roots: impl FnOnce() -> Result<RootCertStore, TargetError>,
) -> Result<Arc<ClientConfig>, TargetError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = || {
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots()?), Arc::clone(&provider))
            .build()
            .map_err(|e| TargetError::Usage(format!("the root certificates cannot be used: {e}")))
    };
    let algorithms = provider.signature_verification_algorithms;
    let checks = mode == SslMode::VerifyCa || mode == SslMode::Require && named;
    let verifier: Arc<dyn ServerCertVerifier> = match mode {
        SslMode::VerifyName => chain()?,
        _ => Arc::new(AnyName { chain: checks.then(chain).transpose()?, algorithms }),
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| TargetError::Usage(format!("TLS cannot be set up: {e}")))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// The authorities in `file`, else those of the operating system. `parameter` is the URL parameter of the file.
pub(crate) fn roots(file: Option<&Path>, parameter: &str) -> Result<RootCertStore, TargetError> {
    let mut roots = RootCertStore::empty();
    let none = match file {
        Some(path) => {
            let wrong = |e: String| TargetError::Usage(format!("{parameter} '{}': {e}", path.display()));
            for certificate in CertificateDer::pem_file_iter(path).map_err(|e| wrong(e.to_string()))? {
                let certificate = certificate.map_err(|e| wrong(e.to_string()))?;
                roots.add(certificate).map_err(|e| wrong(e.to_string()))?;
            }
            wrong("the file contains no certificate".into())
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            let none = format!("the system has no root certificates: give a file with {parameter}=PATH");
            TargetError::Usage(none)
        }
    };
    if roots.is_empty() { Err(none) } else { Ok(roots) }
}

/// Checks the certificate chain but not the host name (`verify-ca`), or accepts any certificate (`prefer` and
/// `require`). The handshake's signature is checked in both cases.
#[derive(Debug)]
struct AnyName {
    /// Checks the chain; `None`: any certificate is accepted.
    chain: Option<Arc<WebPkiServerVerifier>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(end_entity, intermediates, name, ocsp, now) {
            // The name is checked last, after the chain.
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
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
