//! The kernel's NUMA balancing, the baseline of docs/published.md#raghavendra-2024: a task's pages are made to fault, a
//! window of addresses at a time, and a fault says who uses a page and how soon. In mode 2 (memory tiering) only pages of
//! slow nodes fault, and hot ones are promoted; in mode 1 all do, and move to where they are used
//! (docs/rules/numa-balancing-and-tiers.md; what is not there is from memory).

use alloc::vec::Vec;

use super::ground::{Ground, PageRange};
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
    /// Windows so far.
    windows: u64,
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
            passed: 0,
        }
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
    pub fn mark(&mut self, ground: &impl Ground, settings: &BalancingSettings) -> u64 {
        self.windows += 1;
        self.next = Nanos(ground.now().0 + self.period.0);
        let most = settings.window / PAGE_SIZE;
        let (mut marked, mut passed) = (0, 0);
        while marked < most && passed < VIRTUAL_RATIO * most {
            let Some(area) = ground.area(self.space, self.at) else {
                // The next window begins anew.
                self.at = Vpn(0);
                self.pass_is_over = true;
                break;
            };
            if !area.is_scanned {
                // Passed at once, whatever its size: a large mapping of a device costs no windows.
                self.at = area.range.end;
                continue;
            }
            let start = self.at.max(area.range.start);
            let part = PageRange { start, end: area.range.end }.first(PAGEBLOCK_PAGES);
            let marks = |node| settings.mode != Mode::Tiering || !ground.is_fast(node);
            marked += u64::from(ground.mark(self.space, part, marks));
            passed += u64::from(part.pages());
            self.at = part.end;
        }
        self.passed = passed;
        marked
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
}

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
    /// Faults by the node of the CPU.
    faults: Vec<u64>,
}

impl Balancing {
    /// For a machine of `nodes`.
    pub fn new(settings: BalancingSettings, nodes: u16) -> Self {
        let (threshold, since) = (settings.hot, Nanos(0));
        let fresh = Promotions { threshold, since, candidates: 0, second: 0, in_second: 0 };
        let nodes = usize::from(nodes);
        Self { settings, promotions: alloc::vec![fresh; nodes], faults: alloc::vec![0; nodes] }
    }

    /// Its settings.
    pub fn settings(&self) -> &BalancingSettings {
        &self.settings
    }

    /// Whether a fault says something of its program's place (`task_numa_fault`): of pages of slow nodes only in mode 1, and
    /// not their first one.
    pub fn counts(&self, fault: HintFault, ground: &impl Ground) -> bool {
        ground.is_fast(fault.from) || self.settings.mode == Mode::Normal && fault.last_by.is_some()
    }

    /// The fault of a page of `bytes`: where the page is to go, if anywhere.
    pub fn fault(&mut self, fault: HintFault, bytes: u64, ground: &impl Ground) -> Option<Node> {
        self.faults[usize::from(fault.by.0)] += 1;
        let by_heat = match self.settings.mode {
            Mode::Tiering => true,
            Mode::Both => !ground.is_fast(fault.from),
            Mode::Normal => false,
        };
        let moves = if by_heat {
            !ground.is_fast(fault.from) && self.is_hot(fault, bytes, ground)
        } else {
            // The filter of two stages: by chance a page is not used twice in a row from the same node. A slow node has no CPUs
            // whose claim would be weighed against that of the one that faults.
            fault.last_by == Some(fault.by) && (!ground.is_fast(fault.from) || self.has_claim(fault.by))
        };
        (moves && fault.by != fault.from).then_some(fault.by)
    }

    /// Whether most faults are from `node`: memory that threads of several nodes share alike stays.
    fn has_claim(&self, node: Node) -> bool {
        let all: u64 = self.faults.iter().sum();
        4 * self.faults[usize::from(node.0)] > CLAIM_OF_4 * all
    }

    fn is_hot(&mut self, fault: HintFault, bytes: u64, ground: &impl Ground) -> bool {
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
