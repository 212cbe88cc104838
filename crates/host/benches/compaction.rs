//! Finding a pageblock to empty in 32 GiB of fragmented memory, in real time: by what `+compact-summary` knows of the
//! blocks, and by the walk from page to page of linux-6.18's migrate scanner, in one run. The machine has 128 GiB, of which
//! there are descriptors only, about 2 GiB of them; nothing is cleared or copied.
//!
//! The state is made from a seed: programs have touched all memory, most pageblocks have got a page of the kernel's among
//! theirs, then a quarter of all pages was given back here and there. For the walk, all pages of the last node are pinned, so
//! that it looks at every page, moves none, and comes to the end.

mod descriptors;

use std::sync::Arc;
use std::time::{Duration, Instant};

use descriptors::Descriptors;
use mm::vm::{AddressSpace, MapSpec, Pinned, Touch, Vpn};
use mm::{Knob, Knobs, Mm, Node, Order, Pfn, Policy, Request, Zone};

const NODES: u32 = 4;
/// Frames of a node: 32 GiB.
const FRAMES: u32 = 8 << 20;
/// Measured on this one, the last that memory was taken from.
const LAST: Node = Node(NODES as u16 - 1);
/// Pages that stay free: reserves and what page tables take, about.
const SPARE: u32 = NODES * FRAMES / 128;
/// Of a hundred pageblocks, those that get a page of the kernel's.
const POLLUTED_PERCENT: u64 = 95;
/// One page in so many is given back.
const HOLES: u64 = 4;
const WALKS: usize = 5;
const FINDS: usize = 201;
/// Huge pages that are asked for; those for which pages had to move are measured.
const REQUESTS: usize = 2000;
const SERVED: usize = 21;

