//! A collector: where it is, what it wants to be told in headers, and one request to it.
//!
//! Nothing that could be a secret is shown: headers never, of the URL only scheme, host and port.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Longest wait for a collector's answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Path of a collector whose URL has none: that of the specification.
const PATH: &str = "/v1/metrics";
/// Most of an answer that is read, bytes.
const LONGEST_ANSWER: usize = 64 << 10;

/// Why a URL, a variable or a request did not do.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The URL is none of a collector.
    #[error(
        "'{0}' is no address of a collector, such as http://127.0.0.1:4318 or https://collector.example.org/v1/metrics"
    )]
    Url(String),
    /// It has parts that could be secrets.
    #[error("the URL must have neither a user nor a query: give secrets as headers in OTEL_EXPORTER_OTLP_HEADERS")]
    Secret,
    /// A variable of the environment is malformed.
    #[error("{0}: its part {1} is not of the form NAME=VALUE, separated by commas, other characters as %XX")]
    Pairs(&'static str, usize),
    /// HTTP has no such header.
    #[error("header {0} for the collector has a name or a value that HTTP does not allow")]
    Header(usize),
    /// There is nothing to check an https collector's certificate by.
    #[error("the system has no root certificates: set SSL_CERT_FILE to a file with those of the collector's authority")]
    NoRoots,
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(rustls::Error),
    /// The collector cannot be reached.
    #[error("{0}: {1}")]
    Unreachable(String, String),
    /// The collector answered with an error.
    #[error("{0} answers {1}")]
    Refused(String, String),
}

/// Where metrics are pushed to.
#[derive(Debug)]
pub struct Collector {
    /// `https://host:port`
    name: String,
    host: String,
    port: u16,
    path: String,
    /// `host:port` as it was given.
    authority: String,
    headers: HeaderMap,
    tls: Option<Arc<ClientConfig>>,
}

impl Collector {
    /// The collector at `url`, which is told `headers`.
    ///
    /// # Errors
    /// [`Problem`].
    pub fn new(url: &str, headers: &[(String, String)]) -> Result<Collector, Problem> {
        let uri = Uri::from_str(url).ok().filter(|uri| uri.host().is_some_and(|host| !host.is_empty()));
        let scheme = uri.as_ref().and_then(Uri::scheme_str).filter(|scheme| ["http", "https"].contains(scheme));
        let authority = uri.as_ref().and_then(Uri::authority);
        // Before anything of it is shown.
        if url.contains(['@', '?']) {
            return Err(Problem::Secret);
        }
        let (Some(uri), Some(scheme), Some(authority)) = (&uri, scheme, authority) else {
            return Err(Problem::Url(url.to_owned()));
        };
        let encrypted = scheme == "https";
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = authority.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
        let mut told = HeaderMap::new();
        for (at, (name, value)) in headers.iter().enumerate() {
            let wrong = || Problem::Header(at + 1);
            let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
            value.set_sensitive(true);
            told.insert(HeaderName::from_str(name).map_err(|_| wrong())?, value);
        }
        Ok(Collector {
            name: format!("{scheme}://{authority}"),
            host,
            port,
            path: if uri.path() == "/" { PATH.to_owned() } else { uri.path().to_owned() },
            authority: authority.to_string(),
            headers: told,
            tls: encrypted.then(tls).transpose()?,
        })
    }

    /// `https://host:port`, to be shown.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sends a request's body, JSON.
    ///
    /// # Errors
    /// The collector is not there, does not answer in time, refuses the request, or rejects a part of it.
    pub(crate) async fn post(&self, body: Vec<u8>) -> Result<(), Problem> {
        tokio::time::timeout(PATIENCE, self.exchange(body)).await.map_err(|_| self.unanswered(PATIENCE))?
    }

    /// What is said of a request that was not answered in time.
    pub(crate) fn unanswered(&self, within: Duration) -> Problem {
        self.unreachable(format!("no answer within {} s", within.as_secs()))
    }

    async fn exchange(&self, body: Vec<u8>) -> Result<(), Problem> {
        let mut request = Request::post(&self.path).body(Full::from(body)).map_err(|e| self.unreachable(e))?;
        let authority = HeaderValue::from_str(&self.authority).map_err(|e| self.unreachable(e))?;
        let headers = request.headers_mut();
        headers.extend([
            (HOST, authority),
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (USER_AGENT, HeaderValue::from_static(concat!("loadline/", env!("CARGO_PKG_VERSION")))),
        ]);
        headers.extend(self.headers.clone());
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(|e| self.unreachable(e))?;
        match &self.tls {
            None => self.talk(stream, request).await,
            Some(tls) => {
                let name = ServerName::try_from(self.host.clone()).map_err(|e| self.unreachable(e))?;
                let stream = TlsConnector::from(Arc::clone(tls)).connect(name, stream).await;
                self.talk(stream.map_err(|e| self.unreachable(e))?, request).await
            }
        }
    }

