//! How hard is tried for a huge page that is not free: `transparent_hugepage.defrag`, and what a program said of a region (`madvise`). The request that follows is all that a
//! fault decides; what it may do is told by its [`Urgency`].

use super::Vpn;
use super::fault::Site;
use super::mempolicy::MemPolicy;
use super::region::{HugePages, Region};
use super::{FaultDoor, SpacesGround};
use crate::ground::ids::{Order, PAGEBLOCK_PAGES, Pfn};
use crate::ground::machine::Machine;
use crate::memcg::Effort;
use crate::pages::alloc_path::{FirstLook, Served};
use crate::pages::request::{AllocError, Request, Urgency};
use crate::rules::knobs::Knob;
use crate::rules::policy::{HugeFaultRule, HugeNodeRule, Policy};

/// What a fault does for a huge page that is not free (`transparent_hugepage.defrag`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Defrag {
    /// It compacts and reclaims.
    Always,
    /// It wakes daemons and goes without.
    Defer,
    /// As `Always` where a program asked, else as `Defer`.
    DeferUnlessAdvised,
    /// As `Always` where a program asked, else it goes without.
    IfAdvised,
    /// It goes without.
    Never,
}

impl Defrag {
    /// What the knob says, or the kernel's own choice where that says nothing.
    fn new(knob: u64, rule: HugeFaultRule) -> Self {
        match (knob, rule) {
            (1, _) | (0, HugeFaultRule::Tries) => Self::Always,
            (2, _) => Self::Defer,
            (3, _) => Self::DeferUnlessAdvised,
            (4, _) | (0, HugeFaultRule::TakesWhatIsFree) => Self::IfAdvised,
            _ => Self::Never,
        }
    }

    /// What the request may do. Since 4.6 one that a program asked for does not take the first no for an answer
    /// (`__GFP_NORETRY` is left out).
    fn urgency(self, huge: HugePages, rule: HugeFaultRule) -> Urgency {
        let advised = huge == HugePages::Advised;
        let compacts = if advised && rule == HugeFaultRule::TakesWhatIsFree {
            Urgency::TriesHard
        } else {
            Urgency::Tries
        };
        match self {
            Self::Always => compacts,
            Self::DeferUnlessAdvised | Self::IfAdvised if advised => compacts,
            Self::Defer | Self::DeferUnlessAdvised => Urgency::NoWait,
            Self::IfAdvised | Self::Never => Urgency::Never,
        }
    }
}

/// Whether `knob` at `value` is what `policy` has where nobody sets it: `transparent_hugepage.defrag` has a word more for that than the
/// kernel's file.
pub fn is_as_by_default(policy: &Policy, knob: Knob, value: u64) -> bool {
    let (default, rule) = (policy.default_of(knob), policy.rules().reclaim.huge_fault);
    value == default || knob == Knob::HugeDefrag && Defrag::new(value, rule) == Defrag::new(default, rule)
}

impl<M: Machine> Region<M> {
    /// Whether the whole of the table that begins at `start` lies in this region.
    pub(super) fn has_table(&self, start: Vpn) -> bool {
        self.start <= start && start.add(PAGEBLOCK_PAGES) <= self.end
    }
}

