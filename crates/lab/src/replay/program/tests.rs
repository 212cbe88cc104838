//! Programs made by hand, replayed.

use std::sync::Arc;

use mm::vm::{Advice, Protection, Touch, Vpn};
use mm::{Knob, Policy};
use sim::{Profile, Tlb};

use crate::measurements::{KnobOutcome, ProgramUse, Run};
use crate::program::{
    Before, Begins, Call, Company, Doing, MapCall, PageRange, Program, SignalId, Step, Surroundings,
    TaskProgram, Walked, WalkedFrom,
};
use crate::recorded::TaskRef;
use crate::replay::{Plan, Source, Variant, prove, replay};

/// Where the heap is: at the beginning of a huge page.
const HEAP: u32 = 512 * 7;
const PAGES: u32 = 1024;

fn step(doing: Doing) -> Step {
    Step { own_ns: 500, doing }
}

fn touches(pages: u32, touch: Touch) -> impl Iterator<Item = Step> {
    (0..pages)
        .map(move |page| step(Doing::Touches { page: Vpn(HEAP + page), touch, company: Company::Alone }))
}

fn task(name: &str, begins: Begins, steps: Vec<Step>) -> TaskProgram {
    TaskProgram { name: name.to_owned(), begins, steps, ran_on: vec![], walked: vec![], awaited: vec![] }
}

/// A parent that maps 4 MiB, writes to it and forks; a child that writes to 100 pages of its copy, while the parent waits.
fn family() -> Program {
    let range = PageRange { start: Vpn(HEAP), pages: PAGES };
    let map = MapCall::own(range);
    let mut parent = vec![step(Doing::Calls(0)), step(Doing::Calls(1))];
    parent.extend(touches(PAGES, Touch::Write));
    parent.extend([step(Doing::Starts(TaskRef(1))), step(Doing::Awaits(SignalId(0)))]);
    parent.extend(touches(50, Touch::Write));
    let mut child: Vec<Step> = touches(100, Touch::Write).collect();
    child.push(step(Doing::Signals(SignalId(0))));
    Program {
        name: "family".to_owned(),
        tasks: vec![task("parent", Begins::InSpace(0), parent), task("child", Begins::AsFork, child)],
        calls: vec![Call::Exec, Call::Map(map)],
        before: vec![vec![]],
        signals: 1,
        ..Program::default()
    }
}

fn plan() -> Plan {
    Plan::new(Profile::load("kvm-genoa-2c").unwrap(), Policy::parse("linux-6.18").unwrap())
}

fn run(program: &Program, plan: &Plan, knobs: &[(Knob, u64)]) -> Run {
    let variant = Variant::from(knobs.to_vec());
    let run = replay(&Source::Program(Arc::new(program.clone())), plan, &variant).unwrap();
    Run { wall_ns: 0, ..run }
}

fn used(run: &Run) -> ProgramUse {
    run.program.expect("a program was replayed")
}

/// No event tells of what a call brings in; the kernel's account of the command does.
#[test]
fn a_proof_compares_events_with_exceptions_and_the_rest_of_an_account_with_what_calls_populate() {
    let mut program = family();
    let Call::Map(map) = &mut program.calls[1] else { unreachable!("it maps") };
    map.populate = true;
    program.surroundings.knobs = vec![(Knob::TransparentHugepage, 0)];
    program.counted.faults = 150;
    program.counted.usage = Some(trace::Usage { minor_faults: 1174, ..trace::Usage::default() });
    let source = Source::Program(Arc::new(program));
    let proof = prove(&source, Profile::load("kvm-genoa-2c").unwrap()).unwrap().unwrap();
    let row = |what: &str| {
        let row = proof.rows.iter().find(|row| row.what == what).unwrap();
        [row.recorded as u64, row.replayed as u64]
    };
    assert_eq!(row("page faults"), [150; 2], "the child's copies, and the parent's writes after it");
    assert_eq!(row("pages populated by calls"), [1024; 2]);
    assert_eq!(row("pages copied or reused"), [0, 150]);
}

