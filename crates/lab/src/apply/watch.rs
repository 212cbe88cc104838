//! The watch over the machine while settings are tried: figures made of its counters, each with a bound.
//!
//! A figure is looked at over the last ten seconds, so that one slow fault or one stall is not what ends a trial; until there are
//! three it is not judged.

use std::collections::VecDeque;
use std::fmt;

use host::watch::Sample;

use crate::measurements::{Bound, BoundError, BoundSide, Limit};

/// Over how long figures are made, ns.
pub const WINDOW_NS: u64 = 10_000_000_000;
/// Shorter than this nothing is judged, ns.
const JUDGED_FROM_NS: u64 = 3_000_000_000;

/// What is watched where nothing is said: no more than a twentieth of the time with all tasks waiting for memory, next to no direct
/// reclaim, nobody killed.
pub const DEFAULT_BOUNDS: [&str; 3] = ["psi.memory.full:max=5%", "allocstall:max=100", "oom_kill:max=0"];

/// What a watched figure is made of.
#[derive(Clone, PartialEq, Debug)]
enum Source {
    /// Part of the time that some task waited for memory.
    Some,
    /// Part of the time that all did.
    Full,
    /// How often direct reclaim began, over all zones, a second.
    Allocstall,
    /// A counter of /proc/vmstat, a second.
    Rate(String),
    /// A level of /proc/vmstat (`nr_…`), pages or a count.
    Level(String),
    /// What a fault of our own takes, ns: this percentile.
    Fault(f64),
}

/// A figure with its bound, and what came of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Watched {
    /// The bound.
    pub bound: Bound,
    source: Source,
    /// The limit in the figure's unit; until what came before is known, `None` of one that is a part of that.
    pub limit: Option<f64>,
    /// The figure before anything was changed; `None` where that was not looked at.
    pub before: Option<f64>,
    /// The figure over all of the watch, and of its windows the one that came nearest to the limit or farthest over it.
    pub during: Option<f64>,
    /// See above.
    pub worst: Option<f64>,
}

/// A bound that is broken.
#[derive(Clone, PartialEq, Debug)]
pub struct Broken {
    /// The bound as it was written.
    pub bound: String,
    /// What the figure came to.
    pub value: f64,
    /// Its limit.
    pub limit: f64,
    /// The unit of both.
    pub unit: &'static str,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bound, value, limit, unit } = self;
        write!(f, "{bound} is broken: {value:.4} {unit}, the limit is {limit:.4}")
    }
}

/// Why something cannot be watched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WatchError {
    /// It is no bound, or of the wrong kind.
    Bound(BoundError),
    /// There is no such figure.
    Unknown {
        /// Its name.
        figure: String,
        /// All that there are here.
        known: Vec<String>,
    },
    /// This kernel does not say how long tasks wait.
    NoPressure,
}

impl fmt::Display for WatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bound(error) => error.fmt(f),
            Self::Unknown { figure, .. } => write!(f, "nothing to watch is called `{figure}`"),
            Self::NoPressure => f.write_str(
                "this kernel has no /proc/pressure/memory (CONFIG_PSI, psi=1 on its command line): psi.memory.* cannot be watched",
            ),
        }
    }
}

impl std::error::Error for WatchError {}

impl From<BoundError> for WatchError {
    fn from(error: BoundError) -> Self {
        Self::Bound(error)
    }
}

/// Bounds, and the samples that they are judged by.
#[derive(Clone, Debug)]
pub struct Watch {
    watched: Vec<Watched>,
    first: Option<Sample>,
    window: VecDeque<Sample>,
    /// What each fault of our own took in all of the watch, ns.
    fault_ns: Vec<u64>,
}

impl Watch {
    /// Reads bounds; `now` says what there is to watch on this machine.
    ///
    /// # Errors
    /// A bound that is none, or of nothing that is there.
    pub fn parse(bounds: &[String], now: &Sample) -> Result<Self, WatchError> {
        let lists = bounds.iter().map(|text| Bound::parse_list(text)).collect::<Result<Vec<_>, _>>()?;
        let watched = lists.into_iter().flatten().map(|bound| Watched::of(bound, now));
        Ok(Self {
            watched: watched.collect::<Result<_, _>>()?,
            first: None,
            window: VecDeque::new(),
            fault_ns: vec![],
        })
    }

    /// What is watched where nothing is said, as far as this machine has it.
    pub fn by_default(now: &Sample) -> Self {
        let all = DEFAULT_BOUNDS.iter().filter_map(|text| Watched::of(text.parse().ok()?, now).ok());
        Self { watched: all.collect(), first: None, window: VecDeque::new(), fault_ns: vec![] }
    }

    /// What is watched.
    pub fn watched(&self) -> &[Watched] {
        &self.watched
    }

    /// Whether faults of our own are to be timed.
    pub fn needs_faults(&self) -> bool {
        self.watched.iter().any(|watched| matches!(watched.source, Source::Fault(_)))
    }

