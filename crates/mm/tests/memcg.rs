//! Memory cgroups, through public doors: what is charged, what limits do, whose pages go, and that nothing stays charged.

use std::sync::Arc;

use freehold_mm::vm::{
    AddressSpace, FaultError, File, FileKind, HugePages, MapSpec, Placement, SwapDevice, Touch, Vpn,
    ZeroPages,
};
use freehold_mm::{
    AllocError, Bare, GroupEvent, GroupId, Knob, Knobs, Limit, Mm, Nanos, NodeSize, Policy, TaskId, Topology,
};

/// Kernels on both sides of what changed for pages that come back.
const POLICIES: [&str; 4] = ["linux-5.8", "linux-6.6", "linux-6.18", "freehold"];
const TASK: TaskId = TaskId(0);
const MIB: u32 = 256;

struct Machine {
    mm: Mm<Bare>,
    group: GroupId,
}

impl Machine {
    /// 64 MiB, so much swap, and the task in a group.
    fn new(policy: &str, swap: u32) -> Self {
        let topology =
            Topology::x86(&[NodeSize { bytes: 64 << 20, cpus: 1 }], 1 << 20, vec![vec![10]]).unwrap();
        let knobs = Knobs::default();
        knobs.set(Knob::TransparentHugepage, 0).unwrap();
        knobs.set(Knob::MinFreeKbytes, 1024).unwrap();
        knobs.set(Knob::OvercommitMemory, 1).unwrap();
        let mm = Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), knobs).unwrap();
        mm.spaces().set_swap(swap);
        let group = mm.memcg().group(GroupId::ROOT, "one").unwrap();
        mm.memcg().join(TASK, group);
        Self { mm, group }
    }

    fn limit(&self, limit: Limit, pages: u32) -> bool {
        self.mm.memcg().set_limit(self.group, limit, pages.into())
    }

    fn usage(&self) -> u64 {
        self.mm.memcg().usage(self.group)
    }

    fn events(&self, event: GroupEvent) -> u64 {
        self.mm.memcg().events(self.group, event)
    }

    /// A program with so many pages mapped.
    fn program(&self, pages: u32) -> (Arc<AddressSpace<Bare>>, Vpn) {
        let space = self.mm.spaces().new_space();
        let start = self.mm.spaces().mmap(&space, MapSpec::anonymous(pages)).unwrap();
        (space, start)
    }

    fn touch(&self, (space, start): &(Arc<AddressSpace<Bare>>, Vpn), pages: u32) -> Result<(), FaultError> {
        (0..pages)
            .try_for_each(|page| self.mm.spaces().touch_page(space, start.add(page), Touch::Write).map(drop))
    }

    fn file(&self, pages: u32) -> Arc<File<Bare>> {
        let file = self.mm.files().new_file(FileKind::Disk);
        file.set_len(pages);
        file
    }

    fn read(&self, file: &File<Bare>, pages: u32) {
        for first in (0..pages).step_by(16) {
            self.mm.files().read_pages(file, first..first + 16, Placement::default()).unwrap();
        }
    }

    fn counted(&self, name: &str) -> u64 {
        self.mm.views().memory_stat(self.group).0.get(name).copied().unwrap_or(0)
    }

    fn check(&self) {
        self.mm.views().check().unwrap();
    }
}

#[test]
fn a_program_stays_within_max_and_the_rest_goes_to_swap() {
    for policy in POLICIES {
        let machine = Machine::new(policy, 32 * MIB);
        machine.limit(Limit::Max, 8 * MIB);
        let program = machine.program(16 * MIB);
        machine.touch(&program, 16 * MIB).unwrap();
        assert!(machine.usage() <= u64::from(8 * MIB), "{policy}: {}", machine.usage());
        assert!(machine.usage() > u64::from(7 * MIB), "{policy}: {}", machine.usage());
        let (resident, swapped) = (program.0.resident_pages(), program.0.swapped_pages());
        assert_eq!(
            (resident + swapped, machine.mm.memcg().swap_usage(machine.group)),
            (u64::from(16 * MIB), swapped)
        );
        assert!(machine.events(GroupEvent::Max) > 0 && machine.events(GroupEvent::OomKill) == 0, "{policy}");
        // The machine had memory enough: nothing was reclaimed for it.
        assert_eq!(machine.mm.views().counters().0.get("pgscan_direct"), Some(&0), "{policy}");
        machine.check();
        machine.mm.spaces().exit(&program.0);
        machine.mm.lru().lru_drain_all();
        machine.limit(Limit::Max, 0);
        assert_eq!((machine.usage(), machine.mm.memcg().swap_usage(machine.group)), (0, 0), "{policy}");
    }
}

