//! What the memory manager's own code touches beside what the kernel touches on the same path, line by line: the kernel's
//! distinct lines were counted (machines/paths/counts.toml), ours are counted here by a machine that does nothing else.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use mm::slab::CacheSpec;
use mm::{
    Access, Addr, Bare, Cpu, Daemon, Knob, Knobs, Line, LineKind, LockClass, Machine, Mm, Nanos, Order, Pfn,
    Policy, Request, Span, TaskId, Work,
};

/// Lines of a span, and how often any was touched.
#[derive(Clone, Debug, Default)]
struct Touched {
    lines: BTreeSet<(u8, u64)>,
    accesses: u32,
    work: u32,
}

/// Kinds as the counts tell them apart.
const DESCRIPTORS: u8 = 0;
const NODE: u8 = 1;
const PER_CPU: u8 = 2;

impl Touched {
    fn of(&self, class: u8) -> usize {
        self.lines.iter().filter(|line| line.0 == class).count()
    }
}

/// A machine that notes what spans touch.
#[derive(Clone, Default)]
struct Noting {
    bare: Bare,
    open: Rc<RefCell<Vec<(Span, Touched)>>>,
    done: Rc<RefCell<Vec<(Span, Touched)>>>,
}

impl Noting {
    /// The spans of a kind since the last call.
    fn take(&self, span: Span) -> Vec<Touched> {
        let done = self.done.take();
        done.into_iter().filter(|(kind, _)| *kind == span).map(|(_, touched)| touched).collect()
    }
}

// SAFETY: everything that the safety of `Machine` rests on is `Bare`'s, which it is handed on to unchanged.
unsafe impl Machine for Noting {
    type Lock = <Bare as Machine>::Lock;
    type Irq = ();

    fn cpu(&self) -> Cpu {
        self.bare.cpu()
    }

    fn task(&self) -> TaskId {
        self.bare.task()
    }

    fn now(&self) -> Nanos {
        self.bare.now()
    }

    fn random(&self) -> u64 {
        self.bare.random()
    }

    fn new_lock(&self, class: LockClass, index: u32) -> Self::Lock {
        self.bare.new_lock(class, index)
    }

    fn lock(&self, lock: &Self::Lock) {
        self.bare.lock(lock);
    }

    fn try_lock(&self, lock: &Self::Lock) -> bool {
        self.bare.try_lock(lock)
    }

    fn unlock(&self, lock: &Self::Lock) {
        self.bare.unlock(lock);
    }

    fn is_contended(&self, lock: &Self::Lock) -> bool {
        self.bare.is_contended(lock)
    }

    fn irq_save(&self) {}

    fn irq_restore(&self, (): ()) {}

    fn touch(&self, line: Line, _access: Access) {
        let class = match line.kind {
            LineKind::Frame => DESCRIPTORS,
            LineKind::FreeArea | LineKind::Zone | LineKind::ZoneStat => NODE,
            LineKind::Pageset | LineKind::PagesetList | LineKind::Events | LineKind::CpuSlab => PER_CPU,
            _ => 3,
        };
        let key = (line.kind as u64) << 32 | u64::from(line.index);
        for (_, touched) in self.open.borrow_mut().iter_mut() {
            touched.lines.insert((class, key));
            touched.accesses += 1;
        }
    }

    fn load(&self, at: Addr) -> u64 {
        self.bare.load(at)
    }

    fn store(&self, at: Addr, word: u64) {
        self.bare.store(at, word);
    }

    fn clear(&self, _block: Pfn, _order: Order) {}

    fn copy(&self, _from: Pfn, _to: Pfn, _order: Order) {}

    fn block(&self, at_most: Nanos) {
        self.bare.block(at_most);
    }

    fn wake(&self, daemon: Daemon) {
        self.bare.wake(daemon);
    }

    fn enter(&self, span: Span) -> Nanos {
        self.open.borrow_mut().push((span, Touched::default()));
        Nanos(0)
    }

    fn leave(&self, span: Span, _since: Nanos, work: Work) {
        let (of, mut touched) = self.open.borrow_mut().pop().expect("a span that was entered");
        assert_eq!(of, span, "spans lie within each other");
        touched.work = work.count;
        self.done.borrow_mut().push((of, touched));
    }
}

/// Instructions, lines of descriptors and of the node of a counted path's lean build: of a call, and of each page.
fn counted(path: &str) -> (Vec<f64>, Vec<f64>, Option<f64>) {
    let text = include_str!("../../../machines/paths/counts.toml");
    let table: toml::Table = text.parse().unwrap();
    let paths = table["path"].as_array().unwrap();
    let found = paths.iter().find(|entry| entry["name"].as_str() == Some(path)).unwrap();
    let number =
        |value: &toml::Value| value.as_float().or(value.as_integer().map(|whole| whole as f64)).unwrap();
    let list = |value: &toml::Value| value.as_array().unwrap().iter().map(number).collect::<Vec<_>>();
    let each = found["lean"].get("descriptors_each").map(number);
    (list(&found["instructions"]["linux-6.12-lean"]), list(&found["lean"]["lines"]), each)
}

