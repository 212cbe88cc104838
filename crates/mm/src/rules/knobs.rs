//! Every tunable, in one table: its name, range, default, meaning, what it stands for in Linux, and what it needs to act. To
//! add one: an entry of the table (`table`), and its use.

use alloc::string::{String, ToString};
use core::fmt;

pub use crate::ground::knob::{KnobId, KnobUse, Margin, Verdict};
use crate::ground::{AtomicU8, AtomicU64, Relaxed};
use crate::rules::policy::Policy;

mod base;
mod declare;
mod elsewhere;
mod kernels;
mod leaves;
mod need;
mod table;
mod value;
#[cfg(test)]
mod value_tests;
mod watch;
mod words;

pub use elsewhere::in_place_of;
pub use kernels::{Distributed, Kernels, Limited};
pub use leaves::Leaves;
pub use need::{Compares, Need};
pub use table::{KNOBS, Knob};
pub use value::{FileText, Written};

/// What a knob stands for in Linux.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StandsFor {
    /// A file under /proc/sys.
    Sysctl(&'static str),
    /// One of the numbers in a file under /proc/sys.
    SysctlNumber {
        /// The file.
        path: &'static str,
        /// Which number, from 0.
        place: usize,
    },
    /// A file under /sys.
    Sysfs(&'static str),
    /// A file of the cgroup that a program is in.
    Cgroup {
        /// Its name in version 2.
        file: &'static str,
        /// That of the one in version 1 that does the same.
        v1: Option<&'static str>,
    },
    /// What tools do; the text says which.
    Tools(&'static str),
    /// A word on the kernel's command line, which no running kernel changes.
    BootParameter(&'static str),
    /// No mainline kernel lets one set it while it runs; the text says what comes nearest.
    Nothing(&'static str),
}

impl StandsFor {
    /// The file; `None` where there is none.
    pub const fn path(self) -> Option<&'static str> {
        match self {
            Self::Sysctl(path) | Self::Sysfs(path) | Self::SysctlNumber { path, .. } => Some(path),
            Self::Cgroup { .. } | Self::Tools(_) | Self::BootParameter(_) | Self::Nothing(_) => None,
        }
    }
}

impl fmt::Display for StandsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sysctl(path) | Self::Sysfs(path) => f.write_str(path),
            Self::SysctlNumber { path, place } => write!(f, "{path}, number {}", place + 1),
            Self::Cgroup { file, v1: None } => write!(f, "{file} in the folder of the program's cgroup"),
            Self::Cgroup { file, v1: Some(v1) } => {
                write!(f, "{file} in the folder of the program's cgroup ({v1} in version 1)")
            }
            Self::Tools(what) => f.write_str(what),
            Self::BootParameter(word) => write!(f, "{word} on the kernel's command line"),
            Self::Nothing(nearest) => write!(f, "no mainline kernel has this ({nearest})"),
        }
    }
}

/// A value that has a word of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word {
    /// The value.
    pub value: u64,
    /// Its word.
    pub word: &'static str,
    /// Whether the kernel's file takes the word; what is ours alone, such as "as the kernel chooses", it does not.
    pub in_file: bool,
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub struct KnobSpec {
    /// The knob.
    pub knob: Knob,
    /// Its name, as `--set` takes it.
    pub name: &'static str,
    /// The smallest value.
    pub min: u64,
    /// The largest value.
    pub max: u64,
    /// The first and the last of values between these that it does not take.
    pub gap: Option<(u64, u64)>,
    /// Between which values a search looks, where its range reaches further than anybody would set it; `None`: from `min` to `max`.
    pub searched: Option<(u64, u64)>,
    /// The value where nothing is said, as mainline has it.
    pub default: u64,
    /// What distributions build into their kernels instead.
    pub distributed: Option<Distributed>,
    /// Who is 0 from when this is set: the same setting in bytes.
    pub displaces: Option<Knob>,
    /// A value that stands for what the kernel computes by itself. Its file does not take it.
    pub computed: Option<u64>,
    /// Unit of the value; empty for a bare number.
    pub unit: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// The mainline kernels that have it; `None` where only a patch had it, or it is a constant of the build.
    pub kernels: Option<Kernels>,
    /// Values that only some of these take.
    pub limited: &'static [Limited],
    /// What it stands for.
    pub stands_for: StandsFor,
    /// The values that have words; empty where all are numbers.
    pub words: &'static [Word],
    /// All that it cannot act without; the first that is missing is named.
    pub needs: &'static [Need],
    /// What its decisions compare with a mark.
    pub compares: Compares,
    /// A policy under which it can be tried: Linux's where that has the knob, or else one whose rules read it.
    pub tried_under: &'static str,
    /// What putting it back on a running kernel does not undo.
    pub leaves: Leaves,
}

impl KnobSpec {
    /// Whether its value is an amount of memory, which means another thing on a machine of another size.
    pub fn unit_is_memory(&self) -> bool {
        matches!(self.unit, "bytes" | "KiB" | "MiB")
    }
}