#[test]
fn pages_of_zeros_are_noted_and_not_written_since_6_12() {
    for (policy, noted) in [("linux-6.6", false), ("linux-6.18", true)] {
        let machine = Machine::new(policy, 0);
        machine.mm.spaces().set_swap_on(SwapDevice::Zram { ratio_percent: 200 }, 32 * MIB);
        machine.limit(Limit::Max, 8 * MIB);
        let program = machine.program(16 * MIB);
        let (space, start) = &program;
        // Each page of the first half, and none of the second.
        let zeros = ZeroPages { start: *start, pages: 8 * MIB, share: 1 << 16 };
        space.say_zeros(machine.mm.machine(), &[zeros]);
        machine.touch(&program, 16 * MIB).unwrap();
        let swapped = space.swapped_pages();
        let count = |name| (machine.counted(name), machine.mm.views().counters().get(name));
        let of_zeros = if noted { 8 * u64::from(MIB) } else { 0 };
        let all = count("pswpout").0 + count("swpout_zero").0;
        assert_eq!((count("swpout_zero"), all), ((of_zeros, of_zeros), swapped), "{policy}");
        assert_eq!(count("pswpout").0, count("pswpout").1, "{policy}");
        // Only what is no zeros is in the pool, two pages in a frame.
        let stored = swapped - 8 * u64::from(MIB);
        assert_eq!(u64::from(machine.mm.spaces().swap_frames()), stored.div_ceil(2), "{policy}");
        machine.touch(&program, 100).unwrap();
        let came = if noted { ("swpin_zero", "pswpin") } else { ("pswpin", "swpin_zero") };
        assert_eq!((count(came.0), count(came.1)), ((100, 100), (0, 0)), "{policy}");
        machine.check();
        machine.mm.spaces().exit(space);
        assert_eq!(
            (machine.mm.spaces().swap_frames(), machine.mm.spaces().swap_pages().0),
            (0, 0),
            "{policy}"
        );
    }
}

#[test]
fn without_swap_a_program_beyond_max_is_out_of_memory_though_the_machine_is_not() {
    for policy in POLICIES {
        let machine = Machine::new(policy, 0);
        machine.limit(Limit::Max, 8 * MIB);
        let program = machine.program(16 * MIB);
        let failed = machine.touch(&program, 16 * MIB).unwrap_err();
        assert_eq!(failed, FaultError::Alloc(AllocError::OutOfMemory), "{policy}");
        assert_eq!((machine.events(GroupEvent::Oom), machine.usage()), (1, u64::from(8 * MIB)), "{policy}");
        assert!(machine.mm.views().memory_use().free > u64::from(40 * MIB), "{policy}");
        machine.check();
    }
}

#[test]
fn swap_max_ends_what_may_go_to_swap() {
    let machine = Machine::new("linux-6.18", 32 * MIB);
    machine.limit(Limit::Max, 8 * MIB);
    machine.limit(Limit::SwapMax, 2 * MIB);
    let program = machine.program(16 * MIB);
    machine.touch(&program, 9 * MIB).unwrap();
    assert!(machine.touch(&program, 16 * MIB).is_err());
    assert_eq!(machine.mm.memcg().swap_usage(machine.group), u64::from(2 * MIB));
    assert!(machine.events(GroupEvent::SwapFail) > 0);
}

#[test]
fn who_goes_beyond_high_reclaims_and_without_hope_waits() {
    let machine = Machine::new("linux-6.18", 32 * MIB);
    machine.limit(Limit::High, 8 * MIB);
    let program = machine.program(16 * MIB);
    machine.touch(&program, 16 * MIB).unwrap();
    assert!(machine.usage() <= u64::from(8 * MIB + 64), "{}", machine.usage());
    assert!(machine.events(GroupEvent::High) > 0);
    assert_eq!(machine.mm.memcg().delayed(machine.group), Nanos(0), "what could be freed was");

    let machine = Machine::new("linux-6.18", 0);
    machine.limit(Limit::High, 8 * MIB);
    let program = machine.program(16 * MIB);
    machine.mm.machine().take_slept();
    machine.touch(&program, 10 * MIB).unwrap();
    // A quarter beyond: each further 64 pages cost 2 s.
    assert!(machine.mm.memcg().delayed(machine.group) > Nanos(4_000_000_000));
    // 2560 pages, their 5 to 6 page tables and up to 3 above these, and what a CPU has charged beyond need: up to 63.
    let usage = machine.usage();
    let least = u64::from(10 * MIB) + 6;
    assert!((least..=least + 3 + 63).contains(&usage), "nobody is killed for it: {usage}");
}

