//! What lies between two policies: the rules and parts in which they differ, each of which can be changed alone. A policy
//! with some of another's rules is no kernel that was ever released; it answers which of them makes a difference.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::in_force::{RuleInForce, RuleStep};
use super::parts::{self, Part};
use super::{FREEHOLD, FREEHOLD_KERNEL, Mechanism, Policy, Rules, base};
use crate::ground::Version;

/// One thing in which two policies differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The rule's name, `free-high`, or the part's, `+yield`.
    pub name: String,
    /// What the rule decides, or what the part does.
    pub question: String,
    /// The mechanisms that a rule belongs to; none of a part.
    pub mechanisms: &'static [Mechanism],
    /// What the rule says under the first; `without` or `with` of a part.
    pub from: String,
    /// And under the second.
    pub to: String,
    /// What kernels changed about it between the two, the oldest first; none of a part.
    pub steps: Vec<RuleStep>,
}

/// A policy taken apart: the rules of its first word, and the parts on top.
struct Spelled {
    kernel: Version,
    base: Rules,
    parts: Vec<&'static Part>,
}

impl Policy {
    /// What tells `other` from this: rules by mechanism, then parts.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let (one, two) = (self.spelled(), other.spelled());
        let rules = one.base.in_force(one.kernel).into_iter().zip(two.base.in_force(two.kernel));
        let changed = rules.filter(|(from, to)| from.answer != to.answer);
        let mut all: Vec<Difference> =
            changed.map(|(from, to)| of_rule(from, to, one.kernel, two.kernel)).collect();
        let lacks = |of: &Spelled, part: &Part| of.parts.iter().all(|other| other.name != part.name);
        let gone = one.parts.iter().filter(|part| lacks(&two, part));
        all.extend(gone.map(|part| of_part(part, "with", "without")));
        let new = two.parts.iter().filter(|part| lacks(&one, part));
        all.extend(new.map(|part| of_part(part, "without", "with")));
        all
    }

    /// This policy with those of the [`differences`](Self::differences) from `other` whose names are `taken`. It is `other` to the bit
    /// with all of them.
    #[must_use]
    pub fn toward(&self, other: &Self, taken: &[&str]) -> Self {
        let (one, two) = (self.spelled(), other.spelled());
        let is_taken = |name: &str| taken.contains(&name);
        let mut rules = one.base.with(taken, &two.base);
        let is_word = |part: &Part| is_taken(&format!("+{}", part.name));
        let has = |of: &Spelled, part: &Part| of.parts.iter().any(|other| other.name == part.name);
        let kept = one.parts.iter().filter(|part| has(&two, part) || !is_word(part));
        let new = two.parts.iter().filter(|part| !has(&one, part) && is_word(part));
        kept.chain(new).for_each(|part| (part.set)(&mut rules));
        if self.differences(other).iter().all(|difference| is_taken(&difference.name)) {
            return Self { rules, ..other.clone() };
        }
        let name = match taken {
            [] => self.name.clone(),
            _ => format!("{} with {} of {}", self.name, taken.join(" "), other.name),
        };
        Self { name, kernel: self.kernel, rules }
    }

    fn spelled(&self) -> Spelled {
        let mut words = self.name.split('+');
        let first = words.next().unwrap_or_default();
        let named = |word: &str| parts::PARTS.iter().find(|part| part.name == word);
        if first == FREEHOLD {
            let pays = parts::PARTS.iter().filter(|part| part.pays);
            let parts = pays.chain(words.filter_map(named)).collect();
            return Spelled { kernel: FREEHOLD_KERNEL, base: Rules::linux(FREEHOLD_KERNEL), parts };
        }
        match base(first) {
            Ok((kernel, base)) => Spelled { kernel, base, parts: words.filter_map(named).collect() },
            // A mixture that has no name of its own is what it is.
            Err(_) => Spelled { kernel: self.kernel, base: self.rules, parts: Vec::new() },
        }
    }
}

fn of_rule(from: RuleInForce, to: RuleInForce, one: Version, two: Version) -> Difference {
    let (first, last) = if one < two { (one, two) } else { (two, one) };
    let between = |step: &RuleStep| first < step.since && step.since <= last;
    Difference {
        name: from.name.to_string(),
        question: from.question.to_string(),
        mechanisms: from.mechanisms,
        from: from.answer,
        to: to.answer,
        steps: from.history.into_iter().filter(between).collect(),
    }
}

fn of_part(part: &Part, from: &str, to: &str) -> Difference {
    Difference {
        name: format!("+{}", part.name),
        question: part.meaning.to_string(),
        mechanisms: &[],
        from: from.to_string(),
        to: to.to_string(),
        steps: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{EXAMPLE_POLICIES, FreeHighRule, HugeZeroRule};
    use super::*;

    fn policy(name: &str) -> Policy {
        Policy::parse(name).unwrap()
    }

    fn names(from: &str, to: &str) -> Vec<String> {
        policy(from).differences(&policy(to)).into_iter().map(|difference| difference.name).collect()
    }

    #[test]
    fn kernels_differ_by_rules_with_their_commits() {
        assert_eq!(names("linux-5.17", "linux-5.18"), ["free-high", "check"]);
        let all = policy("linux-5.17").differences(&policy("linux-6.12"));
        let free_high = all.iter().find(|difference| difference.name == "free-high").unwrap();
        assert_eq!((free_high.from.as_str(), free_high.to.as_str()), ("never", "sequence"));
        let commits: Vec<&str> = free_high.steps.iter().map(|step| step.commit).collect();
        assert_eq!(commits, ["f26b3fa04611", "ca71fe1ad922"]);
        assert_eq!(names("linux-6.16", "linux-6.17"), ["gen-look", "file-folio"]);
        assert!(names("linux-6.17", "linux-6.17").is_empty());
    }

    #[test]
    fn parts_are_differences_of_their_own() {
        assert_eq!(names("linux-6.18", "linux-6.18+slab-stock+yield"), ["+slab-stock", "+yield"]);
        assert_eq!(names("linux-6.18+touch+yield", "linux-6.18+yield"), ["+touch"]);
        assert!(names("linux-6.12", "freehold").contains(&"free-high".to_string()));
        assert!(names("linux-6.18", "freehold").iter().all(|name| name.starts_with('+')));
    }

    #[test]
    fn one_difference_is_taken_alone() {
        let (old, new) = (policy("linux-6.12"), policy("linux-6.18"));
        let mixed = old.toward(&new, &["free-high"]);
        assert_eq!(mixed.rules().lists.free_high, FreeHighRule::LongSequence);
        assert_eq!(mixed.rules().reclaim.huge_zero, HugeZeroRule::Small);
        assert_eq!(old.toward(&new, &[]), old);
        let part = policy("linux-6.18").toward(&policy("linux-6.12+yield"), &["+yield"]);
        assert_eq!(part.rules(), policy("linux-6.18+yield").rules());
    }

    #[test]
    fn all_differences_together_are_the_other_policy() {
        for (from, to) in EXAMPLE_POLICIES.iter().zip(EXAMPLE_POLICIES.iter().rev()) {
            let (from, to) = (policy(from), policy(to));
            let all = from.differences(&to);
            let mut taken: Vec<&str> = all.iter().map(|difference| difference.name.as_str()).collect();
            assert_eq!(from.toward(&to, &taken).rules(), to.rules(), "{} {}", from.name(), to.name());
            // One less is another set of rules: each difference is one.
            let Some(last) = taken.pop() else { continue };
            assert_ne!(from.toward(&to, &taken).rules(), to.rules(), "{last}");
        }
    }
}
