//! Who may ask, and what an answer allows a browser to do.
//!
//! - The `Host` of a request must be an address, `localhost` or a name that was given: a page of another site that resolves its own
//!   name to this machine (DNS rebinding) is refused.
//! - With a token: it comes as `Authorization: Bearer`, or is typed into a form once and kept as a cookie that other sites cannot send.
//! - Scripts and styles are those of this server, and the one of each in reports, known by its hash.

use std::net::IpAddr;
use std::sync::LazyLock;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::http::{Answer, Request, values};
use super::shell::{problem, shell};

const COOKIE: &str = "loadline";

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

    fn admits(&self, request: &Request) -> bool {
        let Some([token, cookie]) = &self.token else { return true };
        let mut bearer = request.header("authorization").filter_map(|v| {
            // The name of a scheme has no case (RFC 9110, 11.1).
            v.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim())
        });
        let cookies = request.header("cookie").flat_map(|v| v.split(';'));
        let mut cookies = cookies.filter_map(|c| c.trim().strip_prefix(COOKIE)?.strip_prefix('='));
        // Hashes are compared: how long it takes says nothing of the token.
        bearer.any(|t| <[u8; 32]>::from(Sha256::digest(t)) == *token)
            || cookies.any(|c| <[u8; 32]>::from(Sha256::digest(c)) == *cookie)
    }

    pub(super) fn refusal(&self, request: &Request) -> Option<Answer> {
        let mut hosts = request.header("host");
        if !self.knows(hosts.next().unwrap_or_default()) || hosts.next().is_some() {
            let text =
                "This name is not known here. Ask by the address, by localhost, or start the server with --name NAME.";
            return Some(problem(421, text));
        }
        let login = request.path == "/login";
        match request.method.as_str() {
            "GET" | "HEAD" => {}
            "POST" if login => {}
            _ => return Some(problem(405, "Everything here can only be read.")),
        }
        if login || ["/serve.css", "/favicon.ico"].contains(&request.path.as_str()) || self.admits(request) {
            return None;
        }
        let page = request.header("accept").any(|v| v.contains("text/html"));
        Some(if page { Answer::see("/login".to_owned()) } else { problem(401, "A token is wanted.") })
    }

    pub(super) fn login(&self, form: &str) -> Answer {
        let given = values(form, "token").pop().unwrap_or_default();
        let token = given.trim();
        let is_token = |[known, _]: &[[u8; 32]; 2]| <[u8; 32]>::from(Sha256::digest(token)) == *known;
        if !self.token.as_ref().is_some_and(is_token) {
            // Guessing takes a while.
            std::thread::sleep(Duration::from_millis(500));
            return token_form(403, "That is not the token.");
        }
        let mut answer = Answer::see("/".to_owned());
        answer.headers.push(("set-cookie", format!("{COOKIE}={}; HttpOnly; SameSite=Strict; Path=/", cookie(token))));
        answer
    }
}

/// The cookie of who knows `token`. It does not hold the token.
fn cookie(token: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(format!("loadline serve: {token}")))
}

static POLICY: LazyLock<String> = LazyLock::new(|| {
    let [style, script] =
        [loadline_report::STYLE, loadline_report::SCRIPT].map(|part| STANDARD.encode(Sha256::digest(part)));
    format!(
        "default-src 'none'; script-src 'self' 'sha256-{script}'; style-src 'self' 'sha256-{style}'; connect-src 'self'; form-action 'self'; base-uri \
         'none'; frame-ancestors 'none'"
    )
});

pub(super) fn guarded(mut answer: Answer) -> Answer {
    let fixed = [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("content-security-policy", POLICY.as_str()),
    ];
    answer.headers.extend(fixed.map(|(name, value)| (name, value.to_owned())));
    answer
}

pub(super) fn token_form(status: u16, remark: &str) -> Answer {
    Answer::html(status, shell("Token", include_str!("token.html"), json!({ "remark": remark })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_no_other_site_has_are_known() {
        let access = Access::new(None, vec!["bench1.example".to_owned()]);
        let known =
            ["127.0.0.1:80", "127.0.0.1", "[::1]:8000", "localhost", "LOCALHOST:9", "Bench1.example:9", "10.1.2.3:1"];
        let other =
            ["", "evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example:80", "[evil]"];
        for name in known.into_iter().chain(other) {
            assert_eq!(access.knows(name), known.contains(&name), "{name}");
        }
    }

    #[test]
    fn only_the_token_and_its_cookie_are_admitted() {
        let token = "0123456789abcdef";
        let access = Access::new(Some(token), Vec::new());
        let admits = |name: &str, value: &str| {
            let headers = vec![(name.to_owned(), value.to_owned())];
            access.admits(&Request { headers, ..Request::default() })
        };
        assert!(admits("authorization", &format!("Bearer {token}")));
        assert!(admits("cookie", &format!("other=1; {COOKIE}={}", cookie(token))));
        assert!(!access.admits(&Request::default()));
        for wrong in ["", "Bearer ", "Bearer 0123456789abcdeX", token] {
            assert!(!admits("authorization", wrong), "{wrong}");
        }
        assert!(!admits("cookie", &format!("{COOKIE}={token}")), "the cookie is not the token");
        assert!(!cookie(token).contains(token));
    }
}
