//! Faults become touches.
//!
//! A fault is told when it begins. Where it is on a file, nobody knows then whether its page is in memory: if it is not, the page is seen to
//! come next, and is waited for. So such a fault is kept until its task does something else. Then its touch follows what came for it; a page
//! that did not come was there.

use mm::vm::{Touch, Vpn};
use trace::{EventKind, MapFlags, NameId};

use super::build::Builder;
use super::layout::{BackedBy, Touched};
use super::order::At;
use super::prices::KernelCosts;
use super::races::TouchStep;
use super::steps::{Company, Doing, MapCall, PageRange};
use super::track::FaultBegun;

/// Addresses of programs are below this, with five levels of page tables and where a mask has moved them; faults above it are the
/// kernel's own.
const USER_END: u64 = 1 << 56;
/// The bits of a fault's error code.
const PROTECTION_FAULT: u32 = 1;
const WRITE_FAULT: u32 = 2;
const USER_FAULT: u32 = 4;
/// Which part of a fault lies between its look at the entry and the page's mapping. Fitted to a JVM under Linux 6.18: of
/// 17,581 pairs of faults both got a page where they began less than 1.6 to 1.8 of 3.6 us apart, and the first alone otherwise.
const LOOK_TO_MAPPING: f64 = 0.48;
/// Pages that a read fault on a file maps around itself, if they are in memory.
const FAULT_AROUND_PAGES: u32 = 16;

impl Builder {
    /// A fault begins.
    pub(super) fn fault(&mut self, time: u64, task: usize, (address, error_code): (u64, u32)) {
        if address >= USER_END || self.is_tried_again(task, (address, error_code)) {
            return;
        }
        let Some(space) = self.tracks[task].space else {
            self.program.omit("faults_before_exec");
            return;
        };
        let layout = &mut self.layouts[space];
        let found = layout.touch(address);
        let page = layout.windows.page(address);
        let (Some(found), Some(page)) = (found, page) else {
            self.program.omit("faults_outside_of_mappings");
            return;
        };
        self.map_fresh(task, space);
        self.tracks[task].last_fault = Some((address >> mm::ids::PAGE_SHIFT, error_code));
        let touch = if error_code & WRITE_FAULT == 0 { Touch::Read } else { Touch::Write };
        self.program.counted.faults += 1;
        let is_private_file = found.file.is_some() && !found.flags.contains(MapFlags::SHARED);
        if touch == Touch::Write && (error_code & PROTECTION_FAULT != 0 || is_private_file) {
            self.program.counted.writes_to_shared += 1;
        }
        let price = self.price(&found, touch);
        let fault = FaultBegun { time, space, found, page, touch, came: false };
        let may_come = found.file.is_some_and(|backed| self.files.may_come(backed.file));
        if may_come && error_code & PROTECTION_FAULT == 0 {
            self.tracks[task].fault = Some(fault);
        } else {
            self.touches(task, &fault);
        }
        self.tracks[task].clock.owe(price);
    }

    /// Whether it is the task's last fault again: the kernel copies from and to user memory with faults off first, and what faulted so comes
    /// again when they are on.
    fn is_tried_again(&self, task: usize, (address, error_code): (u64, u32)) -> bool {
        let known = (address >> mm::ids::PAGE_SHIFT, error_code);
        error_code & USER_FAULT == 0 && self.tracks[task].last_fault == Some(known)
    }

    /// Whether an event of a task says that the fault that it was in is over.
    pub(super) fn ends_fault(&self, task: usize, kind: &EventKind) -> bool {
        match *kind {
            EventKind::Fault { address, error_code, .. } => !self.is_tried_again(task, (address, error_code)),
            EventKind::Fork { .. }
            | EventKind::Exec
            | EventKind::Exit
            | EventKind::FileRead { .. }
            | EventKind::FileWrite { .. }
            | EventKind::Accessed { .. }
            | EventKind::AccessedSince { .. }
            | EventKind::Present { .. }
            | EventKind::Map { .. }
            | EventKind::Unmap { .. }
            | EventKind::Remap { .. }
            | EventKind::Protect { .. }
            | EventKind::Advise { .. }
            | EventKind::Pin { .. } => true,
            _ => false,
        }
    }

    /// Pages of a file come on a task's time.
    pub(super) fn comes_for_fault(&mut self, task: usize, (file, first, pages): (NameId, u32, u32)) {
        let Some(file) = self.files.number(file) else { return };
        let Some(fault) = &mut self.tracks[task].fault else { return };
        if let Some(backed) = fault.found.file.filter(|backed| backed.file == file) {
            fault.came |= (first..first.saturating_add(pages)).contains(&backed.first);
        }
    }

    /// A task leaves its CPU: it waits for a page that comes, or its fault is over.
    pub(super) fn leaves_in_fault(&mut self, task: usize) {
        if self.tracks[task].fault.is_some_and(|fault| !fault.came) {
            self.settle_fault(task);
        }
    }

    /// The fault that a task was in, if there was one, is over.
    pub(super) fn settle_fault(&mut self, task: usize) {
        if let Some(fault) = self.tracks[task].fault.take() {
            self.touches(task, &fault);
        }
    }

    /// The touch that a fault was.
    fn touches(&mut self, task: usize, fault: &FaultBegun) {
        let FaultBegun { time, space, found, page, touch, came } = *fault;
        if found.grows_by > 0 {
            let range = PageRange { start: page, pages: found.grows_by };
            self.map(task, MapCall::own(range));
        }
        if !came {
            self.was_in_memory(&found, page, touch);
        }
        let is_threaded = self.is_threaded(task);
        if let Some(before) = self.order.before_touch(space, page, task) {
            self.wait_for(task, before);
        }
        self.layouts[space].touched += 1;
        self.step(task, Doing::Touches { page, touch, company: Company::Alone });
        let step = self.tracks[task].last_step();
        if is_threaded {
            self.order.touched(space, page, At { task, step });
        }
        self.note_race(TouchStep { space, page, time, task, step });
    }

    /// A fault has become a step: one that came just before, on the same page, was under way when it began.
    fn note_race(&mut self, fault: TouchStep) {
        let Some(other) = self.races.add(fault) else { return };
        let gap = fault.time.saturating_sub(other.time) as f64;
        let is_before_mapping = gap < self.costs.fault_ns * LOOK_TO_MAPPING;
        let company = if is_before_mapping { Company::AtOnce } else { Company::Close };
        for TouchStep { task, step, .. } in [fault, other] {
            self.tracks[task].in_company(step, company);
        }
    }

    /// What the recorded kernel took for a fault, less the event that `happens` has charged.
    fn price(&self, found: &Touched, touch: Touch) -> f64 {
        let KernelCosts { fault_ns, clear_page_ns, event_ns, .. } = self.costs;
        let clears = found.file.is_none() || touch == Touch::Write;
        (fault_ns - event_ns - if clears { 0.0 } else { clear_page_ns }).max(0.0)
    }

    /// The page of a fault on a file was there, and so were, as far as is known, those that a read fault maps around it.
    fn was_in_memory(&mut self, found: &Touched, page: Vpn, touch: Touch) {
        let Some(BackedBy { file, first }) = found.file else { return };
        self.files.used(file, first, 1);
        if touch == Touch::Read {
            let place = page.0 % FAULT_AROUND_PAGES;
            let (below, above) = (place.min(found.below), (FAULT_AROUND_PAGES - 1 - place).min(found.above));
            self.files.guess(file, first - below, below + 1 + above);
        }
    }
}
