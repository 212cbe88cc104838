//! A machine with swap, and a process all of whose memory is there.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::sync::Arc;

use freehold_mm::vm::{AddressSpace, FaultKind, MapSpec, SwapDevice, Touch, Vpn};
use freehold_mm::{Bare, GroupId, Knob, Knobs, Limit, Mm, NodeSize, Policy, TaskId, Topology};

/// Knobs, with what they are set to.
pub(crate) type Set = &'static [(Knob, u64)];

pub(crate) const PAGES: u32 = 1024;
pub(crate) const TASK: TaskId = TaskId(0);

/// A machine with swap on `device`, and a space whose pages are all there.
pub(crate) struct Swapped {
    pub(crate) mm: Mm<Bare>,
    pub(crate) space: Arc<AddressSpace<Bare>>,
    pub(crate) at: Vpn,
    pub(crate) pages: u32,
    pub(crate) group: GroupId,
}

pub(crate) fn swapped(policy: &str, device: SwapDevice, set: &[(Knob, u64)]) -> Swapped {
    swapped_pages(policy, (device, 4 * PAGES), set, PAGES)
}

pub(crate) fn swapped_pages(
    policy: &str,
    (device, slots): (SwapDevice, u32),
    set: &[(Knob, u64)],
    pages: u32,
) -> Swapped {
    let topology = Topology::x86(&[NodeSize { bytes: 64 << 20, cpus: 1 }], 1 << 20, vec![vec![10]]).unwrap();
    let knobs = Knobs::default();
    for &(knob, value) in set {
        knobs.set(knob, value).unwrap();
    }
    let mm = Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), knobs).unwrap();
    mm.spaces().set_swap_on(device, slots);
    let group = mm.memcg().group(GroupId::ROOT, "one").unwrap();
    mm.memcg().join(TASK, group);
    let space = mm.spaces().new_space();
    let at = mm.spaces().mmap(&space, MapSpec::anonymous(pages).small()).unwrap();
    mm.spaces().populate(&space, at, pages, Touch::Write).unwrap();
    let swapped = Swapped { mm, space, at, pages, group };
    swapped.send_out();
    assert_eq!(swapped.space.swapped_pages(), u64::from(pages), "{policy}");
    swapped
}

impl Swapped {
    /// All pages go to swap, and out of memory.
    pub(crate) fn send_out(&self) {
        self.mm.lru().lru_drain_all();
        self.mm.pages_out().page_out(&self.space, self.at, self.pages).unwrap();
        self.empty();
    }

    /// What is still beside its slot goes.
    pub(crate) fn empty(&self) {
        let before = self.mm.memcg().limit(self.group, Limit::Max);
        self.mm.lru().flush_stats(self.group);
        self.mm.memcg().set_limit(self.group, Limit::Max, u64::from(self.pages / 512 + 4));
        self.mm.memcg().set_limit(self.group, Limit::Max, before);
    }

    pub(crate) fn read(&self, page: u32) -> Option<FaultKind> {
        self.mm.spaces().touch_page(&self.space, self.at.add(page), Touch::Read).unwrap().1
    }

    pub(crate) fn write(&self, page: u32) {
        self.mm.spaces().touch_page(&self.space, self.at.add(page), Touch::Write).unwrap();
    }

    pub(crate) fn count(&self, name: &str) -> u64 {
        self.mm.views().counters().get(name)
    }

    pub(crate) fn read_each(&self, pages: impl Iterator<Item = u32>) {
        pages.for_each(|page| {
            self.read(page);
        });
    }

    /// Major faults, pages read, those of them that came with others, and those of these that were wanted.
    pub(crate) fn counted(&self) -> [u64; 4] {
        let counters = self.mm.views().counters();
        ["pgmajfault", "pswpin", "swap_ra", "swap_ra_hit"].map(|name| counters.get(name))
    }

    pub(crate) fn check(&self) {
        self.mm.views().check().unwrap();
        self.mm.spaces().check_vm().unwrap();
    }

    /// The space ends, and nothing is left of it.
    pub(crate) fn end(self) {
        self.check();
        self.mm.spaces().exit(&self.space);
        self.mm.lru().lru_drain_all();
        assert_eq!((self.mm.views().memory_use().held(), self.mm.spaces().swap_pages().0), (0, 0));
    }
}
