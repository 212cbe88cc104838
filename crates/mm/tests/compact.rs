//! Whatever programs and the kernel do between compactions, of every kind and under every rule: no page is lost, each virtual
//! page holds what was written to it, whatever frame it is in, and what is pinned or the kernel's stays where it is.

mod remembering;

use std::collections::BTreeMap;
use std::sync::Arc;

use freehold_mm::ids::PAGEBLOCK_PAGES;
use freehold_mm::vm::{AddressSpace, FaultError, HugePages, MapSpec, Pinned, Touch, Vpn};
use freehold_mm::{
    Cpu, CpuSpec, Daemon, FrameKind, Knob, Knobs, MigrateType, Mm, Node, NodeSize, NodeSpec, Order, Pfn,
    Policy, Request, Topology, Urgency, WordSize, ZoneKind, ZoneSpec,
};
use proptest::prelude::*;

use remembering::{Remembering, read, write};

/// Kernels on both sides of what changed in compaction, every part by itself, and ours.
fn policies() -> Vec<String> {
    let kernels = ["linux-3.15", "linux-3.16", "linux-4.20", "linux-5.1", "linux-6.18", "freehold"];
    let parts = freehold_mm::policy::parts::PARTS.iter().filter(|part| part.name.starts_with("compact-"));
    let on = |base: &'static str| parts.clone().map(move |part| format!("{base}+{}", part.name));
    let all = kernels.iter().map(ToString::to_string).chain(on("linux-3.16")).chain(on("linux-6.18"));
    // What a kernel has already cannot be had on top.
    all.filter(|name| Policy::parse(name).is_ok()).collect()
}

/// What may happen.
#[derive(Clone, Debug)]
enum Event {
    Map {
        space: usize,
        pages: u32,
        huge: HugePages,
    },
    /// Writes to so many pages from the `at`-th on, each `stride` further.
    Write {
        space: usize,
        at: u32,
        pages: u32,
        stride: u32,
    },
    Unmap {
        space: usize,
        at: u32,
        pages: u32,
        stride: u32,
    },
    Fork {
        space: usize,
    },
    Exit {
        space: usize,
    },
    Pin {
        space: usize,
        at: u32,
    },
    Unpin {
        nth: usize,
    },
    Alloc {
        order: u8,
        migratetype: MigrateType,
        urgency: Urgency,
    },
    Free {
        nth: usize,
    },
    Advise {
        space: usize,
        at: u32,
        pages: u32,
        huge: HugePages,
    },
    Compact(Compaction),
    /// The daemons that were woken.
    Daemons,
    Tick {
        cpu: u16,
    },
}

#[derive(Clone, Copy, Debug)]
enum Compaction {
    Hand,
    Kcompactd,
    Proactive,
    Khugepaged,
    Kswapd,
    /// A request for a huge page that is given back.
    Request(Urgency),
}

fn huge() -> impl Strategy<Value = HugePages> {
    prop_oneof![Just(HugePages::AsConfigured), Just(HugePages::Advised), Just(HugePages::Never)]
}

fn event() -> impl Strategy<Value = Event> {
    let (space, at) = (0..3usize, 0..4000u32);
    let urgency = || {
        prop_oneof![
            Just(Urgency::Waits),
            Just(Urgency::Tries),
            Just(Urgency::TriesHard),
            Just(Urgency::Atomic),
        ]
    };
    let migratetype =
        prop_oneof![Just(MigrateType::Unmovable), Just(MigrateType::Movable), Just(MigrateType::Reclaimable)];
    let compaction = prop_oneof![
        2 => Just(Compaction::Hand),
        1 => Just(Compaction::Kcompactd),
        1 => Just(Compaction::Proactive),
        2 => Just(Compaction::Khugepaged),
        1 => Just(Compaction::Kswapd),
        4 => urgency().prop_map(Compaction::Request),
    ];
    prop_oneof![
        4 => (space.clone(), 1..2000u32, huge()).prop_map(|(space, pages, huge)| Event::Map { space, pages, huge }),
        8 => (space.clone(), at.clone(), 1..1500u32, 1..4u32)
            .prop_map(|(space, at, pages, stride)| Event::Write { space, at, pages, stride }),
        6 => (space.clone(), at.clone(), 1..1500u32, 1..5u32)
            .prop_map(|(space, at, pages, stride)| Event::Unmap { space, at, pages, stride }),
        2 => space.clone().prop_map(|space| Event::Fork { space }),
        1 => space.clone().prop_map(|space| Event::Exit { space }),
        3 => (space.clone(), at.clone()).prop_map(|(space, at)| Event::Pin { space, at }),
        2 => (0..64usize).prop_map(|nth| Event::Unpin { nth }),
        4 => (0..11u8, migratetype, urgency())
            .prop_map(|(order, migratetype, urgency)| Event::Alloc { order, migratetype, urgency }),
        2 => (0..64usize).prop_map(|nth| Event::Free { nth }),
        3 => (space, at, 500..4000u32, huge())
            .prop_map(|(space, at, pages, huge)| Event::Advise { space, at, pages, huge }),
        8 => compaction.prop_map(Event::Compact),
        2 => Just(Event::Daemons),
        1 => (0..2u16).prop_map(|cpu| Event::Tick { cpu }),
    ]
}

