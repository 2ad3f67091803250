//! SCRAM-SHA-256 (RFC 5802 and 7677), with the keys of the last password kept.
//!
//! Keys take 4,096 rounds of HMAC by default. A server sends all sessions of a user the same salt, so thousands of sessions need
//! them once. They stay in this process's memory.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{digest, hmac, pbkdf2};
use thiserror::Error;

use crate::secret::Secret;

/// A server may ask for this many rounds at most: more would keep the client busy for seconds.
const MAX_ROUNDS: u32 = 1_000_000;
const KEY: usize = digest::SHA256_OUTPUT_LEN;

/// What a server stores of a password, and what only the client knows of it.
#[derive(Clone)]
struct Keys {
    password: Secret,
    salt: Vec<u8>,
    rounds: NonZeroU32,
    client: [u8; KEY],
    stored: hmac::Key,
    server: hmac::Key,
}

impl Keys {
    fn derive(password: &Secret, salt: &[u8], rounds: NonZeroU32) -> Keys {
        // As PostgreSQL: a password that SASLprep does not allow is taken as it is.
        let prepared = stringprep::saslprep(password.expose());
        let text = prepared.as_deref().unwrap_or(password.expose());
        let mut salted = [0; KEY];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, salt, text.as_bytes(), &mut salted);
        let key = |bytes: &[u8]| hmac::Key::new(hmac::HMAC_SHA256, bytes);
        let salted = key(&salted);
        let mut client = [0; KEY];
        client.copy_from_slice(hmac::sign(&salted, b"Client Key").as_ref());
        let stored = key(digest::digest(&digest::SHA256, &client).as_ref());
        let server = key(hmac::sign(&salted, b"Server Key").as_ref());
        Keys { password: password.clone(), salt: salt.to_vec(), rounds, client, stored, server }
    }
}

/// The keys that were derived last, for all sessions of an endpoint.
#[derive(Clone, Default)]
pub(super) struct KnownKeys(Arc<Mutex<Option<Keys>>>);

impl KnownKeys {
    fn get(&self, password: &Secret, salt: &[u8], rounds: NonZeroU32) -> Keys {
        // Locked while keys are derived: sessions that open at the same time wait for them instead of deriving them too.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fit = known.take().filter(|k| k.rounds == rounds && k.salt == salt && k.password == *password);
        known.insert(fit.unwrap_or_else(|| Keys::derive(password, salt, rounds))).clone()
    }
}

/// What is wrong with a message of the server.
#[derive(Debug, Error)]
#[error("password exchange: {0}")]
pub(super) struct Wrong(String);

fn wrong(what: impl Into<String>) -> Wrong {
    Wrong(what.into())
}

/// One exchange, as its client. Without channel binding.
pub(super) struct Exchange {
    password: Secret,
    nonce: String,
    /// What the server must send to prove that it knows the password too, once it is known.
    signature: Option<(hmac::Key, String)>,
}

impl Exchange {
    /// Begins one.
    pub(super) fn new(password: Secret) -> Result<Exchange, Wrong> {
        let mut random = [0; 18];
        SystemRandom::new().fill(&mut random).map_err(|_| wrong("the system has no random numbers"))?;
        Ok(Exchange { password, nonce: STANDARD.encode(random), signature: None })
    }

    /// The client's first message.
    pub(super) fn first(&self) -> String {
        format!("n,,{}", self.first_bare())
    }

    /// The user is the one of the startup message.
    fn first_bare(&self) -> String {
        format!("n=,r={}", self.nonce)
    }

    /// The client's last message, which answers the server's first.
    pub(super) fn answer(&mut self, server_first: &[u8], known: &KnownKeys) -> Result<String, Wrong> {
        let text = std::str::from_utf8(server_first).map_err(|_| wrong("a message that is no text"))?;
        let mut parts = text.split(',');
        let mut part = |name: &str| {
            let value = parts.next().and_then(|part| part.strip_prefix(name));
            value.ok_or_else(|| wrong(format!("no '{name}' at its place in the server's first message")))
        };
        let nonce = part("r=")?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(wrong("invalid nonce"));
        }
        let salt = STANDARD.decode(part("s=")?).map_err(|_| wrong("invalid salt"))?;
        let rounds = part("i=")?;
        let rounds = rounds.parse::<NonZeroU32>().ok().filter(|n| n.get() <= MAX_ROUNDS);
        let rounds = rounds.ok_or_else(|| wrong(format!("an iteration count not in 1 to {MAX_ROUNDS}")))?;
        let keys = known.get(&self.password, &salt, rounds);
        // "biws" is "n,,": no channel binding.
        let without_proof = format!("c=biws,r={nonce}");
        let all = format!("{},{text},{without_proof}", self.first_bare());
        let signature = hmac::sign(&keys.stored, all.as_bytes());
        let proof: Vec<u8> = keys.client.iter().zip(signature.as_ref()).map(|(key, s)| key ^ s).collect();
        self.signature = Some((keys.server, all));
        Ok(format!("{without_proof},p={}", STANDARD.encode(proof)))
    }

    /// Checks the server's last message. Without it the server has not proved that it knows the password.
    pub(super) fn finish(&mut self, server_final: &[u8]) -> Result<(), Wrong> {
        let text = std::str::from_utf8(server_final).map_err(|_| wrong("a message that is no text"))?;
        let (key, all) = self.signature.take().ok_or_else(|| wrong("a message out of order"))?;
        if let Some(error) = text.strip_prefix("e=") {
            return Err(wrong(error));
        }
        let signature = text.strip_prefix("v=").and_then(|v| v.split(',').next()).map(|v| STANDARD.decode(v));
        match signature {
            Some(Ok(signature)) if hmac::verify(&key, all.as_bytes(), &signature).is_ok() => Ok(()),
            _ => Err(wrong("the server does not know the password")),
        }
    }
}

