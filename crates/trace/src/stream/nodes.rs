//! What calls about nodes say, of their arguments. Masks of nodes lie in the program's memory: programs in the kernel read them at the
//! call, perf does not, and then only what needs no mask is known.

use super::spaces::{ALL_PAGES, Span};
use crate::event::{Call, EventKind, NodeCall, NodeFlags, PolicyMode, SaidOfNodes, mode_of};

/// The event of a call about nodes that succeeded, of process `pid`; `None` if it changes nothing.
pub(super) fn said(call: Call, arguments: [u64; 6], pid: u32) -> Option<EventKind> {
    Some(match (call, arguments) {
        (Call::Mbind, [start, len, mode, mask, maxnode, flags]) => {
            let (mode, of_mode) = mode_of(mode)?;
            let Mask { nodes, unseen } = Mask::of(mask, maxnode, mode);
            let flags = NodeFlags((flags & 7) as u32 | of_mode.0 | unseen.0);
            let Span { address, pages } = Span::of(start, len);
            SaidOfNodes { call: NodeCall::Range(mode), flags, nodes }.event(address, pages)
        }
        (Call::SetMempolicy, [mode, mask, maxnode, ..]) => {
            let (mode, of_mode) = mode_of(mode)?;
            let Mask { nodes, unseen } = Mask::of(mask, maxnode, mode);
            let flags = NodeFlags(of_mode.0 | unseen.0);
            SaidOfNodes { call: NodeCall::Task(mode), flags, nodes }.event(0, ALL_PAGES.pages)
        }
        (Call::SetHomeNode, [start, len, node, ..]) => {
            let Span { address, pages } = Span::of(start, len);
            let nodes = u32::try_from(node).ok().and_then(|node| 1u64.checked_shl(node)).unwrap_or(0);
            SaidOfNodes { call: NodeCall::HomeNode, flags: NodeFlags::default(), nodes }.event(address, pages)
        }
        (Call::MigratePages, [whose, maxnode, from, to, ..]) => {
            let is_seen = maxnode == Call::MASKS_ARE_READ;
            let nodes = if is_seen { from & 0xffff_ffff | to << 32 } else { 0 };
            let unseen = if is_seen { NodeFlags::default() } else { NodeFlags::NODES_UNSEEN };
            let flags = NodeFlags(of_whom(whose, pid).0 | unseen.0);
            SaidOfNodes { call: NodeCall::Migrate, flags, nodes }.event(0, ALL_PAGES.pages)
        }
        // Without nodes it is asked where pages are.
        (Call::MovePages, [whose, count, _, nodes, ..]) if nodes != 0 => {
            let pages = count.try_into().unwrap_or(u32::MAX);
            SaidOfNodes { call: NodeCall::MovePages, flags: of_whom(whose, pid), nodes: 0 }.event(0, pages)
        }
        _ => return None,
    })
}

/// A mask of nodes, as far as it is known.
struct Mask {
    nodes: u64,
    unseen: NodeFlags,
}

impl Mask {
    /// Of a call's mask and `maxnode`.
    const fn of(mask: u64, maxnode: u64, mode: PolicyMode) -> Self {
        let is_seen = maxnode == Call::MASKS_ARE_READ;
        let is_needed = !matches!(mode, PolicyMode::Default | PolicyMode::Local) && mask != 0 && maxnode != 0;
        if is_seen || !is_needed {
            return Self { nodes: if is_seen { mask } else { 0 }, unseen: NodeFlags(0) };
        }
        Self { nodes: 0, unseen: NodeFlags::NODES_UNSEEN }
    }
}

const fn of_whom(asked: u64, pid: u32) -> NodeFlags {
    if asked as u32 == 0 || asked as u32 == pid { NodeFlags(0) } else { NodeFlags::OF_ANOTHER }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: Option<EventKind>) -> (u64, u32, SaidOfNodes) {
        let Some(EventKind::Advise { address, advice, pages, nodes, .. }) = kind else { panic!("{kind:?}") };
        (address, pages, SaidOfNodes::of(advice, nodes).unwrap())
    }

    #[test]
    fn masks_that_programs_read_are_known_and_others_are_said_to_be_unseen() {
        let read = Call::MASKS_ARE_READ;
        let (address, pages, said) = of(said(Call::Mbind, [0x7000, 0x2800, 3, 0b11, read, 2], 9));
        assert_eq!((address, pages), (0x7000, 3));
        let call = NodeCall::Range(PolicyMode::Interleave);
        assert_eq!(said, SaidOfNodes { call, flags: NodeFlags::MOVE, nodes: 0b11 });
        let (.., unseen) = of(super::said(Call::Mbind, [0x7000, 0x2800, 3, 0x7fff_0000, 65, 0], 9));
        assert_eq!((unseen.flags, unseen.nodes), (NodeFlags::NODES_UNSEEN, 0));
        let (.., local) = of(super::said(Call::SetMempolicy, [4, 0x7fff_0000, 65, 0, 0, 0], 9));
        assert_eq!(local.flags, NodeFlags(0), "no mask is needed");
        let (.., none) = of(super::said(Call::SetMempolicy, [1, 0, 0, 0, 0, 0], 9));
        assert_eq!(none.flags, NodeFlags(0), "there is no mask");
    }

    #[test]
    fn pages_that_are_moved_say_whose() {
        let (_, pages, own) = of(said(Call::MigratePages, [0, Call::MASKS_ARE_READ, 1, 2, 0, 0], 9));
        assert_eq!((pages, own.nodes, own.flags), (u32::MAX, 1 | 2 << 32, NodeFlags(0)));
        let (_, pages, other) = of(said(Call::MovePages, [8, 3, 0x1000, 0x2000, 0x3000, 2], 9));
        assert_eq!((pages, other.flags), (3, NodeFlags::OF_ANOTHER));
        assert_eq!(said(Call::MovePages, [0, 3, 0x1000, 0, 0x3000, 0], 9), None, "it asks where they are");
    }
}
