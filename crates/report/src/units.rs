//! Figures as people say them.

/// A duration in ns, to four digits: `812 ns`, `19.36 µs`, `449.8 µs`, `1.305 s`.
pub fn duration(ns: f64) -> String {
    let (value, unit) = match ns {
        ..1e3 => return format!("{ns:.0} ns"),
        ..1e6 => (ns / 1e3, "µs"),
        ..1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", four_digits(value))
}

/// A number of base pages as memory: `4 KiB`, `64.00 MiB`, `256.0 GiB`.
pub fn memory(pages: u64) -> String {
    let bytes = pages as f64 * 4096.0;
    let (value, unit) = match bytes {
        ..1_048_576.0 => return format!("{:.0} KiB", bytes / 1024.0),
        ..1_073_741_824.0 => (bytes / 1_048_576.0, "MiB"),
        ..1_099_511_627_776.0 => (bytes / 1_073_741_824.0, "GiB"),
        _ => (bytes / 1_099_511_627_776.0, "TiB"),
    };
    format!("{} {unit}", four_digits(value))
}

/// A rate per second with a metric prefix: `812 /s`, `4.350 M/s`.
pub fn rate(per_second: f64) -> String {
    let (value, unit) = match per_second {
        ..1e3 => return format!("{per_second:.0} /s"),
        ..1e6 => (per_second / 1e3, "k/s"),
        ..1e9 => (per_second / 1e6, "M/s"),
        _ => (per_second / 1e9, "G/s"),
    };
    format!("{} {unit}", four_digits(value))
}

/// A count: whole, or to a tenth where it is the mean of a few.
pub fn count(count: f64) -> String {
    if count.fract() == 0.0 || count >= 100.0 { format!("{count:.0}") } else { format!("{count:.1}") }
}

/// A figure in its unit, as [`lab::measurements::Figure::unit`] has it.
pub fn figure(unit: &str, value: f64) -> String {
    match unit {
        "ns" => duration(value),
        "count" => count(value),
        "pages" => memory(value.max(0.0).round() as u64),
        _ => rate(value),
    }
}

/// A value of 1 to 9999 (and a little beyond) to four digits.
fn four_digits(value: f64) -> String {
    match value {
        ..9.9995 => format!("{value:.3}"),
        ..99.995 => format!("{value:.2}"),
        ..999.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// `1 file`, `2 files`.
pub fn plural(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_keep_four_digits() {
        let said: Vec<String> =
            [0.0, 812.0, 8_401.0, 19_359.0, 449_775.0, 33_554_431.0, 1.305e9, 5.87e11].map(duration).into();
        assert_eq!(
            said,
            ["0 ns", "812 ns", "8.401 µs", "19.36 µs", "449.8 µs", "33.55 ms", "1.305 s", "587.0 s"]
        );
    }

    #[test]
    fn memory_counts_in_powers_of_two() {
        let said: Vec<String> = [1, 16_384, 67_108_864, 1 << 28].map(memory).into();
        assert_eq!(said, ["4 KiB", "64.00 MiB", "256.0 GiB", "1.000 TiB"]);
    }

    #[test]
    fn rates_have_prefixes() {
        assert_eq!(rate(4_350_000.0), "4.350 M/s");
        assert_eq!(rate(12.0), "12 /s");
    }
}
