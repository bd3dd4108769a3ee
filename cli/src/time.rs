//! Times as users write and read them. Inside, every time is a number of Unix microseconds.

use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

/// Now, in Unix microseconds.
pub(crate) fn now_us() -> u64 {
    u64::try_from(Timestamp::now().as_microsecond()).unwrap_or(0)
}

/// Writes times in one time zone, quickly: most events share their second with the one before.
pub(crate) struct TimeWriter {
    zone: TimeZone,
    second: Option<u64>,
    text: String,
}

impl TimeWriter {
    /// Times in UTC, or in the zone of this machine (`TZ`, else `/etc/localtime`).
    pub(crate) fn new(utc: bool) -> TimeWriter {
        TimeWriter { zone: zone(utc), second: None, text: String::new() }
    }

    /// `2025-01-15 14:30:25.123456`. A number that is no date (a damaged record's) is shown as it is.
    pub(crate) fn write(&mut self, us: u64, to: &mut String) {
        let second = us / 1_000_000;
        if self.second != Some(second) {
            let Some(time) = i64::try_from(second).ok().and_then(|second| Timestamp::from_second(second).ok()) else {
                // Writing into a String does not fail, here and below.
                let _ = write!(to, "{us} us after 1970");
                return;
            };
            let time = self.zone.to_datetime(time);
            self.text.clear();
            let _ = write!(
                self.text,
                "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
                time.year(),
                time.month(),
                time.day(),
                time.hour(),
                time.minute(),
                time.second()
            );
            self.second = Some(second);
        }
        let _ = write!(to, "{}.{:06}", self.text, us % 1_000_000);
    }

    /// See [`TimeWriter::write`].
    pub(crate) fn text(&mut self, us: u64) -> String {
        let mut text = String::new();
        self.write(us, &mut text);
        text
    }
}

/// The zone that times without one are meant in.
pub(crate) fn zone(utc: bool) -> TimeZone {
    if utc { TimeZone::UTC } else { TimeZone::system() }
}

/// A moment as `--since` and `--until` take it, in Unix microseconds.
///
/// RFC 3339 (`2026-11-30T14:00:00Z`), a date or a date and time in `zone` (`2026-11-30 14:00:00`), or
/// relative to `now_us`: `-5m` and `5m` are five minutes ago, `+5m` is in five minutes.
pub(crate) fn parse_moment(text: &str, now_us: u64, zone: &TimeZone) -> Result<u64, String> {
    let text = text.trim();
    if let Some(moment) = relative(text, now_us) {
        return moment.ok_or_else(|| format!("'{text}' is farther away than times go"));
    }
    let time = if let Ok(time) = text.parse::<Timestamp>() {
        time
    } else {
        let civil = text.parse::<DateTime>().or_else(|_| text.parse::<Date>().map(DateTime::from)).map_err(|_| {
            format!(
                "'{text}' is no time: write 2026-11-30T14:00:00Z, or 2026-11-30 14:00:00, or 5m for five minutes ago"
            )
        })?;
        zone.to_timestamp(civil).map_err(|error| format!("'{text}' is no time here: {error}"))?
    };
    u64::try_from(time.as_microsecond()).map_err(|_| format!("'{text}' is before 1970"))
}

/// `None` if the text is no duration, `Some(None)` if it leads out of the range of times.
fn relative(text: &str, now_us: u64) -> Option<Option<u64>> {
    let (ahead, text) = match text.as_bytes().first()? {
        b'+' => (true, &text[1..]),
        b'-' => (false, &text[1..]),
        _ => (false, text),
    };
    let us = parse_duration(text)?;
    Some(if ahead { now_us.checked_add(us) } else { now_us.checked_sub(us) })
}

/// Microseconds of `10s`, `1h30m`, `1.5s`, `250ms`. `None` for anything else.
pub(crate) fn parse_duration(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut sum: u64 = 0;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let unit_us = match unit {
            "us" => 1,
            "ms" => 1_000,
            "s" | "sec" => 1_000_000,
            "m" | "min" => 60_000_000,
            "h" => 3_600_000_000,
            "d" => 86_400_000_000,
            _ => return None,
        };
        sum = sum.checked_add(scaled(number, unit_us)?)?;
        rest = next;
    }
    (!text.is_empty()).then_some(sum)
}

