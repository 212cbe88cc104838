//! A machine for one thread that remembers what every frame holds, one number each: what is cleared is 0, what is copied
//! is copied. So a virtual page's contents can be followed through whatever frames it is in.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::cell::RefCell;
use std::rc::Rc;

use freehold_mm::bare::BareLock;
use freehold_mm::vm::{AddressSpace, FaultError, Touch, Vpn};
use freehold_mm::{
    Access, Addr, Bare, Cpu, Daemon, Line, LockClass, Machine, Mm, Nanos, Order, Pfn, Span, TaskId, Work,
};

/// Clones are the same machine.
#[derive(Clone, Default)]
pub(crate) struct Remembering {
    pub(crate) bare: Bare,
    contents: Rc<RefCell<Vec<u32>>>,
}

impl Remembering {
    fn at(&self, pfn: Pfn, then: impl FnOnce(&mut u32)) {
        let mut contents = self.contents.borrow_mut();
        let index = pfn.0 as usize;
        if contents.len() <= index {
            // What was never cleared holds something.
            contents.resize(index + 1, u32::MAX);
        }
        then(&mut contents[index]);
    }

    /// What the frame holds.
    pub(crate) fn read(&self, pfn: Pfn) -> u32 {
        let mut number = 0;
        self.at(pfn, |word| number = *word);
        number
    }

    pub(crate) fn write(&self, pfn: Pfn, number: u32) {
        self.at(pfn, |word| *word = number);
    }
}

// SAFETY: locks and CPUs are those of `Bare`.
unsafe impl Machine for Remembering {
    type Lock = BareLock;
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

    fn new_lock(&self, class: LockClass, index: u32) -> BareLock {
        self.bare.new_lock(class, index)
    }

    fn lock(&self, lock: &BareLock) {
        self.bare.lock(lock);
    }

    fn try_lock(&self, lock: &BareLock) -> bool {
        self.bare.try_lock(lock)
    }

    fn unlock(&self, lock: &BareLock) {
        self.bare.unlock(lock);
    }

    fn is_contended(&self, lock: &BareLock) -> bool {
        self.bare.is_contended(lock)
    }

    fn irq_save(&self) {}

    fn irq_restore(&self, (): ()) {}

    fn touch(&self, _line: Line, _access: Access) {}

    fn load(&self, at: Addr) -> u64 {
        self.bare.load(at)
    }

    fn store(&self, at: Addr, word: u64) {
        self.bare.store(at, word);
    }

    fn clear(&self, block: Pfn, order: Order) {
        (0..order.pages()).for_each(|page| self.write(block.add(page), 0));
    }

    fn copy(&self, from: Pfn, to: Pfn, order: Order) {
        (0..order.pages()).for_each(|page| self.write(to.add(page), self.read(from.add(page))));
    }

    fn block(&self, at_most: Nanos) {
        self.bare.block(at_most);
    }

    fn wake(&self, daemon: Daemon) {
        self.bare.wake(daemon);
    }

    fn enter(&self, span: Span) -> Nanos {
        self.bare.enter(span)
    }

    fn leave(&self, span: Span, since: Nanos, work: Work) {
        self.bare.leave(span, since, work);
    }
}

/// Writes `number` to the page at `vpn`.
pub(crate) fn write(
    mm: &Mm<Remembering>,
    space: &AddressSpace<Remembering>,
    vpn: Vpn,
    number: u32,
) -> Result<(), FaultError> {
    let (pfn, _) = mm.spaces().touch_page(space, vpn, Touch::Write)?;
    mm.machine().write(pfn, number);
    Ok(())
}

/// What the page at `vpn` holds.
pub(crate) fn read(
    mm: &Mm<Remembering>,
    space: &AddressSpace<Remembering>,
    vpn: Vpn,
) -> Result<u32, FaultError> {
    let (pfn, _) = mm.spaces().touch_page(space, vpn, Touch::Read)?;
    Ok(mm.machine().read(pfn))
}

/// All that was written is where it was written to, and what was not is zeros.
pub(crate) fn assert_holds(
    mm: &Mm<Remembering>,
    space: &AddressSpace<Remembering>,
    start: Vpn,
    numbers: &[u32],
) {
    for (&number, page) in numbers.iter().zip(0..) {
        assert_eq!(read(mm, space, start.add(page)), Ok(number), "page {page}");
    }
}