/// Mixes a number: the same at every run.
fn mixed(number: u32) -> u64 {
    let seed = (u64::from(number) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let seed = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    seed ^ seed >> 27
}

struct Fragmented {
    mm: Mm<Descriptors>,
    space: Arc<AddressSpace<Descriptors>>,
    pages: std::ops::Range<u32>,
}

impl Fragmented {
    fn new(policy: &str) -> Self {
        let knobs = Knobs::default();
        for (knob, value) in [(Knob::TransparentHugepage, 0), (Knob::MinFreeKbytes, 4096)] {
            knobs.set(knob, value).expect("in range");
        }
        let policy = Policy::parse(policy).expect("a policy's name");
        let topology = descriptors::topology(NODES, FRAMES);
        let mm = Mm::new(Descriptors, topology, policy, knobs).expect("a machine of four nodes");
        let space = mm.spaces().new_space();
        let count = NODES * FRAMES - SPARE;
        let start = mm.spaces().mmap(&space, MapSpec::anonymous(count)).expect("32 bits of page numbers").0;
        // The last ones may not be there.
        let _ = mm.spaces().populate(&space, Vpn(start), count, Touch::Write);
        mm.lru().lru_drain_all();
        let made = Self { mm, space, pages: start..start + count };
        made.pollute();
        made.give_back(|frame| mixed(frame) % HOLES == 0);
        made
    }

    /// A page of most blocks is given back, and the kernel takes it.
    fn pollute(&self) {
        let block = Order::PAGEBLOCK.pages();
        let polluted = |frame: u32| mixed(frame / block) % 100 < POLLUTED_PERCENT;
        let chosen = |frame: u32| frame % block == mixed(frame / block + 7) as u32 % block;
        let taken = self.give_back(|frame| chosen(frame) && polluted(frame));
        for node in 0..NODES as u16 {
            let request = Request { node: Some(Node(node)), this_node: true, ..Request::KERNEL };
            let request = Request { urgency: mm::Urgency::NoWait, ..request };
            for _ in 0..taken / NODES {
                if self.mm.alloc(request).is_err() {
                    break;
                }
            }
        }
    }

    fn give_back(&self, goes: impl Fn(u32) -> bool) -> u32 {
        let mut gone = 0;
        for page in self.pages.clone() {
            if self.space.access(Vpn(page), Touch::Read).is_some_and(|frame| goes(frame.0)) {
                self.mm.spaces().munmap(&self.space, Vpn(page), 1);
                gone += 1;
            }
        }
        self.mm.lru().lru_drain_all();
        self.mm.drain_all();
        gone
    }

    fn zone(&self) -> &Zone<Descriptors> {
        self.mm.zones().iter().find(|zone| zone.node() == LAST).expect("every node has memory")
    }

    fn pin_all(&self) -> Vec<Pinned> {
        let first = Pfn(u32::from(LAST.0) * FRAMES);
        let there =
            |page: &u32| self.space.access(Vpn(*page), Touch::Read).is_some_and(|frame| frame >= first);
        let pin =
            |page: u32| self.mm.rmap().pin_page(&self.space, Vpn(page), Touch::Read).expect("it is mapped");
        self.pages.clone().filter(there).map(pin).collect()
    }

    fn counter(&self, name: &str) -> u64 {
        let counters = self.mm.views().counters();
        let of_name = counters.0.iter().filter(|(counter, _)| counter.starts_with(name));
        of_name.map(|(_, count)| count).sum()
    }

    /// Times of requests for a huge page of the last node for which pages had to move, and how many these were on average.
    fn serve(&self) -> (Duration, u64) {
        let request =
            Request { node: Some(LAST), this_node: true, ..Request::USER.of_order(Order::PAGEBLOCK) };
        let moved = || self.counter("compact_pages_moved");
        let first = moved();
        let mut times = Vec::new();
        for _ in 0..REQUESTS {
            let (before, start) = (moved(), Instant::now());
            self.mm.alloc(request).expect("there is a block that can be emptied");
            let time = start.elapsed();
            if moved() > before {
                times.push(time);
            }
            if times.len() == SERVED {
                break;
            }
        }
        let pages = (moved() - first) / times.len().max(1) as u64;
        (median(times), pages)
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The walk: its time, and the pages that it looked at.
fn walk() -> (Duration, u64) {
    let made = Fragmented::new("linux-6.18");
    let pins = made.pin_all();
    let times = (0..WALKS).map(|_| {
        let start = Instant::now();
        made.mm.compaction().compact_node(LAST);
        start.elapsed()
    });
    let time = median(times.collect());
    let pages = made.counter("compact_migrate_scanned") / WALKS as u64;
    for pinned in pins {
        made.mm.rmap().unpin_page(pinned);
    }
    (time, pages)
}

/// A look at all blocks: its time, the pages that would have to move; and then a huge page, served.
fn find() -> Option<(Duration, u32, (Duration, u64))> {
    let made = Fragmented::new("linux-6.18+compact-summary");
    let (_, moves) = made.mm.emptying().find_block_to_empty(made.zone())?;
    let times = (0..FINDS).map(|_| {
        let start = Instant::now();
        std::hint::black_box(made.mm.emptying().find_block_to_empty(made.zone()));
        start.elapsed()
    });
    let time = median(times.collect());
    Some((time, moves, made.serve()))
}

fn main() {
    println!(
        "a pageblock to empty in 32 GiB of 128, {POLLUTED_PERCENT} of 100 blocks with a page of the kernel's"
    );
    let (walk, pages) = walk();
    let per_page = walk.as_secs_f64() * 1e9 / pages as f64;
    println!(
        "linux-6.18, from page to page      {:>12.1} us   {pages} pages, {per_page:.1} ns each",
        micros(walk)
    );
    let Some((find, moves, served)) = find() else {
        println!("+compact-summary found no block: the state has none that can be emptied");
        return;
    };
    println!(
        "+compact-summary, all blocks       {:>12.1} us   and one looked over: {moves} pages would move",
        micros(find)
    );
    println!("ratio                              {:>12.0}", walk.as_secs_f64() / find.as_secs_f64());
    let (time, pages) = served;
    println!(
        "+compact-summary, a huge page      {:>12.1} us   found, emptied of {pages} pages, handed out; without copying",
        micros(time)
    );
}