    /// Whether a bound is a part of what a figure was before.
    pub fn needs_before(&self) -> bool {
        self.watched.iter().any(|watched| watched.limit.is_none())
    }

    /// Takes the look of some seconds before anything is changed.
    ///
    /// # Errors
    /// A bound of another kind than its figure.
    pub fn begin(&mut self, before: &[Sample]) -> Result<(), WatchError> {
        for watched in &mut self.watched {
            watched.before = watched.source.value(before);
            let before = if watched.source.is_share() { 1.0 } else { watched.before.unwrap_or(0.0) };
            watched.limit = Some(watched.bound.limit_in(watched.source.unit(), before)?);
        }
        Ok(())
    }

    /// Takes a look at the machine; the first bound that is broken, if one is.
    pub fn look(&mut self, sample: Sample) -> Option<Broken> {
        let from = sample.at_ns.saturating_sub(WINDOW_NS);
        let first = self.first.get_or_insert_with(|| sample.clone()).clone();
        self.fault_ns.extend(&sample.fault_ns);
        self.window.push_back(sample.clone());
        while self.window.front().is_some_and(|oldest| oldest.at_ns < from) {
            self.window.pop_front();
        }
        let window: &[Sample] = self.window.make_contiguous();
        let lasted =
            window.last().map_or(0, |last| last.at_ns) - window.first().map_or(0, |first| first.at_ns);
        let whole = [first, Sample { fault_ns: self.fault_ns.clone(), ..sample }];
        let mut broken = None;
        for watched in &mut self.watched {
            watched.during = watched.source.value(&whole);
            if lasted < JUDGED_FROM_NS {
                continue;
            }
            let Some(value) = watched.source.value(window) else { continue };
            broken = broken.or(watched.judge(value));
        }
        broken
    }
}

impl Watched {
    fn of(bound: Bound, now: &Sample) -> Result<Self, WatchError> {
        let source = Source::of(&bound.figure, now)?;
        let is_part = matches!(bound.limit, Limit::OfFirst(_)) && !source.is_share();
        let limit = bound.limit_in(source.unit(), 1.0)?;
        let limit = (!is_part).then_some(limit);
        Ok(Self { bound, source, limit, before: None, during: None, worst: None })
    }

    /// The unit of its values: `ns`, `pages`, `a second`, a share of time.
    pub fn unit(&self) -> &'static str {
        self.source.unit()
    }

    fn judge(&mut self, value: f64) -> Option<Broken> {
        let limit = self.limit?;
        let (is_over, is_worse) = match self.bound.side {
            BoundSide::Max => (value > limit, self.worst.is_none_or(|worst| value > worst)),
            BoundSide::Min => (value < limit, self.worst.is_none_or(|worst| value < worst)),
        };
        if is_worse {
            self.worst = Some(value);
        }
        is_over.then(|| Broken { bound: self.bound.to_string(), value, limit, unit: self.source.unit() })
    }
}

impl Source {
    fn of(figure: &str, now: &Sample) -> Result<Self, WatchError> {
        let is_pressure = figure.starts_with("psi.memory.");
        match figure {
            "psi.memory.some" | "psi.memory.full" if now.stalled.is_none() => Err(WatchError::NoPressure),
            "psi.memory.some" => Ok(Self::Some),
            "psi.memory.full" => Ok(Self::Full),
            "allocstall" => Ok(Self::Allocstall),
            "fault.p50_ns" => Ok(Self::Fault(0.5)),
            "fault.p99_ns" => Ok(Self::Fault(0.99)),
            name if !is_pressure && now.vmstat.contains_key(name) => {
                let level = name.starts_with("nr_");
                Ok(if level { Self::Level(name.to_owned()) } else { Self::Rate(name.to_owned()) })
            }
            _ => {
                let own =
                    ["psi.memory.some", "psi.memory.full", "allocstall", "fault.p50_ns", "fault.p99_ns"];
                let known = own.map(str::to_owned).into_iter().chain(now.vmstat.keys().cloned()).collect();
                Err(WatchError::Unknown { figure: figure.to_owned(), known })
            }
        }
    }

    const fn unit(&self) -> &'static str {
        match self {
            Self::Some | Self::Full => "of the time",
            Self::Allocstall | Self::Rate(_) => "a second",
            Self::Level(_) => "pages",
            Self::Fault(_) => "ns",
        }
    }

    const fn is_share(&self) -> bool {
        matches!(self, Self::Some | Self::Full)
    }

    /// What it comes to over `samples`, which are in order of time.
    fn value(&self, samples: &[Sample]) -> Option<f64> {
        let (first, last) = (samples.first()?, samples.last()?);
        let lasted = (last.at_ns - first.at_ns) as f64;
        if let Self::Fault(share) = self {
            return percentile(samples, *share);
        }
        if let Self::Level(name) = self {
            return last.vmstat.get(name).map(|level| *level as f64);
        }
        if lasted == 0.0 {
            return None;
        }
        let grew = |of: &dyn Fn(&Sample) -> Option<u64>| Some(of(last)?.saturating_sub(of(first)?) as f64);
        match self {
            Self::Some => Some(grew(&|sample| Some(sample.stalled?.some_us))? * 1e3 / lasted),
            Self::Full => Some(grew(&|sample| Some(sample.stalled?.full_us))? * 1e3 / lasted),
            Self::Allocstall => Some(grew(&|sample| Some(stalls(sample)))? * 1e9 / lasted),
            Self::Rate(name) => Some(grew(&|sample| sample.vmstat.get(name).copied())? * 1e9 / lasted),
            Self::Level(_) | Self::Fault(_) => None,
        }
    }
}