/// A program: its address space, and what each page that is mapped holds.
struct Program {
    space: Arc<AddressSpace<Remembering>>,
    pages: BTreeMap<u32, u32>,
}

impl Program {
    /// So many mapped pages from the `at`-th on (counted round), each `stride` further.
    fn pick(&self, at: u32, pages: u32, stride: u32) -> Vec<Vpn> {
        let skip = at as usize % self.pages.len().max(1);
        self.pages
            .keys()
            .skip(skip)
            .step_by(stride as usize)
            .take(pages as usize)
            .map(|&vpn| Vpn(vpn))
            .collect()
    }
}

/// A block of the kernel's.
struct Block {
    pfn: Pfn,
    order: Order,
    number: u32,
}

impl Block {
    fn ends(&self) -> [Pfn; 2] {
        [self.pfn, self.pfn.add(self.order.pages() - 1)]
    }
}

/// How 24 MiB or so lie.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// As on a PC: one zone of whole pageblocks and one of DMA.
    Usual,
    /// One zone that begins and ends within pageblocks, with unmanaged pages at its end.
    Odd,
    /// Two zones that share a pageblock.
    Touching,
}

impl Shape {
    fn topology(self) -> Topology {
        let zone = |kind, start, pages, unmanaged| ZoneSpec {
            kind,
            start: Pfn(start),
            spanned: pages,
            present: pages,
            managed: pages - unmanaged,
        };
        let zones = match self {
            Self::Usual => {
                let nodes = [NodeSize { bytes: 24 << 20, cpus: 2 }];
                return Topology::x86(&nodes, 1 << 20, vec![vec![10]]).unwrap();
            }
            Self::Odd => vec![zone(ZoneKind::Normal, 333, 6001, 13)],
            Self::Touching => {
                vec![zone(ZoneKind::Dma32, 100, 2900, 0), zone(ZoneKind::Normal, 3000, 3300, 7)]
            }
        };
        Topology {
            word: WordSize::Bits64,
            nodes: vec![NodeSpec { zones }],
            cpus: vec![CpuSpec { node: Node(0), cache_slice: 1 << 20 }; 2],
            distance: vec![vec![10]],
        }
    }
}

struct World {
    mm: Mm<Remembering>,
    programs: Vec<Program>,
    pinned: Vec<Pinned>,
    blocks: Vec<Block>,
    numbers: u32,
}

impl World {
    fn new(policy: &str, shape: Shape) -> Self {
        let knobs = Knobs::default();
        knobs.set(Knob::MinFreeKbytes, 256).unwrap();
        knobs.set(Knob::OvercommitMemory, 1).unwrap();
        let mm =
            Mm::new(Remembering::default(), shape.topology(), Policy::parse(policy).unwrap(), knobs).unwrap();
        let program = Program { space: mm.spaces().new_space(), pages: BTreeMap::new() };
        Self { mm, programs: vec![program], pinned: vec![], blocks: vec![], numbers: 0 }
    }

    fn number(&mut self) -> u32 {
        self.numbers += 1;
        self.numbers
    }

