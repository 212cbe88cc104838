//! The kernel's NUMA balancing, the baseline of docs/published.md#raghavendra-2024: a task's pages are made to fault, a
//! window of addresses at a time, and a fault says who uses a page and how soon. In mode 2 (memory tiering) only pages of
//! slow nodes fault, and hot ones are promoted; in mode 1 all do, and move to where they are used
//! (docs/rules/numa-balancing-and-tiers.md; what is not there is from memory).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::ground::{Area, HintGround, PageRange};
use super::history::{AreaHistory, Here, Look, Looker};
use crate::ground::{Nanos, Node, PAGE_SIZE, PAGEBLOCK_PAGES, SpaceId, Vpn};

/// Addresses that a window goes over for each that it marks, at most.
const VIRTUAL_RATIO: u64 = 8;
/// Threshold steps for each default threshold, times 2.
const THRESHOLD_STEPS: u64 = 16;
/// Free memory above its marks from which on a node takes whatever faults: so much, or this part of the node.
const ENOUGH_BYTES: u64 = 1 << 30;
const ENOUGH_SHARE: u64 = 16;
/// A node has a program's shared pages if so many in four of its faults are from there.
const CLAIM_OF_4: u64 = 3;

/// `kernel.numa_balancing`, as far as it says what is scanned and what a fault does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// 1: pages go to the nodes that use them.
    Normal,
    /// 2: hot pages of slow nodes go to fast ones.
    Tiering,
    /// 3: hot pages of slow nodes as in mode 2, those of fast ones as in mode 1.
    Both,
}

/// The settings under /sys/kernel/debug/sched/numa_balancing, and `kernel.numa_balancing_promote_rate_limit_MBps`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BalancingSettings {
    /// What is scanned and moved.
    pub mode: Mode,
    /// From the birth of an address space to its first window.
    pub delay: Nanos,
    /// From one window to the next, at least.
    pub period_min: Nanos,
    /// And at most.
    pub period_max: Nanos,
    /// Bytes of a window.
    pub window: u64,
    /// A page is hot that faults so soon after it was marked; the threshold begins with it.
    pub hot: Nanos,
    /// Bytes promoted to a node in a second, at most.
    pub rate_limit: u64,
}

/// A window's worth of memory, of which a program's period has as many as its memory has.
const PERIOD_BYTES: u64 = 256 << 20;
/// The shortest period, however large the program.
const PERIOD_FLOOR: u64 = 100_000_000;
/// Parts of a period that it changes by, and of faults that must be local, or a thread's own, for it to grow.
const PERIOD_PARTS: u64 = 10;
const PERIOD_THRESHOLD: u64 = 7;

/// Windows over an address space. Threads of the program take turns: one takes the scan, marks a window, puts it back.
#[derive(Debug)]
pub struct HintScan {
    space: SpaceId,
    at: Vpn,
    next: Nanos,
    period: Nanos,
    /// Faults since the period was last thought over, and whether all of the address space has been marked since.
    faults: FaultCounts,
    pass_is_over: bool,
    /// What it was thought over from last.
    last: Option<Thought>,
    /// Windows so far, and passes over all of the address space (`numa_scan_seq`).
    windows: u64,
    passes: u32,
    /// Pages that the last one went over, those of other nodes than it marks among them.
    passed: u64,
}

/// What a period follows from.
#[derive(Clone, Copy, Debug)]
struct Thought {
    period: Nanos,
    faults: FaultCounts,
    /// Bytes of memory that the program had.
    resident: u64,
}

/// Faults of a program's pages, by what they say of its place (`numa_faults_locality`).
#[derive(Clone, Copy, Debug, Default)]
struct FaultCounts {
    local: u64,
    remote: u64,
    /// By the thread that had the fault before, or the page's first.
    private: u64,
    shared: u64,
    /// Pages that were to move and could not.
    failed: u64,
}

impl HintScan {
    /// That of an address space that is born `now`.
    pub fn new(space: SpaceId, now: Nanos, settings: &BalancingSettings) -> Self {
        let (next, period) = (Nanos(now.0 + settings.delay.0), settings.period_min);
        let faults = FaultCounts::default();
        Self {
            space,
            at: Vpn(0),
            next,
            period,
            faults,
            pass_is_over: false,
            last: None,
            windows: 0,
            passes: 0,
            passed: 0,
        }
    }

    /// Passes over all of the address space so far.
    pub fn passes(&self) -> u32 {
        self.passes
    }

    /// From one window to the next, at present.
    pub fn period(&self) -> Nanos {
        self.period
    }

