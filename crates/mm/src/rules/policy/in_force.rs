//! A list of every rule that a policy puts in force: what it decides, what it says, and in which kernels. People read it
//! (`freehold policies show`), and labels need it: a part touches the mechanisms of the rules that it changes. Each
//! mechanism's file adds its own lines. There the fields are taken apart by name, so a new rule without a line does not
//! compile.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Debug;

use super::{Mechanism, Policy, Rules};
use crate::ground::{Since, Version};

/// A rule in force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleInForce {
    /// Its name: `high`.
    pub name: &'static str,
    /// The mechanisms that it belongs to, at least one.
    pub mechanisms: &'static [Mechanism],
    /// What it decides.
    pub question: &'static str,
    /// What it says: `auto tuned`.
    pub answer: String,
    /// Where that is from.
    pub origin: Origin,
    /// What kernels said, the oldest first; empty where all say the same.
    pub history: Vec<RuleStep>,
}

/// What a rule says from a version on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleStep {
    /// The first version.
    pub since: Version,
    /// What it says.
    pub answer: String,
    /// The commit that brought it, abbreviated; empty where nobody wrote it down.
    pub commit: &'static str,
}

/// Where a rule is from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The kernels from `since` on (`None`: from the oldest that has rules) and before `before` (`None`: to the newest).
    Kernels {
        /// The first that has it.
        since: Option<Version>,
        /// The first that has it no more.
        before: Option<Version>,
    },
    /// A part of the policy: its kernel says otherwise.
    Part,
}

impl Policy {
    /// Every rule in force, mechanism by mechanism as they stand in [`Rules`].
    pub fn rules_in_force(&self) -> Vec<RuleInForce> {
        self.rules().in_force(self.kernel())
    }

    /// The mechanisms whose rules are not those of the policy's kernel.
    pub fn touched(&self) -> BTreeSet<Mechanism> {
        let of_parts = self.rules_in_force().into_iter().filter(|rule| rule.origin == Origin::Part);
        of_parts.flat_map(|rule| rule.mechanisms).copied().collect()
    }
}

impl Rules {
    /// Every rule, mechanism by mechanism; `kernel` is where they stand.
    pub(super) fn in_force(&self, kernel: Version) -> Vec<RuleInForce> {
        let mut list = List { version: kernel, taken: &[], rules: Vec::new() };
        { *self }.visit(self, &mut list);
        list.rules
    }

    /// The same with the rules whose names are `taken` as `other` has them.
    #[must_use]
    pub(super) fn with(&self, taken: &[&str], other: &Self) -> Self {
        let mut list = List { version: super::OLDEST, taken, rules: Vec::new() };
        let mut rules = *self;
        rules.visit(other, &mut list);
        rules
    }

    fn visit(&mut self, other: &Self, list: &mut List<'_>) {
        let Self { lists, zone, tier, reclaim, compact, slab } = self;
        lists.visit(&other.lists, list);
        zone.visit(&other.zone, list);
        tier.visit(other.tier, list);
        reclaim.visit(other.reclaim, list);
        compact.visit(&other.compact, list);
        slab.visit(&other.slab, list);
    }
}

/// What a rule is called, where it belongs, what it decides.
#[derive(Clone, Copy)]
pub(super) struct Of(pub(super) &'static str, pub(super) &'static [Mechanism], pub(super) &'static str);

/// Rules as they are gathered; those that are taken become another policy's on the way.
pub(super) struct List<'a> {
    version: Version,
    /// Names of rules that become the other's.
    taken: &'a [&'a str],
    rules: Vec<RuleInForce>,
}

