//! What it costs allocation and freeing to keep count of pageblocks (`+compact-summary`), in instructions: the same work
//! under linux-6.18 and with the part on top, side by side. Instructions are counted by valgrind's callgrind, which runs
//! this program again for each figure; unlike time, they do not depend on what else the machine does.

mod descriptors;

use std::hint::black_box;
use std::process::Command;

use descriptors::Descriptors;
use mm::{Knobs, Mm, Order, Pfn, Policy, Request};

/// Frames of the machine: 1 GiB.
const FRAMES: u32 = 1 << 18;

/// Blocks that are held at a time: more than a pageset keeps, so that all go through refills and drains.
const SOME: usize = FRAMES as usize / 2;

/// The policies side by side.
const POLICIES: [&str; 2] = ["linux-6.18", "linux-6.18+compact-summary"];

/// The name of the function whose instructions count, as callgrind is told it.
const COUNTED: &str = "*counted_work*";

/// What is done.
struct Case {
    name: &'static str,
    request: Request,
    /// Blocks that are held at a time.
    blocks: usize,
    rounds: usize,
    order_of_frees: Frees,
}

/// In which order blocks go back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frees {
    AsAllocated,
    Shuffled,
}

fn cases() -> Vec<Case> {
    let order = |size| Order::new(size).expect("at most 10");
    let case = |name, request, blocks, rounds, order_of_frees| Case {
        name,
        request,
        blocks,
        rounds,
        order_of_frees,
    };
    let pair = |name, request| case(name, request, 1, 20_000, Frees::AsAllocated);
    vec![
        pair("pair, order 0, movable", Request::USER),
        pair("pair, order 0, unmovable", Request::KERNEL),
        pair("pair, order 9, movable", Request::USER.of_order(Order::PAGEBLOCK)),
        pair("pair, order 5, movable (no pageset)", Request::USER.of_order(order(5))),
        case("bulk, order 0, movable", Request::USER, SOME, 2, Frees::AsAllocated),
        case("bulk, order 0, movable, shuffled", Request::USER, SOME, 2, Frees::Shuffled),
        case("bulk, order 0, unmovable", Request::KERNEL, SOME, 2, Frees::AsAllocated),
        case("bulk, order 2, movable", Request::USER.of_order(order(2)), SOME / 4, 2, Frees::AsAllocated),
        case("bulk, order 9, movable", Request::USER.of_order(Order::PAGEBLOCK), 256, 40, Frees::AsAllocated),
    ]
}

/// What is counted: allocates all blocks and frees them, over and over.
#[inline(never)]
fn counted_work(mm: &Mm<Descriptors>, case: &Case, places: &[usize], blocks: &mut [Pfn]) {
    for _ in 0..case.rounds {
        for &place in places {
            blocks[place] = mm.alloc(black_box(case.request)).expect("there is room for all");
        }
        for &block in blocks.iter() {
            mm.free(black_box(block), case.request.order).expect("it was allocated above");
        }
    }
}

/// Where each allocated block is put: its turn when all are freed.
fn places(case: &Case) -> Vec<usize> {
    let mut places: Vec<usize> = (0..case.blocks).collect();
    if case.order_of_frees == Frees::Shuffled {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        for last in (1..places.len()).rev() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            places.swap(last, (seed >> 33) as usize % (last + 1));
        }
    }
    places
}

fn work(case: &Case, policy: &str) {
    let policy = Policy::parse(policy).expect("a policy's name");
    let mm = Mm::new(Descriptors, descriptors::topology(1, FRAMES), policy, Knobs::default());
    let mm = mm.expect("a machine of one node");
    let (places, mut blocks) = (places(case), vec![Pfn(0); case.blocks]);
    counted_work(&mm, case, &places, &mut blocks);
    mm.views().check().expect("nothing is lost");
}

/// Instructions of `case` under `policy`, per block; `None` where there is no valgrind.
fn instructions(case: usize, policy: &str) -> Option<f64> {
    let program = std::env::current_exe().ok()?;
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect={COUNTED}"));
    let output = command.arg(program).args(["--work", &case.to_string(), policy]).output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().find(|line| line.contains("Collected :"))?;
    let count: f64 = line.rsplit(' ').next()?.parse().ok()?;
    let case = &cases()[case];
    Some(count / (case.blocks * case.rounds) as f64)
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, case, policy] = &arguments[..] {
        if flag == "--work" {
            return work(&cases()[case.parse::<usize>().expect("the number of a case")], policy);
        }
    }
    println!("instructions of an allocation and its free (callgrind)");
    println!("{:<38}{:>12}{:>18}{:>9}", "", POLICIES[0], "+compact-summary", "change");
    for (number, case) in cases().iter().enumerate() {
        let [without, with] = POLICIES.map(|policy| instructions(number, policy));
        let (Some(without), Some(with)) = (without, with) else {
            println!("{:<38}not counted: valgrind is not there, or cannot run this program", case.name);
            return;
        };
        let change = (with / without - 1.0) * 100.0;
        println!("{:<38}{without:>12.1}{with:>18.1}{change:>+8.2}%", case.name);
    }
}
