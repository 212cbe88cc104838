//! Plays a scene's program, and notes what is counted at its marks.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use mm::vm::{AddressSpace, Advice, FileKind, MapSpec, PartOf, Residence, Touch, Vpn};
use mm::{Bare, Cpu, Knob};

use super::machine::{Played, spec_of};
use super::program::{Line, Order, Part, What};
use crate::conform::read::sections::FormatError;

/// How many operations and touches of pages are played: a scene says `repeat` as often as it likes.
const MOST_STEPS: u64 = 50_000_000;
/// What a round of khugepaged counts as.
const ROUND_STEPS: u64 = 1000;
/// Regions that a process may have, a GiB each.
const MOST_REGIONS: usize = 1000;
/// Pages of 1 GiB.
const GIB: u32 = 1 << 18;
/// Pages of its own (stack, data) that a program writes to between any two marks: captured, where a fork took them from it.
const OWN: u32 = 4;
/// Where they are, and behind them the one that its first sleep touches.
const OWN_AT: Vpn = Vpn(1 << 10);

/// What was there at a mark.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// The program's faults since its mark before: minor, major. `None` at a process's first.
    pub(super) faults: Option<(u64, u64)>,
    /// Whether a forked process said it.
    pub(super) is_child: bool,
    /// Events of the whole machine, from the beginning.
    pub(super) events: BTreeMap<String, u64>,
    /// By region, what is resident, by eighths.
    pub(super) regions: BTreeMap<String, BTreeMap<&'static str, [u64; 8]>>,
}

/// All marks, and where the play stopped, if it did not come to the end.
#[derive(Debug, Default)]
pub(super) struct Marks {
    pub(super) seen: Vec<Seen>,
    pub(super) stopped: Option<String>,
}

#[derive(Clone, Copy, Debug)]
struct Region {
    start: Vpn,
    pages: u32,
    next: u32,
}

struct Process {
    space: Arc<AddressSpace<Bare>>,
    regions: BTreeMap<String, Region>,
    seeds: BTreeMap<u64, u64>,
    last: Option<(u64, u64)>,
    has_slept: bool,
    is_child: bool,
}

struct Player {
    machine: Played,
    marks: Marks,
    left: Cell<u64>,
}

/// Why a play does not go on.
enum Stop {
    /// An operation that is not played.
    Here(String),
    Bad(FormatError),
}

/// Plays `program`.
pub(super) fn play(machine: Played, program: &[Line]) -> Result<Marks, FormatError> {
    let space = machine.mm.spaces().new_space();
    let own = machine.mm.spaces().mmap_at(&space, OWN_AT, MapSpec::anonymous(OWN + 1));
    own.map_err(|error| FormatError::new(0, error.to_string()))?;
    let mut player = Player { machine, marks: Marks::default(), left: Cell::new(MOST_STEPS) };
    let (regions, seeds) = Default::default();
    let mut process = Process { space, regions, seeds, last: None, has_slept: false, is_child: false };
    player.touch_own(&process, 0..OWN);
    match player.lines(&mut process, program) {
        Ok(()) => {}
        Err(Stop::Here(what)) => player.marks.stopped = Some(what),
        Err(Stop::Bad(error)) => return Err(error),
    }
    Ok(player.marks)
}

impl Player {
    fn lines(&mut self, process: &mut Process, lines: &[Line]) -> Result<(), Stop> {
        lines.iter().try_for_each(|line| self.line(process, line))
    }

    /// So many steps more; says no once there were too many.
    fn step(&self, steps: u64) -> Result<(), String> {
        let left = self.left.get().checked_sub(steps);
        self.left.set(left.unwrap_or(0));
        left.map(drop).ok_or_else(|| format!("more than {MOST_STEPS} steps are not played"))
    }