#[test]
fn a_protected_groups_file_stays_while_there_is_anything_else() {
    for (low, stays) in [(0, false), (20 * MIB, true)] {
        let machine = Machine::new("linux-6.18", 0);
        machine.limit(Limit::Low, low);
        let kept = machine.file(16 * MIB);
        machine.read(&kept, 16 * MIB);
        let hog = machine.mm.memcg().group(GroupId::ROOT, "two").unwrap();
        machine.mm.memcg().join(TASK, hog);
        let stream = machine.file(128 * MIB);
        machine.read(&stream, 128 * MIB);
        let left = kept.cached_pages(machine.mm.machine());
        assert_eq!(left == u64::from(16 * MIB), stays, "{left} pages are left");
        machine.check();
    }
}

#[test]
fn min_is_kept_though_requests_fail() {
    let machine = Machine::new("linux-6.18", 0);
    machine.limit(Limit::Min, 40 * MIB);
    let kept = machine.file(32 * MIB);
    machine.read(&kept, 32 * MIB);
    let hog = machine.mm.memcg().group(GroupId::ROOT, "two").unwrap();
    machine.mm.memcg().join(TASK, hog);
    let program = machine.program(64 * MIB);
    assert!(machine.touch(&program, 64 * MIB).is_err());
    assert_eq!(kept.cached_pages(machine.mm.machine()), u64::from(32 * MIB));
}

#[test]
fn a_lower_max_takes_what_is_beyond_and_says_if_it_cannot() {
    let machine = Machine::new("linux-6.18", 0);
    let file = machine.file(16 * MIB);
    machine.read(&file, 16 * MIB);
    assert!(machine.limit(Limit::Max, 4 * MIB));
    assert!(machine.usage() <= u64::from(4 * MIB), "{}", machine.usage());
    let program = machine.program(4 * MIB);
    machine.touch(&program, 3 * MIB).unwrap();
    assert!(!machine.limit(Limit::Max, MIB), "its own memory has nowhere to go");
    assert_eq!(machine.events(GroupEvent::Oom), 1);
}

#[test]
fn groups_above_count_and_limit_what_those_below_have() {
    let machine = Machine::new("linux-6.18", 0);
    let memcg = machine.mm.memcg();
    let child = memcg.group(machine.group, "child").unwrap();
    memcg.join(TASK, child);
    machine.limit(Limit::Max, 4 * MIB);
    let file = machine.file(16 * MIB);
    machine.read(&file, 16 * MIB);
    assert_eq!(memcg.usage(child), machine.usage());
    assert!(machine.usage() <= u64::from(4 * MIB));
    assert!(memcg.events(child, GroupEvent::Max) == 0 && machine.events(GroupEvent::Max) > 0);
}

/// A loop of a file that is larger than the limit by less than what is active: evicted pages come back and are noticed.
#[test]
fn pages_that_come_back_are_counted_and_activated_when_it_was_early() {
    let machine = Machine::new("linux-6.18", 0);
    machine.limit(Limit::Max, 8 * MIB);
    let file = machine.file(10 * MIB);
    machine.read(&file, 10 * MIB);
    assert_eq!(machine.counted("workingset_refault_file"), 0);
    machine.read(&file, 10 * MIB);
    let came_back = machine.counted("workingset_refault_file");
    assert!(came_back > u64::from(9 * MIB), "a loop evicts what it needs next: {came_back}");
    assert_eq!(machine.counted("workingset_activate_file"), 0, "nothing is active that they could displace");
    // Half of it is read twice in a row: that is active, and what the other half evicts comes back within its size.
    machine.read(&file, 5 * MIB);
    machine.read(&file, 5 * MIB);
    machine.mm.views().memory_stat(machine.group);
    machine.read(&file, 10 * MIB);
    machine.read(&file, 10 * MIB);
    assert!(machine.counted("workingset_activate_file") > 0);
}

/// As wmark-set's captures have it after `vm.drop_caches`.
#[test]
fn pages_that_were_not_wanted_do_not_come_back_though_they_were_evicted_first() {
    let machine = Machine::new("linux-6.18", 0);
    machine.limit(Limit::Max, 8 * MIB);
    let file = machine.file(12 * MIB);
    machine.read(&file, 12 * MIB);
    machine.mm.files().forget_pages(&file, 2 * MIB..12 * MIB);
    machine.read(&file, 12 * MIB);
    let came_back = machine.counted("workingset_refault_file");
    assert!((1..=u64::from(2 * MIB)).contains(&came_back), "{came_back}");
    machine.check();
}

