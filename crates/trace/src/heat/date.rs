//! The day of a measurement.

/// The day of a time in seconds since 1970, in UTC, as `2026-11-22`.
pub(super) fn day(unix_seconds: u64) -> String {
    let mut days = unix_seconds / 86_400;
    let mut year = 1970;
    let is_leap = |year: u64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        // A clock that far off is nobody's.
        if days < length || year == 9999 {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days.min(30) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(951_782_400), "2000-02-29");
        assert_eq!(day(1_709_251_199), "2024-02-29");
        assert_eq!(day(1_709_251_200), "2024-03-01");
        assert_eq!(day(1_798_675_199), "2026-12-30");
        assert_eq!(day(1_798_761_599), "2026-12-31");
        assert_eq!(day(1_798_761_600), "2027-01-01");
        assert_eq!(day(u64::MAX).len(), 10);
    }
}
