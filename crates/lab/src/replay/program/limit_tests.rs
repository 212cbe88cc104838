//! Programs under limits of cgroups, with swap and without.

use std::sync::Arc;

use mm::vm::{Touch, Vpn, ZeroPages};
use mm::{Knob, Policy};
use sim::{Figure, FigureKind, Profile};

use crate::measurements::{KnobOutcome, Run, figures};
use crate::program::{
    Begins, Call, Company, Doing, MapCall, PageRange, Program, SignalId, Step, TaskProgram, UsedLook,
    UsedPeriod, Walked, WalkedFrom,
};
use crate::recorded::TaskRef;
use crate::replay::parse_setting;
use crate::replay::{Plan, Setting, Source, Variant, combinations, replay, replay_all};

const HEAP: u32 = 512 * 7;
const PAGES: u32 = 2048;
const MIB: u64 = 1 << 20;
/// Own time between two touches, ns.
const OWN_NS: u32 = 2_000;

/// A task that writes to 8 MiB and computes for half a second; one that it starts awaits its end.
fn program(name: &str) -> Arc<Program> {
    let range = PageRange { start: Vpn(HEAP), pages: PAGES };
    let map = MapCall::own(range);
    let step = |own_ns, doing| Step { own_ns, doing };
    let touch =
        |page| Doing::Touches { page: Vpn(HEAP + page), touch: Touch::Write, company: Company::Alone };
    let mut steps =
        vec![step(0, Doing::Calls(0)), step(0, Doing::Calls(1)), step(0, Doing::Starts(TaskRef(1)))];
    steps.extend((0..PAGES).map(|page| step(OWN_NS, touch(page))));
    steps.extend((0..50).map(|_| step(10_000_000, Doing::Computes)));
    steps.push(step(0, Doing::Signals(SignalId(0))));
    let task = |name: &str, begins, steps| TaskProgram {
        name: name.to_owned(),
        begins,
        steps,
        ran_on: vec![],
        awaited: vec![],
        walked: vec![],
    };
    let waits = vec![step(0, Doing::Awaits(SignalId(0)))];
    Arc::new(Program {
        name: name.to_owned(),
        tasks: vec![task("works", Begins::InSpace(0), steps), task("waits", Begins::AsThread, waits)],
        calls: vec![Call::Exec, Call::Map(map)],
        before: vec![vec![]],
        signals: 1,
        ..Program::default()
    })
}

fn plan() -> Plan {
    Plan::new(Profile::load("kvm-genoa-2c").unwrap(), Policy::parse("linux-6.18").unwrap())
}

fn run_of(source: &Source, variant: &Variant) -> Run {
    Run { wall_ns: 0, ..replay(source, &plan(), variant).unwrap() }
}

fn run(knobs: &[(Knob, u64)]) -> Run {
    let small = (Knob::TransparentHugepage, 0);
    let knobs: Vec<(Knob, u64)> = std::iter::once(small).chain(knobs.iter().copied()).collect();
    run_of(&Source::Program(program("one")), &Variant::from(knobs))
}

#[test]
fn beyond_its_limit_a_program_swaps_and_takes_longer() {
    let zram = (Knob::ZramDisksize, 64 * MIB);
    let (free, limited) = (run(&[]), run(&[(Knob::MemoryMax, 4 * MIB), zram]));
    assert!(free.cgroups.is_empty() && free.counter("pswpout") == 0);
    let group = &limited.cgroups[0];
    assert_eq!((group.name.as_str(), group.killed_ns), ("one", None));
    assert!(group.peak <= 4 * MIB && group.event("max") > 0 && group.event("oom") == 0, "{group:?}");
    // 1024 pages do not fit, and each page is used once in 100 ms: some hundred of the 2048 at a time.
    let (swapped_in, swapped_out) = (group.count("pswpin"), group.count("pswpout"));
    assert!(swapped_out > 1024 && swapped_in > 1024, "{group:?}");
    assert_eq!((limited.counter("pswpin"), group.count("workingset_refault_anon")), (swapped_in, swapped_in));
    assert_eq!(limited.program.unwrap().major_faults, swapped_in);
    let costs = swapped_in * 8_000 + swapped_out * 12_800;
    assert!(
        limited.simulated_ns > free.simulated_ns + costs,
        "{} {}",
        free.simulated_ns,
        limited.simulated_ns
    );
    let uses = &limited.knob_uses;
    assert!(uses.values().all(|uses| uses.outcome == KnobOutcome::Acted), "{uses:?}");
    assert_eq!(limited, run(&[(Knob::MemoryMax, 4 * MIB), zram]), "one seed gives one result");
}