impl Knob {
    /// The knob called `name`.
    ///
    /// # Errors
    /// If there is none.
    pub fn from_name(name: &str) -> Result<Self, KnobError> {
        let spec = KNOBS.iter().find(|spec| spec.name == name);
        spec.map(|spec| spec.knob).ok_or_else(|| KnobError::Unknown { name: name.to_string() })
    }

    /// Whether it says who gets huge pages, or pages of another size.
    pub const fn gives_large_pages(self) -> bool {
        matches!(
            self,
            Self::TransparentHugepage
                | Self::Hugepages16kB
                | Self::Hugepages32kB
                | Self::Hugepages64kB
                | Self::Hugepages128kB
                | Self::Hugepages256kB
                | Self::Hugepages512kB
                | Self::Hugepages1024kB
                | Self::Hugepages2048kB
                | Self::SharedHugepage
                | Self::Shared16kB
                | Self::Shared32kB
                | Self::Shared64kB
                | Self::Shared128kB
                | Self::Shared256kB
                | Self::Shared512kB
                | Self::Shared1024kB
                | Self::Shared2048kB
        )
    }

    /// Its line in the table.
    pub fn spec(self) -> &'static KnobSpec {
        &KNOBS[self as usize]
    }

    /// Checks that `value` may be given to it.
    ///
    /// # Errors
    /// If it is out of range.
    pub fn check(self, value: u64) -> Result<(), KnobError> {
        let spec = self.spec();
        let gap = spec.gap.is_some_and(|(first, last)| (first..=last).contains(&value));
        if gap || value < spec.min || value > spec.max {
            return Err(KnobError::OutOfRange { knob: self, value });
        }
        Ok(())
    }
}

/// A knob that does not exist, or a value that it does not take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KnobError {
    /// No knob has this name.
    Unknown {
        /// The name.
        name: String,
    },
    /// The value is out of the knob's range.
    OutOfRange {
        /// The knob.
        knob: Knob,
        /// The value.
        value: u64,
    },
    /// Neither a number, nor one of the knob's words, nor a size or range that it can have.
    Unreadable {
        /// The knob.
        knob: Knob,
        /// What was given.
        text: String,
    },
    /// A range stands for too many values.
    LongRange {
        /// The knob.
        knob: Knob,
        /// What was given.
        text: String,
        /// For how many it stands.
        count: u64,
        /// How many it may.
        most: u64,
    },
    /// The policy's kernel does not take this value.
    Refused {
        /// The knob.
        knob: Knob,
        /// The value.
        value: u64,
        /// The policy's name.
        policy: String,
        /// The kernels that do.
        kernels: Kernels,
    },
    /// The policy's kernel does not have the knob.
    Lacking {
        /// The knob.
        knob: Knob,
        /// The policy's name.
        policy: String,
        /// The kernels that do.
        kernels: Kernels,
    },
}

impl fmt::Display for KnobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name } => match in_place_of(name) {
                Some(why) => write!(f, "'{name}' is no knob: {why}"),
                None => write!(f, "no knob is called '{name}'"),
            },
            Self::OutOfRange { knob, value } => {
                let spec = knob.spec();
                write!(f, "{} = {value} is out of range: {} to {}", spec.name, spec.min, spec.max)?;
                spec.gap.map_or(Ok(()), |(first, last)| write!(f, ", without {first} to {last}"))
            }
            Self::Unreadable { knob, text } => {
                write!(f, "{} = {text} cannot be: it takes ", knob.spec().name)?;
                knob.words().iter().try_for_each(|word| write!(f, "{}, ", word.word))?;
                f.write_str("a number")?;
                let sizes = if knob.unit_bytes().is_some() { ", a size (64M)" } else { "" };
                write!(f, "{sizes} or a range with a step (0-100:20)")
            }
            Self::LongRange { knob, text, count, most } => write!(
                f,
                "{} = {text} stands for {count} values, and {most} are the most; give it a longer step, as 0-100:20",
                knob.spec().name
            ),
            Self::Refused { knob, value, policy, kernels } => write!(
                f,
                "{} = {} is refused under {policy}: {kernels} takes that value",
                knob.spec().name,
                knob.written(*value)
            ),
            Self::Lacking { knob, policy, kernels } => {
                write!(f, "{} is refused under {policy}: {kernels} has it", knob.spec().name)
            }
        }
    }
}

impl core::error::Error for KnobError {}

/// The values in force. Any of them can change while the machine runs.
#[derive(Debug)]
pub struct Knobs {
    values: [AtomicU64; KNOBS.len()],
    /// What they were before anybody set one.
    defaults: [u64; KNOBS.len()],
    /// 1 for each knob that somebody set, to its default or to another value.
    set: [AtomicU8; KNOBS.len()],
}

impl Default for Knobs {
    /// As mainline has them.
    fn default() -> Self {
        Self::from_defaults(|spec| spec.default)
    }
}

impl Knobs {
    /// As a kernel of `policy`'s rules has them where distributions build it.
    pub fn of(policy: &Policy) -> Self {
        Self::from_defaults(|spec| policy.default_of(spec.knob))
    }