/// Direct reclaim is counted by the zone that it was for.
fn stalls(sample: &Sample) -> u64 {
    let zones = sample.vmstat.iter().filter(|(name, _)| name.starts_with("allocstall"));
    zones.map(|(_, count)| *count).sum()
}

fn percentile(samples: &[Sample], share: f64) -> Option<f64> {
    let mut all: Vec<u64> = samples.iter().flat_map(|sample| &sample.fault_ns).copied().collect();
    all.sort_unstable();
    let rank = (share * all.len() as f64).ceil() as usize;
    all.get(rank.saturating_sub(1)).map(|ns| *ns as f64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use host::watch::Stalled;

    use super::*;

    fn sample(second: u64, stalls: u64, full_us: u64) -> Sample {
        Sample {
            at_ns: second * 1_000_000_000,
            vmstat: BTreeMap::from([
                ("allocstall_normal".to_owned(), stalls),
                ("allocstall_movable".to_owned(), 2 * stalls),
                ("nr_free_pages".to_owned(), 1000 - second),
                ("oom_kill".to_owned(), 0),
            ]),
            stalled: Some(Stalled { some_us: 2 * full_us, full_us }),
            fault_ns: vec![500 + second; 10],
        }
    }

    fn watch(bounds: &str) -> Watch {
        let mut watch = Watch::parse(&[bounds.to_owned()], &sample(0, 0, 0)).unwrap();
        watch.begin(&[sample(0, 0, 0), sample(2, 10, 0)]).unwrap();
        watch
    }

    #[test]
    fn a_rate_is_judged_over_the_window() {
        // 15 a second before; from second 10 on, 30 a second.
        let mut watch = watch("allocstall:max=150%");
        assert!(watch.watched()[0].limit == Some(22.5) && watch.watched()[0].before == Some(15.0));
        let mut broken_at = None;
        for second in 0..30 {
            let stalls = if second < 10 { second * 5 } else { 50 + (second - 10) * 10 };
            if watch.look(sample(second, stalls, 0)).is_some() {
                broken_at = broken_at.or(Some(second));
            }
        }
        assert_eq!(broken_at, Some(16), "six of ten seconds at twice the rate");
        assert_eq!(watch.watched()[0].worst, Some(30.0));
    }

    #[test]
    fn waiting_is_a_part_of_the_time() {
        let mut watch = watch("psi.memory.full:max=5%,psi.memory.some:max=20%");
        let look = |watch: &mut Watch, second| watch.look(sample(second, 0, second * 60_000));
        assert_eq!((look(&mut watch, 0), look(&mut watch, 2)), (None, None), "too short to tell");
        let broken = look(&mut watch, 4).unwrap();
        insta::assert_snapshot!(broken, @"psi.memory.full:max=5% is broken: 0.0600 of the time, the limit is 0.0500");
    }

    #[test]
    fn levels_and_faults_have_bounds_on_both_sides() {
        let mut watch = watch("nr_free_pages:min=3984KiB,fault.p99_ns:max=505ns");
        let broken: Vec<Option<String>> =
            (0..8).map(|second| watch.look(sample(second, 0, 0)).map(|broken| broken.bound)).collect();
        assert!(broken[..5].iter().all(Option::is_none), "{broken:?}");
        assert_eq!(broken[5].as_deref(), Some("nr_free_pages:min=3984KiB"));
        let last = &watch.watched()[1];
        assert_eq!((last.worst, last.during, last.unit()), (Some(507.0), Some(507.0), "ns"));
    }

    #[test]
    fn what_cannot_be_watched_is_refused() {
        let now = sample(0, 0, 0);
        let refused = |text: &str| Watch::parse(&[text.to_owned()], &now).unwrap_err();
        assert!(matches!(refused("oom_kills:max=0"), WatchError::Unknown { known, .. } if known.len() == 9));
        assert!(matches!(refused("oom_kill:max=3ms"), WatchError::Bound(BoundError::Unit { .. })));
        let without = Sample { stalled: None, ..now };
        let refused = Watch::parse(&["psi.memory.full:max=5%".to_owned()], &without).unwrap_err();
        assert_eq!(refused, WatchError::NoPressure);
        assert_eq!(Watch::by_default(&without).watched().len(), 2);
    }
}