    fn line(&mut self, process: &mut Process, line: &Line) -> Result<(), Stop> {
        let fail = |what: String| Stop::Here(format!("line {}: {what}", line.number));
        self.step(1).map_err(&fail)?;
        let bad = |what: &str| Stop::Bad(FormatError::new(line.number, what));
        let known = |process: &Process, name: &str| {
            process.regions.get(name).copied().ok_or_else(|| bad("a region of that name is not mapped"))
        };
        let spaces = self.machine.mm.spaces();
        match &line.what {
            What::Set { file, value } => drop(self.machine.set(file, value)),
            What::Map { name, pages, shared, huge } => {
                self.map(process, name, *pages, if *shared { None } else { Some(spec_of(*pages, *huge)) })
                    .map_err(&fail)?;
            }
            What::Touch { name, part, stride, touch, order, times } => {
                let region = known(process, name)?;
                let (from, to) = Self::part(process, name, region, *part);
                for _ in 0..*times {
                    self.touch(process, (region.start.add(from), to - from, *stride), *touch, *order)
                        .map_err(&fail)?;
                }
            }
            What::Advise { name, advice, part } => {
                let region = known(process, name)?;
                for (start, pages) in Self::pieces(process, name, region, *part) {
                    self.advise(process, (start, pages), *advice).map_err(&fail)?;
                }
            }
            What::Unmap { name, part } => {
                let region = known(process, name)?;
                for (start, pages) in Self::pieces(process, name, region, *part) {
                    self.machine.mm.spaces().munmap(&process.space, start, pages);
                }
            }
            What::Policy { name, policy } => {
                let region = known(process, name)?;
                let bound = spaces.mbind(&process.space, region.start, region.pages, *policy);
                bound.map_err(|error| fail(error.to_string()))?;
            }
            What::Cpu(cpu) => self.machine.mm.machine().set_cpu(Cpu(*cpu)),
            What::Sleep(ms) => self.sleep(process, *ms).map_err(&fail)?,
            What::Mark => self.mark(process),
            What::Fork(body) => self.fork(process, body)?,
            What::Repeat(times, body) => {
                for _ in 0..*times {
                    self.lines(process, body)?;
                }
            }
            What::Other(what) => return Err(fail(format!("`{what}` is not played"))),
        }
        Ok(())
    }

    /// Maps a region by its `spec`, or of memory that is shared.
    fn map(
        &self,
        process: &mut Process,
        name: &str,
        pages: u32,
        spec: Option<MapSpec<Bare>>,
    ) -> Result<(), String> {
        if pages > GIB || process.regions.len() >= MOST_REGIONS {
            return Err(format!("{MOST_REGIONS} regions of 1 GiB are the most that is played"));
        }
        let start = Vpn((4 + process.regions.len() as u32) * GIB);
        let mm = &self.machine.mm;
        let spec = spec.unwrap_or_else(|| MapSpec::shared(&mm.files().new_file(FileKind::Memory), pages));
        mm.spaces().mmap_at(&process.space, start, spec).map_err(|error| error.to_string())?;
        process.regions.insert(name.to_owned(), Region { start, pages, next: 0 });
        Ok(())
    }

    /// The child runs to its end, and the parent goes on.
    fn fork(&mut self, process: &mut Process, body: &[Line]) -> Result<(), Stop> {
        let spaces = self.machine.mm.spaces();
        let space = spaces.fork(&process.space).map_err(|error| Stop::Here(error.to_string()))?;
        let mut child = Process {
            space,
            regions: process.regions.clone(),
            seeds: process.seeds.clone(),
            last: None,
            has_slept: process.has_slept,
            is_child: true,
        };
        self.lines(&mut child, body)?;
        self.machine.mm.spaces().exit(&child.space);
        Ok(())
    }

    /// The first page and the one behind the last of `part` of a region.
    fn part(process: &mut Process, name: &str, region: Region, part: Part) -> (u32, u32) {
        if let Some(size) = part.next.map(|size| size.min(region.pages)) {
            let from = if region.pages - region.next < size { 0 } else { region.next };
            if let Some(region) = process.regions.get_mut(name) {
                region.next = from + size;
            }
            return (from, from + size);
        }
        let to = part.to.unwrap_or(region.pages).min(region.pages);
        (part.from.unwrap_or(0).min(to), to)
    }