    fn from_defaults(default: impl Fn(&KnobSpec) -> u64) -> Self {
        let defaults = core::array::from_fn(|index| default(&KNOBS[index]));
        Self {
            values: defaults.map(AtomicU64::new),
            defaults,
            set: core::array::from_fn(|_| AtomicU8::new(0)),
        }
    }

    /// The value that `knob` has where nobody sets it.
    #[inline]
    pub fn default_of(&self, knob: Knob) -> u64 {
        self.defaults[knob as usize]
    }

    /// `knob` has `value` on this machine where nobody sets it, and from now on.
    ///
    /// # Errors
    /// If the value is out of range.
    pub fn stands_at(&mut self, knob: Knob, value: u64) -> Result<(), KnobError> {
        knob.check(value)?;
        self.defaults[knob as usize] = value;
        *self.values[knob as usize].get_mut() = value;
        Ok(())
    }

    /// The value of `knob`.
    #[inline]
    pub fn get(&self, knob: Knob) -> u64 {
        self.values[knob as usize].load(Relaxed)
    }

    /// Gives `value` to `knob`. What is derived from it follows by [`crate::Mm::set_knob`] only.
    ///
    /// # Errors
    /// If the value is out of range.
    pub fn set(&self, knob: Knob, value: u64) -> Result<(), KnobError> {
        knob.check(value)?;
        self.values[knob as usize].store(value, Relaxed);
        self.set[knob as usize].store(1, Relaxed);
        if let Some(other) = knob.spec().displaces {
            self.values[other as usize].store(0, Relaxed);
        }
        Ok(())
    }

    /// Whether somebody set `knob`, be it to its default.
    #[inline]
    pub fn is_set(&self, knob: Knob) -> bool {
        self.set[knob as usize].load(Relaxed) != 0
    }

    /// The same values, but `knob` at its default.
    pub(crate) fn with_default(&self, knob: Knob) -> Self {
        let value = |of: Knob| if of == knob { self.default_of(of) } else { self.get(of) };
        let values = core::array::from_fn(|index| AtomicU64::new(value(KNOBS[index].knob)));
        let set = core::array::from_fn(|index| AtomicU8::new(self.set[index].load(Relaxed)));
        Self { values, defaults: self.defaults, set }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (index, spec) in KNOBS.iter().enumerate() {
            assert_eq!(spec.knob as usize, index, "{}", spec.name);
            assert!(spec.knob.check(spec.default).is_ok(), "{}", spec.name);
            let (low, high) = spec.searched.unwrap_or((spec.min, spec.max));
            assert!(
                low < high && spec.knob.check(low).is_ok() && spec.knob.check(high).is_ok(),
                "{}",
                spec.name
            );
            assert_eq!(Knob::from_name(spec.name), Ok(spec.knob));
        }
    }

    #[test]
    fn distributions_keep_pages_by_generations_since_debian_13() {
        let built = Knob::LruGenEnabled.spec().distributed.unwrap();
        let default = |policy: &str| {
            let policy = Policy::parse(policy).unwrap();
            let knobs = Knobs::of(&policy);
            assert_eq!(knobs.default_of(Knob::LruGenEnabled), policy.default_of(Knob::LruGenEnabled));
            assert!(!knobs.is_set(Knob::LruGenEnabled));
            assert_eq!(knobs.get(Knob::LruGenEnabled) == built.value, built.kernels.has(policy.kernel()));
            knobs.get(Knob::LruGenEnabled)
        };
        let older = ["linux-3.0", "linux-6.1", "linux-6.11"].map(default);
        assert_eq!(older, [0; 3]);
        assert_eq!(["linux-6.12", "linux-6.18+yield", "freehold"].map(default), [7; 3]);
        assert_eq!(Knobs::default().get(Knob::LruGenEnabled), 0, "mainline");
    }

    #[test]
    fn what_a_machine_stands_at_is_its_default() {
        let mut knobs = Knobs::of(&Policy::default());
        knobs.stands_at(Knob::LruGenEnabled, 0).unwrap();
        assert!(!knobs.is_set(Knob::LruGenEnabled));
        knobs.set(Knob::LruGenEnabled, 7).unwrap();
        assert_eq!((knobs.get(Knob::LruGenEnabled), knobs.default_of(Knob::LruGenEnabled)), (7, 0));
        assert_eq!(knobs.with_default(Knob::LruGenEnabled).get(Knob::LruGenEnabled), 0);
        assert!(knobs.stands_at(Knob::LruGenEnabled, 8).is_err());
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let knobs = Knobs::default();
        assert!(knobs.set(Knob::PcpBatchScaleMax, 7).is_err());
        assert!(knobs.set(Knob::PercpuPagelistHighFraction, 7).is_err());
        assert_eq!(knobs.get(Knob::PcpBatchScaleMax), 5);
        assert!(knobs.set(Knob::PcpBatchScaleMax, 0).is_ok());
        assert_eq!(knobs.get(Knob::PcpBatchScaleMax), 0);
    }
}