#[test]
fn without_swap_it_is_killed_and_who_waits_for_it_ends() {
    let run = run(&[(Knob::MemoryMax, 4 * MIB)]);
    let group = &run.cgroups[0];
    assert!(group.killed_ns.is_some_and(|ns| ns < 20_000_000), "{group:?}");
    assert_eq!((group.event("oom_kill"), group.event("oom")), (1, 1));
    assert!(run.notes.iter().any(|note| note.starts_with("one was killed after 0.0")), "{:?}", run.notes);
}

#[test]
fn a_limit_that_nothing_reaches_changes_no_figure_but_says_what_was_charged() {
    let limited = run(&[(Knob::MemoryMax, 64 * MIB)]);
    let free = run(&[]);
    assert_eq!(limited.simulated_ns, free.simulated_ns);
    assert!((8 * MIB..9 * MIB).contains(&limited.cgroups[0].peak), "{:?}", limited.cgroups);
    let uses = &limited.knob_uses["memory.max"];
    assert_eq!(uses.outcome, KnobOutcome::Consulted);
    assert!(uses.nearest.contains("MiB"), "{uses:?}");
}

#[test]
fn high_delays_who_cannot_reclaim_and_kills_nobody() {
    let run = run(&[(Knob::MemoryHigh, 4 * MIB)]);
    let group = &run.cgroups[0];
    assert!(group.event("high") > 0 && group.killed_ns.is_none() && group.high_delay_ns > 1_000_000_000);
    assert!(run.simulated_ns > group.high_delay_ns);
}

#[test]
fn one_of_two_recordings_can_be_limited_alone() {
    let both = Source::Programs(vec![program("one"), program("two.2")]);
    let settings = ["transparent_hugepage.enabled=never", "zram.disksize=64M", "cgroup.two.2.memory.max=4M"];
    let settings: Vec<Setting> = settings.iter().map(|text| parse_setting(text).unwrap()).collect();
    let variants = combinations(&settings);
    assert_eq!(
        variants[0].name(),
        "transparent_hugepage.enabled=never zram.disksize=67108864 cgroup.two.2.memory.max=4194304"
    );
    let run = run_of(&both, &variants[0]);
    let swapped: Vec<(&str, bool)> =
        run.cgroups.iter().map(|group| (group.name.as_str(), group.count("pswpout") > 0)).collect();
    assert_eq!(swapped, [("one", false), ("two.2", true)]);
}

/// No cgroup, and no limit: kswapd asks for it where memory is short and nothing is left alone for long enough.
#[test]
fn the_largest_recording_goes_where_nothing_is_left_alone_for_long_enough() {
    let run = |ttl_ms| {
        let profile = Profile::load("kvm-genoa-2c").unwrap().to_toml();
        let small =
            Profile::parse("small", &profile.replace("memory_mib = 24576", "memory_mib = 64")).unwrap();
        let plan = Plan::new(small, Policy::parse("linux-6.18").unwrap());
        let knobs = vec![
            (Knob::TransparentHugepage, 0),
            (Knob::ZramDisksize, 256 * MIB),
            (Knob::LruGenMinTtlMs, ttl_ms),
        ];
        let plan = Plan { copies: 12, ..plan };
        replay(&Source::Program(program("one")), &plan, &Variant::from(knobs)).unwrap()
    };
    let (without, with) = (run(0), run(60_000));
    let killed = with.counter("oom_kill");
    assert_eq!(without.counter("oom_kill"), 0);
    assert!((1..12).contains(&killed), "{killed}");
    let told = |run: &Run| run.notes.iter().any(|note| note.contains("killed by kswapd"));
    assert!(told(&with) && !told(&without), "{:?}", with.notes);
    // Whoever is killed is done sooner, and better in nothing.
    let of_killed = |run: &Run| figures(run).into_iter().find(|(figure, _)| figure.name == "killed");
    assert_eq!(of_killed(&with).map(|(_, value)| value), Some(killed as f64));
}