impl List<'_> {
    /// A rule with a history.
    pub(super) fn add<R: Copy + PartialEq + Debug>(
        &mut self,
        of: Of,
        history: &[Since<R>],
        value: &mut R,
        other: R,
    ) {
        self.take(&of, value, other);
        let index = history.iter().rposition(|since| since.0 <= self.version).unwrap_or(0);
        let origin = if history[index].1 == *value {
            Origin::Kernels {
                since: (index > 0).then(|| history[index].0),
                before: history.get(index + 1).map(|next| next.0),
            }
        } else {
            Origin::Part
        };
        let step = |since: &Since<R>| RuleStep { since: since.0, answer: said(since.1), commit: since.2 };
        self.push(of, *value, origin, history.iter().map(step).collect());
    }

    /// A rule that is the same in all kernels.
    pub(super) fn constant<R: Copy + PartialEq + Debug>(
        &mut self,
        of: Of,
        mainline: R,
        value: &mut R,
        other: R,
    ) {
        self.take(&of, value, other);
        let kernels = Origin::Kernels { since: None, before: None };
        let origin = if *value == mainline { kernels } else { Origin::Part };
        self.push(of, *value, origin, Vec::new());
    }

    fn take<R>(&self, of: &Of, value: &mut R, other: R) {
        if self.taken.contains(&of.0) {
            *value = other;
        }
    }

    fn push<R: Debug>(&mut self, of: Of, value: R, origin: Origin, history: Vec<RuleStep>) {
        let Of(name, mechanisms, question) = of;
        self.rules.push(RuleInForce { name, mechanisms, question, answer: said(value), origin, history });
    }
}

/// What a value says.
fn said(value: impl Debug) -> String {
    words(&format!("{value:?}"))
}

/// `AutoTuned` as `auto tuned`, `UpTo64Mib` as `up to 64 mib`.
fn words(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        let is_in_number = letter.is_ascii_digit() && words.ends_with(|before: char| before.is_ascii_digit());
        let begins = letter.is_uppercase() || letter.is_ascii_digit() && !is_in_number;
        if begins && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(name: &str) -> Policy {
        Policy::parse(name).unwrap()
    }

    fn rule(policy: &Policy, name: &str) -> RuleInForce {
        policy.rules_in_force().into_iter().find(|rule| rule.name == name).unwrap()
    }

    #[test]
    fn a_rule_says_in_which_kernels_it_holds() {
        let high = rule(&policy("linux-6.1"), "high");
        assert_eq!(high.answer, "low watermark");
        let range = Origin::Kernels { since: Some(Version::new(5, 14)), before: Some(Version::new(6, 7)) };
        assert_eq!(high.origin, range);
        let newest = rule(&policy("linux-7.2"), "cpu-slabs");
        assert_eq!(newest.origin, Origin::Kernels { since: Some(Version::new(7, 0)), before: None });
        assert_eq!(rule(&policy("linux-4.4"), "min-free").answer, "up to 64 mib");
        let always = rule(&policy("linux-4.4"), "touch");
        assert_eq!(always.origin, Origin::Kernels { since: None, before: None });
    }

    #[test]
    fn names_are_told_apart() {
        let rules = Policy::default().rules_in_force();
        let names: BTreeSet<&str> = rules.iter().map(|rule| rule.name).collect();
        assert_eq!(names.len(), rules.len());
        assert!(rules.iter().all(|rule| rule.origin != Origin::Part));
    }

    #[test]
    fn parts_touch_the_mechanisms_of_the_rules_that_they_change() {
        let touched = |name| policy(name).touched().into_iter().collect::<Vec<_>>();
        assert_eq!(touched("linux-6.18"), []);
        assert_eq!(touched("linux-6.11+pcp_batch_scale_max"), [Mechanism::PageLists]);
        assert_eq!(touched("linux-6.18+slab-stock"), [Mechanism::Slabs]);
        assert_eq!(touched("linux-6.18+zone-price"), [Mechanism::Zonelists]);
        assert_eq!(touched("linux-6.18+compact-summary"), [Mechanism::Compaction]);
        assert_eq!(touched("kmmscand-v0"), [Mechanism::Promotion]);
        assert_eq!(touched("freehold"), Mechanism::ALL);
    }
}
