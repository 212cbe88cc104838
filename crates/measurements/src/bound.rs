//! A bound that somebody sets for a figure, as people write it: `refill.p99_ns:max=20us`, `pages_per_second:min=98%`. Whether a
//! sample keeps it is asked of [`Bound::judge`], in the file beside this.

use std::fmt;
use std::str::FromStr;

/// Names that people use for figures that are called otherwise.
const ALSO_CALLED: [(&str, &str); 1] = [("rss", "peak_rss")];

/// Bytes of a base page.
const PAGE_BYTES: f64 = 4096.0;

/// A figure and the most or the least that it may come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The figure's name, as [`crate::figures`] has it.
    pub figure: String,
    /// Which side of the limit is forbidden.
    pub side: BoundSide,
    /// The limit.
    pub limit: Limit,
    /// As it was written.
    written: String,
}

/// What a limit is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BoundSide {
    /// The least that the figure may come to.
    Min,
    /// The most.
    Max,
}

/// Where the limit lies.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Limit {
    /// This part of what the first variant comes to: 0.98 of `98%`.
    OfFirst(f64),
    /// An amount, whose meaning depends on the figure's unit.
    Amount {
        /// The number before the unit.
        number: f64,
        /// The unit as written; empty without one.
        unit: Unit,
    },
}

/// A unit behind a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// None: the figure's own.
    None,
    /// So many ns.
    Time(u32),
    /// `k`, `M`, `G`: thousands of the figure's own unit to this power; of pages as many bytes, in powers of 1024.
    Prefix(i32),
    /// `B`, `KiB` …: 1024 bytes to this power.
    Bytes(i32),
}

/// The units that can be written; the longer ones first where one ends like another.
const UNITS: [(&str, Unit); 16] = [
    ("ns", Unit::Time(1)),
    ("us", Unit::Time(1_000)),
    ("µs", Unit::Time(1_000)),
    ("ms", Unit::Time(1_000_000)),
    ("s", Unit::Time(1_000_000_000)),
    ("KiB", Unit::Bytes(1)),
    ("MiB", Unit::Bytes(2)),
    ("GiB", Unit::Bytes(3)),
    ("TiB", Unit::Bytes(4)),
    ("B", Unit::Bytes(0)),
    ("k", Unit::Prefix(1)),
    ("K", Unit::Prefix(1)),
    ("M", Unit::Prefix(2)),
    ("G", Unit::Prefix(3)),
    ("T", Unit::Prefix(4)),
    ("", Unit::None),
];

/// Why a text is no bound, or a bound does not fit its figure: one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundError {
    /// Not `FIGURE:min=VALUE` or `FIGURE:max=VALUE`.
    Form(String),
    /// What stands behind `=` is no amount.
    Value {
        /// The bound.
        bound: String,
        /// What stands there.
        value: String,
    },
    /// An amount of another kind than the figure.
    Unit {
        /// The bound.
        bound: String,
        /// What the figure is counted in.
        unit: String,
    },
    /// A percentage of the first variant where there is no other.
    NoFirst(String),
}

impl fmt::Display for BoundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form(text) => {
                write!(
                    f,
                    "`{text}` is no bound: write FIGURE:max=VALUE or FIGURE:min=VALUE, such as refill.p99_ns:max=20us"
                )
            }
            Self::Value { bound, value } => write!(
                f,
                "`{bound}`: `{value}` is no amount; write a number with a unit (20us, 1.5ms, 64MiB, 2M) or a percentage of the \
                 first variant (98%)"
            ),
            Self::Unit { bound, unit } => write!(f, "`{bound}`: that figure is counted in {unit}"),
            Self::NoFirst(bound) => {
                write!(
                    f,
                    "`{bound}`: no second variant ran to be held against the first; --set KNOB=A,B makes two"
                )
            }
        }
    }
}

impl std::error::Error for BoundError {}

impl FromStr for Bound {
    type Err = BoundError;

    fn from_str(text: &str) -> Result<Self, BoundError> {
        let form = || BoundError::Form(text.to_owned());
        let (figure, rest) = text.trim().rsplit_once(':').ok_or_else(form)?;
        let (side, value) = rest.split_once('=').ok_or_else(form)?;
        let side = match side {
            "min" => BoundSide::Min,
            "max" => BoundSide::Max,
            _ => return Err(form()),
        };
        if figure.is_empty() {
            return Err(form());
        }
        let refused = || BoundError::Value { bound: text.trim().to_owned(), value: value.to_owned() };
        let limit = Limit::parse(value).ok_or_else(refused)?;
        let also = ALSO_CALLED.iter().find(|(also, _)| *also == figure);
        let figure = also.map_or(figure, |(_, name)| name).to_owned();
        Ok(Self { figure, side, limit, written: text.trim().to_owned() })
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.written)
    }
}