/// What looks by page have found is what comes back: the pages that went first, or none.
#[test]
fn pages_are_missed_if_a_look_has_found_them_used() {
    let run_with = |used: &[PageRange], of_both: bool| {
        let mut seen = Program::clone(&program("one"));
        let computing = seen.tasks[0].steps.len() as u32 - 51;
        seen.tasks[0].walked = vec![WalkedFrom { step: 0, look: 0 }, WalkedFrom { step: computing, look: 1 }];
        if of_both {
            // The other waits all the time, and has nothing but that to do while both looks go by.
            seen.tasks[1].walked = [0, 1].map(|look| WalkedFrom { step: 0, look }).to_vec();
        }
        seen.walked = vec![Walked::default(); 2];
        seen.looked_at = vec![vec![]; 2];
        let look = |until_ns, pages| UsedLook { until_ns, pages };
        let looks = vec![look(100_000_000, used.to_vec()), look(500_000_000, vec![])];
        // The first tells nothing but that nobody used anything between the touches.
        let none = UsedPeriod { looks: vec![look(4_000_000, vec![])], own_ns: 4_000_000 };
        seen.used = vec![none, UsedPeriod { looks, own_ns: 500_000_000 }];
        let limits =
            [(Knob::TransparentHugepage, 0), (Knob::MemoryMax, 4 * MIB), (Knob::ZramDisksize, 64 * MIB)];
        run_of(&Source::Program(Arc::new(seen)), &Variant::from(limits.to_vec()))
    };
    let the_first = [PageRange { start: Vpn(HEAP), pages: 100 }];
    let first = run_with(&the_first, false);
    assert!((90..=110).contains(&first.counter("pswpin")), "{}", first.counter("pswpin"));
    assert!(first.notes.iter().any(|note| note.starts_with("when each page is used again was seen")));
    assert_eq!(run_with(&[], false).counter("pswpin"), 0);
    assert_eq!(
        run_with(&the_first, true).counter("pswpin"),
        first.counter("pswpin"),
        "who waits is not ahead of its process"
    );
}

/// A page table for each page: a child's tables take half as much as its parent has.
#[test]
fn a_fork_for_whose_tables_there_is_no_room_kills() {
    const APART: u32 = 512;
    let touches = |count: u32| {
        let mut forks = Program::clone(&program("one"));
        forks.calls[1] = Call::Map(MapCall::own(PageRange { start: Vpn(HEAP), pages: count * APART }));
        let touch = |number| Doing::Touches {
            page: Vpn(HEAP + number * APART),
            touch: Touch::Write,
            company: Company::Alone,
        };
        let doing = [Doing::Calls(0), Doing::Calls(1)].into_iter().chain((0..count).map(touch));
        let doing = doing.chain([Doing::Starts(TaskRef(1)), Doing::Signals(SignalId(0))]);
        forks.tasks[0].steps = doing.map(|doing| Step { own_ns: OWN_NS, doing }).collect();
        forks.tasks[1].begins = Begins::AsFork;
        run_of(
            &Source::Program(Arc::new(forks)),
            &Variant::from(vec![(Knob::TransparentHugepage, 0), (Knob::MemoryMax, 4 * MIB)]),
        )
    };
    let [fits, does_not] = [300, 400].map(touches);
    assert!(fits.cgroups[0].killed_ns.is_none() && fits.forks.count == 1, "{:?}", fits.cgroups);
    assert!(does_not.cgroups[0].killed_ns.is_some(), "{:?}", does_not.cgroups);
}