#[cfg(test)]
mod tests {
    use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};

    use super::*;

    /// Example of PostgreSQL's own exchange: user from the startup message, password "foobar".
    const FIRST: &str = "r=9IZ2O01zb9IgiIZ1WJ/zgpJBjx/oIRLs02gGSHcw1KEty3eY,s=fs3IXBy7U7+IvVjZ,i=4096";

    fn exchange(password: &str) -> Exchange {
        Exchange { nonce: "9IZ2O01zb9IgiIZ1WJ/zgpJB".into(), password: Secret::new(password.into()), signature: None }
    }

    #[test]
    fn an_exchange_ends_with_both_proofs() {
        let known = KnownKeys::default();
        // The second time with keys that are known.
        for _ in 0..2 {
            let mut e = exchange("foobar");
            assert_eq!(e.first(), "n,,n=,r=9IZ2O01zb9IgiIZ1WJ/zgpJB");
            assert_eq!(
                e.answer(FIRST.as_bytes(), &known).unwrap(),
                "c=biws,r=9IZ2O01zb9IgiIZ1WJ/zgpJBjx/oIRLs02gGSHcw1KEty3eY,p=AmNKosjJzS31NTlQYNs5BTeQjdHdk7lOflDo5re2an8="
            );
            e.finish(b"v=U+ppxD5XUKtradnv8e2MkeupiA8FU87Sg8CXzXHDAzw=").unwrap();
        }
    }

    #[test]
    fn keys_of_another_password_salt_or_count_are_others() {
        let known = KnownKeys::default();
        let proof = |password, first: &str| exchange(password).answer(first.as_bytes(), &known).unwrap();
        let right = proof("foobar", FIRST);
        let others = [
            proof("foobaz", FIRST),
            proof("foobar", &FIRST.replace("s=fs3", "s=fs4")),
            proof("foobar", &FIRST.replace("4096", "4097")),
        ];
        assert!(others.iter().all(|other| *other != right));
        assert_eq!(proof("foobar", FIRST), right, "after others");
    }

    #[test]
    fn a_server_that_proves_nothing_is_refused() {
        let known = KnownKeys::default();
        let asked = |first: &str| exchange("foobar").answer(first.as_bytes(), &known).unwrap_err().to_string();
        for (first, what) in [
            (FIRST.replace("r=9", "r=8"), "nonce"),
            (FIRST.replace("jx/oIRLs02gGSHcw1KEty3eY", ""), "nonce"),
            (FIRST.replace("s=fs3", "s=!"), "salt"),
            (FIRST.replace("i=4096", "i=0"), "1 to 1000000"),
            (FIRST.replace("i=4096", "i=4000000000"), "1 to 1000000"),
            (FIRST.replace(",i=4096", ""), "'i='"),
            (String::new(), "'r='"),
        ] {
            assert!(asked(&first).contains(what), "{first}: {}", asked(&first));
        }
        for last in ["v=", "v=AAAA", "e=other-error", "", "v=U+ppxD5XUKtradnv8e2MkeupiA8FU87Sg8CXzXHDAzx="] {
            let mut e = exchange("foobar");
            assert!(e.finish(last.as_bytes()).is_err(), "before the proof was sent");
            e.answer(FIRST.as_bytes(), &known).unwrap();
            assert!(e.finish(last.as_bytes()).is_err(), "{last}");
        }
    }

    #[test]
    fn passwords_are_prepared_as_another_client_does() {
        // A soft hyphen, a composed letter, a control character, an Arabic digit.
        for password in ["I\u{ad}X", "Ａ\u{fb01}", "\u{7}", "\u{627}1", "tops3cret, =%", ""] {
            let mut theirs = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
            let message = String::from_utf8(theirs.message().to_vec()).unwrap();
            let nonce = message.strip_prefix("n,,n=,r=").unwrap().to_owned();
            let first = format!("r={nonce}server,s=fs3IXBy7U7+IvVjZ,i=5000");
            theirs.update(first.as_bytes()).unwrap();
            let mut ours = Exchange { nonce, password: Secret::new(password.into()), signature: None };
            let answer = ours.answer(first.as_bytes(), &KnownKeys::default()).unwrap();
            assert_eq!(answer.as_bytes(), theirs.message(), "{password:?}");
        }
    }
}
