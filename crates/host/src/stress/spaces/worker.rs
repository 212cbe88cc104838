//! One thread of a stress run on address spaces.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use mm::ids::PAGEBLOCK_PAGES;
use mm::vm::{FaultError, FileKind, MapSpec, Placement, Touch, Vpn};
use mm::{MigrateError, Node};

use super::{COUNTERS, SHARED, Space, SpaceTally, StressProcess, words_of};
use crate::host::Host;
use crate::rng::Rng;
use crate::stress::StressEnd;

/// Operations between two looks at whether to end.
const STRIDE: u64 = 16;
/// Regions that a thread has at most, and children.
const REGIONS_MAX: usize = 8;
const CHILDREN_MAX: usize = 3;

/// Pages that this thread alone writes to, with their stamps; 0 was never written, `None` is unmapped.
#[derive(Clone, Debug)]
struct OwnPages {
    process: usize,
    start: Vpn,
    stamps: Vec<Option<u64>>,
}

/// A forked address space and what this thread's regions hold there.
struct Child {
    space: Space,
    regions: Vec<OwnPages>,
}

/// A page, by its region's index and its own in there.
struct OwnPage {
    region: usize,
    page: usize,
}

pub(super) struct SpaceWorker<'h> {
    host: &'h Host,
    processes: &'h [StressProcess],
    /// The process that only this thread uses.
    own: usize,
    rng: Rng,
    regions: Vec<OwnPages>,
    children: Vec<Child>,
    stamps: u64,
    tally: SpaceTally,
}

impl<'h> SpaceWorker<'h> {
    pub(super) fn new(host: &'h Host, processes: &'h [StressProcess], own: usize, seed: u64) -> Self {
        let (rng, tally) = (Rng::new(seed, own as u64), SpaceTally::default());
        Self { host, processes, own, rng, regions: vec![], children: vec![], stamps: 0, tally }
    }

    /// Does `operations`, or as many as there are before `end`; then looks at all that it has, and gives it back.
    pub(super) fn run(mut self, operations: u64, end: &StressEnd) -> Result<SpaceTally, String> {
        for operation in 0..operations {
            if operation % STRIDE == 0 && end.reached() {
                break;
            }
            self.step()?;
        }
        while !self.children.is_empty() {
            self.end_child()?;
        }
        for region in std::mem::take(&mut self.regions) {
            let space = &self.processes[region.process].space;
            let pages = 0..region.stamps.len();
            pages.into_iter().try_for_each(|page| self.check(space, &region, page))?;
            self.unmap_all(&region);
        }
        Ok(self.tally)
    }

    fn step(&mut self) -> Result<(), String> {
        match self.rng.below(1000) {
            0..=79 if self.regions.len() < REGIONS_MAX => self.map(),
            80..=449 => self.write(),
            450..=699 => self.look(),
            760..=859 => self.use_child(),
            860..=879 => self.end_child(),
            880..=949 => self.move_some(),
            950..=969 => self.count(),
            970..=989 => self.use_file(),
            rest => {
                match rest {
                    700..=739 => self.unmap(),
                    740..=759 => self.fork(),
                    990..=996 => self.split(),
                    _ => self.host.raw().lru().lru_drain_all(),
                }
                Ok(())
            }
        }
    }

    fn map(&mut self) -> Result<(), String> {
        let process = if self.rng.one_in(3) { self.own } else { self.rng.below(SHARED as u64) as usize };
        let pages = if self.rng.one_in(4) { PAGEBLOCK_PAGES } else { 1 + self.rng.below(40) as u32 };
        let start = self.host.raw().spaces().mmap(&self.processes[process].space, MapSpec::anonymous(pages));
        let start = start.map_err(|error| error.to_string())?;
        self.regions.push(OwnPages { process, start, stamps: vec![Some(0); pages as usize] });
        Ok(())
    }

    /// A page of this thread's own that is mapped.
    fn pick(&mut self) -> Option<OwnPage> {
        if self.regions.is_empty() {
            return None;
        }
        let region = self.rng.below(self.regions.len() as u64) as usize;
        let page = self.rng.below(self.regions[region].stamps.len() as u64) as usize;
        self.regions[region].stamps[page].map(|_| OwnPage { region, page })
    }

    fn new_stamp(&mut self) -> u64 {
        self.stamps += 1;
        (self.own as u64) << 48 | self.stamps
    }