#[test]
fn what_holds_zeros_is_not_written_to_swap() {
    let mut zeros = Program::clone(&program("one"));
    zeros.tasks[0].walked = vec![WalkedFrom { step: 0, look: 0 }];
    zeros.walked = vec![Walked::default()];
    zeros.looked_at = vec![vec![]];
    zeros.zeros = vec![vec![ZeroPages { start: Vpn(HEAP), pages: PAGES, share: 1 << 15 }]];
    let limits = [(Knob::TransparentHugepage, 0), (Knob::MemoryMax, 4 * MIB), (Knob::ZramDisksize, 64 * MIB)];
    let half_zeros = Source::Program(Arc::new(zeros));
    let half = run_of(&half_zeros, &Variant::from(limits.to_vec()));
    let (zeros, written) = (half.counter("swpout_zero"), half.counter("pswpout"));
    assert!(zeros + written > 1024 && zeros.abs_diff(written) < (zeros + written) / 5, "{zeros} {written}");
    assert_eq!(half.cgroups[0].count("swpout_zero"), zeros);
    let told = |run: &Run, what: &str| run.notes.iter().any(|note| note.contains(what));
    assert!(told(&half, "of the pages that went to swap hold nothing but zeros"), "{:?}", half.notes);
    let older = Plan { policy: Policy::parse("linux-6.6").unwrap(), ..plan() };
    let older = replay(&half_zeros, &older, &Variant::from(limits.to_vec())).unwrap();
    assert!(older.counter("pswpout") > 1024 && older.counter("swpout_zero") == 0);
    assert!(!told(&older, "nothing but zeros"), "they are written: {:?}", older.notes);
    let all = run(&limits[1..]);
    assert_eq!(all.counter("swpout_zero"), 0);
    assert!(told(&all, "no page that went to swap is taken to hold"), "{:?}", all.notes);
}

#[test]
fn a_disk_is_waited_for() {
    let on = |swap| run(&[(Knob::MemoryMax, 6 * MIB), swap]);
    let (zram, disk) = (on((Knob::ZramDisksize, 64 * MIB)), on((Knob::SwapDisk, 64 * MIB)));
    let busy = |run: &Run| run.program.unwrap().cpu_ns;
    assert!(disk.counter("pswpin") > 500 && zram.counter("pswpin") > 500);
    assert!(busy(&disk) < busy(&zram), "a disk takes no CPU time");
    let waits = disk.counter("pgmajfault");
    assert!(disk.simulated_ns - busy(&disk) > waits * 35_000, "it is waited for");
    assert!(
        waits < disk.counter("pswpin") && disk.counter("swap_ra_hit") > 0,
        "others came with what was waited for"
    );
    assert_eq!(zram.counter("swap_ra"), 0);
}

/// Nobody waits for a disk where all that could go is on its way there: of a small group on a slow one that is soon all of it.
#[test]
fn who_is_killed_while_pages_are_on_their_way_is_told() {
    let mut slow = plan();
    let figure = |ns: f64| Figure::new(ns, FigureKind::Estimated, "a slow disk");
    slow.profile.set("swap.latency_ns", figure(50e6)).unwrap();
    let on = |swap| {
        let knobs =
            [(Knob::TransparentHugepage, 0), (Knob::LruGenEnabled, 0), (Knob::MemoryMax, 2 * MIB), swap];
        replay(&Source::Program(program("one")), &slow, &Variant::from(knobs.to_vec())).unwrap()
    };
    let (zram, disk) = (on((Knob::ZramDisksize, 64 * MIB)), on((Knob::SwapDisk, 64 * MIB)));
    assert_eq!((zram.cgroups[0].killed_ns, zram.cgroups[0].killed_on_their_way), (None, None));
    let pages = disk.cgroups[0].killed_on_their_way.unwrap_or(0);
    assert!((100..=512).contains(&pages), "{pages} of 512: {:?}", disk.cgroups);
    let told = format!("while {pages} pages were on their way to swap's disk");
    assert!(disk.notes.iter().any(|note| note.contains(&told)), "{:?}", disk.notes);
}

