//! What a replay is to do: the machine, policy, copies, and the knobs with all values that they are to take.

use std::fmt;

use mm::knobs::in_place_of;
use mm::{Cpu, Knob, KnobError, Limit, Nanos, Policy};
use sim::Profile;

use super::share::{CpuChoice, ShareError, ShareOptions, Shares};
use super::source::Source;
use super::unknown;
use crate::reach::{Refusal, Where, refusals, too_late};
use crate::stage::{self, GroupSetting};

/// A replay with all of its variants.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The machine.
    pub profile: Profile,
    /// The policy.
    pub policy: Policy,
    /// Knobs with the values that each is to take; every combination is a variant.
    pub settings: Vec<Setting>,
    /// Changes while it runs.
    pub changes: Vec<Change>,
    /// Copies of the workload that run at once, from 1.
    pub copies: u32,
    /// Times that each copy goes through the workload, from 1.
    pub repeat: u32,
    /// CPUs that may be used; empty: the profile's.
    pub cpus: Vec<Cpu>,
    /// What each recording gets of the machine, where that is not the same for all.
    pub shares: Shares,
    /// The first seed of offsets and jitter.
    pub seed: u64,
    /// How many seeds, from 1; each is one more than the one before.
    pub seeds: u32,
    /// Whether knobs that cannot act are run all the same, and said to be.
    pub forced: bool,
}

/// A knob and the values that it is to take in turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// The cgroup that it is of, by the name of its recording; `None`: all, or no cgroup's.
    pub of: Option<String>,
    /// The knob.
    pub knob: Knob,
    /// Its values, at least one.
    pub values: Vec<u64>,
}

/// A knob that changes while the workload runs, as when somebody writes to a sysctl.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// When, in simulated time.
    pub at: Nanos,
    /// The knob.
    pub knob: Knob,
    /// Its new value.
    pub value: u64,
}

/// One combination of values.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Variant {
    /// Each knob that was set, with its value.
    pub knobs: Vec<(Knob, u64)>,
    /// The same of single cgroups.
    pub groups: Vec<GroupSetting>,
}

impl Setting {
    /// `knob`, of all cgroups or of none, with these values in turn.
    pub fn of_all(knob: Knob, values: Vec<u64>) -> Self {
        Self { of: None, knob, values }
    }
}

impl From<Vec<(Knob, u64)>> for Variant {
    fn from(knobs: Vec<(Knob, u64)>) -> Self {
        Self { knobs, groups: vec![] }
    }
}

impl Variant {
    /// What tells it from the others: `vm.pcp_batch_scale_max=5`, or `default` where nothing is set.
    pub fn name(&self) -> String {
        let knobs =
            self.knobs.iter().map(|(knob, value)| (knob.spec().name.to_owned(), knob.written(*value)));
        let groups = self.groups.iter().map(|set| (set.full_name(), set.knob.written(set.value)));
        let parts: Vec<String> = knobs.chain(groups).map(|(name, value)| format!("{name}={value}")).collect();
        if parts.is_empty() { "default".to_owned() } else { parts.join(" ") }
    }
}

impl Plan {
    /// A plan for one copy on `profile` under `policy`, all knobs at their defaults, seed 1 alone.
    pub fn new(profile: Profile, policy: Policy) -> Self {
        Self {
            profile,
            policy,
            settings: vec![],
            changes: vec![],
            copies: 1,
            repeat: 1,
            cpus: vec![],
            shares: Shares::default(),
            seed: 1,
            seeds: 1,
            forced: false,
        }
    }

    /// Checks that the policy's kernel has every knob and takes every value that is set or changed to.
    ///
    /// # Errors
    /// The first that it does not.
    pub fn check(&self) -> Result<(), KnobError> {
        let set = self.settings.iter().flat_map(|set| set.values.iter().map(|&value| (set.knob, value)));
        let mut all = set.chain(self.changes.iter().map(|change| (change.knob, change.value)));
        all.try_for_each(|(knob, value)| self.policy.check_knob(knob, value))
    }

    /// Gives recordings called `names` what `options` say of the machine.
    ///
    /// # Errors
    /// What is no list, names no recording, or is not on this machine.
    pub fn share(&mut self, options: &ShareOptions<'_>, names: &[&str]) -> Result<(), ShareError> {
        self.shares = options.read(names, &self.profile)?;
        let everyone = &mut self.shares.everyone;
        self.copies = everyone.copies.take().unwrap_or(1);
        // What holds for all is the machine's, for daemons and recordings of page events too.
        if let Some(CpuChoice::Any(list)) = &mut everyone.cpus {
            self.cpus = std::mem::take(list);
            everyone.cpus = None;
        }
        Ok(())
    }