    /// A fault that counts ([`Balancing::counts`]) of a program with `resident` bytes of memory. The first one after a pass over
    /// all of it thinks the period over (`update_task_scan_period`). Linux keeps this by thread; here a program's threads
    /// have one count together.
    pub fn note(&mut self, fault: HintFault, moved: Moved, resident: u64, settings: &BalancingSettings) {
        if self.pass_is_over {
            let thought = Thought { period: self.period, faults: self.faults, resident };
            (self.period, self.last) = (next_period(thought, settings), Some(thought));
            (self.faults, self.pass_is_over) = (FaultCounts::default(), false);
        }
        let faults = &mut self.faults;
        *(if fault.from == fault.by { &mut faults.local } else { &mut faults.remote }) += 1;
        *(if fault.is_private { &mut faults.private } else { &mut faults.shared }) += 1;
        faults.failed += u64::from(moved == Moved::Failed);
    }

    /// Whether the next window is due.
    pub fn is_due(&self, now: Nanos) -> bool {
        now >= self.next
    }

    /// Whether the first window would be due with the delay of `other` in the place of that of `settings`; the later ones
    /// are as they are.
    pub fn would_be_due(&self, now: Nanos, settings: &BalancingSettings, other: &BalancingSettings) -> bool {
        match self.windows {
            0 => now.0 + settings.delay.0 >= self.next.0 + other.delay.0,
            _ => self.is_due(now),
        }
    }

    /// The period that `settings` make of what it was thought over from last.
    pub fn period_by(&self, settings: &BalancingSettings) -> Nanos {
        self.last.map_or(settings.period_min, |thought| next_period(thought, settings))
    }

    /// Whether the last window, which marked so many pages, would have been another with the size of `other`: whether one of
    /// the two sizes ended it.
    pub fn would_be_other(
        &self,
        marked: u64,
        settings: &BalancingSettings,
        other: &BalancingSettings,
    ) -> bool {
        let most = settings.window.min(other.window) / PAGE_SIZE;
        settings.window != other.window && (marked >= most || self.passed >= VIRTUAL_RATIO * most)
    }

    /// Marks the next window; gives the pages marked.
    pub fn mark(&mut self, ground: &impl HintGround, settings: &BalancingSettings) -> u64 {
        self.windows += 1;
        self.next = Nanos(ground.now().0 + self.period.0);
        let most = settings.window / PAGE_SIZE;
        let (mut marked, mut passed) = (0, 0);
        while marked < most && passed < VIRTUAL_RATIO * most {
            let Some(area) = ground.area(self.space, self.at) else {
                // The next window begins anew.
                self.at = Vpn(0);
                self.pass_is_over = true;
                self.passes += 1;
                break;
            };
            if !area.is_scanned {
                // Passed at once, whatever its size: a large mapping of a device costs no windows.
                self.at = area.range.end;
                continue;
            }
            let (part, here) = self.mark_part(area, ground, settings);
            marked += here;
            passed += u64::from(part.pages());
        }
        self.passed = passed;
        marked
    }

    /// The same by a task of its own: it goes over mappings that it uses, or that nobody is known to use, and over one more if
    /// these are all.
    pub fn mark_by(
        &mut self,
        who: Looker,
        history: &mut AreaHistory,
        ground: &impl HintGround,
        settings: &BalancingSettings,
    ) -> u64 {
        self.windows += 1;
        let (now, delay, from) = (ground.now(), settings.delay, self.at);
        self.next = Nanos(now.0 + self.period.0);
        let most = settings.window / PAGE_SIZE;
        let (mut marked, mut passed, mut others, mut forced) = (0, 0, false, false);
        while marked < most && passed < VIRTUAL_RATIO * most {
            let here = Here { now, passes: self.passes, delay, who };
            let Some(area) = ground.area(self.space, self.at) else {
                if others && !forced {
                    (forced, self.at) = (true, from);
                    continue;
                }
                self.at = Vpn(0);
                self.pass_is_over = true;
                self.passes += 1;
                break;
            };
            let begins = self.at <= area.range.start;
            let look = match (area.is_scanned, begins) {
                (false, _) => Look::No,
                // It was begun.
                (true, false) => Look::Yes,
                (true, true) => history.look(area, here),
            };
            others |= look == Look::NotMine;
            if look == Look::No || look == Look::NotMine && !forced {
                self.at = area.range.end;
                continue;
            }
            let (part, here) = self.mark_part(area, ground, settings);
            marked += here;
            passed += u64::from(part.pages());
            if self.at == area.range.end {
                history.scanned(area.range.start, self.passes);
                if forced {
                    break;
                }
            }
        }
        self.passed = passed;
        marked
    }

