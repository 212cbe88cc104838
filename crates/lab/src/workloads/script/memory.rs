//! What a process does with regions of memory.

use mm::vm::{
    Advice, AdviceError, FaultKind, FileKind, HugePages, MapSpec, MemoryLock, Placement, Residence, Touch,
    Vpn,
};
use sim::{AccessMix, Pattern, SimMachine};

use super::player::{End, Failure, Player};
use crate::script::draws::Popularity;
use crate::script::meanings::{self, advice};
use crate::script::names::{Named, PAGE, Region};
use crate::script::program::{Accesses, Mode, Part, Pieces, Zipf};

impl Player {
    pub(super) fn map(&mut self, name: &str, bytes: u64, (shared, huge, nohuge): (bool, bool, bool)) {
        let pages = bytes.div_ceil(PAGE) as u32;
        let spec = if shared {
            let file = self.world.stage.mm.files().new_file(FileKind::Memory);
            file.set_len(pages);
            MapSpec::shared(&file, pages)
        } else {
            MapSpec::anonymous(pages).unreserved()
        };
        let huge = match (huge, nohuge) {
            (_, true) => HugePages::Never,
            (true, false) => HugePages::Advised,
            (false, false) => HugePages::AsConfigured,
        };
        self.map_at(name, MapSpec { huge, ..spec }, Region { start: Vpn(0), bytes, stores: 8, file: None });
    }

    /// Maps a region behind all others.
    pub(super) fn map_at(&mut self, name: &str, spec: MapSpec<SimMachine>, region: Region) {
        let start = self.names.free_start();
        let placement = Placement { allowed: self.world.stage.allowed, ..Placement::default() };
        let spec = MapSpec { policy: self.policy, ..spec }.placed(placement);
        // A name that cannot be mapped is there all the same: who touches it gets a signal.
        let mapped = self.names.add(name, Named::Region(Region { start, ..region }))
            && self.world.stage.mm.spaces().mmap_at(&self.life.space, start, spec).is_ok();
        self.accept(mapped);
    }

    /// Where each piece of `part` begins, and the bytes of one.
    fn pieces(&mut self, name: &str, (part, pieces): (Part, Pieces)) -> (Vec<u64>, u64) {
        let (from, to) = self.names.part(name, part).unwrap_or((0, 0));
        let Pieces { every, piece } = pieces;
        let (every, piece) = if every == 0 { (to - from, to - from) } else { (every, piece) };
        let step = usize::try_from(every.max(1)).unwrap_or(usize::MAX);
        ((from..to).step_by(step).collect(), piece)
    }

    pub(super) fn unmap(&mut self, name: &str, which: (Part, Pieces)) {
        let Some(Named::Region(region)) = self.named(name) else { return };
        let (starts, piece) = self.pieces(name, which);
        for start in starts {
            let is_taken = start % PAGE == 0 && piece > 0;
            self.accept(is_taken);
            if is_taken {
                let (first, pages) = region.span(start, piece);
                self.world.stage.mm.spaces().munmap(&self.life.space, first, pages);
            }
        }
    }

    pub(super) fn advise(&mut self, name: &str, word: &str, which: (Part, Pieces)) -> Result<(), End> {
        let Some(named) = self.named(name) else { return Ok(()) };
        let (starts, piece) = self.pieces(name, which);
        for start in starts {
            match &named {
                Named::File { file, bytes } => self.advise_of_file((file, *bytes), word, (start, piece))?,
                Named::Region(region) if start % PAGE == 0 => {
                    let (first, pages) = region.span(start, piece);
                    self.advise_of_region(region, (first, pages), word)?;
                }
                Named::Region(_) => self.refused(),
            }
        }
        Ok(())
    }

    fn advise_of_region(
        &mut self,
        region: &Region,
        (start, pages): (Vpn, u32),
        word: &str,
    ) -> Result<(), End> {
        let Some(advice) = advice(word) else {
            // `willneed`: pages of a file are read; there is nothing to read for others.
            let Some(file) = region.file.and_then(|number| self.files.get(number).cloned()) else {
                return Ok(());
            };
            let first = u64::from(start.0 - region.start.0) * PAGE;
            return self.advise_of_file((&file, region.bytes), word, (first, u64::from(pages) * PAGE));
        };
        let taken = self.until_done(|player| {
            let (mm, space) = (&player.world.stage.mm, &player.life.space);
            let done = match advice {
                Advice::PageOut => mm.pages_out().page_out(space, start, pages),
                advice => mm.spaces().madvise(space, start, pages, advice),
            };
            match done {
                Err(AdviceError::Fault(error)) => match Failure::from(error) {
                    // A call says that it may not.
                    Failure::Address => Ok(false),
                    failure @ Failure::Memory(_) => Err(failure),
                },
                done => Ok(done.is_ok()),
            }
        })?;
        self.accept(taken);
        Ok(())
    }