    /// Its seeds.
    pub fn seeds(&self) -> impl Iterator<Item = u64> + use<> {
        let first = self.seed;
        (0..self.seeds.max(1)).map(move |number| first.wrapping_add(u64::from(number)))
    }

    /// Knobs that are set, at the start or later, and cannot act on `source`, this machine or under this policy.
    pub fn refusals(&self, source: &Source) -> Vec<Refusal> {
        let all =
            |setting: &Setting| setting.values.iter().map(|value| (setting.knob, *value)).collect::<Vec<_>>();
        let later = self.changes.iter().map(|change| (change.knob, change.value));
        let mut set: Vec<(Knob, u64)> = self.settings.iter().flat_map(all).chain(later).collect();
        // Where nobody sets it, a replay has it as the recorded kernel was built.
        let built = source.built_otherwise(&self.policy).into_iter();
        set.extend(built.filter(|(knob, _)| self.knobs_set().all(|set| set != *knob)));
        let topology = self.profile.topology();
        let brings = source.brings();
        let mut refused = refusals(&Where { brings, topology: &topology, policy: &self.policy, set: &set });
        refused.retain(|refusal| self.knobs_set().any(|set| set == refusal.knob));
        refused.extend(unknown::without_huge_pages(source, &set));
        refused.extend(too_late(self.changes.iter().map(|change| change.knob), &stage::AT_START));
        refused
    }

    /// The knobs that are set, at the start or later.
    pub(super) fn knobs_set(&self) -> impl Iterator<Item = Knob> + '_ {
        let at_start = self.settings.iter().map(|setting| setting.knob);
        at_start.chain(self.changes.iter().map(|change| change.knob))
    }

    /// Every combination of the settings' values; the last setting changes fastest.
    pub fn variants(&self) -> Vec<Variant> {
        combinations(&self.settings)
    }
}

/// Every combination of values; the last setting changes fastest.
pub fn combinations(settings: &[Setting]) -> Vec<Variant> {
    settings.iter().fold(vec![Variant::default()], |variants, setting| {
        let extend = |variant: &Variant| {
            let one = |&value: &u64| {
                let (mut variant, knob) = (variant.clone(), setting.knob);
                match &setting.of {
                    None => variant.knobs.push((knob, value)),
                    Some(name) => variant.groups.push(GroupSetting { name: name.clone(), knob, value }),
                }
                variant
            };
            setting.values.iter().map(one).collect::<Vec<_>>()
        };
        variants.iter().flat_map(extend).collect()
    })
}

/// Why a setting or change on the command line cannot be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ParseSettingError {
    /// Not `knob=value[,value…]`, or not `time:knob=value`.
    Form {
        /// What was given.
        text: String,
        /// What was expected.
        expected: &'static str,
    },
    /// No such knob, or a value that it does not take.
    Knob(KnobError),
    /// A knob is set in two places.
    SetTwice(String),
    /// A single cgroup's setting where only all cgroups' can be.
    OfOneGroup(String),
    /// A cgroup of a name is said to have a knob that is no file of cgroups, or none.
    NotOfGroups(String),
    /// A knob is given the same value twice.
    SameValue {
        /// The knob.
        knob: Knob,
        /// The value.
        value: u64,
    },
    /// A knob changes twice at one time.
    ChangesTwice(Change),
}

impl fmt::Display for ParseSettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form { text, expected } => write!(f, "'{text}' is not of the form {expected}"),
            Self::Knob(error) => error.fmt(f),
            Self::OfOneGroup(name) => {
                write!(
                    f,
                    "cgroup.{name}. is of one recording among several: `freehold replay` takes that, here it is the knob alone"
                )
            }
            Self::NotOfGroups(name) => {
                let limits: Vec<&str> = Limit::ALL.iter().map(|limit| limit.knob().spec().name).collect();
                let limits = limits.join(", ");
                write!(f, "'{name}' is no setting of a cgroup: it is cgroup.NAME. and one of {limits}")?;
                let file = name.find(".memory.").and_then(|at| name.get(at + 1..));
                file.and_then(in_place_of).map_or(Ok(()), |why| write!(f, "; {why}"))
            }
            Self::SetTwice(name) => {
                write!(f, "{name} is set twice; give it all its values at once: --set {name}=V,V")
            }
            Self::SameValue { knob, value } => {
                write!(f, "{} is given the value {} twice", knob.spec().name, knob.written(*value))
            }
            Self::ChangesTwice(Change { at, knob, .. }) => {
                write!(f, "{} changes twice at {} ns; keep one of the two", knob.spec().name, at.0)
            }
        }
    }
}

impl std::error::Error for ParseSettingError {}

