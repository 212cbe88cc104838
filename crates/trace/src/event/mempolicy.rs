//! What calls about memory's nodes say (`mbind`, `set_mempolicy` and their like), as an `advise` event holds it: a word of four
//! digits, the call's flags above it, and a mask of nodes. Readers from before these words find a word that they do not know.

use super::EventKind;

/// Which call it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeCall {
    /// `mbind`: for a range, from its next faults on.
    Range(PolicyMode),
    /// `set_mempolicy`: for all that the task allocates from here on.
    Task(PolicyMode),
    /// `set_mempolicy_home_node`: the node of a range that a policy of several nodes begins at.
    HomeNode,
    /// `migrate_pages`: pages on the lower 32 nodes of the mask go to the upper 32, which are the same nodes again.
    Migrate,
    /// `move_pages`: so many single pages go to nodes that are not recorded.
    MovePages,
}

/// The modes, as Linux numbers them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum PolicyMode {
    /// What the task has, or the machine (`MPOL_DEFAULT`).
    Default = 0,
    /// The first of the nodes, else near it; near the task if there is none (`MPOL_PREFERRED`).
    Preferred = 1,
    /// The nodes and no others (`MPOL_BIND`).
    Bind = 2,
    /// The nodes in turn (`MPOL_INTERLEAVE`).
    Interleave = 3,
    /// Near the task (`MPOL_LOCAL`).
    Local = 4,
    /// The nodes, else others (`MPOL_PREFERRED_MANY`).
    PreferredMany = 5,
    /// The nodes in turn, by their weights (`MPOL_WEIGHTED_INTERLEAVE`).
    WeightedInterleave = 6,
}

impl PolicyMode {
    const ALL: [Self; 7] = [
        Self::Default,
        Self::Preferred,
        Self::Bind,
        Self::Interleave,
        Self::Local,
        Self::PreferredMany,
        Self::WeightedInterleave,
    ];
}

/// Flags of such a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NodeFlags(pub u32);

impl NodeFlags {
    /// `MPOL_MF_STRICT`: pages that are elsewhere make the call fail.
    pub const STRICT: Self = Self(1);
    /// `MPOL_MF_MOVE`: pages that are elsewhere go where the policy says, those that nobody else maps.
    pub const MOVE: Self = Self(2);
    /// `MPOL_MF_MOVE_ALL`: others too.
    pub const MOVE_ALL: Self = Self(4);
    /// The mask could not be seen; perf shows where it lies, not what it holds.
    pub const NODES_UNSEEN: Self = Self(8);
    /// `MPOL_F_STATIC_NODES`, `MPOL_F_RELATIVE_NODES`, `MPOL_F_NUMA_BALANCING`: bits 13 to 15 of the mode, here from bit 4 on.
    pub const OF_MODE: Self = Self(7 << 4);
    /// `MPOL_F_RELATIVE_NODES`: nodes are counted within those that the task may use.
    pub const RELATIVE_NODES: Self = Self(2 << 4);
    const OF_MODE_UNIT: u32 = 1 << 4;
    /// `migrate_pages` and `move_pages`: of another process than the caller's.
    pub const OF_ANOTHER: Self = Self(128);

    /// Whether all of `flags` are set.
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }
}

/// A call about nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SaidOfNodes {
    /// Which.
    pub call: NodeCall,
    /// Its flags.
    pub flags: NodeFlags,
    /// A bit for each of the nodes 0 to 63.
    pub nodes: u64,
}

/// Words are these, and the mode where there is one.
const RANGE: u32 = 1100;
const TASK: u32 = 1200;
const HOME_NODE: u32 = 1300;
const MIGRATE: u32 = 1400;
const MOVE_PAGES: u32 = 1500;
/// Flags begin at this bit of the word.
const FLAGS_AT: u32 = 16;

impl SaidOfNodes {
    /// What an `advise` event with this word and these nodes says; `None` if it is about something else.
    pub fn of(advice: u32, nodes: u64) -> Option<Self> {
        let word = advice & ((1 << FLAGS_AT) - 1);
        let mode = || PolicyMode::ALL.get((word % 100) as usize).copied();
        let call = match word - word % 100 {
            RANGE => NodeCall::Range(mode()?),
            TASK => NodeCall::Task(mode()?),
            _ if word == HOME_NODE => NodeCall::HomeNode,
            _ if word == MIGRATE => NodeCall::Migrate,
            _ if word == MOVE_PAGES => NodeCall::MovePages,
            _ => return None,
        };
        Some(Self { call, flags: NodeFlags(advice >> FLAGS_AT), nodes })
    }

    /// The word.
    pub const fn advice(self) -> u32 {
        let word = match self.call {
            NodeCall::Range(mode) => RANGE + mode as u32,
            NodeCall::Task(mode) => TASK + mode as u32,
            NodeCall::HomeNode => HOME_NODE,
            NodeCall::Migrate => MIGRATE,
            NodeCall::MovePages => MOVE_PAGES,
        };
        word | self.flags.0 << FLAGS_AT
    }

    /// Its event, of `pages` from `address` on.
    pub const fn event(self, address: u64, pages: u32) -> EventKind {
        EventKind::Advise { address, advice: self.advice(), pages, nodes: self.nodes, took_ns: 0 }
    }
}

/// A mode as a call has it, with its flags: `None` for one that is not known.
pub(crate) fn mode_of(asked: u64) -> Option<(PolicyMode, NodeFlags)> {
    let mode = PolicyMode::ALL.get((asked & 0x1fff) as usize).copied()?;
    Some((mode, NodeFlags((asked >> 13 & 7) as u32 * NodeFlags::OF_MODE_UNIT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_they_were_made_of() {
        let calls =
            PolicyMode::ALL.into_iter().flat_map(|mode| [NodeCall::Range(mode), NodeCall::Task(mode)]);
        for call in calls.chain([NodeCall::HomeNode, NodeCall::Migrate, NodeCall::MovePages]) {
            for flags in [0, 3, 8, 0x70, 0xff] {
                let said = SaidOfNodes { call, flags: NodeFlags(flags), nodes: 1 << 63 | 5 };
                assert_eq!(SaidOfNodes::of(said.advice(), said.nodes), Some(said));
            }
        }
        for word in [0, 25, 1000, 1001, 1107, 1301, 1600] {
            assert_eq!(SaidOfNodes::of(word, 0), None, "{word}");
        }
    }

    #[test]
    fn modes_are_read_as_linux_numbers_them() {
        assert_eq!(mode_of(3), Some((PolicyMode::Interleave, NodeFlags(0))));
        let (mode, flags) = mode_of(2 | 1 << 15).unwrap();
        assert_eq!((mode, flags), (PolicyMode::Bind, NodeFlags(1 << 6)));
        assert_eq!(mode_of(7), None);
    }
}
