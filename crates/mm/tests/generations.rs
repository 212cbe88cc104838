//! Pages by generations, through public doors: whatever happens, each page is on one list, and what is counted by generation, kind
//! and zone is what a walk finds and what a simple model of the programs says.

mod common;

use std::sync::Arc;

use common::play;
use freehold_mm::vm::{AddressSpace, Advice, File, FileKind, MapSpec, MemoryLock, Placement, Touch, Vpn};
use freehold_mm::{Bare, GroupId, Knob, Knobs, Limit, Mm, Node, NodeSize, Policy, TaskId, Topology};
use proptest::prelude::*;

/// Kernels on both sides of what changed in generations, and one that has them beside rules of its own.
const POLICIES: [&str; 6] = ["linux-6.1", "linux-6.6", "linux-6.12", "linux-6.18", "linux-7.2", "freehold"];

/// So many MiB, of which the first 16 are another zone.
fn machine(policy: &str, mib: u64, swap: u32) -> Mm<Bare> {
    let topology = Topology::x86(&[NodeSize { bytes: mib << 20, cpus: 1 }], 1 << 20, vec![vec![10]]).unwrap();
    let knobs = Knobs::default();
    let set = [
        (Knob::LruGenEnabled, 7),
        (Knob::TransparentHugepage, 0),
        (Knob::MinFreeKbytes, 1024),
        (Knob::OvercommitMemory, 1),
    ];
    for (knob, value) in set {
        knobs.set(knob, value).unwrap();
    }
    let mm = Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), knobs).unwrap();
    mm.spaces().set_swap(swap);
    mm
}

fn listed(mm: &Mm<Bare>, kind: &str) -> u64 {
    let counters = mm.views().counters();
    ["nr_active_", "nr_inactive_"].iter().map(|name| counters.get(&format!("{name}{kind}"))).sum()
}

/// A program, and what it has mapped.
type Program = (Arc<AddressSpace<Bare>>, Vec<(Vpn, u32)>);

/// What happens to programs and a file; the model is what is resident of them.
struct World {
    mm: Mm<Bare>,
    file: Arc<File<Bare>>,
    spaces: Vec<Program>,
    group: Option<GroupId>,
}

#[derive(Clone, Debug)]
enum Event {
    Map { pages: u32 },
    Touch { space: usize, area: usize, at: u32, pages: u32, write: bool },
    Unmap { space: usize, area: usize, at: u32, pages: u32 },
    Advise { space: usize, area: usize, advice: Advice },
    Lock { space: usize, area: usize, at: u32, pages: u32, lock: MemoryLock },
    Compact,
    Fork { space: usize },
    Exit { space: usize },
    Read { at: u32, pages: u32 },
    Write { at: u32, pages: u32 },
    MapFile { space: usize },
    Truncate { at: u32, pages: u32 },
    Daemons,
    Limit { pages: u32 },
    Reclaim { pages: u32 },
    Generations { setting: u64 },
    Swappiness { value: u64 },
}

fn event() -> impl Strategy<Value = Event> {
    let (space, area) = (0..3usize, 0..3usize);
    let advice = prop_oneof![Just(Advice::Cold), Just(Advice::Free), Just(Advice::DontNeed)];
    prop_oneof![
        2 => (500..3000u32).prop_map(|pages| Event::Map { pages }),
        7 => (space.clone(), area.clone(), 0..3000u32, 1..2500u32, any::<bool>())
            .prop_map(|(space, area, at, pages, write)| Event::Touch { space, area, at, pages, write }),
        1 => (space.clone(), area.clone(), 0..3000u32, 1..1000u32)
            .prop_map(|(space, area, at, pages)| Event::Unmap { space, area, at, pages }),
        1 => (space.clone(), area, advice).prop_map(|(space, area, advice)| Event::Advise { space, area, advice }),
        1 => (space.clone(), 0..3usize, 0..3000u32, 1..400u32, any::<bool>()).prop_map(
            |(space, area, at, pages, keeps)| {
                let lock = if keeps { MemoryLock::Keep } else { MemoryLock::Release };
                Event::Lock { space, area, at, pages, lock }
            }
        ),
        1 => Just(Event::Compact),
        1 => space.clone().prop_map(|space| Event::Fork { space }),
        1 => space.clone().prop_map(|space| Event::Exit { space }),
        4 => (0..6000u32, 1..3000u32).prop_map(|(at, pages)| Event::Read { at, pages }),
        2 => (0..6000u32, 1..1000u32).prop_map(|(at, pages)| Event::Write { at, pages }),
        1 => space.prop_map(|space| Event::MapFile { space }),
        1 => (0..6000u32, 1..1000u32).prop_map(|(at, pages)| Event::Truncate { at, pages }),
        3 => Just(Event::Daemons),
        1 => (1500..8000u32).prop_map(|pages| Event::Limit { pages }),
        2 => (1..500u32).prop_map(|pages| Event::Reclaim { pages }),
        1 => prop_oneof![Just(0u64), Just(1), Just(3), Just(7)].prop_map(|setting| Event::Generations { setting }),
        1 => prop_oneof![Just(0u64), Just(1), Just(60), Just(200)].prop_map(|value| Event::Swappiness { value }),
    ]
}