/// Reads all settings of a command line.
///
/// # Errors
/// What [`parse_setting`] refuses, and a knob that is set in two places.
pub fn parse_settings(texts: &[String]) -> Result<Vec<Setting>, ParseSettingError> {
    let settings: Vec<Setting> = texts.iter().map(|text| parse_setting(text)).collect::<Result<_, _>>()?;
    let twice = first_twice(settings.iter().map(|setting| (&setting.of, setting.knob)));
    let name = twice.map(|(of, knob)| match of {
        None => knob.spec().name.to_owned(),
        Some(name) => format!("cgroup.{name}.{}", knob.spec().name),
    });
    name.map_or(Ok(settings), |name| Err(ParseSettingError::SetTwice(name)))
}

/// The same where no single cgroup can be meant.
///
/// # Errors
/// What [`parse_settings`] refuses, and `cgroup.NAME.` before a knob.
pub fn parse_settings_of_all(texts: &[String]) -> Result<Vec<Setting>, ParseSettingError> {
    let settings = parse_settings(texts)?;
    match settings.iter().find_map(|setting| setting.of.clone()) {
        Some(name) => Err(ParseSettingError::OfOneGroup(name)),
        None => Ok(settings),
    }
}

/// Reads all changes of a command line.
///
/// # Errors
/// What [`parse_change`] refuses, and a knob that changes twice at one time.
pub fn parse_changes(texts: &[String]) -> Result<Vec<Change>, ParseSettingError> {
    let changes: Vec<Change> = texts.iter().map(|text| parse_change(text)).collect::<Result<_, _>>()?;
    let same = |one: &Change| {
        changes.iter().filter(|other| (one.at, one.knob) == (other.at, other.knob)).count() > 1
    };
    match changes.iter().find(|change| same(change)) {
        Some(change) => Err(ParseSettingError::ChangesTwice(*change)),
        None => Ok(changes),
    }
}

/// The first item that was there before.
fn first_twice<T: PartialEq + Copy>(items: impl Iterator<Item = T>) -> Option<T> {
    let mut seen = vec![];
    for item in items {
        if seen.contains(&item) {
            return Some(item);
        }
        seen.push(item);
    }
    None
}

/// Reads `knob=value[,value…]`, each value a number, one of the knob's words, a size (`64M`) or a range (`0-100:20`).
///
/// # Errors
/// Another form, an unknown knob, a value out of its range or given twice.
pub fn parse_setting(text: &str) -> Result<Setting, ParseSettingError> {
    let form = || ParseSettingError::Form { text: text.to_owned(), expected: "knob=value[,value…]" };
    let (name, values) = text.split_once('=').filter(|(_, values)| !values.is_empty()).ok_or_else(form)?;
    let (of, knob) = match name.trim().strip_prefix("cgroup.") {
        Some(rest) => of_group(rest).ok_or_else(|| ParseSettingError::NotOfGroups(name.trim().to_owned()))?,
        None => (None, Knob::from_name(name.trim()).map_err(ParseSettingError::Knob)?),
    };
    let parts = values.split(',').map(|part| knob.parse(part.trim()).map_err(ParseSettingError::Knob));
    let values = parts.collect::<Result<Vec<Vec<u64>>, _>>()?.concat();
    match first_twice(values.iter().copied()) {
        Some(value) => Err(ParseSettingError::SameValue { knob, value }),
        None => Ok(Setting { of, knob, values }),
    }
}

/// Reads `NAME.memory.max`.
fn of_group(text: &str) -> Option<(Option<String>, Knob)> {
    Limit::ALL.into_iter().find_map(|limit| {
        let name = text.strip_suffix(limit.knob().spec().name)?.strip_suffix('.')?;
        (!name.is_empty()).then(|| (Some(name.to_owned()), limit.knob()))
    })
}

/// Reads `time:knob=value`, the time with a unit: `2s`, `150ms`, `20us`, `7ns`.
///
/// # Errors
/// Another form, an unknown knob, a value out of its range.
pub fn parse_change(text: &str) -> Result<Change, ParseSettingError> {
    let expected = "time:knob=value, with the time as 2s, 150ms, 20us or 7ns";
    let form = || ParseSettingError::Form { text: text.to_owned(), expected };
    let (time, setting) = text.split_once(':').ok_or_else(form)?;
    let at = parse_time(time.trim()).ok_or_else(form)?;
    let Setting { of, knob, values } = parse_setting(setting)?;
    match values[..] {
        [value] if of.is_none() => Ok(Change { at, knob, value }),
        _ => Err(form()),
    }
}

/// Reads a whole number with a unit of time.
fn parse_time(text: &str) -> Option<Nanos> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match &text[digits..] {
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "us" | "µs" => 1_000,
        "ns" => 1,
        _ => return None,
    };
    number.checked_mul(unit).map(Nanos)
}
