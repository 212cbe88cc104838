//! What is mapped where in a process, by the recording's addresses: whether a touch falls into something, how a stack grows.

use std::collections::BTreeMap;

use trace::MapFlags;

use super::steps::PageRange;
use super::windows::{Piece, Windows};

/// Bytes of a page.
const PAGE: u64 = mm::ids::PAGE_SIZE;
/// How far below its lowest page a stack may be touched: Linux's default limit of a stack.
const STACK_REACH: u64 = 8 << 20;

/// A range of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Region {
    end: u64,
    flags: MapFlags,
    /// The file behind it, as an index into the program's.
    file: Option<BackedBy>,
    /// What was said of huge pages there: the word of `madvise`.
    huge: Option<u32>,
}

/// A part of what is mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mapped {
    /// Its first address.
    pub(super) address: u64,
    /// Its pages.
    pub(super) pages: u32,
    /// How it is mapped.
    pub(super) flags: MapFlags,
    /// The file's page there.
    pub(super) file: Option<BackedBy>,
    /// What was said of huge pages there: the word of `madvise`.
    pub(super) huge: Option<u32>,
}

/// What is mapped late, as pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Late {
    /// The pages.
    pub(super) range: PageRange,
    /// How they are mapped.
    pub(super) flags: MapFlags,
    /// The file's page at their start.
    pub(super) file: Option<BackedBy>,
    /// What was said of huge pages there: the word of `madvise`.
    pub(super) huge: Option<u32>,
}

/// The file behind a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BackedBy {
    /// An index into the program's files.
    pub(super) file: u32,
    /// Its page at the range's start.
    pub(super) first: u32,
}

impl BackedBy {
    fn skipping(self, bytes: u64) -> Self {
        Self { first: self.first.saturating_add((bytes / PAGE) as u32), ..self }
    }
}

/// Where a touch falls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Touched {
    /// How it is mapped.
    pub(super) flags: MapFlags,
    /// The file's page there.
    pub(super) file: Option<BackedBy>,
    /// Pages that the stack must grow downwards for this, 0 for none.
    pub(super) grows_by: u32,
    /// Pages of the same range below it.
    pub(super) below: u32,
    /// Pages of the same range above it.
    pub(super) above: u32,
}

/// What a process has mapped.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    regions: BTreeMap<u64, Region>,
    /// Its addresses as pages.
    pub(super) windows: Windows,
    /// Touches that brought a page in, more or less as many as there are to free at its end.
    pub(super) touched: u64,
}

impl Layout {
    /// `pages` from `address` on are mapped so, in the place of what was there.
    pub(super) fn map(&mut self, address: u64, pages: u32, flags: MapFlags, file: Option<BackedBy>) {
        let end = self.clear(address, pages);
        self.regions.insert(address, Region { end, flags, file, huge: None });
    }

    /// They are mapped no more; windows where nothing else is have no place from here on.
    pub(super) fn unmap(&mut self, address: u64, pages: u32) {
        let end = self.clear(address, pages);
        let Self { regions, windows, .. } = self;
        windows.leave((address, end), |from, to| {
            let below = regions.range(..to).next_back();
            below.is_some_and(|(_, region)| region.end > from)
        });
    }

    /// Takes the ranges away; gives their end.
    fn clear(&mut self, address: u64, pages: u32) -> u64 {
        let end = address.saturating_add(u64::from(pages) * PAGE);
        self.cut(address);
        self.cut(end);
        let gone: Vec<u64> = self.regions.range(address..end).map(|(start, _)| *start).collect();
        for start in gone {
            self.regions.remove(&start);
        }
        end
    }

    /// The ranges of `pages` from `address` on get other rights; how they are mapped stays.
    pub(super) fn protect(&mut self, address: u64, pages: u32, flags: MapFlags) {
        const RIGHTS: u32 = MapFlags::READ.0 | MapFlags::WRITE.0 | MapFlags::EXECUTE.0;
        self.change(address, pages, |region| {
            region.flags = MapFlags(region.flags.0 & !RIGHTS | flags.0 & RIGHTS);
        });
    }

    /// A word of `madvise` about huge pages is said of the ranges.
    pub(super) fn advise_huge(&mut self, address: u64, pages: u32, word: u32) {
        self.change(address, pages, |region| region.huge = Some(word));
    }

    fn change(&mut self, address: u64, pages: u32, change: impl Fn(&mut Region)) {
        let end = address.saturating_add(u64::from(pages) * PAGE);
        self.cut(address);
        self.cut(end);
        self.regions.range_mut(address..end).for_each(|(_, region)| change(region));
    }

    /// What is mapped from `from` to before `to`.
    pub(super) fn mapped(&self, from: u64, to: u64) -> Vec<Mapped> {
        let below = self.regions.range(..from).next_back();
        let all = below.into_iter().chain(self.regions.range(from..to));
        let parts = all.filter(|(_, region)| region.end > from).map(|(&start, region)| {
            let address = start.max(from);
            Mapped {
                address,
                pages: ((region.end.min(to) - address) / PAGE) as u32,
                flags: region.flags,
                file: region.file.map(|file| file.skipping(address - start)),
                huge: region.huge,
            }
        });
        parts.collect()
    }

