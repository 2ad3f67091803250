//! Wall-clock time as text: RFC 3339 in UTC, and the names of runs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Last second of the year 9999, s since 1970.
const LAST_SECOND: u64 = 253_402_300_799;

/// `time` in RFC 3339, UTC, with milliseconds: `2026-11-20T16:15:30.123Z`. Times outside of 1970 to 9999 are clamped.
pub fn rfc3339(time: SystemTime) -> String {
    // Outside of this range humantime panics.
    let time = time.clamp(UNIX_EPOCH, UNIX_EPOCH + Duration::from_secs(LAST_SECOND));
    humantime::format_rfc3339_millis(time).to_string()
}

/// Name of a run that starts at `time` (UTC) on a target of kind `target_kind`: `2026-11-20-161530-postgres`. Characters
/// that a folder's name cannot have become `-`.
pub fn run_name(time: SystemTime, target_kind: &str) -> String {
    let start = rfc3339(time).replacen('T', "-", 1).replace(':', "");
    let start = start.split('.').next().unwrap_or_default();
    let kind: String =
        target_kind.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    format!("{start}-{kind}")
}

/// Parses the output of [`rfc3339`] (any number of decimals, `Z` only); `None` for anything else.
pub fn parse_rfc3339(text: &str) -> Option<SystemTime> {
    humantime::parse_rfc3339(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected texts are from GNU `date -u`.
    #[test]
    fn known_moments() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_795_191_330_123, "2026-11-20T16:15:30.123Z"),
            (4_102_444_799_999, "2099-12-31T23:59:59.999Z"),
        ] {
            let time = UNIX_EPOCH + Duration::from_millis(ms);
            assert_eq!(rfc3339(time), text);
            assert_eq!(parse_rfc3339(text), Some(time));
        }
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_millis(1)), "1970-01-01T00:00:00.000Z");
        let far = UNIX_EPOCH + Duration::from_secs(1 << 40);
        assert_eq!(rfc3339(far), "9999-12-31T23:59:59.000Z");
        assert_eq!(
            run_name(UNIX_EPOCH + Duration::from_millis(1_795_191_330_123), "postgres"),
            "2026-11-20-161530-postgres"
        );
        assert_eq!(run_name(UNIX_EPOCH, "a/../b:"), "1970-01-01-000000-a----b-");
        assert_eq!(parse_rfc3339("2026-11-20T16:15:30+01:00"), None);
    }
}