impl<M: Machine, G: SpacesGround<M>> FaultDoor<'_, M, G> {
    /// How hard a fault in `region` tries for a large page.
    pub(super) fn huge_urgency(self, region: &Region<M>) -> Urgency {
        let rule = self.rules().reclaim.huge_fault;
        Defrag::new(self.knobs().get(Knob::HugeDefrag), rule).urgency(region.huge, rule)
    }

    /// A large page for a fault, charged, if there is one and however hard the fault may try for it: for the page and for its charge.
    pub(super) fn alloc_huge(self, site: &Site<'_, M>, order: Order) -> Result<Pfn, AllocError> {
        let pfn = self.take_huge(site, order)?;
        self.lru().charge_by(pfn, Effort::of(self.huge_urgency(&site.region)))?;
        Ok(pfn)
    }

    /// The same, charged to nobody yet.
    pub(super) fn take_huge(self, site: &Site<'_, M>, order: Order) -> Result<Pfn, AllocError> {
        let region = &site.region;
        let rule = self.rules().reclaim.huge_fault;
        let urgency_at = |setting: u64| Defrag::new(setting, rule).urgency(region.huge, rule);
        let urgency = self.huge_urgency(region);
        let placement = region.placement;
        let request = Request {
            node: placement.node,
            allowed: placement.allowed,
            urgency,
            ..Request::THP.of_order(order)
        };
        let placed = match region.policy {
            MemPolicy::Local => Some(request),
            policy => self.spaces().place(policy, site.turn(order), request),
        };
        let request = placed.ok_or(AllocError::NoZone)?;
        let Served { block, first_look } = self.serve_huge(request, region.policy);
        let has_room = block.is_err() || self.lru().may_charge(order);
        let mattered =
            |setting| (first_look == FirstLook::FoundNone || !has_room).then(|| urgency_at(setting));
        self.knobs().decide(self.machine(), Knob::HugeDefrag, mattered);
        block
    }

    /// Since 5.4 a huge page of another node is not worth what it costs to use, but to a fault that may reclaim.
    fn serve_huge(self, request: Request, policy: MemPolicy) -> Served {
        let Some(own) = self.for_own_node(request, policy) else {
            return self.pages().serve(self.ground, request);
        };
        let served = self.pages().serve(self.ground, own);
        if served.block.is_ok() || !request.urgency.may_reclaim() {
            return served;
        }
        Served { first_look: FirstLook::FoundNone, ..self.pages().serve(self.ground, request) }
    }

    /// What is asked of the fault's own node first, for once. `None`: all that it may use are asked at once.
    fn for_own_node(self, request: Request, policy: MemPolicy) -> Option<Request> {
        let urgency = if request.urgency.may_reclaim() { Urgency::Tries } else { request.urgency };
        let own = Request { urgency, this_node: true, ..request };
        let node = request.node.unwrap_or_else(|| self.pages().local_node());
        let is_own = match policy {
            MemPolicy::Bind(nodes) => nodes.contains(node),
            MemPolicy::PreferredMany(_) | MemPolicy::Interleave(_) | MemPolicy::WeightedInterleave(_) => {
                false
            }
            MemPolicy::Local | MemPolicy::Preferred(_) | MemPolicy::ThisNode(_) => true,
        };
        let asks_first = self.rules().reclaim.huge_node != HugeNodeRule::AnyNode;
        (asks_first && is_own && request.order == Order::PAGEBLOCK).then_some(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The urgency of a fault whose region nobody advised, and of one that a program asked huge pages for.
    fn urgencies(knob: u64, rule: HugeFaultRule) -> (Urgency, Urgency) {
        let defrag = Defrag::new(knob, rule);
        (defrag.urgency(HugePages::AsConfigured, rule), defrag.urgency(HugePages::Advised, rule))
    }

    #[test]
    fn each_setting_makes_its_request() {
        use Urgency::{Never, NoWait, Tries, TriesHard};
        let new = HugeFaultRule::TakesWhatIsFree;
        let all: [_; 6] = core::array::from_fn(|knob| urgencies(knob as u64, new));
        let wanted = [
            (Never, TriesHard),
            (Tries, TriesHard),
            (NoWait, NoWait),
            (NoWait, TriesHard),
            (Never, TriesHard),
            (Never, Never),
        ];
        assert_eq!(all, wanted);
    }

    #[test]
    fn old_kernels_always_compact_and_take_a_no() {
        let old = HugeFaultRule::Tries;
        let all = [0, 1, 4, 5].map(|knob| urgencies(knob, old));
        let (tries, never) = (Urgency::Tries, Urgency::Never);
        assert_eq!(all, [(tries, tries), (tries, tries), (never, tries), (never, never)]);
    }
}