    /// What is mapped in windows that had no place when it was, and have one now.
    pub(super) fn take_late(&mut self) -> Vec<Late> {
        let fresh = self.windows.take_fresh();
        let mapped = fresh.into_iter().flat_map(|(from, to)| self.mapped(from, to));
        let late = |Mapped { address, pages, flags, file, huge }: Mapped| {
            let pieces = self.windows.known_pieces(address, pages).into_iter();
            pieces.map(move |Piece { range, skipped }| {
                let file = file.map(|file| file.skipping(u64::from(skipped) * PAGE));
                Late { range, flags, file, huge }
            })
        };
        mapped.flat_map(late).collect()
    }

    /// What was mapped at `from` is mapped at `to`, so many pages long.
    pub(super) fn remap(&mut self, from: u64, to: u64, old_pages: u32, pages: u32) {
        let was = self.find(from);
        let gone = if from == to { old_pages.max(pages) } else { old_pages };
        self.clear(from, gone);
        if let Some(Touched { flags, file, .. }) = was {
            self.map(to, pages, flags, file);
        }
    }

    /// Divides the region that `at` lies in.
    fn cut(&mut self, at: u64) {
        let Some((&start, region)) = self.regions.range_mut(..at).next_back() else { return };
        if region.end <= at {
            return;
        }
        let above = Region { file: region.file.map(|file| file.skipping(at - start)), ..*region };
        region.end = at;
        self.regions.insert(at, above);
    }

    /// How `address` is mapped.
    pub(super) fn find(&self, address: u64) -> Option<Touched> {
        let (start, region) = self.regions.range(..=address).next_back()?;
        let file = region.file.map(|file| file.skipping(address - start));
        let page = address & !(PAGE - 1);
        let touched = || Touched {
            flags: region.flags,
            file,
            grows_by: 0,
            below: ((page - start) / PAGE) as u32,
            above: ((region.end - page) / PAGE) as u32 - 1,
        };
        (address < region.end).then(touched)
    }

    /// What `address` is; a stack grows as far as it must.
    pub(super) fn touch(&mut self, address: u64) -> Option<Touched> {
        self.find(address).or_else(|| self.grow_stack(address & !(PAGE - 1)))
    }

    fn grow_stack(&mut self, page: u64) -> Option<Touched> {
        let (&start, region) = self.regions.range(page..).next()?;
        let near = start - page <= STACK_REACH;
        let region = *region;
        (near && region.flags.contains(MapFlags::STACK)).then_some(())?;
        self.regions.insert(page, Region { end: start, ..region });
        let grows_by = ((start - page) / PAGE) as u32;
        Some(Touched { flags: region.flags, file: None, grows_by, below: 0, above: grows_by - 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RW: MapFlags = MapFlags(3);

    #[test]
    fn what_is_mapped_over_goes() {
        let mut layout = Layout::default();
        let file = BackedBy { file: 7, first: 10 };
        layout.map(0x10_000, 16, RW, Some(file));
        layout.map(0x14_000, 2, MapFlags::READ, None);
        assert_eq!(layout.touch(0x13_fff).unwrap().file, Some(BackedBy { file: 7, first: 13 }));
        assert_eq!(
            layout.touch(0x14_000).unwrap(),
            Touched { flags: MapFlags::READ, file: None, grows_by: 0, below: 0, above: 1 }
        );
        assert_eq!(layout.touch(0x16_000).unwrap().file, Some(BackedBy { file: 7, first: 16 }));
        layout.unmap(0x11_000, 3);
        assert_eq!(layout.touch(0x11_000), None);
        layout.protect(0x16_000, 1, MapFlags::READ);
        assert_eq!(layout.touch(0x16_000).unwrap().flags, MapFlags::READ);
        assert_eq!(layout.touch(0x17_000).unwrap().flags, RW);
    }

    #[test]
    fn what_moves_takes_its_file_along() {
        let mut layout = Layout::default();
        layout.map(0x10_000, 4, RW, Some(BackedBy { file: 1, first: 0 }));
        layout.remap(0x11_000, 0x90_000, 2, 8);
        assert_eq!(layout.touch(0x12_000), None);
        assert_eq!(layout.touch(0x97_000).unwrap().file, Some(BackedBy { file: 1, first: 8 }));
        layout.remap(0x90_000, 0x90_000, 8, 1);
        assert_eq!(layout.touch(0x91_000), None);
    }

    #[test]
    fn a_stack_grows_to_where_it_is_touched_and_no_heap_does() {
        let mut layout = Layout::default();
        layout.map(0x7fff_0000, 4, RW | MapFlags::STACK, None);
        assert_eq!(layout.touch(0x7ffe_c123).unwrap().grows_by, 4);
        assert_eq!(layout.touch(0x7ffe_d000).unwrap().grows_by, 0);
        assert_eq!(layout.touch(0x1000), None, "too far");
        layout.map(0x50_000, 1, RW | MapFlags::HEAP, None);
        assert_eq!(layout.touch(0x4f_000), None);
    }
}