    fn go(&mut self, event: &Event) {
        match *event {
            Event::Map { space, .. }
            | Event::Write { space, .. }
            | Event::Unmap { space, .. }
            | Event::Fork { space }
            | Event::Exit { space }
            | Event::Advise { space, .. } => self.live(space % self.programs.len(), event),
            Event::Pin { space, at } => {
                let program = &self.programs[space % self.programs.len()];
                for vpn in program.pick(at, 1, 1) {
                    self.pinned.extend(self.mm.rmap().pin_page(&program.space, vpn, Touch::Read).ok());
                }
            }
            Event::Unpin { nth } if !self.pinned.is_empty() => {
                let nth = nth % self.pinned.len();
                self.mm.rmap().unpin_page(self.pinned.swap_remove(nth));
            }
            Event::Alloc { order, migratetype, urgency } => self.alloc(order, migratetype, urgency),
            Event::Free { nth } if !self.blocks.is_empty() => {
                let nth = nth % self.blocks.len();
                let block = self.blocks.swap_remove(nth);
                self.mm.free(block.pfn, block.order).unwrap();
            }
            Event::Unpin { .. } | Event::Free { .. } => {}
            Event::Compact(compaction) => self.compact(compaction),
            Event::Daemons => self.play(),
            Event::Tick { cpu } => {
                self.mm.machine().bare.set_cpu(Cpu(cpu));
                self.mm.vmstat_tick(Cpu(cpu));
            }
        }
    }

    /// What the program at `index` does to its address space.
    fn live(&mut self, index: usize, event: &Event) {
        let may_fork = self.programs.len() < 3;
        let program = &mut self.programs[index];
        match *event {
            Event::Map { pages, huge, .. } => {
                let spec = MapSpec { huge, ..MapSpec::anonymous(pages) };
                let at = self.mm.spaces().mmap(&program.space, spec).unwrap();
                program.pages.extend((at.0..at.0 + pages).map(|vpn| (vpn, 0)));
            }
            Event::Write { at, pages, stride, .. } => {
                for vpn in program.pick(at, pages, stride) {
                    self.write(index, vpn);
                }
            }
            Event::Unmap { at, pages, stride, .. } => {
                for vpn in program.pick(at, pages, stride) {
                    self.mm.spaces().munmap(&program.space, vpn, 1);
                    program.pages.remove(&vpn.0);
                }
            }
            Event::Fork { .. } if may_fork => {
                let parent = &self.programs[index];
                if let Ok(space) = self.mm.spaces().fork(&parent.space) {
                    let pages = parent.pages.clone();
                    self.programs.push(Program { space, pages });
                }
            }
            Event::Exit { .. } => {
                self.mm.spaces().exit(&program.space);
                *program = Program { space: self.mm.spaces().new_space(), pages: BTreeMap::new() };
            }
            Event::Advise { at, pages, huge, .. } => {
                if let Some(start) = program.pick(at, 1, 1).first().copied() {
                    let start = Vpn(start.0 & !(PAGEBLOCK_PAGES - 1));
                    self.mm.spaces().advise(&program.space, start, pages, huge);
                }
            }
            _ => {}
        }
    }