    /// Marks the next part of `area`; gives it, and the pages marked.
    fn mark_part(
        &mut self,
        area: Area,
        ground: &impl HintGround,
        settings: &BalancingSettings,
    ) -> (PageRange, u64) {
        let start = self.at.max(area.range.start);
        let part = PageRange { start, end: area.range.end }.first(PAGEBLOCK_PAGES);
        let marks = |node| settings.mode != Mode::Tiering || !ground.is_fast(node);
        let marked = u64::from(ground.mark(self.space, part, marks));
        self.at = part.end;
        (part, marked)
    }
}

/// The period after a pass with such faults: longer where most of them were local, or a thread's own, shorter where not.
fn next_period(thought: Thought, settings: &BalancingSettings) -> Nanos {
    let Thought { period, faults, resident } = thought;
    let windows = resident.div_ceil(PERIOD_BYTES).max(1);
    let least = (settings.period_min.0 / windows).max(PERIOD_FLOOR);
    let most = (settings.period_max.0 / windows).max(least);
    let tenths = |of: u64, others: u64| PERIOD_PARTS * of / (of + others).max(1);
    let (local, private) = (tenths(faults.local, faults.remote), tenths(faults.private, faults.shared));
    let step = period.0.div_ceil(PERIOD_PARTS);
    let longer = |by: u64| period.0 + (by - PERIOD_THRESHOLD).max(1) * step;
    let next = if faults.local + faults.remote == 0 || faults.failed > 0 {
        2 * period.0
    } else if private >= PERIOD_THRESHOLD {
        longer(private)
    } else if local >= PERIOD_THRESHOLD {
        longer(local)
    } else {
        period.0.saturating_sub((PERIOD_THRESHOLD - local.max(private)) * step)
    };
    Nanos(next.clamp(least, most))
}

/// What became of a page after its fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moved {
    /// It is where it was, as was decided.
    Stayed,
    /// It moved.
    Moved,
    /// It was to move, and could not.
    Failed,
}

/// A hint fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HintFault {
    /// Where the page is.
    pub from: Node,
    /// The node of the CPU that touched it.
    pub by: Node,
    /// The node of the CPU that faulted on it the time before, if it did.
    pub last_by: Option<Node>,
    /// Whether it was by the same thread, or there was none.
    pub is_private: bool,
    /// When it was marked.
    pub marked: Nanos,
    /// What is known of who uses the program's pages.
    pub users: Users,
}

/// What is known of who uses a program's pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Users {
    /// Threads that follow a model are not told apart: all programs' faults together say which node has a claim to what is shared.
    Modelled,
    /// Tasks of a program that are.
    Tasks {
        /// Whose pages they are.
        space: SpaceId,
        /// Passes over all of them so far ([`HintScan::passes`]): up to [`EARLY_PASSES`] pages move at their first fault.
        passes: u32,
        /// Whether several tasks have faulted on the same pages (`numa_group`).
        sharing: bool,
    },
}

/// In the first passes a page moves to the task that faults on it, if that is its first user or its last one.
pub const EARLY_PASSES: u32 = 4;

/// What is known of promotions to a node.
#[derive(Clone, Copy, Debug)]
struct Promotions {
    threshold: Nanos,
    /// When the threshold was last looked at, and candidates since.
    since: Nanos,
    candidates: u64,
    /// The second that the rate limit is in, and bytes in it.
    second: u64,
    in_second: u64,
}

/// Decides what a hint fault does.
#[derive(Debug)]
pub struct Balancing {
    settings: BalancingSettings,
    promotions: Vec<Promotions>,
    /// Faults by the node of the CPU, of each program whose tasks are told apart, and of all others together.
    faults: BTreeMap<Option<SpaceId>, Vec<u64>>,
}

impl Balancing {
    /// For a machine of `nodes`.
    pub fn new(settings: BalancingSettings, nodes: u16) -> Self {
        let (threshold, since) = (settings.hot, Nanos(0));
        let fresh = Promotions { threshold, since, candidates: 0, second: 0, in_second: 0 };
        let nodes = usize::from(nodes);
        Self { settings, promotions: alloc::vec![fresh; nodes], faults: BTreeMap::new() }
    }

    /// Its settings.
    pub fn settings(&self) -> &BalancingSettings {
        &self.settings
    }