    fn pieces(process: &mut Process, name: &str, region: Region, part: Part) -> Vec<(Vpn, u32)> {
        let (from, to) = Self::part(process, name, region, part);
        let (every, piece) = part.every.unwrap_or((to - from, to - from));
        let starts = (from..to).step_by(every.max(1) as usize);
        starts.map(|at| (region.start.add(at), piece.min(to - at))).collect()
    }

    fn touch(
        &self,
        process: &mut Process,
        (start, pages, stride): (Vpn, u32, u32),
        touch: Touch,
        order: Order,
    ) -> Result<(), String> {
        let strides = pages.div_ceil(stride.max(1));
        self.step(strides.into())?;
        for number in 0..strides {
            let at = match order {
                Order::Up => number,
                Order::Down => strides - 1 - number,
                Order::Drawn(seed) => {
                    let state = process.seeds.entry(seed).or_insert(seed);
                    (draw(state) % u64::from(strides)) as u32
                }
            };
            let touched = self.machine.mm.spaces().touch_page(&process.space, start.add(at * stride), touch);
            touched.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn advise(&self, process: &Process, (start, pages): (Vpn, u32), advice: Advice) -> Result<(), String> {
        let taken = self.machine.mm.spaces().madvise(&process.space, start, pages, advice);
        taken.map_err(|error| error.to_string())
    }

    /// khugepaged works while the program sleeps.
    fn sleep(&self, process: &mut Process, ms: u64) -> Result<(), String> {
        if !process.has_slept {
            process.has_slept = true;
            self.touch_own(process, OWN..OWN + 1);
        }
        let every = self.machine.mm.knobs().get(Knob::KhugepagedScanSleep).max(1);
        for _ in 0..ms / every {
            self.step(ROUND_STEPS)?;
            self.machine.mm.collapses().khugepaged();
        }
        Ok(())
    }

    fn touch_own(&self, process: &Process, pages: std::ops::Range<u32>) {
        for page in pages {
            // There is memory for four pages, or the scene's next operation says that there is none.
            let _ = self.machine.mm.spaces().touch_page(&process.space, OWN_AT.add(page), Touch::Write);
        }
    }

    fn mark(&mut self, process: &mut Process) {
        self.touch_own(process, 0..OWN);
        let counters = process.space.counters();
        let now = (counters.minor, counters.major);
        let faults = process.last.map(|last| (now.0 - last.0, now.1 - last.1));
        process.last = Some(now);
        let events = self.machine.mm.views().counters().0;
        let regions = process.regions.iter();
        let regions = regions.map(|(name, region)| (name.clone(), self.residence(process, *region)));
        self.marks.seen.push(Seen { faults, is_child: process.is_child, events, regions: regions.collect() });
    }

    fn residence(&self, process: &Process, region: Region) -> BTreeMap<&'static str, [u64; 8]> {
        let mut all: BTreeMap<&'static str, [u64; 8]> = BTreeMap::new();
        for page in 0..region.pages {
            let eighth = (u64::from(page) * 8 / u64::from(region.pages)) as usize;
            let mut count = |what| all.entry(what).or_default()[eighth] += 1;
            let part = match self.machine.mm.spaces().residence(&process.space, region.start.add(page)) {
                Residence::Absent => continue,
                Residence::Swapped => {
                    count("swapped");
                    continue;
                }
                Residence::Zeros(part) => {
                    count("zero");
                    part
                }
                Residence::Page(node, part) => {
                    count(if node.0 == 0 { "node0" } else { "node1" });
                    part
                }
            };
            count("present");
            if part == PartOf::Huge {
                count("huge");
            }
        }
        all
    }
}

/// xorshift64*: the next draw, of 48 bits.
fn draw(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(2_685_821_657_736_338_717) >> 16
}