impl Bound {
    /// Several, with commas between.
    ///
    /// # Errors
    /// The first that is none.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, BoundError> {
        text.split(',').map(str::parse).collect()
    }

    /// The limit in the figure's `unit` (as [`crate::Figure::unit`] has it), where the first variant's mean is `first`.
    ///
    /// # Errors
    /// A time of what is no time, bytes of what is no memory.
    pub fn limit_in(&self, unit: &str, first: f64) -> Result<f64, BoundError> {
        let misfit = || BoundError::Unit { bound: self.written.clone(), unit: unit.to_owned() };
        match self.limit {
            Limit::OfFirst(part) => Ok(part * first),
            Limit::Amount { number, unit: written } => Ok(number * written.factor(unit).ok_or_else(misfit)?),
        }
    }
}

impl Limit {
    fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| {
            text.trim_end().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)
        };
        if let Some(percent) = text.strip_suffix('%') {
            return Some(Self::OfFirst(number(percent)? / 100.0));
        }
        // `1e6` is a number, and ends in no unit.
        let amount = |&(name, unit): &(&str, Unit)| {
            Some(Self::Amount { number: number(text.strip_suffix(name)?)?, unit })
        };
        UNITS.iter().find_map(amount)
    }
}

impl Unit {
    /// What one of it is in a figure's unit; `None` where it is of another kind.
    fn factor(self, figure: &str) -> Option<f64> {
        let is_memory = figure == "pages";
        match self {
            Self::None => Some(1.0),
            Self::Time(ns) => (figure == "ns").then_some(f64::from(ns)),
            Self::Bytes(power) | Self::Prefix(power) if is_memory => Some(1024f64.powi(power) / PAGE_BYTES),
            Self::Bytes(_) => None,
            Self::Prefix(power) => (figure != "ns").then_some(1000f64.powi(power)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(text: &str, unit: &str) -> Result<f64, String> {
        let bound: Bound = text.parse().map_err(|error: BoundError| error.to_string())?;
        bound.limit_in(unit, 200.0).map_err(|error| error.to_string())
    }

    #[test]
    fn amounts_are_in_the_figures_unit() {
        let told = [
            ("refill.p99_ns:max=20us", "ns", 20e3),
            ("refill.p99_ns:max=1.5 ms", "ns", 1.5e6),
            ("fault.max_ns:max=2s", "ns", 2e9),
            ("fault.max_ns:max=250", "ns", 250.0),
            ("pages_per_second:min=98%", "pages/s", 196.0),
            ("pages_per_second:min=1.3M", "pages/s", 1.3e6),
            ("peak_rss:max=64MiB", "pages", 16384.0),
            ("rss:max=64M", "pages", 16384.0),
            ("page_faults:max=10k", "count", 10e3),
            ("page_faults:max=1e6", "count", 1e6),
        ];
        for (text, unit, value) in told {
            assert_eq!(limit(text, unit), Ok(value), "{text}");
        }
    }

    #[test]
    fn what_is_no_bound_is_refused() {
        let refused = |text| limit(text, "ns").unwrap_err();
        let all = [
            "refill.p99_ns",
            "a:most=3",
            ":max=3",
            "a:max=",
            "a:max=-3",
            "a:max=nan",
            "a:max=3MiB",
            "a:min=3k",
        ];
        insta::assert_snapshot!(all.map(refused).join("\n"), @r"
        `refill.p99_ns` is no bound: write FIGURE:max=VALUE or FIGURE:min=VALUE, such as refill.p99_ns:max=20us
        `a:most=3` is no bound: write FIGURE:max=VALUE or FIGURE:min=VALUE, such as refill.p99_ns:max=20us
        `:max=3` is no bound: write FIGURE:max=VALUE or FIGURE:min=VALUE, such as refill.p99_ns:max=20us
        `a:max=`: `` is no amount; write a number with a unit (20us, 1.5ms, 64MiB, 2M) or a percentage of the first variant (98%)
        `a:max=-3`: `-3` is no amount; write a number with a unit (20us, 1.5ms, 64MiB, 2M) or a percentage of the first variant (98%)
        `a:max=nan`: `nan` is no amount; write a number with a unit (20us, 1.5ms, 64MiB, 2M) or a percentage of the first variant (98%)
        `a:max=3MiB`: that figure is counted in ns
        `a:min=3k`: that figure is counted in ns
        ");
        assert!(limit("count:max=3us", "count").is_err());
    }

    #[test]
    fn a_list_is_read_whole_and_written_as_it_was() {
        let list = Bound::parse_list("pages_per_second:min=98%, rss:max=105%").unwrap();
        let told: Vec<(&str, BoundSide, String)> =
            list.iter().map(|bound| (bound.figure.as_str(), bound.side, bound.to_string())).collect();
        assert_eq!(
            told,
            [
                ("pages_per_second", BoundSide::Min, "pages_per_second:min=98%".to_owned()),
                ("peak_rss", BoundSide::Max, "rss:max=105%".to_owned())
            ]
        );
        assert!(Bound::parse_list("a:max=1,,b:max=2").is_err());
    }
}