    /// Whether a fault says something of its program's place (`task_numa_fault`): of pages of slow nodes only in mode 1, and
    /// not their first one.
    pub fn counts(&self, fault: HintFault, ground: &impl HintGround) -> bool {
        ground.is_fast(fault.from) || self.settings.mode == Mode::Normal && fault.last_by.is_some()
    }

    /// The fault of a page of `bytes`: where the page is to go, if anywhere.
    pub fn fault(&mut self, fault: HintFault, bytes: u64, ground: &impl HintGround) -> Option<Node> {
        self.count(fault);
        let by_heat = match self.settings.mode {
            Mode::Tiering => true,
            Mode::Both => !ground.is_fast(fault.from),
            Mode::Normal => false,
        };
        let moves = if by_heat {
            !ground.is_fast(fault.from) && self.is_hot(fault, bytes, ground)
        } else {
            self.is_used_there(fault, ground)
        };
        (moves && fault.by != fault.from).then_some(fault.by)
    }

    fn count(&mut self, fault: HintFault) {
        let by_node = self.faults.entry(fault.users.space()).or_default();
        let node = usize::from(fault.by.0);
        by_node.resize(by_node.len().max(node + 1), 0);
        by_node[node] += 1;
    }

    /// Whether the page is used from where it has just faulted, as far as is known (`should_numa_migrate_memory`).
    fn is_used_there(&self, fault: HintFault, ground: &impl HintGround) -> bool {
        let slow = !ground.is_fast(fault.from);
        // The filter of two stages: by chance a page is not used twice in a row from the same node.
        let twice = fault.last_by == Some(fault.by);
        match fault.users {
            // A slow node has no CPUs whose claim would be weighed against that of the one that faults.
            Users::Modelled => twice && (slow || self.has_claim(fault)),
            Users::Tasks { .. } if slow && fault.last_by.is_none() => false,
            Users::Tasks { passes, .. } if passes <= EARLY_PASSES && fault.is_private => true,
            Users::Tasks { .. } if fault.last_by.is_some() && !twice => false,
            Users::Tasks { sharing, .. } => fault.is_private || !sharing || slow || self.has_claim(fault),
        }
    }

    /// Whether most faults are from the node of `fault`: memory that threads of several nodes share alike stays.
    fn has_claim(&self, fault: HintFault) -> bool {
        let by_node = self.faults.get(&fault.users.space()).map_or(&[][..], |by_node| by_node);
        let all: u64 = by_node.iter().sum();
        4 * by_node.get(usize::from(fault.by.0)).copied().unwrap_or(0) > CLAIM_OF_4 * all
    }

    fn is_hot(&mut self, fault: HintFault, bytes: u64, ground: &impl HintGround) -> bool {
        let (now, settings) = (ground.now(), self.settings);
        let enough = ENOUGH_BYTES.max(ground.size(fault.by) / ENOUGH_SHARE);
        let node = &mut self.promotions[usize::from(fault.by.0)];
        if ground.has_room(fault.by, enough) {
            node.threshold = settings.hot;
            return true;
        }
        node.adjust(now, &settings);
        if now.0.saturating_sub(fault.marked.0) >= node.threshold.0 {
            return false;
        }
        node.candidates += bytes;
        node.may_take(now, bytes, settings.rate_limit)
    }
}

impl Users {
    /// The program, where it is told from others.
    const fn space(self) -> Option<SpaceId> {
        match self {
            Self::Modelled => None,
            Self::Tasks { space, .. } => Some(space),
        }
    }
}

impl Promotions {
    /// Once in the longest period: the threshold falls where there were more candidates than the rate limit allows, and
    /// rises where there were fewer.
    fn adjust(&mut self, now: Nanos, settings: &BalancingSettings) {
        let period = settings.period_max.0;
        if now.0.saturating_sub(self.since.0) < period {
            return;
        }
        let expected = u128::from(settings.rate_limit) * u128::from(period) / 1_000_000_000;
        let (step, seen) = (2 * settings.hot.0 / THRESHOLD_STEPS, u128::from(self.candidates));
        if 10 * seen > 11 * expected {
            self.threshold.0 = self.threshold.0.saturating_sub(step).max(step);
        } else if 10 * seen < 9 * expected {
            self.threshold.0 = (self.threshold.0 + step).min(2 * settings.hot.0);
        }
        (self.since, self.candidates) = (now, 0);
    }

    fn may_take(&mut self, now: Nanos, bytes: u64, limit: u64) -> bool {
        let second = now.0 / 1_000_000_000;
        if second != self.second {
            (self.second, self.in_second) = (second, 0);
        }
        let allowed = self.in_second < limit;
        self.in_second += bytes;
        allowed
    }
}
