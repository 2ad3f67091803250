//! Server versions, and which of them are supported.

use crate::error::TargetError;

/// Product and version from the server's greeting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) mariadb: bool,
    pub(super) major: u32,
    pub(super) minor: u32,
    pub(super) patch: u32,
    /// As the server writes it.
    pub(super) text: String,
}

/// Supported versions, for messages.
pub(super) const SUPPORTED: &str = "MariaDB 10.6 and newer, MySQL 8.0 and newer";

impl Version {
    /// Reads `10.11.6-MariaDB-0+deb12u1` (with or without `5.5.5-` before it) or `8.0.36`.
    pub(super) fn parse(text: &str) -> Version {
        let mariadb = text.contains("MariaDB");
        // MariaDB before 11 adds this prefix for old replicas.
        let text = text.strip_prefix("5.5.5-").filter(|_| mariadb).unwrap_or(text);
        let mut parts = text.split(|c: char| !c.is_ascii_digit()).map(|p| p.parse().unwrap_or(0));
        let mut next = || parts.next().unwrap_or(0);
        let (major, minor, patch) = (next(), next(), next());
        Version { mariadb, major, minor, patch, text: text.to_owned() }
    }

    pub(super) fn product(&self) -> &'static str {
        if self.mariadb { "MariaDB" } else { "MySQL" }
    }

    pub(super) fn is_at_least(&self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) >= (major, minor)
    }

    /// Whether it is MySQL of this version (major, minor, patch) or newer.
    pub(super) fn is_mysql_from(&self, version: (u32, u32, u32)) -> bool {
        !self.mariadb && (self.major, self.minor, self.patch) >= version
    }

    pub(super) fn check(&self, place: &str) -> Result<(), TargetError> {
        let oldest = if self.mariadb { (10, 6) } else { (8, 0) };
        if self.is_at_least(oldest.0, oldest.1) {
            return Ok(());
        }
        Err(TargetError::Refused(format!(
            "the server at {place} is {} {}, which loadline does not support: it supports {SUPPORTED}",
            self.product(),
            self.text
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;

    #[test]
    fn versions_are_parsed_and_checked() {
        for (text, product, major, minor, fine) in cases::<(String, String, u32, u32, bool)>("mysql-versions") {
            let v = Version::parse(&text);
            assert_eq!((v.product(), v.major, v.minor), (product.as_str(), major, minor), "{text}");
            assert_eq!(v.check("here").is_ok(), fine, "{text}");
        }
    }
}
