//! The list of databases. Opens a target by its URL.

use loadline_model::format::nearest;

use crate::error::TargetError;
use crate::kind::TargetKind;
use crate::request::OpenRequest;
use crate::target::Target;
use crate::{duckdb, mysql, null, oracle, postgres, sqlite, wal};

pub static TARGETS: &[&TargetKind] = &[
    &sqlite::KIND,
    &duckdb::KIND,
    &postgres::KIND,
    &postgres::TEMP_KIND,
    &mysql::KIND,
    &mysql::MARIADB_TEMP_KIND,
    &mysql::MYSQL_TEMP_KIND,
    &mysql::GALERA_TEMP_KIND,
    &oracle::KIND,
    &wal::KIND,
    &null::KIND,
];

/// The kind that `url` names.
pub fn kind_of(url: &str) -> Result<&'static TargetKind, TargetError> {
    let names = |k: &TargetKind| std::iter::once(k.scheme).chain(k.aliases.iter().copied()).collect::<Vec<_>>();
    let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme).to_ascii_lowercase();
    if url.contains(':')
        && let Some(kind) = TARGETS.iter().find(|k| names(k).contains(&scheme.as_str()))
    {
        return Ok(kind);
    }
    let known = TARGETS.iter().flat_map(|k| names(k));
    let hint = nearest(&scheme, known.clone()).map_or(String::new(), |n| format!(": did you mean '{n}:'?"));
    let known = known.map(|n| format!("{n}:")).collect::<Vec<_>>().join(", ");
    Err(TargetError::Usage(format!("'{}' is not a target{hint} (known: {known})", crate::redact(url))))
}

/// Whether `url` names a target that loadline makes and removes.
pub fn is_temporary(url: &str) -> bool {
    kind_of(url).is_ok_and(|kind| (kind.is_temporary)(url))
}

