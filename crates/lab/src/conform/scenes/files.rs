//! What a scene's program does with files, and what it says of its memory.

use mm::AllocError;
use mm::vm::{
    Advice, AdviceError, FaultError, FileKind, HugePages, MapSpec, MemoryLock, Placement, Protection,
    ReadPattern, Touch,
};

use super::draws::Popularity;
use super::play::{At, Player, Stop};
use super::process::{Named, Process, Region};
use super::program::{FileMapping, Order, Part, Skew, What};
use crate::conform::read::sections::FormatError;

/// Pages of a call, one after the other: 64 KiB.
const BLOCK: u32 = 16;
/// Pages that are popular at most.
const MOST_POPULAR: u32 = 131_072;

/// Why an access failed.
pub(super) enum Failure {
    Memory(AllocError),
    Other(String),
}

impl From<FaultError> for Failure {
    fn from(error: FaultError) -> Self {
        match error {
            FaultError::Alloc(error) => Self::Memory(error),
            error => Self::Other(error.to_string()),
        }
    }
}

impl From<AllocError> for Failure {
    fn from(error: AllocError) -> Self {
        Self::Memory(error)
    }
}

impl Player {
    pub(super) fn file_operation(&mut self, process: &mut Process, what: &What, at: At) -> Result<(), Stop> {
        match what {
            What::File { name, pages } => {
                Self::place(process, 1, at)?;
                let file = self.machine.mm.files().new_file(FileKind::Disk);
                file.set_len(*pages);
                process.add(name, Named::File { file, pages: *pages });
            }
            What::MapFile { name, file, how } => self.map_file(process, (name, file), *how, at)?,
            What::Calls { name, part, block, touch, order, times } => {
                let block = block.unwrap_or(if matches!(order, Order::Drawn(_)) { 1 } else { BLOCK }).max(1);
                self.calls(process, (name, *part, block), (*touch, *order, *times), at)?;
            }
            What::Zipf { name, part, count, skew, seed, touch } => {
                self.zipf(process, (name, *part), (*count, *skew, *seed), (*touch, at))?;
            }
            What::Sync => self.write_back(),
            What::Advise { name, word, part } => self.advise(process, (name, word, *part), at)?,
            What::Lock(name) => {
                let region = Self::region(process, name, at)?;
                let spaces = self.machine.mm.spaces();
                let locked = spaces.mlock(&process.space, region.start, region.pages, MemoryLock::Keep);
                locked.map_err(|error| at.stop(error))?;
            }
            _ => return Err(at.stop("this is not played")),
        }
        Ok(())
    }

    fn map_file(
        &self,
        process: &mut Process,
        (name, file): (&str, &str),
        how: FileMapping,
        at: At,
    ) -> Result<(), Stop> {
        let Some(Named::File { file, pages }) = process.names.get(file).map(|this| this.named.clone()) else {
            return Err(Stop::Bad(FormatError::new(at.number, "there is no file of that name")));
        };
        let start = Self::place(process, pages, at)?;
        let spec = match how {
            FileMapping::Shared => MapSpec::shared(&file, pages).protected(Protection::Read),
            FileMapping::Executable => MapSpec::shared(&file, pages).protected(Protection::Execute),
            FileMapping::Private => MapSpec::private(&file, pages).unreserved(),
        };
        let mapped = self.machine.mm.spaces().mmap_at(&process.space, start, spec);
        mapped.map_err(|error| at.stop(error))?;
        process.add(name, Named::Region(Region { start, pages }));
        Ok(())
    }

    /// Calls that read or write a block each.
    fn calls(
        &mut self,
        process: &mut Process,
        (name, part, block): (&str, Part, u32),
        (touch, order, times): (Touch, Order, u32),
        at: At,
    ) -> Result<(), Stop> {
        let (from, to) = process.part(name, part);
        let named = Self::named(process, name, at)?;
        let blocks = (to - from).div_ceil(block);
        let all = u64::from(blocks) * u64::from(times);
        for number in 0..all {
            let turn = process.turn((number % u64::from(blocks)) as u32, blocks, order);
            let first = from + turn * block;
            self.step(at, block.into())?;
            if let Err(failure) = self.access(process, &named, (first, block), touch) {
                return Err(self.failed(process, &failure, at));
            }
            self.went_on(process, at, (number, all));
        }
        Ok(())
    }

