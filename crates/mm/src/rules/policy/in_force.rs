//! Every rule that a policy puts in force, as a list: what it decides, what it says, in which kernels it says so. It is for
//! people (`freehold policies show`) and for labels: a part touches the mechanisms of the rules that it changes. The
//! fields are taken apart by name, so that a new one does not compile before it has its line here.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Debug;

use super::zone::{
    ATOMIC_BOOST, FAIR, FALLBACK, HIGHATOMIC, MARK_DISTANCE, MIN_FREE, MIXING, MOVABLE_MARKS, NODE_LOAD,
    WITHHELD, ZONELIST_ORDER,
};
use super::{
    ArenaRule, BATCH, CHECK, DRAIN, FREE_HIGH, HIGH, HOLD, Mechanism, PCP_ORDERS, Policy, PromotionRule,
    REFILL, Rules, ScaleRule, TouchRule, YieldRule, ZonePriceRule, ZonesRule,
};
use crate::ground::version::{Since, Version};

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
        let mut list = List { version: self.kernel(), rules: Vec::new() };
        list.pages(self.rules());
        self.rules().reclaim.list(&mut list);
        self.rules().compact.list(&mut list);
        self.rules().slab.list(&mut list);
        list.rules
    }

    /// The mechanisms whose rules are not those of the policy's kernel.
    pub fn touched(&self) -> BTreeSet<Mechanism> {
        let of_parts = self.rules_in_force().into_iter().filter(|rule| rule.origin == Origin::Part);
        of_parts.flat_map(|rule| rule.mechanisms).copied().collect()
    }
}

/// What a rule is called, where it belongs, what it decides.
pub(super) struct Of(pub(super) &'static str, pub(super) &'static [Mechanism], pub(super) &'static str);

/// Rules as they are gathered.
pub(super) struct List {
    version: Version,
    rules: Vec<RuleInForce>,
}

impl List {
    /// A rule with a history.
    pub(super) fn add<R: Copy + PartialEq + Debug>(&mut self, of: Of, history: &[Since<R>], value: R) {
        let index = history.iter().rposition(|since| since.0 <= self.version).unwrap_or(0);
        let origin = if history[index].1 == value {
            Origin::Kernels {
                since: (index > 0).then(|| history[index].0),
                before: history.get(index + 1).map(|next| next.0),
            }
        } else {
            Origin::Part
        };
        self.push(of, value, origin);
    }

    /// A rule that is the same in all kernels.
    pub(super) fn constant<R: Copy + PartialEq + Debug>(&mut self, of: Of, mainline: R, value: R) {
        let kernels = Origin::Kernels { since: None, before: None };
        let origin = if value == mainline { kernels } else { Origin::Part };
        self.push(of, value, origin);
    }

    fn push<R: Debug>(&mut self, Of(name, mechanisms, question): Of, value: R, origin: Origin) {
        let answer = words(&format!("{value:?}"));
        self.rules.push(RuleInForce { name, mechanisms, question, answer, origin });
    }

    fn pages(&mut self, rules: &Rules) {
        use Mechanism::{Compaction, PageLists, Promotion, Watermarks, Zonelists};
        let Rules {
            batch,
            high,
            pcp_orders,
            refill,
            drain,
            free_high,
            hold,
            node_load,
            check,
            zonelist_order,
            zone_price,
            fair,
            movable_marks,
            mark_distance,
            min_free,
            mixing,
            fallback,
            highatomic,
            withheld,
            atomic_boost,
            scale,
            yields,
            touch,
            zones,
            arenas,
            descriptor_bytes,
            reclaim: _,
            compact: _,
            slab: _,
            promotion,
        } = *rules;
        self.add(Of("batch", &[PageLists], "pages of a page list's batch"), BATCH, batch);
        self.add(Of("high", &[PageLists], "pages that a page list may keep"), HIGH, high);
        self.add(Of("pcp-orders", &[PageLists], "orders that page lists hold"), PCP_ORDERS, pcp_orders);
        self.add(Of("refill", &[PageLists], "pages of a refill"), REFILL, refill);
        self.add(Of("drain", &[PageLists], "pages of a drain"), DRAIN, drain);
        self.add(
            Of("free-high", &[PageLists], "when frees of orders 1 to 3 empty a list"),
            FREE_HIGH,
            free_high,
        );
        self.add(Of("hold", &[PageLists], "pages given back in one hold of the zone lock"), HOLD, hold);
        self.add(Of("check", &[PageLists], "where a refill's pages are checked"), CHECK, check);
        let scale_of = Of("scale", &[PageLists], "how vm.pcp_batch_scale_max bounds drains and decay");
        self.constant(scale_of, ScaleRule::Mainline, scale);
        let yields_of = Of("yields", &[PageLists], "whether a hold ends for CPUs that wait");
        self.constant(yields_of, YieldRule::Never, yields);
        let touch_of = Of("touch", &[PageLists], "when a drain reads descriptors");
        self.constant(touch_of, TouchRule::UnderLock, touch);
        self.constant(Of("zones", &[PageLists], "whether a zone has parts"), ZonesRule::Whole, zones);
        self.constant(Of("arenas", &[PageLists], "sets of free lists in a zone"), ArenaRule::One, arenas);
        let bytes_of = Of("descriptor-bytes", &Mechanism::ALL, "bytes of a frame descriptor");
        self.constant(bytes_of, 64, descriptor_bytes);
        let marks_of = Of("movable-marks", &[Watermarks], "how the marks treat a Movable zone");
        self.add(marks_of, MOVABLE_MARKS, movable_marks);
        let distance_of = Of("mark-distance", &[Watermarks], "how far low and high marks are from min");
        self.add(distance_of, MARK_DISTANCE, mark_distance);
        self.add(Of("min-free", &[Watermarks], "largest min_free_kbytes by itself"), MIN_FREE, min_free);
        let mixing_of = Of("mixing", &[Watermarks, Compaction], "what is done about mixed pageblocks");
        self.add(mixing_of, MIXING, mixing);
        let atomic_of = Of("highatomic", &[Watermarks], "blocks kept for atomic requests");
        self.add(atomic_of, HIGHATOMIC, highatomic);
        let withheld_of = Of("withheld", &[Watermarks], "which free pages do not count for a request");
        self.add(withheld_of, WITHHELD, withheld);
        let boost_of = Of("atomic-boost", &[Watermarks], "which requests may go below the mark");
        self.add(boost_of, ATOMIC_BOOST, atomic_boost);
        let fallback_of = Of("fallback", &[Compaction], "which block of another type is taken");
        self.add(fallback_of, FALLBACK, fallback);
        let load_of = Of("node-load", &[Zonelists], "how equal distances are told apart");
        self.add(load_of, NODE_LOAD, node_load);
        let order_of = Of("zonelist-order", &[Zonelists], "node order or zone order by default");
        self.add(order_of, ZONELIST_ORDER, zonelist_order);
        self.add(Of("fair", &[Zonelists], "whether zones of a node take turns"), FAIR, fair);
        let price_of = Of("zone-price", &[Zonelists], "what low zones keep by what was seen");
        self.constant(price_of, ZonePriceRule::None, zone_price);
        let promotion_of = Of("promotion", &[Promotion], "who looks for hot pages besides NUMA balancing");
        self.constant(promotion_of, PromotionRule::Balancing, promotion);
    }
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
