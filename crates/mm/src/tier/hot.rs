//! When an accessed page is hot: at once, or at the second look in a row that finds it accessed. What was accessed once is a
//! bit for each page, as the kernel's flags are, kept for 2 MiB at a time where any is set.

use alloc::collections::BTreeMap;

use super::ground::Seen;
use crate::ground::{PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Vpn};
use crate::rules::revision::HotRule;

const WORDS: usize = PAGEBLOCK_PAGES as usize / 64;

/// What was accessed at the last look, where that matters.
#[derive(Clone, Debug)]
pub(super) struct Hot {
    rule: HotRule,
    once: BTreeMap<u32, [u64; WORDS]>,
}

impl Hot {
    pub(super) const fn new(rule: HotRule) -> Self {
        Self { rule, once: BTreeMap::new() }
    }

    /// Whether `seen`, a page of the slow tier, is hot.
    pub(super) fn is_hot(&mut self, seen: Seen) -> bool {
        match self.rule {
            HotRule::First => seen.accessed,
            HotRule::Second => {
                let before = self.replace(seen.vpn, seen.accessed);
                before && seen.accessed
            }
        }
    }

    /// Notes whether the page at `vpn` was accessed now; gives what was noted before.
    fn replace(&mut self, vpn: Vpn, accessed: bool) -> bool {
        let number = vpn.0 >> PAGEBLOCK_ORDER;
        let (word, mask) = (vpn.slot() / 64, 1 << (vpn.slot() % 64));
        if !accessed && !self.once.contains_key(&number) {
            return false;
        }
        let words = self.once.entry(number).or_default();
        let before = words[word] & mask != 0;
        words[word] = if accessed { words[word] | mask } else { words[word] & !mask };
        if words.iter().all(|word| *word == 0) {
            self.once.remove(&number);
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::ids::Node;

    fn hot(rule: HotRule, looks: &[bool]) -> Vec<bool> {
        let mut hot = Hot::new(rule);
        let seen = |&accessed: &bool| Seen { vpn: Vpn(777), pages: 1, node: Node(2), accessed };
        let found = looks.iter().map(|look| hot.is_hot(seen(look))).collect();
        assert!(hot.once.len() <= 1);
        found
    }

    #[test]
    fn the_second_access_must_follow_the_first() {
        let looks = [true, true, false, true, true, true];
        assert_eq!(hot(HotRule::First, &looks), looks);
        assert_eq!(hot(HotRule::Second, &looks), [false, true, false, false, true, true]);
    }
}