#[test]
fn every_touch_of_a_small_page_is_a_fault_and_a_forked_page_is_copied_once() {
    let small = used(&run(&family(), &plan(), &[(Knob::TransparentHugepage, 0)]));
    // The child copies 100 pages; of these the parent then has 50 alone, or copies them if the child is still there.
    assert_eq!(small.faults(), u64::from(PAGES) + 100 + 50);
    assert_eq!(small.copies + small.reuses, 150);
    assert!(small.copies >= 100, "{small:?}");
    assert_eq!(small.huge_faults, 0);
    assert_eq!(small.peak_rss_pages, u64::from(PAGES), "a copy takes the place of the page that it is of");
}

#[test]
fn huge_pages_take_the_place_of_512_faults_each() {
    let huge = used(&run(&family(), &plan(), &[(Knob::TransparentHugepage, 1)]));
    let small = used(&run(&family(), &plan(), &[(Knob::TransparentHugepage, 0)]));
    assert_eq!(huge.huge_faults, 2);
    assert!(huge.faults() < 300, "{huge:?}");
    assert!(huge.cpu_ns < small.cpu_ns);
}

#[test]
fn one_seed_gives_one_result_and_copies_do_not_disturb_each_others_memory() {
    let two = Plan { copies: 2, repeat: 2, ..plan() };
    let one = run(&family(), &two, &[]);
    assert_eq!(one, run(&family(), &two, &[]));
    let small = [(Knob::TransparentHugepage, 0)];
    let alone = used(&run(&family(), &plan(), &small));
    assert_eq!(used(&run(&family(), &two, &small)).faults(), 4 * alone.faults());
    // CPUs hold a few pages back, on their way to the LRU lists.
    assert!(one.memory.held_pages < 100, "{:?}", one.memory);
}

#[test]
fn who_waits_is_delayed_by_whom_it_waits_for() {
    let mut slow = family();
    slow.tasks[1].steps[0].own_ns = 50_000_000;
    let [quick, slow] = [family(), slow].map(|program| run(&program, &plan(), &[]).simulated_ns);
    let delay = slow - quick;
    assert!((48_000_000..53_000_000).contains(&delay), "{delay}");
}

#[test]
fn a_sleep_is_over_when_another_lets_the_sleeper_go_or_else_by_itself() {
    let lasts = |child_ns: u32, sleep: fn(u32) -> Doing| {
        let mut program = family();
        program.tasks[1].steps[0].own_ns = child_ns;
        let parent = &mut program.tasks[0].steps;
        let at = parent.iter().position(|step| matches!(step.doing, Doing::Awaits(_))).unwrap();
        parent.splice(at..at, (0..4).map(|_| step(sleep(50_000_000))));
        run(&program, &plan(), &[]).simulated_ns / 1_000_000
    };
    let cut_short: fn(u32) -> Doing = |ns| Doing::AwaitsFor(SignalId(0), ns);
    let whole: u64 = lasts(0, Doing::Sleeps);
    let quick = lasts(0, cut_short);
    assert!(whole - quick > 190, "{whole} and {quick} ms: the child was there at once");
    let late = lasts(120_000_000, cut_short);
    assert!((115..=125).contains(&(late - quick)), "{late} and {quick} ms: in the midst of the third");
    assert_eq!(lasts(260_000_000, cut_short), lasts(260_000_000, Doing::Sleeps), "after all of them");
}

/// A thread touches pages, and again when another has given them back; `owner_ns` and `other_ns` are what each computes before.
fn gives_back_between(owner_ns: u32, other_ns: u32) -> Program {
    let range = PageRange { start: Vpn(HEAP), pages: PAGES };
    let map = MapCall::own(range);
    let mut owner = vec![step(Doing::Calls(0)), step(Doing::Calls(1)), step(Doing::Starts(TaskRef(1)))];
    owner.push(Step { own_ns: owner_ns, doing: Doing::Computes });
    owner.extend(touches(100, Touch::Write));
    let last = owner.len() as u32 - 1;
    owner.push(step(Doing::Awaits(SignalId(1))));
    owner.extend(touches(100, Touch::Write));
    let given = Doing::Calls(2);
    let other = vec![Step { own_ns: other_ns, doing: Doing::Awaits(SignalId(0)) }, step(given)];
    let [owner, other] = [task("owner", Begins::InSpace(0), owner), task("other", Begins::AsThread, other)];
    Program {
        name: "threads".to_owned(),
        tasks: vec![
            TaskProgram { awaited: vec![(last, SignalId(0))], ..owner },
            TaskProgram { awaited: vec![(1, SignalId(1))], ..other },
        ],
        calls: vec![Call::Exec, Call::Map(map), Call::Advise { range, advice: Advice::DontNeed }],
        before: vec![vec![]],
        signals: 2,
        ..Program::default()
    }
}