/// A decimal number of units, whole microseconds.
fn scaled(number: &str, unit_us: u64) -> Option<u64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if part.contains('.') || (whole.is_empty() && part.is_empty()) {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()? };
    let mut us = whole.checked_mul(unit_us)?;
    let mut digit_us = unit_us;
    for digit in part.bytes() {
        digit_us /= 10;
        us = us.checked_add(u64::from(digit - b'0').checked_mul(digit_us)?)?;
    }
    Some(us)
}

/// A time since the device booted: `+12.345678 s`. It is no date.
pub(crate) fn since_boot_text(us: u64) -> String {
    format!("+{}.{:06} s", us / 1_000_000, us % 1_000_000)
}

/// A duration for people: `1.0 s`, `12 ms`, `340 us`, `2 h 5 min`.
pub(crate) fn duration_text(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} us"),
        1_000..1_000_000 => {
            format!("{}.{} ms", us / 1_000, us % 1_000 / 100)
        }
        1_000_000..60_000_000 => format!("{}.{} s", us / 1_000_000, us % 1_000_000 / 100_000),
        60_000_000..3_600_000_000 => format!("{} min {} s", us / 60_000_000, us % 60_000_000 / 1_000_000),
        3_600_000_000..86_400_000_000 => format!("{} h {} min", us / 3_600_000_000, us % 3_600_000_000 / 60_000_000),
        _ => format!("{} d {} h", us / 86_400_000_000, us % 86_400_000_000 / 3_600_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_796_000_000_000_000;

    fn berlin() -> TimeZone {
        // One hour east of Greenwich, without asking this machine for its zone files.
        TimeZone::fixed(jiff::tz::offset(1))
    }

    #[test]
    fn moments_in_every_form() {
        let at = |text| parse_moment(text, NOW, &berlin());
        assert_eq!(at("2026-11-30T14:00:00Z"), Ok(1_796_047_200_000_000));
        assert_eq!(at("2026-11-30T14:00:00.5+02:00"), Ok(1_796_040_000_500_000));
        assert_eq!(at("2026-11-30 14:00:00"), Ok(1_796_043_600_000_000));
        assert_eq!(at("2026-11-30"), Ok(1_795_993_200_000_000));
        assert_eq!(at("-5m"), Ok(NOW - 300_000_000));
        assert_eq!(at("10s"), Ok(NOW - 10_000_000));
        assert_eq!(at("+1h30m"), Ok(NOW + 5_400_000_000));
        for wrong in ["", "yesterday", "5", "-", "5 m", "5x", "1.2.3s", "1969-01-01", "99999999999999999d"] {
            let error = at(wrong).unwrap_err();
            assert!(error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn durations_are_whole_microseconds() {
        for (text, us) in
            [("10s", 10_000_000), ("1.5s", 1_500_000), ("0.000001s", 1), ("250ms", 250_000), ("1d", 86_400_000_000)]
        {
            assert_eq!(parse_duration(text), Some(us), "{text}");
        }
    }

    #[test]
    fn times_are_written_as_the_guide_does() {
        let mut writer = TimeWriter::new(true);
        assert_eq!(writer.text(1_736_951_425_123_456), "2025-01-15 14:30:25.123456");
        assert_eq!(writer.text(1_736_951_425_000_007), "2025-01-15 14:30:25.000007");
        assert_eq!(writer.text(0), "1970-01-01 00:00:00.000000");
        assert_eq!(writer.text(u64::MAX), "18446744073709551615 us after 1970");
    }

    #[test]
    fn times_since_boot_have_a_sign_and_all_their_digits() {
        assert_eq!(since_boot_text(12_345_678), "+12.345678 s");
        assert_eq!(since_boot_text(7), "+0.000007 s");
        assert_eq!(since_boot_text(u64::MAX), "+18446744073709.551615 s");
    }

    #[test]
    fn durations_for_people() {
        for (us, text) in [(0, "0 us"), (1_049_999, "1.0 s"), (12_345, "12.3 ms"), (7_500_000_000, "2 h 5 min")] {
            assert_eq!(duration_text(us), text);
        }
    }
}