/// A machine of one zone, with batches of 63 and no scaling.
fn booted(policy: &str) -> Mm<Noting> {
    let profile = sim::Profile::load("kvm-genoa-2c").unwrap();
    let mm = Mm::new(Noting::default(), profile.topology(), Policy::parse(policy).unwrap(), Knobs::default())
        .unwrap();
    mm.set_knob(Knob::PcpBatchScaleMax, 0).unwrap();
    mm
}

/// Refills of 63 pages, and drains of as many or more, for 60,000 pages that are taken and given back in order.
fn refills_and_drains(policy: &str) -> (Vec<Touched>, Vec<Touched>) {
    let mm = booted(policy);
    let taken: Vec<Pfn> = (0..60_000).map(|_| mm.alloc(Request::USER).unwrap()).collect();
    let refills = mm.machine().take(Span::Refill);
    for pfn in taken {
        mm.free(pfn, Order::ZERO).unwrap();
    }
    let drains = mm.machine().take(Span::Drain);
    let whole = |spans: Vec<Touched>| spans.into_iter().filter(|span| span.work >= 63).collect::<Vec<_>>();
    (whole(refills), whole(drains))
}

fn mean(spans: &[Touched], of: impl Fn(&Touched) -> f64) -> f64 {
    assert!(spans.len() > 5, "{}", spans.len());
    spans.iter().map(of).sum::<f64>() / spans.len() as f64
}

#[test]
fn a_refill_of_63_touches_the_kernels_lines() {
    let (refills, _) = refills_and_drains("linux-6.6");
    let (_, lines, each) = counted("refill");
    let descriptors = mean(&refills, |span| span.of(DESCRIPTORS) as f64);
    let kernels = lines[0] + 63.0 * each.unwrap();
    // Ours are 16 bytes in the model's memory and 64 in the simulated machine's: a descriptor is a line.
    assert!(
        (descriptors / kernels - 1.0).abs() < 0.1,
        "struct pages: {descriptors} and the kernel's {kernels}"
    );
    let node = mean(&refills, |span| span.of(NODE) as f64);
    assert!(
        node <= lines[1] + 2.0 && node > lines[1] / 2.0,
        "the node's: {node} and the kernel's {}",
        lines[1]
    );
}

#[test]
fn a_drain_touches_the_kernels_lines() {
    let (_, drains) = refills_and_drains("linux-6.6");
    let (_, lines, each) = counted("drain");
    let descriptors = mean(&drains, |span| span.of(DESCRIPTORS) as f64);
    let kernels = mean(&drains, |span| lines[0] + f64::from(span.work) * each.unwrap());
    // The kernel's were counted amid other memory in use, with more neighbours of merged blocks: ours are a sixth fewer.
    assert!(
        (descriptors / kernels - 1.0).abs() < 0.2,
        "struct pages: {descriptors} and the kernel's {kernels}"
    );
    let node = mean(&drains, |span| span.of(NODE) as f64);
    assert!(
        node <= lines[1] + 4.0 && node > lines[1] / 3.0,
        "the node's: {node} and the kernel's {}",
        lines[1]
    );
}

/// An access that is told stands for a share of what was counted, which is not to change unseen: each is charged `cpu.touch_ns`.
#[test]
fn accesses_a_page_are_those_that_costs_were_made_for() {
    let (refills, drains) = refills_and_drains("linux-6.6");
    for (path, spans, told) in [("refill", refills, 10.0), ("drain", drains, 14.0)] {
        let accesses = mean(&spans, |span| f64::from(span.accesses) / f64::from(span.work));
        let (instructions, ..) = counted(path);
        assert!(
            (accesses - told).abs() < 0.6,
            "{path}: {told} accesses a page were told, these are {accesses}"
        );
        assert!(
            accesses < instructions[1] / 5.0,
            "{path}: {accesses} accesses of {} instructions",
            instructions[1]
        );
    }
}

#[test]
fn a_slabs_slow_path_touches_the_kernels_lines() {
    let mm = booted("linux-6.12");
    let cache = mm.slabs().create_cache(CacheSpec::new("objects", 256)).unwrap();
    let objects: Vec<Addr> = (0..8000).map(|_| mm.slabs().kmem_cache_alloc(cache).unwrap()).collect();
    let slow = mm.machine().take(Span::SlabAlloc).into_iter().filter(|span| span.of(DESCRIPTORS) > 0);
    let slow: Vec<Touched> = slow.collect();
    let (_, lines, _) = counted("slab-alloc-slow");
    let descriptors = mean(&slow, |span| span.of(DESCRIPTORS) as f64);
    let others = mean(&slow, |span| (span.of(NODE) + span.of(PER_CPU)) as f64);
    assert!(
        descriptors <= lines[0] + 1.0 && descriptors >= 1.0,
        "struct pages: {descriptors} and {}",
        lines[0]
    );
    // The kernel's mean has slabs from the partial list in it; of the node and the CPU it looks at more: watermarks, counters of
    // events and of the node's slabs, which here are one line each or none.
    let kernels = lines[1] + lines[2];
    assert!(
        others <= kernels && others > kernels / 4.0,
        "node's and CPU's: {others} and the kernel's {kernels}"
    );
    drop(objects);
}