/// Opens the target that `request` names.
///
/// # Errors
/// [`TargetError`] of the kind; never [`TargetError::Local`], because a server that cannot be started answers as little as
/// one that is away.
pub fn open(request: &OpenRequest) -> Result<Box<dyn Target>, TargetError> {
    let kind = kind_of(&request.url)?;
    for node in &request.nodes {
        if kind_of(node)?.scheme != kind.scheme {
            return Err(TargetError::Usage(format!(
                "the node '{}' is not of the same kind as the target: all nodes must be {}:",
                crate::redact(node),
                kind.scheme
            )));
        }
    }
    for standby in &request.standbys {
        if kind.level_settings.is_empty() || kind_of(standby)?.scheme != kind.scheme {
            return Err(TargetError::Usage(format!(
                "the standby '{}' does not fit the target: --standby is for a target of yours whose level loadline can change, and \
                 of the same kind",
                crate::redact(standby)
            )));
        }
    }
    (kind.open)(request).map_err(|e| match e {
        TargetError::Local(text) => TargetError::Unreachable(text),
        e => e,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(url: &str) -> Result<u32, TargetError> {
        kind_of(url).and_then(|kind| (kind.check_url)(url))
    }

    #[test]
    fn what_is_wrong_with_a_url_is_named_and_no_password_is() {
        for (url, words) in [
            ("postgres-temp", "did you mean 'postgres-temp:'?"),
            ("postgres:a", "'//' must follow"),
            ("postgres://a:secret@h/d?sslmod=require", "'sslmod': did you mean 'sslmode'"),
            ("postgres://a:secret@h/d?sslmode=verify-ful", "did you mean 'verify-full'"),
            ("postgres://a:secret@h:99999/d", "'99999' is not a port"),
            ("postgres://a:secret@h:1:2/d", "'h:1:2' is not a host and port"),
            ("postgres://a:secret@h,i/d", "--node"),
            ("postgres://a:secret@h/d?connect_timeout=soon", "'soon'"),
            ("postgres://a:sec?secret@h/d", "%3F"),
            ("postgres://a:sec/secret@h/d?sslmode=require", "%2F"),
            ("postgres://a:sec#secret@h/d", "%23"),
            ("postgres://a:sec@secret@h/d", "%40"),
            ("postgres://a:sec%zzsecret@h/d", "%25"),
            ("postgres://a:sec@x?y#secret/w@h/d", "%23"),
            ("postgres://a:sec@x?secret=z/w@h/d", "%40"),
            ("mysql:db", "'//' must follow"),
            ("mysql://h/d?ssl_mod=required", "did you mean 'ssl-mode'?"),
            ("mysql://h/d?ssl-mode=on", "disabled, preferred, required, verify-ca, verify-identity"),
            ("mysql://h:99999/d", "'99999' is not a port"),
            ("mysql://h/d?socket=/x", "a host and a socket"),
            ("mysql:///d?socket=x", "begins with /"),
            ("mysql://h/d?connect-timeout=no", "'no' must be a number"),
            ("mysql://ann:secret?secret@t/db", "%3F"),
            ("oracle:", "write oracle://user@host"),
            ("oracle://host/x", "user"),
            ("oracle://a:secret@host", "service"),
            ("oracle://a:secret@host:0/x", "port"),
            ("oracle://a:secret@host:x/x", "port"),
            ("oracle://a:secret@ho)st/x", "host"),
            ("oracle://a:secret@host/x)(y", "service"),
            ("oracle://a:secret@host/x?protocol=udp", "must be one of tcp, tcps"),
            ("oracle://a:secret@host/x?walet=/x", "'walet'"),
            ("oracle://a:secret@host/x?wallet=/x", "tcps"),
            ("postgres-temp:dir", "'dir'"),
            ("postgres-temp://host/db", "host"),
            ("postgres-temp:?bon=/x", "did you mean 'bin'?"),
            ("postgres-temp:?standbys=0", "standbys='0' must be a number from 1 to 8"),
            ("postgres-temp:?standbys", "from 1 to 8"),
            ("postgres-temp:?standbys=9", "from 1 to 8"),
            ("postgres-temp:?standbys=1&standbys=2", "twice"),
            ("postgres-temp:?bin=", "bin=/usr/lib"),
            ("postgres-temp:?bin=/a&bin=/b", "twice"),
            ("postgres-temp:?provider=/a.so", "known: bin, standbys"),
            ("postgres-temp:/a%00b", "/data/scratch"),
            ("galera-temp:?nodes=0", "nodes='0'"),
            ("galera-temp:?provider=x.so", "provider='x.so'"),
            ("galera-temp:?node=2", "did you mean 'nodes'?"),
            ("wal:/x?devise=dsync", "did you mean 'device'"),
            ("wal:/x?device=nvme", "device 'nvme' must be one of best, fdatasync"),
            ("wal:/x?buffer=3", "buffer 3 must be a multiple of 4 KiB between 64"),
            ("wal:/x?buffer=many", "buffer: "),
            ("wal:/x?flush-fraction=2", "'2' must be above 0 and at most 1, such as 1/3"),
            ("wal:/x?flush-every=0s", "0s must be between 1ms"),
            ("wal:/x?pause=2s", "'2s' must be at most 1s"),
            ("wal:/x?quorum=2", "'quorum' needs a 'mirror'"),
            ("wal:/x?mirror=/y&quorum=3", "quorum 3 must be between 1 and the number of copies, 2"),
            ("wal:/x?mirror=/y&flash=/z", "one of 'mirror', 'flash'"),
            ("wal:/x?standby-rule=both", "'standby-rule' needs a 'standby'"),
            ("wal:/x?file-size=1", "file-size 1 must be"),
            ("null:?pause=2s", "at most 1s"),
        ] {
            let e = check(url).unwrap_err();
            assert!(matches!(e, TargetError::Usage(_)), "{url}: {e:?}");
            assert!(e.to_string().contains(words) && !e.to_string().contains("secret"), "{url}: {e}");
        }
    }

    proptest! {
        #[test]
        fn no_url_panics(rest in "(//)?\\PC{0,80}") {
            for kind in TARGETS {
                let _ = check(&format!("{}:{rest}", kind.scheme));
            }
        }

        #[test]
        fn passwords_never_show(password in "[A-Z]{8}[@/:%]{0,2}[A-Z]{3}", bad in "[a-z]{3,6}") {
            for scheme in ["postgres", "mysql", "oracle"] {
                if let Err(e) = check(&format!("{scheme}://ann:{password}@host/db?{bad}=1")) {
                    prop_assert!(!e.to_string().contains(&password[..8]), "{}", e);
                }
            }
        }
    }
}