#[test]
fn zswap_is_not_waited_for() {
    let behind = |more: &[(Knob, u64)]| {
        let knobs = [(Knob::MemoryMax, 6 * MIB), (Knob::SwapDisk, 64 * MIB)];
        run(&[&knobs[..], more].concat())
    };
    let (disk, zswap) = (behind(&[]), behind(&[(Knob::ZswapEnabled, 1)]));
    assert_eq!((disk.counter("zswpout"), zswap.counter("pswpout")), (0, 0));
    let (stored, loaded) = (zswap.counter("zswpout"), zswap.counter("zswpin"));
    assert!(stored > 500 && loaded > 500, "{stored} {loaded}");
    assert!(zswap.simulated_ns < disk.simulated_ns);
    assert!(zswap.program.unwrap().cpu_ns > disk.program.unwrap().cpu_ns, "it takes CPU time");
    assert_eq!(zswap.cgroups[0].count("zswpout"), stored);
    assert!(
        zswap.notes.iter().any(|note| note.contains("pages in zswap are taken to become 2.26 times smaller"))
    );
    let full = behind(&[(Knob::ZswapEnabled, 1), (Knob::ZswapMaxPoolPercent, 0)]);
    let [by_full, by_disk] = [&full, &disk].map(|run| run.counter("pswpout"));
    assert!(full.counter("zswpout") == 0 && by_full.abs_diff(by_disk) < 20, "{by_full} {by_disk}");
}

#[test]
fn a_file_of_a_cgroup_is_named_by_its_recording() {
    let refused = |text: &str| parse_setting(text).unwrap_err().to_string();
    insta::assert_snapshot!(
        ["cgroup.db.vm.swappiness=1", "cgroup.memory.max=1G", "cgroup.db.memory.oom.group=0", "memory.max=lots"]
            .map(refused)
            .join("\n"),
        @r"
    'cgroup.db.vm.swappiness' is no setting of a cgroup: it is cgroup.NAME. and one of memory.max, memory.high, memory.low, memory.min, memory.swap.max
    'cgroup.memory.max' is no setting of a cgroup: it is cgroup.NAME. and one of memory.max, memory.high, memory.low, memory.min, memory.swap.max
    'cgroup.db.memory.oom.group' is no setting of a cgroup: it is cgroup.NAME. and one of memory.max, memory.high, memory.low, memory.min, memory.swap.max; all tasks of a program are killed together, as where it is 1
    memory.max = lots cannot be: it takes max, a number, a size (64M) or a range with a step (0-100:20)
    "
    );
}

#[test]
fn generations_act_where_something_is_reclaimed_and_are_refused_where_nothing_is() {
    let source = Source::Program(program("one"));
    let generations = Setting::of_all(Knob::LruGenEnabled, vec![0, 7]);
    let settings = |limit: u64| {
        let limits =
            [(Knob::ZramDisksize, 64 * MIB), (Knob::MemoryMax, limit), (Knob::TransparentHugepage, 0)];
        let limits = limits.map(|(knob, value)| Setting::of_all(knob, vec![value]));
        [std::slice::from_ref(&generations), &limits[..]].concat()
    };
    let runs = |limit: u64, forced: bool| {
        let plan = Plan { settings: settings(limit), forced, ..plan() };
        replay_all(&source, std::slice::from_ref(&plan), &|_| {})
    };
    let outcome = |run: &Run| run.knob_uses["lru_gen.enabled"].outcome;
    let short = runs(4 * MIB, false).unwrap();
    assert_eq!(outcome(&short[0]), KnobOutcome::Acted);
    assert_eq!(outcome(&short[1]), KnobOutcome::Consulted, "it is so by default under linux-6.18");
    let refused = runs(64 * MIB, false).unwrap_err().to_string();
    assert!(
        refused.starts_with(
            "lru_gen.enabled cannot act here: memory never ran short, and nothing was reclaimed"
        ),
        "{refused}"
    );
    let forced = runs(64 * MIB, true).unwrap();
    let said = forced[1].knob_uses["lru_gen.enabled"].sentence();
    assert!(said.starts_with("never consulted: memory never ran short, and nothing was reclaimed"), "{said}");
}

#[test]
fn a_node_is_not_reclaimed_where_there_is_memory_for_all() {
    let source = Source::Program(program("one"));
    let settings = vec![Setting::of_all(Knob::ZoneReclaimMode, vec![0, 1])];
    let refused = replay_all(&source, &[Plan { settings, ..plan() }], &|_| {}).unwrap_err().to_string();
    assert!(refused.starts_with("vm.zone_reclaim_mode cannot act here: memory never ran short"), "{refused}");
}
