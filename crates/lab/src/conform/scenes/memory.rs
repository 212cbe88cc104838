//! What a scene's program does with regions of memory and says of them.

use mm::Bare;
use mm::vm::{Advice, AdviceError, FileKind, HugePages, MapSpec, MemoryLock, Residence, Vpn};

use super::oom::Failure;
use super::play::{At, Player, Stop};
use super::process::Process;
use crate::script::meanings::{self, advice};
use crate::script::names::{GIB, Named, PAGE, Region};
use crate::script::program::{Mode, Part, Pieces};

/// Pages that a region or file may have here: more is not looked through at each mark.
const MOST_PAGES: u64 = 8 * GIB;

impl Player {
    pub(super) fn named(process: &Process, name: &str, at: At) -> Result<Named<Bare>, Stop> {
        process.names.find(name).cloned().ok_or_else(|| at.broken("no such name"))
    }

    /// The region called `name`, if it is one.
    fn region(process: &Process, name: &str, at: At) -> Result<Option<Region>, Stop> {
        Ok(match Self::named(process, name, at)? {
            Named::Region(region) => Some(region),
            Named::File { .. } => None,
        })
    }

    pub(super) fn part(process: &mut Process, name: &str, part: Part, at: At) -> Result<(u64, u64), Stop> {
        process.names.part(name, part).ok_or_else(|| at.broken("outside of its range"))
    }

    /// Where each piece of `part` begins, and the bytes of one.
    fn pieces(
        &self,
        process: &mut Process,
        name: &str,
        (part, pieces): (Part, Pieces),
        at: At,
    ) -> Result<(impl Iterator<Item = u64> + use<>, u64), Stop> {
        let (from, to) = Self::part(process, name, part, at)?;
        let Pieces { every, piece } = pieces;
        let (every, piece) = if every == 0 { (to - from, to - from) } else { (every, piece) };
        let all = (to - from).checked_div(every).unwrap_or(0);
        self.step(at, all)?;
        let starts = (from..to).step_by(usize::try_from(every.max(1)).unwrap_or(usize::MAX));
        Ok((starts, piece))
    }

    /// Bytes in pages, if they are not too many.
    pub(super) fn size(bytes: u64, at: At) -> Result<u32, Stop> {
        let pages = bytes.div_ceil(PAGE);
        if pages > MOST_PAGES {
            return Err(at.stop(format_args!(
                "regions and files of more than {} GiB are not played",
                MOST_PAGES / GIB
            )));
        }
        Ok(pages as u32)
    }

    pub(super) fn map(
        &mut self,
        process: &mut Process,
        (name, bytes, noise): (&str, u64, u64),
        (shared, huge, nohuge): (bool, bool, bool),
        at: At,
    ) -> Result<(), Stop> {
        let pages = Self::size(bytes, at)?;
        let mm = &self.machine.mm;
        let spec = if shared {
            let file = mm.files().new_file(FileKind::Memory);
            file.set_len(pages);
            MapSpec::shared(&file, pages)
        } else {
            MapSpec::anonymous(pages).unreserved()
        };
        let said = match (huge, nohuge) {
            (_, true) => HugePages::Never,
            (true, false) => HugePages::Advised,
            (false, false) => HugePages::AsConfigured,
        };
        let stores = noise.saturating_mul(64).clamp(8, 64 * PAGE);
        let region = Region { start: Vpn(0), bytes, stores, file: None };
        self.map_at(process, name, (MapSpec { huge: said, ..spec }, region), at)
    }

    /// Maps a region where the next name's is.
    pub(super) fn map_at(
        &mut self,
        process: &mut Process,
        name: &str,
        (spec, region): (MapSpec<Bare>, Region),
        at: At,
    ) -> Result<(), Stop> {
        let pages = spec.pages;
        let start = process.names.next_start();
        if !process.names.add(name, Named::Region(Region { start, ..region })) {
            return Err(at.broken("too many names"));
        }
        // One before may be so long that it lies there (`MAP_FIXED_NOREPLACE`).
        if pages == 0 || process.space.has_any(self.machine.mm.machine(), start, pages) {
            return Err(at.broken("no memory area"));
        }
        let spec = MapSpec { policy: process.policy, ..spec };
        let mapped = self.machine.mm.spaces().mmap_at(&process.space, start, spec);
        mapped.map_err(|_| at.broken("no memory area"))
    }

    pub(super) fn unmap(
        &mut self,
        process: &mut Process,
        name: &str,
        which: (Part, Pieces),
        at: At,
    ) -> Result<(), Stop> {
        let region = Self::region(process, name, at)?;
        let (starts, piece) = self.pieces(process, name, which, at)?;
        for start in starts {
            if start % PAGE != 0 || piece == 0 {
                self.refused(at, "munmap");
                return Ok(());
            }
            // Of a file it would be where nothing is mapped.
            let Some(region) = region else { continue };
            let (first, pages) = region.span(start, piece);
            self.machine.mm.spaces().munmap(&process.space, first, pages);
        }
        Ok(())
    }

