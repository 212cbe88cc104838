//! What reclaim writes to a disk for a page that is being read ahead, through public doors: it waits for these reads, so reclaim writes far
//! more than it needs.

use std::sync::Arc;

use freehold_mm::vm::{AddressSpace, FaultKind, MapSpec, SwapDevice, Touch, Vpn};
use freehold_mm::{Bare, GroupId, Knob, Knobs, Limit, Mm, NodeSize, Policy, TaskId, Topology};

/// As much as is used, and as may be in memory: a round over the one evicts what the next wants, as on the machine of docs/swap.md.
const PAGES: u32 = 16384;
const ALLOWED: u64 = 13_000;

struct Machine {
    mm: Mm<Bare>,
    space: Arc<AddressSpace<Bare>>,
    at: Vpn,
}

impl Machine {
    /// All pages were written, those that are too many are in swap on `device`.
    fn new(policy: &str, device: SwapDevice, page_cluster: u64) -> Self {
        let topology =
            Topology::x86(&[NodeSize { bytes: 256 << 20, cpus: 1 }], 1 << 20, vec![vec![10]]).unwrap();
        let knobs = Knobs::default();
        let set = [
            (Knob::TransparentHugepage, 0),
            (Knob::OvercommitMemory, 1),
            (Knob::LruGenEnabled, 0),
            (Knob::SwapRotational, 1),
            (Knob::PageCluster, page_cluster),
        ];
        for (knob, value) in set {
            knobs.set(knob, value).unwrap();
        }
        let mm = Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), knobs).unwrap();
        mm.spaces().set_swap_on(device, 4 * PAGES);
        let group = mm.memcg().group(GroupId::ROOT, "one").unwrap();
        mm.memcg().join(TaskId(0), group);
        mm.memcg().set_limit(group, Limit::Max, ALLOWED);
        let space = mm.spaces().new_space();
        let at = mm.spaces().mmap(&space, MapSpec::anonymous(PAGES).small()).unwrap();
        let machine = Self { mm, space, at };
        for page in 0..PAGES {
            machine.touch(page, Touch::Write);
        }
        machine
    }

    fn touch(&self, page: u32, touch: Touch) -> Option<FaultKind> {
        let (_, kind) = self.mm.spaces().touch_page(&self.space, self.at.add(page), touch).unwrap();
        self.mm.machine().take_seen();
        kind
    }

    fn count(&self, counter: &str) -> u64 {
        self.mm.views().counters().get(counter)
    }

    /// The most pages that were written for one of the first 512 reads.
    fn most_written_for_one(&self) -> u64 {
        let each = |page| self.counted("pswpout", || assert_ne!(self.touch(page, Touch::Read), None));
        (0..512).map(each).max().unwrap_or(0)
    }

    /// So many of `counter` were counted during `action`.
    fn counted(&self, counter: &str, action: impl FnOnce()) -> u64 {
        let before = self.count(counter);
        action();
        self.count(counter) - before
    }

    fn end(self) {
        self.mm.spaces().check_vm().unwrap();
        self.mm.spaces().exit(&self.space);
        assert_eq!(self.mm.spaces().swap_pages().0, 0);
        self.mm.views().check().unwrap();
    }
}

/// The first fault that reads ahead makes room by writing 31 requests of 254 pages and the beginning of another. With `vm.page-cluster` 0 nobody
/// gathers, and each pass sends what it has.
#[test]
fn what_is_written_waits_for_what_is_read_with_a_page() {
    for (page_cluster, written) in [(3, 31 * 254..32 * 254), (0, 1..254)] {
        let machine = Machine::new("linux-6.18", SwapDevice::DISK, page_cluster);
        let most = machine.most_written_for_one();
        assert!(written.contains(&most), "vm.page-cluster {page_cluster}: {most} pages for one fault");
        machine.end();
    }
}

/// Kernels that ask the last request, not the first, have one large one on their hands at most.
#[test]
fn older_kernels_send_a_large_request_before_the_next() {
    let machine = Machine::new("linux-6.11", SwapDevice::DISK, 3);
    let most = machine.most_written_for_one();
    assert!((254..1000).contains(&most), "{most}");
    machine.end();
}

/// While so many requests are on their way, who writes waits: a disk that is new to its kernel takes 16.
#[test]
fn a_new_disk_takes_sixteen_requests() {
    let machine = Machine::new("linux-6.18", SwapDevice::NEW_DISK, 3);
    let most = machine.most_written_for_one();
    assert!((16 * 254..17 * 254).contains(&most), "{most}");
    machine.end();
}

/// So a loop over more than may be in memory finds about half of its pages there (Linux 6.18 read 8,350 to 9,182 of 16,384 pages in such a
/// round, docs/swap.md), where otherwise it would find none.
#[test]
fn a_loop_finds_what_was_written_too_early() {
    for (device, page_cluster, read) in [
        (SwapDevice::DISK, 3, 6000..9500),
        (SwapDevice::DISK, 0, 16_000..16_385),
        (SwapDevice::Zram { ratio_percent: 300 }, 3, 16_000..16_385),
    ] {
        for touch in [Touch::Read, Touch::Write] {
            let machine = Machine::new("linux-6.18", device, page_cluster);
            let pages = machine.counted("pswpin", || {
                for page in 0..PAGES {
                    machine.touch(page, touch);
                }
            });
            assert!(read.contains(&pages), "{device:?} {page_cluster} {touch:?}: {pages}");
            machine.end();
        }
    }
}
