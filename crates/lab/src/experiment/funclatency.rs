//! Histograms as bcc's funclatency prints them, read back; and how far apart two histograms are.

use crate::measurements::{Latency, log2_low};

/// Reads what funclatency printed: rows `low -> high : count |stars|` and the last line, `avg = A nsecs, total: T nsecs,
/// count: N`. Bars are passed over, and so are lines that are neither (headers, dates). Percentiles and the maximum are
/// not in such a text; they are 0 in what is given back.
///
/// # Errors
/// What is missing or does not add up; another unit than nanoseconds, whose rows begin elsewhere.
pub fn read(text: &str) -> Result<Latency, String> {
    let mut latency = Latency::default();
    let mut last_line = None;
    for line in text.lines() {
        if let Some((low, rest)) = line.split_once("->") {
            let row = row(low, rest).ok_or_else(|| format!("'{}' is no row of a histogram", line.trim()))?;
            latency.log2.push(row);
        } else if line.trim_start().starts_with("avg") {
            last_line = Some(figures(line)?);
        }
    }
    let [mean, total, count] = last_line.ok_or("has no line 'avg = … nsecs, total: … nsecs, count: …'")?;
    check_rows(&latency.log2)?;
    let sum: u64 = latency.log2.iter().fold(0, |sum, row| sum.saturating_add(row.1));
    // The tool reads rows and sums one after the other while spans go on ending: Yafang Shao's
    // (docs/published.md#shao-2024) differ by 3 in 1305242.
    if sum.abs_diff(count) > count / 1000 {
        return Err(format!("its rows add up to {sum}, and its last line says {count}"));
    }
    if total.checked_div(count) != Some(mean) {
        return Err(format!("total {total} / count {count} is not the average {mean} that it says"));
    }
    (latency.mean_ns, latency.total_ns, latency.count) = (mean, total, count);
    latency.log2.retain(|row| row.1 > 0);
    Ok(latency)
}

fn row(low: &str, rest: &str) -> Option<(u64, u64)> {
    let count = rest.split_once(':')?.1.split('|').next()?;
    Some((low.trim().parse().ok()?, count.trim().parse().ok()?))
}

fn check_rows(rows: &[(u64, u64)]) -> Result<(), String> {
    if rows.is_empty() {
        return Err("has no row 'low -> high : count'".into());
    }
    if let Some(row) = rows.iter().find(|row| log2_low(row.0) != row.0) {
        return Err(format!("has a row that begins at {}; rows begin at 0 or a power of two", row.0));
    }
    match rows.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
        Some(pair) => Err(format!("has row {} after row {}", pair[1].0, pair[0].0)),
        None => Ok(()),
    }
}

/// Average, total and count.
fn figures(line: &str) -> Result<[u64; 3], String> {
    if !line.contains("nsecs") {
        return Err("is not in nsecs, whose rows the simulated histograms have".into());
    }
    let numbers = line.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let numbers: Vec<u64> = numbers.filter_map(|digits| digits.parse().ok()).collect();
    numbers.try_into().map_err(|_| format!("'{}' lacks avg, total or count", line.trim()))
}

/// The earth mover's distance of two histograms, each taken as a whole: how many rows each span would have to be moved,
/// on average, to make one of the other. `None` if one of them is empty.
pub fn emd_buckets(a: &Latency, b: &Latency) -> Option<f64> {
    let (of_a, of_b) = (shares(a)?, shares(b)?);
    let mut distance = 0.0;
    let mut carried = 0.0f64;
    for (a, b) in of_a.iter().zip(&of_b) {
        carried += a - b;
        distance += carried.abs();
    }
    Some(distance)
}

/// The part of all spans in each of the 64 rows.
fn shares(latency: &Latency) -> Option<[f64; 64]> {
    let sum: u64 = latency.log2.iter().fold(0, |sum, row| sum.saturating_add(row.1));
    if sum == 0 {
        return None;
    }
    let mut shares = [0.0; 64];
    for &(low, count) in &latency.log2 {
        // Row 0 holds 0 and 1 ns.
        shares[low.checked_ilog2().unwrap_or(0) as usize] += count as f64 / sum as f64;
    }
    Some(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "\
     nsecs               : count     distribution
         0 -> 1          : 0        |                                        |
         2 -> 3          : 3        |****************************************|
         4 -> 7          : 1        |*************                           |

avg = 3 nsecs, total: 14 nsecs, count: 4
";

    #[test]
    fn what_was_printed_is_read_back() {
        let latency = read(PRINTED).expect("a histogram");
        assert_eq!((latency.count, latency.total_ns, latency.mean_ns), (4, 14, 3));
        assert_eq!(latency.log2, [(2, 3), (4, 1)]);
    }

    #[test]
    fn what_does_not_add_up_is_refused() {
        let changed = |from: &str, to: &str| read(&PRINTED.replace(from, to)).expect_err("refused");
        assert!(changed(": 3 ", ": 4 ").contains("add up to 5"));
        let torn =
            PRINTED.replace(": 3 ", ": 2999 ").replace("14 nsecs, count: 4", "9001 nsecs, count: 3000");
        assert!(read(&torn).is_ok(), "one in 3000 more or less");
        assert!(changed("avg = 3", "avg = 4").contains("not the average 4"));
        assert!(changed("4 -> 7", "5 -> 7").contains("begins at 5"));
        assert!(changed("4 -> 7", "2 -> 3").contains("row 2 after row 2"));
        assert!(changed("nsecs", "usecs").contains("not in nsecs"));
        assert!(changed(": 3 ", ": three ").contains("is no row"));
        assert!(changed("avg", "mean").contains("no line"));
        assert!(read("").expect_err("refused").contains("no line"));
    }

    #[test]
    fn the_distance_is_rows_moved_per_span() {
        let one = |low| Latency { log2: vec![(low, 10)], ..Latency::default() };
        let half = Latency { log2: vec![(4, 1), (8, 1)], ..Latency::default() };
        assert_eq!(emd_buckets(&one(8), &one(8)), Some(0.0));
        assert_eq!(emd_buckets(&one(8), &one(64)), Some(3.0));
        assert_eq!(emd_buckets(&one(0), &one(4)), Some(2.0));
        assert_eq!(emd_buckets(&half, &one(4)), Some(0.5));
        assert_eq!(emd_buckets(&Latency::default(), &one(4)), None);
    }
}