    pub(super) fn advise(
        &mut self,
        process: &mut Process,
        (name, word): (&str, &str),
        which: (Part, Pieces),
        at: At,
    ) -> Result<(), Stop> {
        let named = Self::named(process, name, at)?;
        let (starts, piece) = self.pieces(process, name, which, at)?;
        for start in starts {
            match &named {
                Named::File { file, bytes } => {
                    self.advise_of_file(process, (file, *bytes), word, (start, piece), at)?;
                }
                Named::Region(region) => {
                    if start % PAGE != 0 {
                        self.refused(at, "madvise");
                        return Ok(());
                    }
                    let (first, pages) = region.span(start, piece);
                    self.step(at, pages.into())?;
                    if !self.advise_of_region(process, (*region, first, pages), word, at)? {
                        self.refused(at, "madvise");
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Says whether the advice was taken.
    fn advise_of_region(
        &mut self,
        process: &mut Process,
        (region, start, pages): (Region, Vpn, u32),
        word: &str,
        at: At,
    ) -> Result<bool, Stop> {
        if pages == 0 {
            return Ok(true);
        }
        let Some(advice) = advice(word) else { return self.read_ahead(process, (region, start, pages), at) };
        let mut taken = true;
        self.until_done(process, at, |player, process| {
            let (mm, space) = (&player.machine.mm, &process.space);
            let done = match advice {
                Advice::PageOut => mm.pages_out().page_out(space, start, pages),
                advice => mm.spaces().madvise(space, start, pages, advice),
            };
            match done {
                Err(AdviceError::Fault(error)) => match Failure::from(error) {
                    // A call says that it may not.
                    Failure::Address => taken = false,
                    failure @ Failure::Memory(_) => return Err(failure),
                },
                done => taken = done.is_ok(),
            }
            Ok(())
        })?;
        Ok(taken)
    }

    /// `MADV_WILLNEED`: pages of a file are read; there is nothing to read for others, but those in swap.
    fn read_ahead(
        &mut self,
        process: &mut Process,
        (region, start, pages): (Region, Vpn, u32),
        at: At,
    ) -> Result<bool, Stop> {
        let spaces = self.machine.mm.spaces();
        let residence = |page| spaces.residence(&process.space, start.add(page));
        if (0..pages).any(|page| matches!(residence(page), Residence::Swapped)) {
            return Err(at.stop("`advise willneed` of pages in swap is not played"));
        }
        let Some((file, _)) = region.file.map(|file| self.files[file].clone()) else { return Ok(true) };
        let (first, bytes) = (u64::from(start.0 - region.start.0) * PAGE, u64::from(pages) * PAGE);
        self.advise_of_file(process, (&file, region.bytes), "willneed", (first, bytes), at)?;
        Ok(true)
    }

    pub(super) fn lock(&mut self, process: &mut Process, name: &str, at: At) -> Result<(), Stop> {
        let Some(region) = Self::region(process, name, at)? else {
            self.refused(at, "mlock");
            return Ok(());
        };
        self.step(at, region.pages().into())?;
        let mut refused = false;
        self.until_done(process, at, |player, process| {
            let spaces = player.machine.mm.spaces();
            match spaces.mlock(&process.space, region.start, region.pages(), MemoryLock::Keep) {
                Err(AdviceError::Fault(error)) => return Err(error.into()),
                locked => refused = locked.is_err(),
            }
            Ok(())
        })?;
        if refused {
            self.refused(at, "mlock");
        }
        Ok(())
    }

    pub(super) fn policy(
        &mut self,
        process: &mut Process,
        name: Option<&str>,
        (mode, nodes): (Mode, u64),
        at: At,
    ) -> Result<(), Stop> {
        let region = name.map(|name| Self::region(process, name, at)).transpose()?;
        let Some(policy) = meanings::policy(self.machine.mm.topology(), mode, nodes) else {
            self.refused(at, "policy");
            return Ok(());
        };
        let mm = &self.machine.mm;
        let set = match region {
            Some(None) => {
                self.refused(at, "policy");
                return Ok(());
            }
            Some(Some(region)) if mode == Mode::Default => {
                mm.rmap().unbind(&process.space, region.start, region.pages(), process.policy);
                Ok(())
            }
            Some(Some(region)) => mm.spaces().mbind(&process.space, region.start, region.pages(), policy),
            None => {
                process.policy = policy;
                mm.rmap().set_mempolicy(&process.space, policy)
            }
        };
        if set.is_err() {
            self.refused(at, "policy");
        }
        Ok(())
    }
}