impl World {
    fn new(policy: &str, group: bool) -> Self {
        let mm = machine(policy, 32, 20_000);
        let group = group.then(|| mm.memcg().group(GroupId::ROOT, "g").unwrap());
        if let Some(group) = group {
            mm.memcg().join(TaskId(0), group);
        }
        let file = mm.files().new_file(FileKind::Disk);
        file.set_len(9_000);
        Self { mm, file, spaces: vec![], group }
    }

    fn area(&self, space: usize, area: usize) -> Option<(&Arc<AddressSpace<Bare>>, Vpn, u32)> {
        let (space, areas) = self.spaces.get(space)?;
        let &(start, pages) = areas.get(area)?;
        Some((space, start, pages))
    }

    /// Does it, as far as there is memory for it.
    fn apply(&mut self, event: &Event) {
        let mm = &self.mm;
        match *event {
            Event::Map { pages } => {
                if self.spaces.len() < 3 {
                    self.spaces.push((mm.spaces().new_space(), vec![]));
                }
                let (space, areas) = self.spaces.last_mut().unwrap();
                if areas.len() < 3 {
                    areas.push((mm.spaces().mmap(space, MapSpec::anonymous(pages)).unwrap(), pages));
                }
            }
            Event::Touch { space, area, at, pages, write } => {
                let Some((space, start, all)) = self.area(space, area) else { return };
                let touch = if write { Touch::Write } else { Touch::Read };
                for page in at.min(all)..at.saturating_add(pages).min(all) {
                    let _ = mm.spaces().touch_page(space, start.add(page), touch);
                    play(mm);
                }
            }
            Event::Unmap { space, area, at, pages } => {
                let Some((space, start, all)) = self.area(space, area) else { return };
                mm.spaces().munmap(space, start.add(at.min(all - 1)), pages.min(all - at.min(all - 1)));
            }
            Event::Advise { space, area, advice } => {
                let Some((space, start, all)) = self.area(space, area) else { return };
                let _ = mm.spaces().madvise(space, start, all, advice);
            }
            Event::Lock { space, area, at, pages, lock } => {
                let Some((space, start, all)) = self.area(space, area) else { return };
                let first = at.min(all - 1);
                let _ = mm.spaces().mlock(space, start.add(first), pages.min(all - first), lock);
            }
            Event::Fork { space } => {
                if let (Some((space, areas)), true) = (self.spaces.get(space), self.spaces.len() < 3) {
                    if let Ok(child) = mm.spaces().fork(space) {
                        let areas = areas.clone();
                        self.spaces.push((child, areas));
                    }
                }
            }
            Event::Exit { space } => {
                if space < self.spaces.len() {
                    mm.spaces().exit(&self.spaces.remove(space).0);
                }
            }
            Event::MapFile { space } => {
                if let Some((space, areas)) = self.spaces.get_mut(space).filter(|(_, areas)| areas.len() < 3)
                {
                    // It begins within a folio.
                    let spec = MapSpec::shared(&self.file, 2000).from_page(5);
                    areas.push((mm.spaces().mmap(space, spec).unwrap(), 2000));
                }
            }
            _ => self.apply_elsewhere(event),
        }
    }

