//! What words of a script mean to the memory manager.

use mm::mempolicy::MemPolicy;
use mm::vm::{Advice, HugePages, ReadPattern};
use mm::{Node, NodeMask, Topology};

use super::program::Mode;

/// The advice for a region that `word` gives; `None`: it is for its file, if it has one (`willneed`).
pub(crate) fn advice(word: &str) -> Option<Advice> {
    Some(match word {
        "dontneed" => Advice::DontNeed,
        "free" => Advice::Free,
        "cold" => Advice::Cold,
        "pageout" => Advice::PageOut,
        "collapse" => Advice::Collapse,
        "populate_read" => Advice::PopulateRead,
        "populate_write" => Advice::PopulateWrite,
        "hugepage" => Advice::Huge(HugePages::Advised),
        "nohugepage" => Advice::Huge(HugePages::Never),
        word => Advice::Reads(pattern(word)?),
    })
}

/// How a file is said to be read by `word`, if it says that.
pub(crate) fn pattern(word: &str) -> Option<ReadPattern> {
    Some(match word {
        "normal" => ReadPattern::Normal,
        "random" => ReadPattern::Random,
        "sequential" => ReadPattern::Sequential,
        _ => return None,
    })
}

/// The policy of `mode` over those of `nodes` (as bits) that have memory. `None`: the call says that this is no policy.
pub(crate) fn policy(topology: &Topology, mode: Mode, nodes: u64) -> Option<MemPolicy> {
    let has_memory = |node: &u16| {
        nodes >> node & 1 == 1
            && topology.nodes.get(usize::from(*node)).is_some_and(|node| !node.zones.is_empty())
    };
    let those: Vec<Node> = (0..64).filter(has_memory).map(Node).collect();
    let mask: Option<NodeMask> = (!those.is_empty()).then(|| those.iter().copied().collect());
    Some(match mode {
        Mode::Default | Mode::Local | Mode::Preferred if nodes == 0 => MemPolicy::Local,
        Mode::Default | Mode::Local => return None,
        Mode::Bind => MemPolicy::Bind(mask?),
        Mode::Interleave => MemPolicy::Interleave(mask?),
        Mode::Preferred => MemPolicy::Preferred(*those.first()?),
    })
}
