//! What a program said of its memory (`madvise`, `mbind`, `set_mempolicy` and their like): the calls that replays make of it, and the
//! names of what the memory manager has nothing like.

use mm::vm::mempolicy::MemPolicy;
use mm::vm::{Advice, HugePages, ReadPattern};
use mm::{Node, NodeMask};
use trace::{EventKind, NodeCall, NodeFlags, PolicyMode, SaidOfNodes};

use super::steps::{Call, PageRange};

/// A memory policy as a program said it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SaidPolicy {
    /// The mode.
    pub mode: PolicyMode,
    /// A bit for each node from 0 on.
    pub nodes: u64,
}

/// Whether pages that are elsewhere go where a policy says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhatIsThere {
    /// They stay.
    Stays,
    /// They go, those that nobody else maps (`MPOL_MF_MOVE`).
    Moves,
}

impl SaidPolicy {
    /// The policy; `None` for `MPOL_DEFAULT`.
    pub fn policy(self) -> Option<MemPolicy> {
        let mask = node_mask(self.nodes);
        Some(match self.mode {
            PolicyMode::Default => return None,
            PolicyMode::Local => MemPolicy::Local,
            PolicyMode::Preferred => mask.nodes().next().map_or(MemPolicy::Local, MemPolicy::Preferred),
            PolicyMode::Bind => MemPolicy::Bind(mask),
            PolicyMode::Interleave => MemPolicy::Interleave(mask),
            PolicyMode::PreferredMany => MemPolicy::PreferredMany(mask),
            PolicyMode::WeightedInterleave => MemPolicy::WeightedInterleave(mask),
        })
    }
}

/// The nodes whose bits are set.
pub fn node_mask(bits: u64) -> NodeMask {
    (0..64).filter(|node| bits >> node & 1 != 0).map(Node).collect()
}

/// What a replay makes of something that was said: a call, nothing where that changes nothing, or the name of what it leaves out.
pub(super) type Meant = Result<Option<Call>, &'static str>;

/// Of a word of `madvise`, as Linux numbers it, of a range.
pub(super) fn advised(range: PageRange, word: u32) -> Meant {
    let advice = match word {
        0 => Advice::Reads(ReadPattern::Normal),
        1 => Advice::Reads(ReadPattern::Random),
        2 => Advice::Reads(ReadPattern::Sequential),
        // DONTNEED_LOCKED; GUARD_INSTALL takes the pages away too.
        4 | 24 | 102 => Advice::DontNeed,
        8 => Advice::Free,
        14 => Advice::Huge(HugePages::Advised),
        15 => Advice::Huge(HugePages::Never),
        20 => Advice::Cold,
        21 => Advice::PageOut,
        22 | EventKind::NEEDED_TO_READ => Advice::PopulateRead,
        23 | EventKind::NEEDED_TO_WRITE => Advice::PopulateWrite,
        25 => Advice::Collapse,
        // WILLNEED, whose pages are seen to come; REMOVE, whose pages are seen to go; opposites of what is left out; what core dumps hold.
        3 | 9 | 11 | 13 | 16 | 17 | 19 | 103 => return Ok(None),
        10 => return Err("ranges_kept_from_children"),
        12 => return Err("ranges_to_be_merged_by_ksm"),
        18 => return Err("ranges_wiped_for_children"),
        _ => return Err("advice_not_simulated"),
    };
    Ok(Some(Call::Advise { range, advice }))
}

/// Of what was said of nodes; `range` is what of it is a range's.
pub(super) fn said_of_nodes(range: Option<PageRange>, said: SaidOfNodes) -> Meant {
    let SaidOfNodes { call, flags, nodes } = said;
    if flags.contains(NodeFlags::NODES_UNSEEN) {
        return Err("policies_whose_nodes_were_not_seen");
    }
    if flags.contains(NodeFlags::OF_ANOTHER) {
        return Err("moves_of_another_process");
    }
    if flags.contains(NodeFlags::RELATIVE_NODES) {
        return Err("policies_of_relative_nodes");
    }
    let moves = flags.contains(NodeFlags::MOVE) || flags.contains(NodeFlags::MOVE_ALL);
    let there = if moves { WhatIsThere::Moves } else { WhatIsThere::Stays };
    match (call, range) {
        (NodeCall::Range(mode), Some(range)) => {
            Ok(Some(Call::Bind { range, policy: SaidPolicy { mode, nodes }, there }))
        }
        (NodeCall::Task(mode), _) => Ok(Some(Call::SetPolicy(SaidPolicy { mode, nodes }))),
        (NodeCall::Migrate, _) => {
            Ok(Some(Call::MoveNodes { from: nodes & u64::from(u32::MAX), to: nodes >> 32 }))
        }
        (NodeCall::HomeNode, _) => Err("home_nodes_of_policies"),
        (NodeCall::MovePages, _) => Err("moves_of_single_pages"),
        (NodeCall::Range(_), None) => Err("ranges_too_large"),
    }
}