    /// What happens to the file, the group and the settings.
    fn apply_elsewhere(&self, event: &Event) {
        let mm = &self.mm;
        match *event {
            Event::Read { at, pages } => {
                for first in (at..at + pages).step_by(16) {
                    let _ = mm.files().read_pages(&self.file, first..first + 16, Placement::default());
                    play(mm);
                }
            }
            Event::Write { at, pages } => {
                for first in (at..at + pages).step_by(40) {
                    let _ = mm.files().write_pages(&self.file, first..first + 40, Placement::default);
                    play(mm);
                }
            }
            Event::Truncate { at, pages } => {
                mm.files().truncate_pages(&self.file, at, pages);
            }
            Event::Compact => mm.compaction().compact_node(Node(0)),
            Event::Daemons => play(mm),
            Event::Limit { pages } => {
                let Some(group) = self.group else { return };
                mm.memcg().set_limit(group, Limit::Max, pages.into());
            }
            Event::Reclaim { pages } => {
                let Some(group) = self.group else { return };
                mm.memcg().reclaim(group, pages);
            }
            Event::Generations { setting } => mm.set_knob(Knob::LruGenEnabled, setting).unwrap(),
            Event::Swappiness { value } => mm.set_knob(Knob::Swappiness, value).unwrap(),
            _ => {}
        }
    }