    async fn talk<S>(&self, stream: S, request: Request<Full<axum::body::Bytes>>) -> Result<(), Problem>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|e| self.unreachable(e))?;
        tokio::spawn(connection);
        let answer = sender.send_request(request).await.map_err(|e| self.unreachable(e))?;
        let status = answer.status();
        if !status.is_success() {
            return Err(Problem::Refused(self.name.clone(), format!("HTTP {status}")));
        }
        let body = Limited::new(answer.into_body(), LONGEST_ANSWER).collect().await;
        let body = body.map_err(|e| self.unreachable(e))?.to_bytes();
        match rejected(&body) {
            Some(why) => Err(Problem::Refused(self.name.clone(), why)),
            None => Ok(()),
        }
    }

    fn unreachable(&self, why: impl ToString) -> Problem {
        Problem::Unreachable(self.name.clone(), why.to_string())
    }
}

/// What a collector says that it did not take of a request (`partialSuccess`). An answer without it took everything.
fn rejected(body: &[u8]) -> Option<String> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let part = &answer["partialSuccess"];
    let count = &part["rejectedDataPoints"];
    // A 64-bit integer is a string in OTLP's JSON; some write a number.
    let count = count.as_u64().or_else(|| count.as_str()?.parse().ok()).filter(|count| *count > 0)?;
    let why: String = part["errorMessage"].as_str().unwrap_or("no reason given").chars().take(200).collect();
    Some(format!("that it rejected {count} samples: {why}"))
}

fn tls() -> Result<Arc<ClientConfig>, Problem> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(Problem::NoRoots);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Ok(Arc::new(builder.map_err(Problem::Tls)?.with_root_certificates(roots).with_no_client_auth()))
}

/// `a=1,b=%20` -> pairs, as in the variables `OTEL_EXPORTER_OTLP_HEADERS` and `OTEL_RESOURCE_ATTRIBUTES`; `variable` is named
/// if it is malformed.
///
/// # Errors
/// [`Problem::Pairs`]: the number of the part, counted from 1, and never its value.
pub fn pairs(variable: &'static str, text: &str) -> Result<Vec<(String, String)>, Problem> {
    let parts = text.split(',').enumerate().filter(|(_, part)| !part.trim().is_empty());
    let pair = |(at, part): (usize, &str)| {
        let wrong = || Problem::Pairs(variable, at + 1);
        let (name, value) = part.split_once('=').ok_or_else(wrong)?;
        let decoded = percent_encoding::percent_decode_str(value.trim()).decode_utf8().map_err(|_| wrong())?;
        let name = name.trim();
        if name.is_empty() { Err(wrong()) } else { Ok((name.to_owned(), decoded.into_owned())) }
    };
    parts.map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let of = |url| Collector::new(url, &[]).map(|c| (c.host, c.port, c.path));
        let are = |host: &str, port, path: &str| (host.to_owned(), port, path.to_owned());
        assert_eq!(of("http://127.0.0.1:4318").unwrap(), are("127.0.0.1", 4318, "/v1/metrics"));
        assert_eq!(of("http://[::1]:9/a/b").unwrap(), are("::1", 9, "/a/b"));
        assert_eq!(of("http://collector").unwrap(), are("collector", 80, "/v1/metrics"));
        for bad in ["", "collector:4318", "ftp://a", "http://", "unix:/a", "http:///v1", "/v1/metrics"] {
            assert!(matches!(of(bad), Err(Problem::Url(_))), "{bad}");
        }
        for secret in ["http://ann:pw@host", "http://host/?key=pw", "x://a:pw@b"] {
            let problem = of(secret).unwrap_err().to_string();
            assert!(!problem.contains("pw"), "{problem}");
        }
    }

    #[test]
    fn headers_are_read_and_never_shown() {
        let read = |text| pairs("OTEL_EXPORTER_OTLP_HEADERS", text);
        let given = read("authorization=Bearer%20secret, x-scope = a=b,").unwrap();
        assert_eq!(
            given,
            [("authorization", "Bearer secret"), ("x-scope", "a=b")].map(|(a, b)| (a.to_owned(), b.to_owned()))
        );
        let collector = Collector::new("http://host", &given).unwrap();
        assert!(!format!("{collector:?}").contains("secret"), "{collector:?}");
        for bad in ["secret", "a=1,secret", "=secret", "a=%ffsecret"] {
            let problem = read(bad).unwrap_err().to_string();
            assert!(!problem.contains("secret") && problem.contains("OTEL_EXPORTER_OTLP_HEADERS"), "{problem}");
        }
        let odd = Collector::new("http://host", &[("a b".to_owned(), "secret".to_owned())]).unwrap_err().to_string();
        assert!(!odd.contains("secret") && odd.contains("header 1"), "{odd}");
    }

    #[test]
    fn what_a_collector_rejects_is_a_failure() {
        assert_eq!(rejected(b"{}"), None);
        assert_eq!(rejected(b""), None);
        assert_eq!(rejected(br#"{"partialSuccess":{}}"#), None);
        assert_eq!(rejected(br#"{"partialSuccess":{"rejectedDataPoints":"0","errorMessage":"a hint"}}"#), None);
        let said = rejected(br#"{"partialSuccess":{"rejectedDataPoints":"3","errorMessage":"too old"}}"#).unwrap();
        assert!(said.contains("3 samples: too old"), "{said}");
    }
}