    pub(super) fn lock(&mut self, name: &str, which: (Part, Pieces)) -> Result<(), End> {
        let Some(Named::Region(region)) = self.named(name) else { return Ok(()) };
        let (starts, piece) = self.pieces(name, which);
        for start in starts {
            let (first, pages) = region.span(start, piece);
            let locked = self.until_done(|player| {
                let (spaces, space) = (player.world.stage.mm.spaces(), &player.life.space);
                match spaces.mlock(space, first, pages, MemoryLock::Keep) {
                    Err(AdviceError::Fault(error)) => Err(error.into()),
                    locked => Ok(locked.is_ok()),
                }
            })?;
            self.accept(locked && start % PAGE == 0);
        }
        Ok(())
    }

    pub(super) fn set_policy(&mut self, name: Option<&str>, mode: Mode, nodes: u64) {
        let mm = &self.world.stage.mm;
        let Some(policy) = meanings::policy(mm.topology(), mode, nodes) else { return self.refused() };
        let space = &self.life.space;
        let set = match name.map(|name| self.names.find(name)) {
            Some(Some(Named::Region(region))) if mode == Mode::Default => {
                mm.rmap().unbind(space, region.start, region.pages(), self.policy);
                true
            }
            Some(Some(Named::Region(region))) => {
                mm.spaces().mbind(space, region.start, region.pages(), policy).is_ok()
            }
            Some(_) => false,
            None => {
                self.policy = policy;
                mm.rmap().set_mempolicy(space, policy).is_ok()
            }
        };
        self.accept(set);
    }

    pub(super) fn accesses(&mut self, what: &Accesses) -> Result<(), End> {
        let Some(named) = self.named(&what.name) else { return Ok(()) };
        let step = if matches!(named, Named::Region(_)) { what.stride } else { what.block };
        let (from, to) = self.names.part(&what.name, what.part).unwrap_or((0, 0));
        let count = (to - from).div_ceil(step);
        for _ in 0..what.times {
            for number in 0..count {
                let turn = self.names.turn(number, count, what.order).unwrap_or(number);
                let at = (from + turn * step, step);
                self.access(&named, at, what.touch, to - from)?;
            }
        }
        Ok(())
    }

    pub(super) fn zipf(&mut self, what: &Zipf) -> Result<(), End> {
        let Some(named) = self.named(&what.name) else { return Ok(()) };
        let (from, to) = self.names.part(&what.name, what.part).unwrap_or((0, 0));
        let Some(popularity) = Popularity::new(((to - from) / PAGE) as u32, what.skew) else { return Ok(()) };
        for _ in 0..what.count {
            let page = self.names.state(what.seed).map_or(0, |state| popularity.page(state));
            let at = (from + u64::from(page) * PAGE, PAGE);
            self.access(&named, at, what.touch, to - from)?;
        }
        Ok(())
    }

    /// One access, within `range` bytes of which others are touched too.
    fn access(
        &mut self,
        named: &Named<SimMachine>,
        (offset, bytes): (u64, u64),
        touch: Touch,
        range: u64,
    ) -> Result<(), End> {
        match named {
            Named::Region(region) => {
                self.touch(region.start.add((offset / PAGE) as u32), touch)?;
                let (reads, writes) = if touch == Touch::Read { (1, 0) } else { (0, 1) };
                let pattern = Pattern::Random;
                let mix = AccessMix { reads, writes, pattern, working_set: range, nodes: &[] };
                self.machine().access(mix);
            }
            Named::File { file, bytes: len } => {
                self.call_file(file, (offset, bytes.min(len - offset)), touch)?;
            }
        }
        self.world.stage.mm.lru().flush_due_stats();
        self.world.stage.tally.did(1);
        Ok(())
    }

    /// Touches a page, faulting if it must, and waits for the disk.
    fn touch(&mut self, page: Vpn, touch: Touch) -> Result<(), End> {
        if self.life.space.access(page, touch).is_some() {
            return self.may_go_on();
        }
        let reads = self.until_done(|player| {
            loop {
                let done = player.world.stage.mm.spaces().fault(&player.life.space, page, touch)?;
                match done.kind {
                    // The touch itself comes again.
                    FaultKind::Hint => {}
                    FaultKind::Major => return Ok(done.reads),
                    _ => return Ok(0),
                }
            }
        })?;
        self.wait_for(reads);
        Ok(())
    }

    /// The disk reads so many pages, if any.
    pub(super) fn wait_for(&self, reads: u32) {
        if reads > 0 {
            self.world.stage.disk.transfer(self.machine(), reads.into());
        }
    }

    /// Pages of what is called `name` that are resident, in swap, and parts of huge pages.
    pub(super) fn residence(&self, region: &Region) -> [u64; 3] {
        let spaces = self.world.stage.mm.spaces();
        let mut count = [0; 3];
        for page in 0..region.pages() {
            match spaces.residence(&self.life.space, region.start.add(page)) {
                Residence::Absent => {}
                Residence::Swapped => count[1] += 1,
                Residence::Zeros(part) | Residence::Page(_, part) => {
                    count[0] += 1;
                    count[2] += u64::from(part == mm::vm::PartOf::Huge);
                }
            }
        }
        count
    }
}
