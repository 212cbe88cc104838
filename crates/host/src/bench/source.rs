//! The allocators whose pages are measured.

use std::alloc::Layout;
use std::sync::Arc;

use mm::ids::{PAGE_SHIFT, PAGE_SIZE};
use mm::{Knobs, Mm, Order, Pfn, Policy, Request};

use crate::host::{Host, HostError};
use crate::machine::HostMachine;

/// Something that hands out blocks of pages. A block is a number here: an address, or whatever the source likes.
pub trait PageSource: Sync {
    /// The name in tables.
    fn name(&self) -> &'static str;

    /// Allocates a block of `order` and frees it, `pairs` times.
    fn hot_pairs(&self, order: Order, pairs: u32);

    /// Adds blocks of `order` until `blocks` is as long as its capacity, or there are no more.
    fn get(&self, order: Order, blocks: &mut Vec<usize>);

    /// Frees `blocks` of `order`, first to last.
    fn put(&self, order: Order, blocks: &mut Vec<usize>);
}

/// This allocator, called as its machine calls it, without owners around blocks.
#[derive(Debug)]
pub struct FreeholdPages {
    mm: Arc<Mm<HostMachine>>,
    // After `mm`: the daemons tick as they would in use.
    _host: Host,
}

impl FreeholdPages {
    /// An allocator whose users hold `pages` at most at a time; it has a third more, and what CPUs' lists may keep.
    ///
    /// # Errors
    /// If the memory cannot be reserved.
    pub fn new(pages: u64, policy: Policy, knobs: Knobs) -> Result<Self, HostError> {
        let host = Host::new((2 * pages + 65_536) << PAGE_SHIFT, policy, knobs)?;
        // SAFETY: this is the host's only user, and it frees what it allocated here.
        let mm = Arc::clone(unsafe { host.mm() });
        Ok(Self { mm, _host: host })
    }
}

impl PageSource for FreeholdPages {
    fn name(&self) -> &'static str {
        "freehold"
    }

    fn hot_pairs(&self, order: Order, pairs: u32) {
        let request = Request::USER.of_order(order);
        for _ in 0..pairs {
            if let Ok(pfn) = self.mm.alloc(request) {
                let freed = self.mm.free(std::hint::black_box(pfn), order);
                debug_assert_eq!(freed, Ok(()));
            }
        }
    }

    fn get(&self, order: Order, blocks: &mut Vec<usize>) {
        let request = Request::USER.of_order(order);
        while blocks.len() < blocks.capacity() {
            let Ok(pfn) = self.mm.alloc(request) else { return };
            blocks.push(pfn.0 as usize);
        }
    }

    fn put(&self, order: Order, blocks: &mut Vec<usize>) {
        for &block in blocks.iter() {
            let freed = self.mm.free(Pfn(block as u32), order);
            debug_assert_eq!(freed, Ok(()));
        }
        blocks.clear();
    }
}

/// The process's allocator, asked for page-aligned blocks.
#[derive(Clone, Copy, Debug)]
pub struct MallocPages;

impl MallocPages {
    fn layout(order: Order) -> Layout {
        let bytes = order.pages() as usize * PAGE_SIZE as usize;
        Layout::from_size_align(bytes, PAGE_SIZE as usize).expect("at most 4 MiB at a power of two")
    }

    fn one(layout: Layout) -> Option<usize> {
        // SAFETY: the layout's size is at least a page.
        let address = unsafe { std::alloc::alloc(layout) };
        (!address.is_null()).then(|| address.expose_provenance())
    }

    fn free(block: usize, layout: Layout) {
        // SAFETY: callers pass blocks that `one` gave for this layout, each once.
        unsafe { std::alloc::dealloc(std::ptr::with_exposed_provenance_mut(block), layout) };
    }
}

impl PageSource for MallocPages {
    fn name(&self) -> &'static str {
        "malloc"
    }

    fn hot_pairs(&self, order: Order, pairs: u32) {
        let layout = Self::layout(order);
        for _ in 0..pairs {
            if let Some(block) = Self::one(layout) {
                Self::free(std::hint::black_box(block), layout);
            }
        }
    }

    fn get(&self, order: Order, blocks: &mut Vec<usize>) {
        let layout = Self::layout(order);
        while blocks.len() < blocks.capacity() {
            let Some(block) = Self::one(layout) else { return };
            blocks.push(block);
        }
    }

    fn put(&self, order: Order, blocks: &mut Vec<usize>) {
        let layout = Self::layout(order);
        for &block in blocks.iter() {
            Self::free(block, layout);
        }
        blocks.clear();
    }
}

/// The kernel: a mapping for every block.
#[derive(Clone, Copy, Debug)]
pub struct Mmap;

impl Mmap {
    fn one(order: Order) -> Option<usize> {
        let bytes = order.pages() as usize * PAGE_SIZE as usize;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new anonymous mapping where the kernel likes touches nothing that exists.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        (address != libc::MAP_FAILED).then(|| address.expose_provenance())
    }

    fn free(block: usize, order: Order) {
        let bytes = order.pages() as usize * PAGE_SIZE as usize;
        // SAFETY: callers pass mappings that `one` made with this order, each once; nothing refers to them.
        unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(block), bytes) };
    }
}

impl PageSource for Mmap {
    fn name(&self) -> &'static str {
        "mmap"
    }

    fn hot_pairs(&self, order: Order, pairs: u32) {
        for _ in 0..pairs {
            if let Some(block) = Self::one(order) {
                Self::free(std::hint::black_box(block), order);
            }
        }
    }

    fn get(&self, order: Order, blocks: &mut Vec<usize>) {
        while blocks.len() < blocks.capacity() {
            let Some(block) = Self::one(order) else { return };
            blocks.push(block);
        }
    }

    fn put(&self, order: Order, blocks: &mut Vec<usize>) {
        for &block in blocks.iter() {
            Self::free(block, order);
        }
        blocks.clear();
    }
}
