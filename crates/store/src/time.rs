//! Wall-clock time as text: RFC 3339 in UTC, and the names of runs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY_S: i64 = 86_400;

/// A moment in UTC, split up.
struct Civil {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    millisecond: u32,
}

/// `time` in RFC 3339, UTC, with milliseconds: `2026-11-20T16:15:30.123Z`.
#[must_use]
pub fn rfc3339(time: SystemTime) -> String {
    let c = civil(time);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        c.year, c.month, c.day, c.hour, c.minute, c.second, c.millisecond
    )
}

/// Name of a run that starts at `time` (UTC) on a target of kind `target_kind`:
/// `2026-11-20-161530-postgres`. What cannot stand in a folder's name becomes `-`.
#[must_use]
pub fn run_name(time: SystemTime, target_kind: &str) -> String {
    let c = civil(time);
    let kind: String =
        target_kind.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    format!("{:04}-{:02}-{:02}-{:02}{:02}{:02}-{kind}", c.year, c.month, c.day, c.hour, c.minute, c.second)
}

/// Reads what [`rfc3339`] writes (any number of decimals, `Z` only). `None` if it is anything else.
#[must_use]
pub fn parse_rfc3339(text: &str) -> Option<SystemTime> {
    let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
    let (hms, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let date: Vec<i64> = date.split('-').map(whole).collect::<Option<_>>()?;
    let hms: Vec<i64> = hms.split(':').map(whole).collect::<Option<_>>()?;
    let (&[year, month, day], &[hour, minute, second]) = (date.as_slice(), hms.as_slice()) else { return None };
    let in_range = (0..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..60).contains(&second)
        && fraction.len() <= 9;
    if !in_range {
        return None;
    }
    let nanos = u32::try_from(whole(&format!("{fraction:0<9}"))?).ok()?;
    let seconds = days_from_civil(year, month, day) * DAY_S + hour * 3600 + minute * 60 + second;
    let whole_s = Duration::from_secs(seconds.unsigned_abs());
    let base = if seconds < 0 { UNIX_EPOCH.checked_sub(whole_s)? } else { UNIX_EPOCH.checked_add(whole_s)? };
    base.checked_add(Duration::from_nanos(u64::from(nanos)))
}

/// Digits only, so that signs and blanks are refused.
fn whole(digits: &str) -> Option<i64> {
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok()).flatten()
}

fn civil(time: SystemTime) -> Civil {
    let (seconds, nanos) = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => (i64::try_from(after.as_secs()).unwrap_or(i64::MAX), after.subsec_nanos()),
        // Before 1970: round down, so that the fraction counts forward as it does after it.
        Err(before) => {
            let before = before.duration();
            let seconds = -i64::try_from(before.as_secs()).unwrap_or(i64::MAX);
            match before.subsec_nanos() {
                0 => (seconds, 0),
                n => (seconds - 1, 1_000_000_000 - n),
            }
        }
    };
    let (days, second_of_day) = (seconds.div_euclid(DAY_S), seconds.rem_euclid(DAY_S));
    let (year, month, day) = civil_from_days(days);
    Civil {
        year,
        month,
        day,
        hour: second_of_day / 3600,
        minute: second_of_day % 3600 / 60,
        second: second_of_day % 60,
        millisecond: nanos / 1_000_000,
    }
}

/// Days since 1970-01-01 to the proleptic Gregorian calendar.
/// From H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month, day)
}

/// The other way round; same source, `days_from_civil`.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let y = year - i64::from(month <= 2);
    let era = y.div_euclid(400);
    let yoe = y.rem_euclid(400);
    let mp = (month + 9) % 12;
    let doy = (153 * mp + 2) / 5 + day - 1;
    let doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    era * 146_097 + doe - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Texts as GNU `date -u` gives them.
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
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_millis(1)), "1969-12-31T23:59:59.999Z");
        assert_eq!(
            run_name(UNIX_EPOCH + Duration::from_millis(1_795_191_330_123), "postgres"),
            "2026-11-20-161530-postgres"
        );
        assert_eq!(run_name(UNIX_EPOCH, "a/../b:"), "1970-01-01-000000-a----b-");
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "Z",
            "2026-11-20",
            "2026-11-20T16:15:30",
            "2026-13-20T16:15:30Z",
            "2026-1-+2T16:15:30Z",
            "2026-11-20T16:15:30.Z0Z",
            "2026-11-20T16:15:30+01:00",
        ] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
        assert!(parse_rfc3339("2026-11-20T16:15:30Z").is_some());
    }

    proptest! {
        #[test]
        fn text_reads_back(ms in -60_000_000_000_000i64..200_000_000_000_000) {
            let d = Duration::from_millis(ms.unsigned_abs());
            let time = if ms < 0 { UNIX_EPOCH - d } else { UNIX_EPOCH + d };
            prop_assert_eq!(parse_rfc3339(&rfc3339(time)), Some(time));
        }

        #[test]
        fn no_text_panics(text in "[0-9TZ:.+-]{0,30}") {
            let _ = parse_rfc3339(&text);
        }
    }
}
