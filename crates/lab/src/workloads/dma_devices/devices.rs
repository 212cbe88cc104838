//! What drivers of 32-bit devices ask for, as far as Mel Gorman (docs/published.md#gorman-2014) names them: sizes, rates,
//! how urgent, how long held. The shapes of the requests are those of the kernel's drivers; the rates and times are
//! estimates.

use std::collections::VecDeque;

use mm::{Machine, Nanos, Order, Pfn, Request, Urgency, ZoneKind};
use sim::Path;

use crate::stage::{Random, Stage};

/// When what starts with the machine has started.
pub(super) const BOOT: Nanos = Nanos(50_000_000);

const MS: u64 = 1_000_000;

/// `GFP_KERNEL | GFP_DMA32`: any page below 4 GiB; it may wait.
const DMA32: Request = Request { highest: ZoneKind::Dma32, ..Request::KERNEL };

/// A device with its driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Device {
    /// The AGP aperture is backed page by page, cleared, when graphics start, and stays so.
    Agp {
        /// Its size.
        mib: u32,
    },
    /// A graphics card whose buffer objects must be below 4 GiB, each of 1 MiB (pages one by one, cleared). A program that
    /// draws comes for three to six seconds: it takes four objects a frame, at 60 frames a second, until it has 192, and
    /// from then on with each frame one new one for its oldest. When it ends all go; the next comes after one to two
    /// seconds.
    Drm,
    /// A TV card: eight frame buffers of 720 x 576 pixels in two bytes each (`vmalloc_32`, pages one by one, cleared), held
    /// as long as one watches a channel, two to six seconds; half a second between two channels.
    Tv,
    /// A wireless card that reaches 30 bits: 2000 frames a second come in, ten at a time. The interrupt takes a page for each at
    /// once (`GFP_ATOMIC`), and if that is above 1 GiB another one with `GFP_DMA`; they are given back 10 ms later.
    B43,
}

const DRM_PAGES: u32 = 256;
const DRM_OBJECTS: usize = 192;
/// New objects a frame while a program loads.
const DRM_LOADED: usize = 4;
const DRM_FRAME: Nanos = Nanos(16_666_667);
const TV_PAGES: u32 = 8 * (720_u32 * 576 * 2).div_ceil(4096);
const B43_BURST: u32 = 10;
const B43_EVERY: Nanos = Nanos(5 * MS);
/// The first frame that it does not reach.
const B43_END: Pfn = Pfn(1 << (30 - 12));

impl Device {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Agp { .. } => "agp",
            Self::Drm => "drm",
            Self::Tv => "tv",
            Self::B43 => "b43",
        }
    }

    /// What its driver does until it is over.
    pub(super) fn run(self, stage: &Stage, mut random: Random) {
        match self {
            Self::Agp { mib } => agp(stage, mib << 8),
            Self::Drm => drm(stage, &mut random),
            Self::Tv => tv(stage, &mut random),
            Self::B43 => b43(stage, &mut random),
        }
    }
}

/// A page for a driver; one that is not to be had is counted.
fn page(stage: &Stage, request: Request) -> Option<Pfn> {
    stage.tally.note("device_requests", 1);
    let got = stage.mm.alloc(Request { allowed: stage.allowed, ..request }).ok();
    if got.is_none() {
        stage.tally.note("device_failed", 1);
    }
    got
}

/// So many pages, or none.
fn buffer(stage: &Stage, pages: u32) -> Vec<Pfn> {
    stage.machine().charge(Path::Syscall);
    let mut buffer = vec![];
    for _ in 0..pages {
        let Some(pfn) = page(stage, Request { zero: true, ..DMA32 }) else {
            give_back(stage, &buffer);
            return vec![];
        };
        buffer.push(pfn);
    }
    buffer
}

fn give_back(stage: &Stage, pages: &[Pfn]) {
    for &pfn in pages {
        stage.mm.free(pfn, Order::ZERO).expect("a driver frees only what it holds");
    }
}

fn agp(stage: &Stage, pages: u32) {
    let buffer = buffer(stage, pages);
    while !stage.is_over() {
        // The end is not known before it has come.
        stage.machine().sleep(Nanos(100 * MS));
    }
    give_back(stage, &buffer);
}

fn drm(stage: &Stage, random: &mut Random) {
    let machine = stage.machine();
    while !stage.is_over() {
        machine.sleep(Nanos(1000 * MS + random.below(1000 * MS)));
        let end = Nanos(machine.now().0 + 3000 * MS + random.below(3000 * MS));
        draw(stage, end);
    }
}

/// A program that draws until `end`.
fn draw(stage: &Stage, end: Nanos) {
    let machine = stage.machine();
    let mut objects: VecDeque<Vec<Pfn>> = VecDeque::new();
    let mut next = machine.now();
    while !stage.is_over() && machine.now() < end {
        let new = if objects.len() < DRM_OBJECTS { DRM_LOADED } else { 1 };
        for _ in 0..new {
            objects.push_back(buffer(stage, DRM_PAGES));
        }
        if objects.len() > DRM_OBJECTS {
            objects.pop_front().iter().for_each(|oldest| give_back(stage, oldest));
        }
        // A frame that is late is left out.
        next = Nanos((next.0 + DRM_FRAME.0).max(machine.now().0));
        machine.sleep_until(next);
    }
    for object in objects {
        give_back(stage, &object);
    }
}

fn tv(stage: &Stage, random: &mut Random) {
    let machine = stage.machine();
    machine.sleep(random.time_below(Nanos(500 * MS)));
    while !stage.is_over() {
        let frames = buffer(stage, TV_PAGES);
        let until = Nanos(machine.now().0 + 2000 * MS + random.below(4000 * MS));
        while !stage.is_over() && machine.now() < until {
            machine.sleep(Nanos(100 * MS));
        }
        give_back(stage, &frames);
        machine.sleep(Nanos(500 * MS));
    }
}

fn b43(stage: &Stage, random: &mut Random) {
    let machine = stage.machine();
    let mut held: VecDeque<Vec<Pfn>> = VecDeque::new();
    let mut next = Nanos(machine.now().0 + random.below(B43_EVERY.0));
    while !stage.is_over() {
        machine.sleep_until(next);
        next = Nanos((next.0 + B43_EVERY.0).max(machine.now().0));
        if held.len() == 2 {
            held.pop_front().iter().for_each(|burst| give_back(stage, burst));
        }
        held.push_back((0..B43_BURST).filter_map(|_| frame(stage)).collect());
    }
    for burst in held {
        give_back(stage, &burst);
    }
}

/// A page that a B43 card reaches.
fn frame(stage: &Stage) -> Option<Pfn> {
    let atomic = Request { urgency: Urgency::Atomic, ..Request::KERNEL };
    let anywhere = page(stage, atomic)?;
    if anywhere < B43_END {
        return Some(anywhere);
    }
    let low = page(stage, Request { highest: ZoneKind::Dma, ..atomic });
    give_back(stage, &[anywhere]);
    low
}