    fn write(&mut self, program: usize, vpn: Vpn) {
        let number = self.number();
        let program = &mut self.programs[program];
        match write(&self.mm, &program.space, vpn, number) {
            Ok(()) => *program.pages.get_mut(&vpn.0).expect("a mapped page") = number,
            Err(FaultError::Alloc(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn alloc(&mut self, order: u8, migratetype: MigrateType, urgency: Urgency) {
        let number = self.number();
        let order = Order::new(order).unwrap();
        let request = Request { migratetype, urgency, ..Request::KERNEL }.of_order(order);
        if let Ok(pfn) = self.mm.alloc(request) {
            let block = Block { pfn, order, number };
            for pfn in block.ends() {
                self.mm.machine().write(pfn, number);
            }
            self.blocks.push(block);
        }
    }

    fn compact(&mut self, compaction: Compaction) {
        let mm = &self.mm;
        match compaction {
            Compaction::Hand => mm.compaction().compact_node(Node(0)),
            Compaction::Kcompactd => mm.compaction().kcompactd(Node(0)),
            Compaction::Proactive => {
                mm.compaction().compact_proactively(Node(0));
            }
            Compaction::Khugepaged => {
                mm.collapses().khugepaged();
            }
            Compaction::Kswapd => mm.reclaim().kswapd(Node(0)),
            Compaction::Request(urgency) => {
                if let Ok(pfn) = mm.alloc(Request { urgency, ..Request::THP }) {
                    for page in 0..PAGEBLOCK_PAGES {
                        assert_eq!(mm.machine().read(pfn.add(page)), 0);
                    }
                    mm.free(pfn, Order::PAGEBLOCK).unwrap();
                }
            }
        }
    }

    fn play(&mut self) {
        for daemon in self.mm.machine().bare.take_woken() {
            match daemon {
                Daemon::Kswapd(node) => self.mm.reclaim().kswapd(node),
                Daemon::Kcompactd(node) => self.mm.compaction().kcompactd(node),
                Daemon::Khugepaged => {
                    self.mm.collapses().khugepaged();
                }
                _ => {}
            }
        }
    }

    /// All is as it was left.
    fn check(&self) {
        self.mm.views().check().unwrap();
        self.mm.spaces().check_vm().unwrap();
        let machine = self.mm.machine();
        for block in &self.blocks {
            assert_eq!(
                block.ends().map(|pfn| machine.read(pfn)),
                [block.number; 2],
                "the block at {}",
                block.pfn
            );
        }
        for pinned in &self.pinned {
            let head = self.mm.map().frame(pinned.frame()).state();
            assert_ne!(head.kind, FrameKind::Free, "the pinned page at {}", pinned.frame());
            assert_ne!(head.kind, FrameKind::Pcp, "the pinned page at {}", pinned.frame());
        }
    }

    /// Every page of every program holds what was written to it.
    fn check_contents(&self) {
        for program in &self.programs {
            for (&vpn, &number) in &program.pages {
                match read(&self.mm, &program.space, Vpn(vpn)) {
                    Ok(found) => assert_eq!(found, number, "{vpn:#x} of {:?}", program.space.id()),
                    // What was never touched needs memory now.
                    Err(FaultError::Alloc(_)) => assert_eq!(number, 0),
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }

    /// All is given back, and all memory is there.
    fn end(mut self) {
        self.check();
        for pinned in self.pinned.drain(..) {
            self.mm.rmap().unpin_page(pinned);
        }
        for program in &self.programs {
            self.mm.spaces().exit(&program.space);
        }
        for block in self.blocks.drain(..) {
            self.mm.free(block.pfn, block.order).unwrap();
        }
        self.mm.lru().lru_drain_all();
        self.mm.spaces().free_huge_zero();
        let used = self.mm.views().memory_use();
        assert_eq!(
            (used.held(), self.mm.spaces().committed_pages(), self.mm.spaces().swap_pages().0),
            (0, 0, 0)
        );
        self.mm.drain_all();
        let pages = self.mm.views().check().unwrap();
        assert_eq!((pages.free, pages.pcp, pages.allocated), (used.managed, 0, 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn lives_between_compactions(
        policy in prop::sample::select(policies()),
        events in prop::collection::vec(event(), 1..70),
        shape in prop::sample::select(vec![Shape::Usual, Shape::Odd, Shape::Touching]),
        every in 1..6usize,
    ) {
        // There is no swap: what comes back from it holds anything on this machine.
        let mut world = World::new(&policy, shape);
        for (number, event) in events.iter().enumerate() {
            world.go(event);
            if number % every == 0 {
                world.check();
            }
        }
        world.check();
        world.check_contents();
        world.end();
    }
}

/// The lives above are of use only if much is moved in them.
#[test]
fn lives_have_compactions_in_them() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let names = [
        "compact_pages_moved",
        "compact_success",
        "khugepaged_pages_collapsed",
        "compact_daemon_migrate_scanned",
    ];
    let mut sums = [0; 4];
    for _ in 0..1200 {
        let events = prop::collection::vec(event(), 40..70).new_tree(&mut runner).unwrap().current();
        let mut world = World::new("linux-6.18", Shape::Usual);
        for event in &events {
            world.go(event);
        }
        let counters = world.mm.views().counters();
        sums.iter_mut().zip(names).for_each(|(sum, name)| *sum += counters.get(name));
        world.end();
    }
    assert!(sums[0] > 1000 && sums[1..].iter().all(|&sum| sum > 0), "{names:?}: {sums:?}");
}

/// Zeros that were read are a huge page that nobody counts: it goes with the last space that uses it, but not below a pin.
#[test]
fn the_huge_page_of_zeros_stays_while_it_is_pinned() {
    let mut world = World::new("linux-6.18", Shape::Usual);
    world.go(&Event::Map { space: 0, pages: 2 * PAGEBLOCK_PAGES, huge: HugePages::Advised });
    world.go(&Event::Pin { space: 0, at: PAGEBLOCK_PAGES + 7 });
    assert_eq!((world.pinned.len(), world.mm.views().counters().get("thp_zero_page_alloc")), (1, 1));
    world.mm.spaces().exit(&world.programs[0].space);
    world.mm.spaces().free_huge_zero();
    world.check();
    assert_eq!(world.mm.views().memory_use().held(), u64::from(PAGEBLOCK_PAGES));
    world.mm.rmap().unpin_page(world.pinned.swap_remove(0));
    world.mm.spaces().free_huge_zero();
    assert_eq!(world.mm.views().memory_use().held(), 0);
}