#[test]
fn kernels_before_shadows_notice_nothing() {
    let machine = Machine::new("linux-3.10", 0);
    machine.limit(Limit::Max, 4 * MIB);
    let file = machine.file(8 * MIB);
    machine.read(&file, 8 * MIB);
    machine.read(&file, 8 * MIB);
    assert_eq!(machine.counted("workingset_refault_file"), 0);
}

/// A writer waits once a fifth of what its group has and may have is dirty, though the machine has memory for much more; not in a
/// group without limits, and no more when it has been written. Where nobody brings the group's statistics up to date, it is not known.
#[test]
fn who_fills_a_group_with_dirty_pages_waits_for_the_disk() {
    for (max, is_known, waits_after) in [(2000, true, Some(400)), (u32::MAX, true, None), (2000, false, None)]
    {
        let machine = Machine::new("linux-6.18", 0);
        if max < u32::MAX {
            machine.limit(Limit::Max, max);
        }
        let mm = &machine.mm;
        let file = mm.files().new_file(FileKind::Disk);
        let write = |page| {
            if is_known {
                mm.lru().flush_stats(GroupId::ROOT);
            }
            mm.files().write_file(&file, page, Placement::default()).unwrap();
            mm.machine().take_slept() > Nanos(0)
        };
        let waited = (0..1000).find(|&page| write(page));
        // A batch that was charged ahead is no room.
        let is_due = |page: u32| waits_after.is_some_and(|after| page.abs_diff(after) <= 16);
        assert!(waited.is_none_or(is_due) && waited.is_some() == waits_after.is_some(), "{max}: {waited:?}");
        assert_eq!(mm.files().take_flush_request() > 0, waited.is_some());
        while !mm
            .files()
            .take_dirty(64)
            .iter()
            .map(|&folio| mm.files().written(&[folio]))
            .collect::<Vec<()>>()
            .is_empty()
        {}
        assert!(!write(1000), "all has been written");
    }
}

/// What is read ahead waits for its reader: to make room for the rest of its window, reclaim takes other pages, and where there are none the window
/// ends early, and nobody is killed for it.
#[test]
fn a_window_is_not_taken_for_its_own_rest() {
    for policy in ["linux-6.6", "linux-6.12", "linux-6.18", "linux-7.2"] {
        for (swap, room, window, most) in [(8000, 0, 32, 1024), (0, 20, 128, 5 * 1024)] {
            let machine = Machine::new(policy, swap);
            let mm = &machine.mm;
            let program = machine.program(4000);
            machine.touch(&program, 4000).unwrap();
            machine.limit(Limit::Max, machine.usage() as u32 + room);
            let file = machine.file(1024);
            file.set_read_ahead(window);
            let reads = |first| {
                mm.files().read_pages(&file, first..first + 16, Placement::default()).map(|done| done.reads)
            };
            let read: u32 = (0..1024).step_by(16).map(|first| reads(first).unwrap()).sum();
            // With less room than a window has, its end is read twice.
            assert!((1024..=most).contains(&read), "{policy}, swap {swap}: {read}");
            assert_eq!(machine.events(GroupEvent::Oom), 0, "{policy}, swap {swap}");
            mm.views().check().unwrap();
        }
    }
}

/// A huge page's charge is tried for as hard as the page itself: with the default `defrag` not at all where nobody asked for huge pages.
#[test]
fn a_huge_page_is_not_reclaimed_for_where_nobody_asked_for_it() {
    for policy in ["linux-5.8", "linux-6.6", "linux-6.18"] {
        for (advised, huge) in [(HugePages::AsConfigured, 0), (HugePages::Advised, 1)] {
            let machine = Machine::new(policy, 0);
            let mm = &machine.mm;
            mm.set_knob(Knob::TransparentHugepage, 1).unwrap();
            machine.limit(Limit::Max, 1024);
            let file = machine.file(1024);
            machine.read(&file, 768);
            assert!(machine.usage() > 512, "the cache leaves no room for a huge page");
            let space = mm.spaces().new_space();
            let at = mm.spaces().mmap(&space, MapSpec::anonymous(1024)).unwrap();
            mm.spaces().advise(&space, at, 1024, advised);
            let before = machine.events(GroupEvent::Max);
            mm.spaces().touch_page(&space, Vpn(at.0.next_multiple_of(512)), Touch::Write).unwrap();
            let counters = mm.views().counters();
            let counted = ["thp_fault_alloc", "thp_fault_fallback"].map(|name| counters.get(name));
            assert_eq!(counted, [huge, 1 - huge], "{policy}, {advised:?}");
            assert_eq!(machine.events(GroupEvent::Max) > before, huge == 1, "{policy}, {advised:?}");
            mm.views().check().unwrap();
        }
    }
}
