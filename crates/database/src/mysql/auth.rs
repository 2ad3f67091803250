//! Password authentication: the client's answers to the server's challenge.

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256};

/// Authentication methods that loadline supports, for messages.
pub(super) const KNOWN: &str = "mysql_native_password, caching_sha2_password, unix_socket, mysql_clear_password";

fn digest(algorithm: &'static ring::digest::Algorithm, parts: &[&[u8]]) -> Vec<u8> {
    ring::digest::digest(algorithm, &parts.concat()).as_ref().to_vec()
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

/// `mysql_native_password`: SHA1(password) xor SHA1(nonce, SHA1(SHA1(password))).
pub(super) fn native(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let sha1 = |parts: &[&[u8]]| digest(&SHA1_FOR_LEGACY_USE_ONLY, parts);
    let once = sha1(&[password]);
    let twice = sha1(&[&once]);
    xor(&once, &sha1(&[nonce, &twice]))
}

/// `caching_sha2_password`: SHA256(password) xor SHA256(SHA256(SHA256(password)), nonce).
pub(super) fn caching_sha2(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let sha256 = |parts: &[&[u8]]| digest(&SHA256, parts);
    let once = sha256(&[password]);
    let twice = sha256(&[&once]);
    xor(&once, &sha256(&[&twice, nonce]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server stores SHA1(SHA1(password)) only and checks the answer against it.
    #[test]
    fn the_server_can_check_the_answer() {
        let nonce = [7; 20];
        let stored = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[&digest(&SHA1_FOR_LEGACY_USE_ONLY, &[b"secret"])]);
        let once = xor(&native(b"secret", &nonce), &digest(&SHA1_FOR_LEGACY_USE_ONLY, &[&nonce, &stored]));
        assert_eq!(digest(&SHA1_FOR_LEGACY_USE_ONLY, &[&once]), stored);
        let stored = digest(&SHA256, &[&digest(&SHA256, &[b"secret"])]);
        let once = xor(&caching_sha2(b"secret", &nonce), &digest(&SHA256, &[&stored, &nonce]));
        assert_eq!(digest(&SHA256, &[&once]), stored);
    }
}