#[test]
fn what_a_thread_takes_away_is_touched_again_whoever_is_faster() {
    for (owner_ns, other_ns) in [(0, 0), (50_000_000, 0), (0, 50_000_000)] {
        let program = gives_back_between(owner_ns, other_ns);
        let used = used(&run(&program, &plan(), &[(Knob::TransparentHugepage, 0)]));
        assert_eq!((used.faults(), used.peak_rss_pages), (200, 100), "{owner_ns} and {other_ns} ns");
    }
}

#[test]
fn who_forbids_huge_pages_has_none() {
    let mut without = family();
    without.calls.push(Call::ForbidHuge);
    without.tasks[0].steps.insert(1, step(Doing::Calls(2)));
    let [with, without] =
        [family(), without].map(|program| used(&run(&program, &plan(), &[(Knob::TransparentHugepage, 1)])));
    assert_eq!((with.huge_faults, without.huge_faults), (2, 0));
    assert_eq!(without.faults(), u64::from(PAGES) + 150);
}

#[test]
fn what_was_there_before_is_no_fault_of_the_program() {
    let mut late = family();
    let range = PageRange { start: Vpn(HEAP), pages: PAGES };
    let map = MapCall::own(range);
    late.before = vec![vec![Before::Mapped(map), Before::Touched(range, Touch::Write)]];
    // The task was attached to: it neither ran exec nor mapped anything.
    late.tasks[0].steps.drain(..2);
    let small = used(&run(&late, &plan(), &[(Knob::TransparentHugepage, 0)]));
    assert_eq!((small.faults(), small.copies + small.reuses), (150, 150));
    assert!(small.peak_rss_pages >= u64::from(PAGES), "{small:?}");
}

/// Two tasks that both touch the first ten pages at about the same time.
fn at_one_page(both_allocate: Company) -> Program {
    let mut both = family();
    both.tasks[1].begins = Begins::AsThread;
    let all = both.tasks.iter_mut().flat_map(|task| &mut task.steps);
    for step in all {
        if let Doing::Touches { page, company, .. } = &mut step.doing {
            if page.0 < HEAP + 10 {
                *company = both_allocate;
            }
        }
    }
    both
}

#[test]
fn two_tasks_at_one_page_have_a_fault_each() {
    let of = |company| run(&at_one_page(company), &plan(), &[(Knob::TransparentHugepage, 0)]);
    let (close, at_once) = (of(Company::Close), of(Company::AtOnce));
    for small in [used(&close), used(&at_once)] {
        assert_eq!(small.faults(), u64::from(PAGES) + 10, "the other 90 pages of the thread are there");
        assert_eq!(small.peak_rss_pages, u64::from(PAGES));
    }
    let allocated = |run: &Run| run.latency["page_alloc"].count;
    assert_eq!(allocated(&at_once), allocated(&close) + 10, "each had a page, one of them for nothing");
}

/// A parent that writes while the child, which computes for so long first, still has the pages.
fn together(child_computes_ns: u32) -> Program {
    let mut program = family();
    let awaits =
        program.tasks[0].steps.iter().position(|step| matches!(step.doing, Doing::Awaits(_))).unwrap();
    let awaits = program.tasks[0].steps.remove(awaits);
    program.tasks[0].steps.push(awaits);
    program.tasks[1].steps.insert(0, Step { own_ns: child_computes_ns, doing: Doing::Computes });
    program
}

