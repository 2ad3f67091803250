//! HTTP/1.1 as a server of few pages needs it: one request on a connection, then the answer, then the end.
//!
//! Every connection has a thread, of which there are a limited number, and a time within which the request must be there.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use percent_encoding::percent_decode_str;

/// Longest head of a request and longest body, in which a token is sent, bytes.
const LONGEST: usize = 16 << 10;
const MOST_HEADERS: usize = 64;
const REQUEST_WITHIN: Duration = Duration::from_secs(10);
const WRITE_WITHIN: Duration = Duration::from_secs(30);

pub(super) const HTML: &str = "text/html; charset=utf-8";

#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    /// Query after the `?`, as it was sent.
    pub(super) query: String,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Request {
    /// Values of the headers `name`, which is in lower case.
    pub(super) fn header<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The parts of the path between slashes, decoded; `None` if one is no text.
    pub(super) fn parts(&self) -> Option<Vec<String>> {
        let parts = self.path.strip_prefix('/')?.split('/');
        parts.map(|part| Some(percent_decode_str(part).decode_utf8().ok()?.into_owned())).collect()
    }
}

/// Values of `name` in a query or a form, decoded.
pub(super) fn values(query: &str, name: &str) -> Vec<String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let decoded = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    pairs.filter(|(key, _)| *key == name).map(|(_, value)| decoded(value)).collect()
}

pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn new(kind: &str, body: Vec<u8>) -> Answer {
        Answer { status: 200, headers: vec![("content-type", kind.to_owned())], body }
    }

    pub(super) fn html(status: u16, text: String) -> Answer {
        Answer { status, ..Answer::new(HTML, text.into_bytes()) }
    }

    /// Sends the browser to `path`, which it asks by GET.
    pub(super) fn see(path: String) -> Answer {
        Answer { status: 303, headers: vec![("location", path)], body: Vec::new() }
    }
}

/// Why a request is not answered as asked: the status.
type Refused = u16;

/// Reads the request on `stream`; `Err` holds the status to answer, `Ok(None)` means that nobody asks any more.
pub(super) fn read(stream: &mut TcpStream) -> Result<Option<Request>, Refused> {
    let end = Instant::now() + REQUEST_WITHIN;
    let mut text = Vec::new();
    let (mut request, head, length) = loop {
        if !more(stream, &mut text, end)? {
            return Ok(None);
        }
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        match parsed.parse(&text).map_err(|_| 400u16)? {
            httparse::Status::Complete(head) => {
                let request = request(&parsed).ok_or(400u16)?;
                let length = length(&request)?;
                break (request, head, length);
            }
            httparse::Status::Partial if text.len() > LONGEST => return Err(431),
            httparse::Status::Partial => {}
        }
    };
    while text.len() < head + length {
        if !more(stream, &mut text, end)? {
            return Ok(None);
        }
    }
    let body = text.get(head..head + length).unwrap_or_default();
    request.body = String::from_utf8_lossy(body).into_owned();
    Ok(Some(request))
}

/// Reads more bytes. False if there are no more.
fn more(stream: &mut TcpStream, text: &mut Vec<u8>, end: Instant) -> Result<bool, Refused> {
    // Browsers open connections in advance: one that never asks gets no answer.
    let too_late = if text.is_empty() { Ok(false) } else { Err(408) };
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return too_late;
    }
    let mut part = [0; 4096];
    // A timeout of zero is refused, and one of less than that is none.
    let _ = stream.set_read_timeout(Some(left.max(Duration::from_millis(1))));
    match stream.read(&mut part) {
        Ok(0) => Ok(false),
        Ok(read) => {
            text.extend_from_slice(part.get(..read).unwrap_or_default());
            Ok(true)
        }
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(true),
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => too_late,
        Err(_) => Ok(false),
    }
}

fn request(parsed: &httparse::Request<'_, '_>) -> Option<Request> {
    let (path, query) = parsed.path?.split_once('?').unwrap_or((parsed.path?, ""));
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    Some(Request {
        method: parsed.method?.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: parsed.headers.iter().map(|h| (h.name.to_ascii_lowercase(), text(h.value))).collect(),
        body: String::new(),
    })
}

fn length(request: &Request) -> Result<usize, Refused> {
    if request.header("transfer-encoding").next().is_some() {
        return Err(411);
    }
    let lengths: Vec<&str> = request.header("content-length").collect();
    let length: usize = match lengths.as_slice() {
        [] => 0,
        [length] => length.parse().map_err(|_| 400u16)?,
        _ => return Err(400),
    };
    if length > LONGEST { Err(413) } else { Ok(length) }
}

/// Sends `answer`; of a HEAD request, its head.
pub(super) fn write(stream: &mut TcpStream, answer: Answer, with_body: bool) -> io::Result<()> {
    stream.set_write_timeout(Some(WRITE_WITHIN))?;
    stream.set_nodelay(true)?;
    // The number says it all: words after it are optional (RFC 9112, 4).
    let mut head = format!("HTTP/1.1 {} \r\nconnection: close\r\n", answer.status);
    for (name, value) in &answer.headers {
        // A value with a line end would be a header of its own.
        let value: String = value.chars().filter(|c| !c.is_control()).collect();
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", answer.body.len()));
    stream.write_all(head.as_bytes())?;
    if with_body { stream.write_all(&answer.body) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Request read from a connection that sends `text` and ends.
    fn sent(text: &[u8]) -> Result<Option<Request>, Refused> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let text = text.to_vec();
        let sender = std::thread::spawn(move || {
            // The server may hang up before all is sent.
            let _ = client.write_all(&text);
            let _ = client.shutdown(std::net::Shutdown::Write);
            let _ = client.read_to_end(&mut Vec::new());
        });
        let read = read(&mut listener.accept().unwrap().0);
        sender.join().unwrap();
        read
    }

    #[test]
    fn a_request_is_read_whole() {
        let text = b"POST /a%2Fb/c?x=1+2 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
        let request = sent(text).unwrap().unwrap();
        assert_eq!((request.method.as_str(), request.body.as_str()), ("POST", "abc"));
        assert_eq!(request.parts().unwrap(), ["a/b", "c"]);
        assert_eq!(values(&request.query, "x"), ["1 2"]);
        assert_eq!(request.header("host").collect::<Vec<_>>(), ["h"]);
        assert!(sent(b"GET / HT").unwrap().is_none(), "it hung up");
        assert!(sent(b"GET /%ff HTTP/1.1\r\n\r\n").unwrap().unwrap().parts().is_none());
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(2 * LONGEST));
        for (text, status) in [
            (&b"\x16\x03\x01\x02\x00"[..], 400),
            (b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", 413),
            (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
            (long.as_bytes(), 431),
        ] {
            assert_eq!(sent(text).unwrap_err(), status, "{}", String::from_utf8_lossy(text));
        }
    }
}
