//! A program changes its mind about nodes (`set_mempolicy`, `mbind` with `MPOL_DEFAULT`), and pages go to others on its word: `mbind` with `MPOL_MF_MOVE`, and `migrate_pages` (Linux's mm/mempolicy.c, all
//! versions). Like there, a page that others map too stays.

use alloc::vec::Vec;

use super::entry::Entry;
use super::mempolicy::{InterleaveBy, MemPolicy, MemPolicyError};
use super::region::{PolicyOf, Region};
use super::{AddressSpace, RmapDoor, SpacesGround, Vpn};
use crate::ground::ids::{Node, PAGEBLOCK_PAGES};
use crate::ground::machine::{Chore, Machine};
use crate::pages::request::{Request, Urgency};
use crate::pages::zonelist::NodeMask;

impl<M: Machine, G: SpacesGround<M>> RmapDoor<'_, M, G> {
    /// The `pages` from `start` on of `space` have no policy of their own any more, but the task's (`mbind` with `MPOL_DEFAULT`).
    pub fn unbind(self, space: &AddressSpace<M>, start: Vpn, pages: u32, tasks: MemPolicy) {
        self.machine().spend(Chore::Syscall, 1);
        let end = Vpn(start.0.saturating_add(pages));
        let policy_of = PolicyOf::Task;
        self.spaces().change_regions(space, start, end, |region| Region {
            policy: tasks,
            policy_of,
            ..region
        });
    }

    /// From now on faults in `space` take memory where `policy` says, but where ranges have policies of their own
    /// (`set_mempolicy` of the only task in it). What it maps later says so itself ([`super::MapSpec::policy`]).
    ///
    /// # Errors
    /// If none of the policy's nodes has memory.
    pub fn set_mempolicy(self, space: &AddressSpace<M>, policy: MemPolicy) -> Result<(), MemPolicyError> {
        self.machine().spend(Chore::Syscall, 1);
        self.spaces().check_mempolicy(policy)?;
        self.spaces().change_regions(space, Vpn(0), Vpn(u32::MAX), |region| match region.policy_of {
            PolicyOf::Task => Region { policy, ..region },
            PolicyOf::Range => region,
        });
        Ok(())
    }

    /// Moves the pages of the `pages` from `start` on of `space` that are on none of the nodes of `policy` to where it says. Gives
    /// how many went; one that cannot go now stays.
    pub fn move_by_policy(self, space: &AddressSpace<M>, start: Vpn, pages: u32, policy: MemPolicy) -> u64 {
        let near = NodeMask::only(self.topology().cpus[usize::from(self.machine().cpu().0)].node);
        let may_stay = match policy {
            MemPolicy::Local => near,
            MemPolicy::Preferred(node) | MemPolicy::ThisNode(node) => NodeMask::only(node),
            MemPolicy::PreferredMany(mask)
            | MemPolicy::Bind(mask)
            | MemPolicy::Interleave(mask)
            | MemPolicy::WeightedInterleave(mask) => mask,
        };
        let range = (start, Vpn(start.0.saturating_add(pages)));
        self.move_where(space, range, |vpn, node| {
            let by = InterleaveBy::Index(u64::from(vpn.0));
            let is_away = !may_stay.contains(node);
            is_away.then(|| self.spaces().place(policy, by, Request::USER)).flatten()
        })
    }

    /// Moves all pages of `space` on nodes of `from` to those of `to`: the first node's to the first, the second's to the second, and
    /// so on, from the beginning again where `to` has fewer. Of masks of different size what is on a node of both stays. Gives how
    /// many went.
    pub fn move_nodes(self, space: &AddressSpace<M>, from: NodeMask, to: NodeMask) -> u64 {
        let to = to.and(self.pages().zonelists().with_memory());
        let targets: Vec<Node> = to.nodes().collect();
        if targets.is_empty() {
            return 0;
        }
        self.move_where(space, (Vpn(0), Vpn(u32::MAX)), |_, node| {
            let nth = from.nodes().position(|other| other == node)?;
            let target = targets[nth % targets.len()];
            let stays = target == node || from.count() != to.count() && to.contains(node);
            let request = Request { node: Some(target), this_node: true, ..Request::USER };
            (!stays).then_some(request)
        })
    }

    /// Moves each page in `range` that nobody else maps to where `whither` says, of a page and its node; nowhere if it says nothing.
    fn move_where(
        self,
        space: &AddressSpace<M>,
        range: (Vpn, Vpn),
        whither: impl Fn(Vpn, Node) -> Option<Request>,
    ) -> u64 {
        // What CPUs keep back is on no list to be taken from.
        self.lru().lru_drain_all();
        let mut pages = 0;
        for vpn in self.mapped_alone(space, range) {
            let Some(table) = space.table(vpn) else { continue };
            let head = {
                let held = table.lock(self.machine());
                let entry = if held.huge() == Entry::NONE { held.entry(vpn) } else { held.huge() };
                entry.is_present().then(|| entry.head())
            };
            let Some(head) = head else { continue };
            let node = self.pages().zone_of(head).map(crate::pages::zone::Zone::node);
            let Some(request) = node.and_then(|node| whither(vpn, node)) else { continue };
            let size = u64::from(self.pages().order_of(head).pages());
            let request = Request { urgency: Urgency::NoWait, ..request };
            pages += if self.move_page_by(space, vpn, request).is_ok() { size } else { 0 };
        }
        pages
    }

    /// The first page of everything that is mapped in `range` by `space` alone, upwards.
    fn mapped_alone(self, space: &AddressSpace<M>, range: (Vpn, Vpn)) -> Vec<Vpn> {
        let mut found = Vec::new();
        for (first, table) in space.tables.within(range.0, range.1) {
            let (start, end) = (range.0.max(first), range.1.min(first.add(PAGEBLOCK_PAGES)));
            let held = table.lock(self.machine());
            let is_alone =
                |entry: Entry| entry.is_present() && self.lru().page(entry.head()).is_mapped_once();
            if held.huge() == Entry::NONE {
                found.extend((start.0..end.0).map(Vpn).filter(|vpn| is_alone(held.entry(*vpn))));
            } else if is_alone(held.huge()) {
                found.push(start);
            }
        }
        found
    }
}