    /// All structures are sound, and there is as much on the lists as programs and the file have.
    fn check(&self) {
        let mm = &self.mm;
        mm.lru().lru_drain_all();
        mm.views().check().unwrap();
        mm.spaces().check_vm().unwrap();
        let tables: u64 = self.spaces.iter().map(|(space, _)| space.table_pages()).sum();
        let cached = self.file.cached_pages(mm.machine());
        let locked = mm.views().counters().get("nr_unevictable");
        let all = listed(mm, "anon") + listed(mm, "file") + locked;
        assert_eq!(all + tables, mm.views().memory_use().held(), "each page is on one list");
        assert!(locked >= mm.views().counters().get("nr_mlock"), "what is locked is on no other list");
        assert!(
            listed(mm, "file") + locked >= cached,
            "pages given away (MADV_FREE) are listed as files' are"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_page_is_on_one_list_and_counted_there(
        policy in 0..POLICIES.len(),
        group in any::<bool>(),
        events in prop::collection::vec(event(), 1..60),
    ) {
        let mut world = World::new(POLICIES[policy], group);
        for event in &events {
            world.apply(event);
            world.mm.views().check().unwrap();
        }
        world.check();
        while let Some((space, _)) = world.spaces.pop() {
            world.mm.spaces().exit(&space);
        }
        world.mm.files().drop_file(&world.file);
        world.mm.lru().lru_drain_all();
        prop_assert_eq!(world.mm.views().memory_use().held(), 0);
        prop_assert_eq!(["nr_unevictable", "nr_mlock"].map(|name| world.mm.views().counters().get(name)), [0; 2]);
        world.mm.views().check().unwrap();
    }
}

/// A program in a group that may have a third of what it touches, again and again: the rest is in swap, and nobody is killed.
#[test]
fn a_program_beyond_its_limit_lives_in_swap() {
    for policy in POLICIES {
        for (times, reads) in [(1, false), (3, true)] {
            let mm = machine(policy, 128, 20_000);
            let group = mm.memcg().group(GroupId::ROOT, "g").unwrap();
            mm.memcg().join(TaskId(0), group);
            mm.memcg().set_limit(group, Limit::Max, 4000);
            let space = mm.spaces().new_space();
            let start = mm.spaces().mmap(&space, MapSpec::anonymous(12_000)).unwrap();
            for time in 0..times {
                for page in 0..12_000 {
                    // Some are used all the time.
                    for page in [page, page % 100] {
                        let touch = if reads && time > 0 { Touch::Read } else { Touch::Write };
                        let touched = mm.spaces().touch_page(&space, start.add(page), touch);
                        assert!(touched.is_ok(), "{policy}: {page} the {time}th time: {touched:?}");
                    }
                    play(&mm);
                }
            }
            mm.lru().lru_drain_all();
            mm.views().check().unwrap();
            assert!(mm.memcg().usage(group) <= 4000, "{policy}");
        }
    }
}

/// A fork that has to reclaim in its group holds the lock of what is walked for pages in use.
#[test]
fn a_fork_at_the_limit_reclaims_by_itself() {
    for policy in POLICIES {
        let mm = machine(policy, 64, 20_000);
        let group = mm.memcg().group(GroupId::ROOT, "g").unwrap();
        mm.memcg().join(TaskId(0), group);
        let space = mm.spaces().new_space();
        let start = mm.spaces().mmap(&space, MapSpec::anonymous(512 * 600)).unwrap();
        for table in 0..600 {
            for page in 0..4 {
                mm.spaces().touch_page(&space, start.add(512 * table + page), Touch::Write).unwrap();
            }
        }
        mm.memcg().set_limit(group, Limit::Max, mm.memcg().usage(group) + 100);
        let child = mm.spaces().fork(&space).unwrap();
        assert!(space.swapped_pages() > 300, "{policy}: {}", space.swapped_pages());
        mm.lru().lru_drain_all();
        mm.views().check().unwrap();
        mm.spaces().check_vm().unwrap();
        mm.spaces().exit(&child);
        mm.spaces().exit(&space);
    }
}

/// Both sides of a fork use what they share, beyond the limit of their group: nobody is refused memory.
#[test]
fn a_forked_program_beyond_its_limit_lives_in_swap() {
    for policy in POLICIES {
        let mm = machine(policy, 128, 60_000);
        let group = mm.memcg().group(GroupId::ROOT, "g").unwrap();
        mm.memcg().join(TaskId(0), group);
        let space = mm.spaces().new_space();
        let start = mm.spaces().mmap(&space, MapSpec::anonymous(8000)).unwrap();
        for page in 0..8000 {
            mm.spaces().touch_page(&space, start.add(page), Touch::Write).unwrap();
        }
        assert!(mm.memcg().set_limit(group, Limit::Max, 5000));
        let child = mm.spaces().fork(&space).unwrap();
        for step in 0..40_000u32 {
            let (page, touch) = (step * 37 % 8000, if step % 3 == 0 { Touch::Write } else { Touch::Read });
            for space in [&space, &child] {
                let touched = mm.spaces().touch_page(space, start.add(page), touch);
                assert!(touched.is_ok(), "{policy}: step {step}: {touched:?}");
            }
        }
        let stat = mm.views().counters();
        let of = |name: &str| stat.get(name);
        let (scanned, stolen) = (of("pgscan_anon"), of("pgsteal_anon"));
        assert!(scanned < 20 * stolen, "{policy}: {scanned} pages looked at for {stolen}");
        mm.lru().lru_drain_all();
        mm.views().check().unwrap();
    }
}

/// As lazyfree-limit's captures have it: what a program gave away (`MADV_FREE`) goes before its files' pages; in 7.2 after them, for what a fault
/// brought counts as used once, and the batch that moves it does not forget that.
#[test]
fn memory_that_was_given_away_goes_first_but_in_7_2() {
    for (policy, stays) in [("linux-6.12", 0), ("linux-6.18", 0), ("linux-7.2", 1000)] {
        let mm = machine(policy, 128, 20_000);
        let group = mm.memcg().group(GroupId::ROOT, "g").unwrap();
        mm.memcg().join(TaskId(0), group);
        mm.memcg().set_limit(group, Limit::Max, 4000);
        let (file, space) = (mm.files().new_file(FileKind::Disk), mm.spaces().new_space());
        file.set_len(9000);
        let start = mm.spaces().mmap(&space, MapSpec::anonymous(1000)).unwrap();
        mm.spaces().populate(&space, start, 1000, Touch::Write).unwrap();
        mm.spaces().madvise(&space, start, 1000, Advice::Free).unwrap();
        for first in (0..9000).step_by(16) {
            mm.files().read_pages(&file, first..first + 16, Placement::default()).unwrap();
        }
        let freed = mm.views().counters().get("pglazyfreed");
        assert_eq!((space.counters().resident(), freed), (stays, 1000 - stays), "{policy}");
        mm.views().check().unwrap();
    }
}