/// The parent's first huge page has 50 copies of its own while the child has the rest too: 462 pages are shared.
#[test]
fn khugepaged_takes_as_many_shared_pages_as_it_may() {
    let uses = |most: u64| {
        let shared = Knob::KhugepagedMaxPtesShared;
        let knobs = [(Knob::TransparentHugepage, 1), (Knob::KhugepagedScanSleep, 1), (shared, most)];
        let run = run(&together(20_000_000), &plan(), &knobs);
        let made = run.counters.get("khugepaged_pages_collapsed").copied().unwrap_or(0);
        (made, run.knob_uses[shared.spec().name].outcome)
    };
    assert_eq!(uses(Knob::KhugepagedMaxPtesShared.spec().default), (0, KnobOutcome::AtDefault));
    assert_eq!(uses(461), (0, KnobOutcome::Consulted), "decides as its default does");
    assert_eq!(uses(462), (1, KnobOutcome::Acted));
}

/// A fork is told with what it took and with what it costs the parent while the child has the pages.
#[test]
fn a_fork_says_what_it_cost() {
    let mut program = together(5_000_000);
    program.forked_ns.insert(1, 777);
    let of = |huge: u64| {
        let forks = run(&program, &plan(), &[(Knob::TransparentHugepage, huge)]).forks;
        assert_eq!((forks.count, forks.largest.len()), (1, 1));
        forks.largest[0].clone()
    };
    let (small, huge) = (of(0), of(1));
    assert_eq!((small.parent.as_str(), small.recorded_ns), ("parent", 777));
    assert_eq!((small.resident_pages, small.faults), (u64::from(PAGES), 50));
    // The child writes to 100 pages, 50 of which it has alone by then; of a huge page the parent has the rest still.
    assert_eq!((small.copied_pages, huge.copied_pages), (50 + 50, 50 + 100));
    assert!(small.fault_p50_ns > 0 && small.fault_p50_ns <= small.fault_p99_ns, "{small:?}");
    assert!(small.fault_p99_ns <= small.fault_max_ns && small.lasted_ns > 5_000_000, "{small:?}");
    assert!(huge.fork_ns < small.fork_ns, "two entries in place of 1024: {huge:?} {small:?}");
    assert_eq!(small.table_pages, 2 + 2);
}

/// Touches 32 MiB and computes for 40 ms, with four walks to its pages in a microsecond, as a look has found.
fn walker() -> Program {
    const LARGE: u32 = 8192;
    let range = PageRange { start: Vpn(HEAP), pages: LARGE };
    let map = MapCall::own(range);
    let mut steps = vec![step(Doing::Calls(0))];
    steps.extend(touches(LARGE, Touch::Write));
    steps.extend(std::iter::repeat_n(Step { own_ns: 400_000, doing: Doing::Computes }, 100));
    let walked = vec![WalkedFrom { step: 0, look: 0 }];
    let task = TaskProgram { walked, ..task("walker", Begins::InSpace(0), steps) };
    Program {
        name: "walker".to_owned(),
        tasks: vec![task],
        calls: vec![Call::Map(map)],
        before: vec![vec![]],
        walked: vec![Walked { per_second: 4_000_000, resident: u64::from(LARGE) }],
        tlb: Some(Tlb::new(&Profile::load("kvm-genoa-2c").unwrap())),
        ..Program::default()
    }
}

#[test]
fn as_recorded_walks_are_told_and_change_nothing() {
    let small = [(Knob::TransparentHugepage, 0)];
    let unknown = Program { walked: vec![], ..walker() };
    let unknown =
        Program { tasks: vec![TaskProgram { walked: vec![], ..unknown.tasks[0].clone() }], ..unknown };
    let [with, without] = [walker(), unknown].map(|program| run(&program, &plan(), &small));
    assert_eq!(with.simulated_ns, without.simulated_ns, "to the nanosecond");
    assert_eq!(with.latency, without.latency);
    let used = used(&with);
    assert_eq!(used.walk_known_ns, used.own_ns);
    assert!(used.walk_ns > 1_000_000, "{used:?}");
    assert!(
        with.notes[0].contains("are estimated") && without.notes[0].contains("left out"),
        "{:?}",
        with.notes
    );
}

