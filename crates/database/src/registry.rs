//! The list of databases. Opens a target by its URL.

use loadline_model::format::nearest;

use crate::error::TargetError;
use crate::kind::TargetKind;
use crate::request::OpenRequest;
use crate::target::Target;
use crate::{duckdb, mysql, null, oracle, postgres, sqlite, wal};

pub static TARGETS: &[&dyn TargetKind] = &[
    &sqlite::KIND,
    &duckdb::KIND,
    &postgres::Kind,
    &postgres::PRIVATE,
    &mysql::Kind,
    &mysql::MARIADB,
    &mysql::MYSQL,
    &mysql::GALERA,
    &oracle::Kind,
    &wal::Kind,
    &null::Kind,
];

/// The kind that `url` names.
pub fn kind_of(url: &str) -> Result<&'static dyn TargetKind, TargetError> {
    let names = |k: &'static dyn TargetKind| {
        std::iter::once(k.scheme()).chain(k.aliases.iter().map(String::as_str)).collect::<Vec<_>>()
    };
    let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme).to_ascii_lowercase();
    if url.contains(':')
        && let Some(kind) = TARGETS.iter().find(|k| names(**k).contains(&scheme.as_str()))
    {
        return Ok(*kind);
    }
    let known = TARGETS.iter().flat_map(|k| names(*k));
    let hint = nearest(&scheme, known.clone()).map_or(String::new(), |n| format!(": did you mean '{n}:'?"));
    let known = known.map(|n| format!("{n}:")).collect::<Vec<_>>().join(", ");
    Err(TargetError::Usage(format!("'{}' is not a target{hint} (known: {known})", crate::redact(url))))
}

/// Whether `url` names a target that loadline makes and removes.
pub fn is_temporary(url: &str) -> bool {
    kind_of(url).is_ok_and(|kind| kind.is_temporary(url))
}

/// Opens the target that `request` names.
///
/// # Errors
/// [`TargetError`] of the kind; never [`TargetError::Local`], because a server that cannot be started answers as little as
/// one that is away.
pub fn open(request: &OpenRequest) -> Result<Box<dyn Target>, TargetError> {
    let kind = kind_of(&request.url)?;
    crate::refuse_secrets(&request.settings)?;
    for node in &request.nodes {
        if kind_of(node)?.scheme() != kind.scheme() {
            return Err(TargetError::Usage(format!(
                "the node '{}' is not of the same kind as the target: all nodes must be {}:",
                crate::redact(node),
                kind.scheme()
            )));
        }
    }
    for standby in &request.standbys {
        if kind.level_settings().is_empty() || kind_of(standby)?.scheme() != kind.scheme() {
            return Err(TargetError::Usage(format!(
                "the standby '{}' does not fit the target: --standby is for a target of yours whose level loadline can change, and \
                 of the same kind",
                crate::redact(standby)
            )));
        }
    }
    kind.open(request).map_err(|e| match e {
        TargetError::Local(text) => TargetError::Unreachable(text),
        e => e,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cases::cases;

    fn check(url: &str) -> Result<u32, TargetError> {
        kind_of(url).and_then(|kind| kind.check_url(url))
    }

    #[test]
    fn what_is_wrong_with_a_url_is_named_and_no_password_is() {
        for (url, words) in cases::<(String, String)>("urls-refused") {
            let e = check(&url).unwrap_err();
            assert!(matches!(e, TargetError::Usage(_)), "{url}: {e:?}");
            assert!(e.to_string().contains(&words) && !e.to_string().contains("secret"), "{url}: {e}");
        }
    }

    proptest! {
        #[test]
        fn no_url_panics(rest in "(//)?\\PC{0,80}") {
            for kind in TARGETS {
                let _ = check(&format!("{}:{rest}", kind.scheme()));
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