    fn zipf(
        &mut self,
        process: &mut Process,
        (name, part): (&str, Part),
        (count, skew, seed): (u32, Skew, u64),
        (touch, at): (Touch, At),
    ) -> Result<(), Stop> {
        let (from, to) = process.part(name, part);
        let named = Self::named(process, name, at)?;
        if to == from || to - from > MOST_POPULAR {
            return Err(at.stop(format_args!("1 to {MOST_POPULAR} pages are popular")));
        }
        let popularity = Popularity::new(to - from, skew);
        for number in 0..count {
            self.step(at, 1)?;
            let page = from + popularity.page(process.state(seed));
            if let Err(failure) = self.access(process, &named, (page, 1), touch) {
                return Err(self.failed(process, &failure, at));
            }
            self.went_on(process, at, (number.into(), count.into()));
        }
        Ok(())
    }

    fn named(process: &Process, name: &str, at: At) -> Result<Named, Stop> {
        let named = process.names.get(name).map(|this| this.named.clone());
        named.ok_or_else(|| Stop::Bad(FormatError::new(at.number, "nothing has that name")))
    }

    /// One access: to a page of a region, or by a call.
    fn access(
        &self,
        process: &mut Process,
        named: &Named,
        (first, pages): (u32, u32),
        touch: Touch,
    ) -> Result<(), Failure> {
        let mm = &self.machine.mm;
        match named {
            Named::Region(region) => {
                self.touch_at(process, region.start.add(first), touch)?;
            }
            Named::File { file, pages: len } => {
                let pages = pages.min(len - first);
                let from = Placement::default();
                if touch == Touch::Read {
                    mm.files().read_pages(file, first, pages, from)?;
                } else {
                    for page in first..first + pages {
                        mm.files().write_file(file, page, from)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// An access failed: for want of memory the process goes.
    pub(super) fn failed(&mut self, process: &Process, failure: &Failure, at: At) -> Stop {
        match failure {
            Failure::Memory(AllocError::OutOfMemory) => self.kill(process),
            Failure::Memory(error) => at.stop(error),
            Failure::Other(error) => at.stop(error),
        }
    }

    fn advise(
        &mut self,
        process: &mut Process,
        (name, word, part): (&str, &str, Part),
        at: At,
    ) -> Result<(), Stop> {
        let named = Self::named(process, name, at)?;
        let mm = &self.machine.mm;
        for (first, pages) in process.pieces(name, part) {
            match &named {
                Named::Region(region) => {
                    let Some(advice) = advice(word) else {
                        return Err(at.stop(format_args!("`advise {word}` is not played")));
                    };
                    let (space, start) = (&process.space, region.start.add(first));
                    let taken = match advice {
                        Advice::PageOut => mm.pages_out().page_out(space, start, pages),
                        advice => mm.spaces().madvise(space, start, pages, advice),
                    };
                    self.step(at, pages.into())?;
                    if let Err(AdviceError::Fault(error)) = taken {
                        return Err(self.failed(process, &error.into(), at));
                    }
                    // Else the call says no, and the scene goes on.
                }
                Named::File { file, .. } => match (word, pattern(word)) {
                    (_, Some(pattern)) => mm.files().advise_file(file, pattern),
                    ("dontneed", _) => {
                        self.step(at, pages.into())?;
                        // What a CPU keeps back has a reference more.
                        mm.lru().lru_drain_all();
                        for page in first..first + pages {
                            mm.files().forget_file_page(file, page);
                        }
                    }
                    _ => return Err(at.stop(format_args!("`advise {word}` of a file is not played"))),
                },
            }
        }
        Ok(())
    }

    /// Everything that is dirty is written at once: the disk's queue has no length.
    pub(super) fn write_back(&self) {
        let files = self.machine.mm.files();
        loop {
            let taken = files.take_dirty(1024);
            if taken.is_empty() {
                return;
            }
            files.written(&taken);
        }
    }
}

fn advice(word: &str) -> Option<Advice> {
    Some(match word {
        "dontneed" => Advice::DontNeed,
        "free" => Advice::Free,
        "cold" => Advice::Cold,
        "pageout" => Advice::PageOut,
        "collapse" => Advice::Collapse,
        "populate_read" => Advice::PopulateRead,
        "populate_write" => Advice::PopulateWrite,
        "hugepage" => Advice::Huge(HugePages::Advised),
        "nohugepage" => Advice::Huge(HugePages::Never),
        word => Advice::Reads(pattern(word)?),
    })
}

fn pattern(word: &str) -> Option<ReadPattern> {
    Some(match word {
        "normal" => ReadPattern::Normal,
        "random" => ReadPattern::Random,
        "sequential" => ReadPattern::Sequential,
        _ => return None,
    })
}