#[test]
fn a_verdict_on_huge_pages_says_that_the_host_of_a_guest_is_left_out() {
    let says_so = |reports_free_pages: bool, plan: &Plan, knob: Knob| {
        let surroundings = Surroundings { reports_free_pages, ..Surroundings::default() };
        let notes = run(&Program { surroundings, ..family() }, plan, &[(knob, 1)]).notes;
        notes.iter().any(|note| note.contains("back to its host"))
    };
    let bare = Plan { profile: Profile::load("epyc-9654").unwrap(), ..plan() };
    assert!(says_so(true, &plan(), Knob::TransparentHugepage));
    assert!(!says_so(false, &plan(), Knob::TransparentHugepage), "memory stays the guest's");
    assert!(!says_so(true, &plan(), Knob::CompactionProactiveness), "of no huge page");
    assert!(!says_so(true, &bare, Knob::TransparentHugepage), "a machine without a host");
}

#[test]
fn huge_pages_save_walks_and_another_machine_has_its_own() {
    let small = used(&run(&walker(), &plan(), &[(Knob::TransparentHugepage, 0)]));
    let huge = used(&run(&walker(), &plan(), &[(Knob::TransparentHugepage, 1)]));
    assert!(huge.walk_ns < small.walk_ns / 4, "{huge:?} {small:?}");
    let saved = small.walk_ns - huge.walk_ns;
    assert!(small.cpu_ns - huge.cpu_ns > saved, "faults are saved as well: {huge:?} {small:?}");
    let bare = Plan { profile: Profile::load("epyc-9654").unwrap(), ..plan() };
    let bare = used(&run(&walker(), &bare, &[(Knob::TransparentHugepage, 0)]));
    assert!(bare.walk_ns < small.walk_ns, "no host's tables: {bare:?}");
}

/// A fork pays for each page table of the child, those above the tables of entries too.
#[test]
fn a_fork_pays_for_its_page_tables() {
    let fork = |new_table_ns: &str| {
        let profile = format!(
            "name = \"x\"\ntitle = \"x\"\nextends = \"kvm-genoa-2c\"\n[path]\nnew_table_ns = {{ value = {new_table_ns}, \
             kind = \"estimated\", source = \"a test\" }}\n"
        );
        let plan = Plan { profile: Profile::parse("x", &profile).unwrap(), ..plan() };
        run(&family(), &plan, &[(Knob::TransparentHugepage, 1)]).forks.largest[0].clone()
    };
    let (dear, free) = (fork("50000.0"), fork("0.0"));
    let tables = (dear.fork_ns - free.fork_ns) as f64 / 50_000.0;
    assert!((tables - 4.0).abs() < 0.1, "two of entries and two above them: {tables}");
}

/// Two threads on two CPUs: who changes what both may touch interrupts the other.
#[test]
fn a_change_of_entries_interrupts_who_runs_in_the_same_space() {
    let elapsed = |begins: Begins, shootdown_ns: &str| {
        let mut program = family();
        program.tasks[1].begins = begins;
        program.tasks[1].steps = vec![Step { own_ns: 20_000_000, doing: Doing::Computes }];
        let range = PageRange { start: Vpn(HEAP), pages: 1 };
        for protection in [Protection::Read, Protection::ReadWrite] {
            program.calls.push(Call::Protect { range, protection });
        }
        let steps = &mut program.tasks[0].steps;
        steps.retain(|step| !matches!(step.doing, Doing::Awaits(_)));
        steps.extend((0..200).map(|call| step(Doing::Calls(2 + call % 2))));
        let profile = format!(
            "name = \"x\"\ntitle = \"x\"\nextends = \"kvm-genoa-2c\"\n[path]\nshootdown_ns = {{ value = {shootdown_ns}, \
             kind = \"estimated\", source = \"a test\" }}\n"
        );
        let plan = Plan { profile: Profile::parse("x", &profile).unwrap(), ..plan() };
        used(&run(&program, &plan, &[(Knob::TransparentHugepage, 0)])).cpu_ns
    };
    let [thread, child] = [Begins::AsThread, Begins::AsFork]
        .map(|begins| elapsed(begins, "20000.0") as i64 - elapsed(begins, "0.0") as i64);
    assert!((200 * 15_000..200 * 25_000).contains(&thread), "each of 200 calls waits: {thread}");
    assert!(child < 5 * 20_000, "a child has a space of its own: {child}");
}