    /// Writes `stamp` to the page; says whether there was memory for it.
    fn stamp(&self, space: &Space, at: Vpn, stamp: u64) -> Result<bool, String> {
        let mm = self.host.raw();
        match mm.rmap().pin_page(space, at, Touch::Write) {
            Ok(pinned) => {
                // Relaxed, here and below: the pin keeps the page, and mm's locks order who writes and who reads it. Were they not to,
                // a stamp would be missing, which is what this test is for.
                for word in words_of(&pinned) {
                    mm.machine().arena().word(word).store(stamp, Ordering::Relaxed);
                }
                mm.rmap().unpin_page(pinned);
                Ok(true)
            }
            Err(FaultError::Alloc(_)) => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    }

    fn write(&mut self) -> Result<(), String> {
        let Some(OwnPage { region, page }) = self.pick() else { return Ok(()) };
        let stamp = self.new_stamp();
        let (process, at) = (self.regions[region].process, self.regions[region].start.add(page as u32));
        let process = &self.processes[process];
        // Beside forks first; the write itself waits for them.
        let _ = self.host.raw().spaces().touch_page(&process.space, at, Touch::Write);
        let written = {
            let _no_fork = process.forking.read().unwrap_or_else(PoisonError::into_inner);
            self.stamp(&process.space, at, stamp)?
        };
        if written {
            self.regions[region].stamps[page] = Some(stamp);
            self.tally.written += 1;
            return Ok(());
        }
        self.tally.failed += 1;
        self.give_up(region)
    }

    /// There is no memory: a region and a child go.
    fn give_up(&mut self, region: usize) -> Result<(), String> {
        let region = self.regions.swap_remove(region);
        self.tally.unmapped += region.stamps.len() as u64;
        self.unmap_all(&region);
        self.end_child()
    }

    /// Looks whether the page still holds its stamp.
    fn check(&mut self, space: &Space, region: &OwnPages, page: usize) -> Result<(), String> {
        let Some(wanted) = region.stamps[page] else { return Ok(()) };
        let (mm, at) = (self.host.raw(), region.start.add(page as u32));
        let pinned = match mm.rmap().pin_page(space, at, Touch::Read) {
            Ok(pinned) => pinned,
            Err(FaultError::Alloc(_)) if wanted == 0 => return Ok(()),
            Err(error) => return Err(format!("{at} of {:?} holds {wanted:#x}: {error}", space.id())),
        };
        for word in words_of(&pinned) {
            let found = mm.machine().arena().word(word).load(Ordering::Relaxed);
            if found != wanted {
                let frame = pinned.frame();
                return Err(format!(
                    "{at} of {:?}, at {frame}, reads {found:#x}, its owner wrote {wanted:#x}",
                    space.id()
                ));
            }
        }
        mm.rmap().unpin_page(pinned);
        self.tally.checked += 1;
        Ok(())
    }

    fn look(&mut self) -> Result<(), String> {
        let Some(OwnPage { region, page }) = self.pick() else { return Ok(()) };
        let region = self.regions.swap_remove(region);
        let result = self.check(&self.processes[region.process].space, &region, page);
        self.regions.push(region);
        result
    }

    /// Unmaps pages from one on, as far as they are this thread's: what lies in a gap may be another's by now.
    fn unmap(&mut self) {
        let Some(OwnPage { region, page }) = self.pick() else { return };
        let most = 1 + self.rng.below(64) as usize;
        let region = &mut self.regions[region];
        let ours = region.stamps[page..].iter().take(most).take_while(|stamp| stamp.is_some()).count();
        region.stamps[page..page + ours].fill(None);
        let space = &self.processes[region.process].space;
        self.host.raw().spaces().munmap(space, region.start.add(page as u32), ours as u32);
        self.tally.unmapped += ours as u64;
    }

    /// Unmaps all that is left of `region`.
    fn unmap_all(&self, region: &OwnPages) {
        let space = &self.processes[region.process].space;
        for page in (0..region.stamps.len()).filter(|&page| region.stamps[page].is_some()) {
            self.host.raw().spaces().munmap(space, region.start.add(page as u32), 1);
        }
    }

    fn fork(&mut self) {
        if self.children.len() >= CHILDREN_MAX {
            return;
        }
        let process = if self.rng.one_in(2) { self.own } else { self.rng.below(SHARED as u64) as usize };
        let forked = {
            let process = &self.processes[process];
            let _no_write = process.forking.write().unwrap_or_else(PoisonError::into_inner);
            self.host.raw().spaces().fork(&process.space)
        };
        let Ok(space) = forked else {
            self.tally.failed += 1;
            return;
        };
        let regions = self.regions.iter().filter(|region| region.process == process).cloned().collect();
        self.children.push(Child { space, regions });
        self.tally.forks += 1;
    }

    /// Looks at a page of a child and writes to it.
    fn use_child(&mut self) -> Result<(), String> {
        let Some(mut child) = self.children.pop() else { return Ok(()) };
        let result = self.use_page_of(&mut child);
        self.children.insert(0, child);
        result
    }

    fn use_page_of(&mut self, child: &mut Child) -> Result<(), String> {
        if child.regions.is_empty() {
            return Ok(());
        }
        let stamp = self.new_stamp();
        let region = self.rng.below(child.regions.len() as u64) as usize;
        let page = self.rng.below(child.regions[region].stamps.len() as u64) as usize;
        self.check(&child.space, &child.regions[region], page)?;
        let region = &mut child.regions[region];
        if region.stamps[page].is_some() && self.stamp(&child.space, region.start.add(page as u32), stamp)? {
            region.stamps[page] = Some(stamp);
            self.tally.written += 1;
        }
        Ok(())
    }

    /// A child ends, after a last look at all of its pages.
    fn end_child(&mut self) -> Result<(), String> {
        let Some(child) = self.children.pop() else { return Ok(()) };
        for region in &child.regions {
            (0..region.stamps.len()).try_for_each(|page| self.check(&child.space, region, page))?;
        }
        self.host.raw().spaces().exit(&child.space);
        Ok(())
    }

    /// Moves pages somewhere in an address space, whoever they belong to.
    fn move_some(&mut self) -> Result<(), String> {
        let shared = self.rng.below(SHARED as u64) as usize;
        let space = match self.children.last() {
            Some(child) if self.rng.one_in(2) => &child.space,
            _ => &self.processes[shared].space,
        };
        let node = Node(self.rng.below(self.host.topology().nodes.len() as u64) as u16);
        let at = Vpn(PAGEBLOCK_PAGES + self.rng.below(2048) as u32);
        for page in 0..8 {
            match self.host.raw().rmap().move_page(space, at.add(page), node) {
                Ok(()) => self.tally.moved += 1,
                Err(MigrateError::Unmovable) => return Err(format!("{at} is mapped and cannot move")),
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn split(&mut self) {
        let Some(OwnPage { region, page }) = self.pick() else { return };
        let region = &self.regions[region];
        let space = &self.processes[region.process].space;
        self.tally.split +=
            u64::from(self.host.raw().spaces().split_huge(space, region.start.add(page as u32)));
    }

    /// Counts one in shared memory.
    fn count(&mut self) -> Result<(), String> {
        let process = &self.processes[self.rng.below(self.processes.len() as u64) as usize];
        let (mm, at) = (self.host.raw(), process.counters.add(self.rng.below(u64::from(COUNTERS)) as u32));
        match mm.rmap().pin_page(&process.space, at, Touch::Write) {
            Ok(pinned) => {
                let [word, _] = words_of(&pinned);
                mm.machine().arena().word(word).fetch_add(1, Ordering::Relaxed);
                mm.rmap().unpin_page(pinned);
                self.tally.counted += 1;
                Ok(())
            }
            Err(FaultError::Alloc(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Reads a file that is as large as what is left of memory may be, writes some of it through a mapping, and ends it.
    fn use_file(&mut self) -> Result<(), String> {
        let mm = self.host.raw();
        let file = mm.files().new_file(FileKind::Disk);
        let pages = 1 + self.rng.below(200) as u32;
        for page in 0..pages {
            self.tally.file_pages +=
                u64::from(mm.files().read_file(&file, page, Placement::default()).is_ok());
        }
        let space = &self.processes[self.own].space;
        let at = mm.spaces().mmap(space, MapSpec::shared(&file, pages)).map_err(|error| error.to_string())?;
        for page in (0..pages).step_by(3) {
            self.tally.file_pages +=
                u64::from(mm.spaces().touch_page(space, at.add(page), Touch::Write).is_ok());
        }
        mm.spaces().munmap(space, at, pages);
        let taken = mm.files().take_dirty(20);
        mm.files().written(&taken);
        mm.files().drop_file(&file);
        Ok(())
    }
}
