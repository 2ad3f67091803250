//! Who may ask, and what an answer allows a browser to do.
//!
//! - The `Host` of a request must be an address, `localhost` or a name that was given: a page of another site that resolves its own
//!   name to this machine (DNS rebinding) is refused.
//! - With a token: it comes as `Authorization: Bearer`, or is typed into a form once and kept as a cookie that other sites cannot send.
//! - Scripts and styles are those of this server, and the one style of reports, known by its hash.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use axum::Form;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Redirect, Response};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::Served;
use super::shell::{problem, shell};

/// Name of the cookie.
const COOKIE: &str = "loadline";

/// Who may ask.
#[derive(Debug)]
pub(super) struct Access {
    /// SHA-256 of the token, and of the cookie that stands for it.
    token: Option<[[u8; 32]; 2]>,
    names: Vec<String>,
}

impl Access {
    pub(super) fn new(token: Option<&str>, names: Vec<String>) -> Access {
        let hashes = |token: &str| [Sha256::digest(token).into(), Sha256::digest(cookie(token)).into()];
        Access { token: token.map(hashes), names }
    }

    /// Whether `host` of a request names this machine in a way that no other site can.
    fn knows(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.rsplit_once(':').map_or(host, |(name, _)| name),
        };
        name.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let Some([token, cookie]) = &self.token else { return true };
        let text = |name: HeaderName| headers.get_all(name).iter().filter_map(|v| v.to_str().ok()).collect::<Vec<_>>();
        let mut bearer = text(header::AUTHORIZATION).into_iter().filter_map(|v| {
            // The name of a scheme has no case (RFC 9110, 11.1).
            v.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim())
        });
        let cookies = text(header::COOKIE);
        let cookies = cookies.iter().flat_map(|v| v.split(';')).filter_map(|c| c.trim().strip_prefix(COOKIE));
        let mut cookies = cookies.filter_map(|c| c.strip_prefix('='));
        // Hashes are compared: how long it takes says nothing of the token.
        bearer.any(|t| <[u8; 32]>::from(Sha256::digest(t)) == *token)
            || cookies.any(|c| <[u8; 32]>::from(Sha256::digest(c)) == *cookie)
    }

    fn is_token(&self, given: &str) -> bool {
        self.token.as_ref().is_some_and(|[token, _]| <[u8; 32]>::from(Sha256::digest(given)) == *token)
    }
}

/// The cookie of who knows `token`. It does not hold the token.
fn cookie(token: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(format!("loadline serve: {token}")))
}

/// Policy of every answer.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let style = STANDARD.encode(Sha256::digest(loadline_report::STYLE));
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'sha256-{style}'; connect-src 'self'; form-action 'self'; base-uri \
         'none'; frame-ancestors 'none'"
    )
});

/// Refuses what may not be asked, and adds the headers that every answer has.
pub(super) async fn guard(State(served): State<Arc<Served>>, request: Request, next: Next) -> Response {
    let mut response = match refusal(&served.access, &request) {
        Some(refused) => refused,
        None => next.run(request).await,
    };
    let fixed = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    let headers = response.headers_mut();
    headers.extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
    headers.extend(HeaderValue::from_str(&POLICY).ok().map(|value| (header::CONTENT_SECURITY_POLICY, value)));
    response
}

fn refusal(access: &Access, request: &Request) -> Option<Response> {
    let headers = request.headers();
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next().and_then(|v| v.to_str().ok()).unwrap_or_default();
    if !access.knows(host) || hosts.next().is_some() {
        let text =
            "This name is not known here. Ask by the address, by localhost, or start the server with --name NAME.";
        return Some(problem(StatusCode::MISDIRECTED_REQUEST, text));
    }
    let login = request.uri().path() == "/login";
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if !reads && (!login || request.method() != Method::POST) {
        return Some(problem(StatusCode::METHOD_NOT_ALLOWED, "Everything here can only be read."));
    }
    let open = login || ["/serve.css", "/favicon.ico"].contains(&request.uri().path());
    if open || access.admits(headers) {
        return None;
    }
    let page = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).is_some_and(|v| v.contains("text/html"));
    Some(if page {
        Redirect::to("/login").into_response()
    } else {
        problem(StatusCode::UNAUTHORIZED, "A token is wanted.")
    })
}

/// The form that asks for the token.
pub(super) async fn login_page() -> Response {
    form(StatusCode::OK, "")
}

fn form(status: StatusCode, remark: &str) -> Response {
    let body = format!(
        "<form method=\"post\" action=\"/login\"><p><label for=\"token\">Token of this server</label></p><p><input id=\"token\" \
         name=\"token\" type=\"password\" autocomplete=\"current-password\" required autofocus> <button>Open</button></p>\
         <p role=\"alert\">{remark}</p></form>"
    );
    (status, Html(shell("Token", &body))).into_response()
}

/// What the form sends.
#[derive(Deserialize)]
pub(super) struct Given {
    token: String,
}

pub(super) async fn login(State(served): State<Arc<Served>>, Form(given): Form<Given>) -> Response {
    let token = given.token.trim();
    if !served.access.is_token(token) {
        // Guessing takes a while.
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        return form(StatusCode::FORBIDDEN, "That is not the token.");
    }
    let set = format!("{COOKIE}={}; HttpOnly; SameSite=Strict; Path=/", cookie(token));
    match HeaderValue::from_str(&set) {
        Ok(set) => ([(header::SET_COOKIE, set)], Redirect::to("/")).into_response(),
        Err(_) => problem(StatusCode::INTERNAL_SERVER_ERROR, "The cookie could not be made."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_no_other_site_has_are_known() {
        let access = Access::new(None, vec!["bench1.example".to_owned()]);
        for known in
            ["127.0.0.1:80", "127.0.0.1", "[::1]:8000", "localhost", "LOCALHOST:9", "Bench1.example:9", "10.1.2.3:1"]
        {
            assert!(access.knows(known), "{known}");
        }
        for unknown in
            ["", "evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example:80", "[evil]"]
        {
            assert!(!access.knows(unknown), "{unknown}");
        }
    }

    #[test]
    fn only_the_token_and_its_cookie_are_admitted() {
        let token = "0123456789abcdef";
        let access = Access::new(Some(token), Vec::new());
        let admits = |name: HeaderName, value: &str| {
            access.admits(&HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())]))
        };
        assert!(admits(header::AUTHORIZATION, &format!("Bearer {token}")));
        assert!(admits(header::COOKIE, &format!("other=1; {COOKIE}={}", cookie(token))));
        assert!(!access.admits(&HeaderMap::new()));
        for wrong in ["", "Bearer ", "Bearer 0123456789abcdeX", token] {
            assert!(!admits(header::AUTHORIZATION, wrong), "{wrong}");
        }
        assert!(!admits(header::COOKIE, &format!("{COOKIE}={token}")), "the cookie is not the token");
        assert!(!cookie(token).contains(token));
    }
}
