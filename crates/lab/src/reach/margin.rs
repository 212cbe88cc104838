//! How near a knob came to deciding otherwise, in words.

use mm::Margin;
use mm::knobs::Compares;
use sim::KnobTally;

/// How a figure is said.
type Said = fn(u64) -> String;

/// What is compared, and how its figures are said.
fn words(compares: Compares) -> Option<(&'static str, Said)> {
    match compares {
        Compares::Nothing => None,
        Compares::Memory(what) => Some((what, memory)),
        Compares::Time(what) => Some((what, time)),
        Compares::Pages(what) => Some((what, |pages| format!("{pages} pages"))),
        Compares::Number(what) => Some((what, |number| number.to_string())),
    }
}

/// The sentence, where decisions compared anything.
pub(super) fn sentence(compares: Compares, tally: &KnobTally) -> Option<String> {
    let (what, said) = words(compares)?;
    let Margin { seen, mark, default_mark } = tally.nearest?;
    let came = match (tally.above, tally.below) {
        // Zones have marks of their own, so that the nearest need not be the least.
        (_, 0) if tally.least_seen == Some(seen) => format!("{what} never came below {}", said(seen)),
        (0, _) if tally.most_seen == Some(seen) => format!("{what} never came above {}", said(seen)),
        _ => format!("{what} was {} at the nearest", said(seen)),
    };
    let default =
        if mark == default_mark { String::new() } else { format!(", {} by default", said(default_mark)) };
    Some(format!("{came}; the mark is {}{default}", said(mark)))
}

/// Pages as memory, to two digits or three: `92 KiB`, `3.1 GiB`.
fn memory(pages: u64) -> String {
    let kib = pages as f64 * 4.0;
    let (value, unit) = match kib {
        ..1024.0 => (kib, "KiB"),
        ..1_048_576.0 => (kib / 1024.0, "MiB"),
        _ => (kib / 1_048_576.0, "GiB"),
    };
    short(value, unit)
}

fn time(ns: u64) -> String {
    match ns {
        ..1_000_000 => short(ns as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => short(ns as f64 / 1e6, "ms"),
        _ => short(ns as f64 / 1e9, "s"),
    }
}

fn short(value: f64, unit: &str) -> String {
    if value < 9.95 && value.fract() != 0.0 {
        format!("{value:.1} {unit}")
    } else {
        format!("{value:.0} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(margin: [u64; 3], sides: (u64, u64)) -> KnobTally {
        let [seen, mark, default_mark] = margin;
        let nearest = Some(Margin { seen, mark, default_mark });
        let (least_seen, most_seen) = (Some(seen), Some(seen));
        KnobTally {
            consulted: 3,
            nearest,
            least_seen,
            most_seen,
            above: sides.0,
            below: sides.1,
            ..KnobTally::default()
        }
    }

    #[test]
    fn sentences_say_which_side_it_stayed_on() {
        let free = Compares::Memory("a zone's free memory");
        let said = [
            sentence(free, &tally([812_646, 23_552, 16_384], (3, 0))),
            sentence(Compares::Number("the score"), &tally([12, 80, 80], (0, 3))),
            sentence(Compares::Pages("a list"), &tally([12, 10, 20], (1, 2))),
            sentence(Compares::Time("the run"), &tally([9_500_000, 2_000_000_000, 1_000_000_000], (0, 1))),
            sentence(Compares::Nothing, &tally([0, 0, 0], (1, 0))),
            sentence(free, &KnobTally { least_seen: Some(9000), ..tally([18_000, 8192, 8192], (3, 0)) }),
            sentence(free, &KnobTally::default()),
        ];
        let said: Vec<String> = said.into_iter().flatten().collect();
        insta::assert_snapshot!(said.join("\n"), @r"
        a zone's free memory never came below 3.1 GiB; the mark is 92 MiB, 64 MiB by default
        the score never came above 12; the mark is 80
        a list was 12 pages at the nearest; the mark is 10 pages, 20 pages by default
        the run never came above 9.5 ms; the mark is 2 s, 1 s by default
        a zone's free memory was 70 MiB at the nearest; the mark is 32 MiB
        ");
    }
}
