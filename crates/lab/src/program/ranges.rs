//! Events about ranges of addresses: what is mapped, moved, said of, and what was there before.
//!
//! The layout learns of a range whole. A call is made of each piece of it that the address space of the replay has in one.

use std::collections::BTreeSet;

use mm::ids::PAGE_SHIFT;
use mm::vm::{Protection, Reserve, Touch};
use trace::{EventKind, MapFlags, PresentKind, SaidOfNodes};

use super::build::Builder;
use super::layout::{BackedBy, Late, Layout, Mapped};
use super::said::{Meant, advised, said_of_nodes};
use super::steps::{Backing, Before, Begins, Call, MapCall, PageRange};
use super::windows::Piece;

/// Pages of a file that a call may bring in one mapping of, if they are to be looked at one by one: a program may map far more of a file than
/// there is of it.
const FILE_PAGES_MAX: u32 = 1 << 20;

/// Ranges for which the address space of the replay has no room.
const TOO_LARGE: &str = "ranges_too_large";

impl Builder {
    pub(super) fn range_event(&mut self, time: u64, task: usize, kind: &EventKind) {
        let (EventKind::Map { address, pages, took_ns, .. }
        | EventKind::Unmap { address, pages, took_ns }
        | EventKind::Remap { from: address, old_pages: pages, took_ns, .. }
        | EventKind::Protect { address, pages, took_ns, .. }
        | EventKind::Advise { address, pages, took_ns, .. }
        | EventKind::Pin { address, pages, took_ns, .. }) = *kind
        else {
            return;
        };
        self.returns(time, task, u64::from(took_ns));
        self.tracks[task].needs = if is_needed(kind) { pages } else { 0 };
        // What was there may be another page from here on.
        self.tracks[task].last_fault = None;
        let Some(space) = self.space_of(time, task, kind) else {
            self.program.omit("calls_before_exec");
            return;
        };
        if let EventKind::Advise { address: 0, advice, nodes, .. } = *kind {
            if let Some(said) = SaidOfNodes::of(advice, nodes) {
                if let Some(call) = self.meant(said_of_nodes(None, said)) {
                    self.call(task, call);
                }
                return;
            }
        }
        match *kind {
            EventKind::Pin { address: 0, pages: u32::MAX, held, .. } => self.pin_all(task, space, held),
            _ => self.change_range(task, space, (address, pages), kind),
        }
    }

    /// What `kind` says of a range is said of each of its pieces.
    fn change_range(&mut self, task: usize, space: usize, (address, pages): (u64, u32), kind: &EventKind) {
        if pages == 0 {
            if let EventKind::Remap { .. } = kind {
                self.program.omit("shared_memory_mapped_again");
            }
            return;
        }
        let pieces = self.layouts[space].windows.pieces(address, pages);
        // What is mapped here only now is mapped as it was before this.
        self.map_fresh(task, space);
        let pieces = pieces.unwrap_or_else(|| self.layouts[space].windows.known_pieces(address, pages));
        let file = self.note_range(space, kind);
        if brings_in(kind) {
            self.files_are_there(space, (address, pages));
        }
        let is_before = matches!(kind, EventKind::Map { flags, .. } if flags.contains(MapFlags::BEFORE));
        for call in self.range_calls(space, &pieces, (kind, file)) {
            match call {
                Call::Map(map) if is_before => self.was_there(task, Before::Mapped(map)),
                call => self.change(task, space, call),
            }
        }
    }

    /// A call has brought a range in: pages of files that were not seen to come were in memory before, which no fault says of them.
    fn files_are_there(&mut self, space: usize, (address, pages): (u64, u32)) {
        let end = address.saturating_add(u64::from(pages) << PAGE_SHIFT);
        for Mapped { pages, file, .. } in self.layouts[space].mapped(address, end) {
            if let Some(BackedBy { file, first }) = file.filter(|_| pages <= FILE_PAGES_MAX) {
                self.files.used(file, first, pages);
            }
        }
    }

    /// All that is mapped and that may be touched is pinned, or let go (`mlockall`, `munlockall`).
    fn pin_all(&mut self, task: usize, space: usize, held: u32) {
        const TOUCHABLE: u32 = MapFlags::READ.0 | MapFlags::WRITE.0 | MapFlags::EXECUTE.0;
        let all = self.layouts[space].mapped(0, u64::MAX);
        for Mapped { address, pages, .. } in all.into_iter().filter(|mapped| mapped.flags.0 & TOUCHABLE != 0)
        {
            let pin = EventKind::Pin { address, held, pages, took_ns: 0 };
            self.change_range(task, space, (address, pages), &pin);
        }
    }

    /// Windows have a place now: what was mapped there while they had none is mapped.
    pub(super) fn map_fresh(&mut self, task: usize, space: usize) {
        for call in self.layouts[space].take_late().into_iter().flat_map(late_calls) {
            self.change(task, space, call);
        }
    }

    /// The task's address space; one that was there before the recording is learnt from what was mapped in it.
    fn space_of(&mut self, time: u64, task: usize, kind: &EventKind) -> Option<usize> {
        let is_before = matches!(kind, EventKind::Map { flags, .. } if flags.contains(MapFlags::BEFORE));
        if self.tracks[task].space.is_none() && is_before {
            let pid = self.tracks[task].recorded.pid;
            let space = self.new_layout(Layout::default());
            self.program.before.push(vec![]);
            let number = self.program.before.len() as u32 - 1;
            for track in
                self.tracks.iter_mut().filter(|track| track.recorded.pid == pid && track.space.is_none())
            {
                track.space = Some(space);
                track.begins = Some(Begins::InSpace(number));
                track.clock.begin_before(time);
            }
        }
        self.tracks[task].space
    }

    /// The layout learns of it; gives the file that is mapped, if one is.
    fn note_range(&mut self, space: usize, kind: &EventKind) -> Option<BackedBy> {
        let layout = &mut self.layouts[space];
        match *kind {
            EventKind::Map { address, file, flags, pages, first, .. } => {
                let shares = flags.contains(MapFlags::SHARED);
                let file = self.files.number(file).or_else(|| shares.then(|| self.files.shared_memory()));
                let file = file.map(|file| BackedBy { file, first });
                if let Some(BackedBy { file, first }) = file.filter(|_| shares) {
                    self.files.mapped(file, first, pages);
                }
                layout.map(address, pages, flags, file);
                return file;
            }
            EventKind::Unmap { address, pages, .. } => layout.unmap(address, pages),
            EventKind::Remap { from, to, old_pages, pages, .. } => layout.remap(from, to, old_pages, pages),
            EventKind::Protect { address, flags, pages, .. } => layout.protect(address, pages, flags),
            EventKind::Advise { address, advice: word @ (14 | 15), pages, .. } => {
                layout.advise_huge(address, pages, word);
            }
            _ => {}
        }
        None
    }

    /// The calls that it is, in the order of its pieces.
    fn range_calls(
        &mut self,
        space: usize,
        pieces: &[Piece],
        (kind, file): (&EventKind, Option<BackedBy>),
    ) -> Vec<Call> {
        if let EventKind::Remap { to, old_pages, pages, .. } = *kind {
            let Some(there) = self.layouts[space].windows.pieces(to, pages) else {
                self.program.omit(TOO_LARGE);
                return vec![];
            };
            // What moves there comes with the call.
            self.layouts[space].windows.take_fresh();
            if there.iter().any(|piece| piece.skipped >= old_pages) {
                // It grows into a place that is not beside its own.
                self.program.omit(TOO_LARGE);
            }
            return remaps((pieces, old_pages), (&there, pages));
        }
        let calls = pieces.iter().filter_map(|piece| {
            let meant = piece_call(piece, kind, file);
            self.meant(meant)
        });
        calls.collect()
    }

    /// The call that was meant, if there is one; what is left out is counted.
    fn meant(&mut self, meant: Meant) -> Option<Call> {
        meant.unwrap_or_else(|name| {
            self.program.omit(name);
            None
        })
    }

    pub(super) fn present(&mut self, task: usize, address: u64, kind: PresentKind, pages: u32) {
        match kind {
            PresentKind::Huge => self.program.huge_before.pages += u64::from(pages),
            PresentKind::HugeZeros => {
                // They are among those of the huge pages that were told of before.
                self.program.huge_before.zeros += u64::from(pages);
                return;
            }
            _ => {}
        }
        let Some(space) = self.tracks[task].space else {
            self.program.omit("pages_outside_of_mappings");
            return;
        };
        let touch = match kind {
            PresentKind::Zero | PresentKind::File => Touch::Read,
            _ => Touch::Write,
        };
        let layout = &mut self.layouts[space];
        if let Some(BackedBy { file, first }) = layout.touch(address).and_then(|found| found.file) {
            self.files.used(file, first, pages);
        }
        let Some(pieces) = layout.windows.pieces(address, pages) else {
            self.program.omit(TOO_LARGE);
            return;
        };
        for late in layout.take_late() {
            if let [Call::Map(map), ..] = late_calls(late)[..] {
                self.was_there(task, Before::Mapped(map));
            }
        }
        for piece in pieces {
            self.was_there(task, Before::Touched(piece.range, touch));
        }
    }

    /// Something was there in the task's address space before the recording began.
    fn was_there(&mut self, task: usize, what: Before) {
        match self.tracks[task].begins {
            Some(Begins::InSpace(number)) => self.program.before[number as usize].push(what),
            _ => self.program.omit("pages_outside_of_mappings"),
        }
    }
}

/// Whether a call begins that needs a range, and brings in what lacks of it.
const fn is_needed(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Advise { advice: EventKind::NEEDED_TO_READ | EventKind::NEEDED_TO_WRITE, .. })
}

/// Whether a call brings in what its range maps.
const fn brings_in(kind: &EventKind) -> bool {
    const POPULATE_READ: u32 = 22;
    const POPULATE_WRITE: u32 = 23;
    match *kind {
        EventKind::Map { flags, .. } => {
            flags.contains(MapFlags::POPULATE) || flags.contains(MapFlags::LOCKED)
        }
        EventKind::Advise { advice, .. } => {
            matches!(advice, POPULATE_READ | POPULATE_WRITE) || is_needed(kind)
        }
        EventKind::Pin { held, .. } => held == 1,
        _ => false,
    }
}

/// The calls that map what had no place before: without what has been said of it, but of huge pages.
fn late_calls(Late { range, flags, file, huge }: Late) -> Vec<Call> {
    let (backing, protection) = (backing(flags, file), protection(flags));
    let map = Call::Map(MapCall { range, backing, protection, populate: false, reserve: reserve(flags) });
    let said = huge.and_then(|word| advised(range, word).ok().flatten());
    std::iter::once(map).chain(said).collect()
}

/// What `kind` says of a piece of its range; `file` is what it maps.
fn piece_call(&Piece { range, skipped }: &Piece, kind: &EventKind, file: Option<BackedBy>) -> Meant {
    match *kind {
        EventKind::Map { flags, .. } => {
            let file = file.map(|file| BackedBy { first: file.first.saturating_add(skipped), ..file });
            let populate = flags.contains(MapFlags::POPULATE) || flags.contains(MapFlags::LOCKED);
            let (backing, protection) = (backing(flags, file), protection(flags));
            let reserve = reserve(flags);
            Ok(Some(Call::Map(MapCall { range, backing, protection, populate, reserve })))
        }
        EventKind::Unmap { .. } => Ok(Some(Call::Unmap(range))),
        EventKind::Protect { flags, .. } => Ok(Some(Call::Protect { range, protection: protection(flags) })),
        EventKind::Advise { advice, nodes, .. } => match SaidOfNodes::of(advice, nodes) {
            Some(said) => said_of_nodes(Some(range), said),
            None => advised(range, advice),
        },
        EventKind::Pin { held: 0, .. } => Ok(Some(Call::Unpin(range))),
        EventKind::Pin { held: 1, .. } => Ok(Some(Call::Pin(range))),
        // It is held once it is touched, which brings nothing in.
        EventKind::Pin { .. } => Err("ranges_locked_once_touched"),
        _ => Ok(None),
    }
}

/// A move of `old` pages in the pieces `from` to `new` pages in the pieces `to`: one for each part that is in one piece on both sides, and
/// none of what has no piece on one of them. Of what is longer on one side, the piece of the last page that moves goes with it; more pieces
/// that it leaves are unmapped.
fn remaps((from, old): (&[Piece], u32), (to, new): (&[Piece], u32)) -> Vec<Call> {
    let moved = old.min(new);
    let starts: BTreeSet<u32> =
        from.iter().chain(to).map(|piece| piece.skipped).filter(|at| *at < moved).collect();
    let part = |pieces: &[Piece], start: u32| {
        let piece = pieces.iter().rfind(|piece| piece.skipped <= start)?;
        let inside = start - piece.skipped;
        let here = piece.range.pages.checked_sub(inside).filter(|here| *here > 0)?;
        let next = starts.range(start + 1..).next().map_or(u32::MAX, |next| next - start);
        Some(PageRange { start: piece.range.start.add(inside), pages: next.min(here) })
    };
    let moves = starts
        .iter()
        .filter_map(|&start| Some(Call::Remap { from: part(from, start)?, to: part(to, start)? }));
    let left = from.iter().filter(|piece| piece.skipped >= moved).map(|piece| Call::Unmap(piece.range));
    moves.chain(left).collect()
}

fn protection(flags: MapFlags) -> Protection {
    if flags.contains(MapFlags::WRITE) {
        Protection::ReadWrite
    } else if flags.contains(MapFlags::EXECUTE) {
        Protection::Execute
    } else if flags.contains(MapFlags::READ) {
        Protection::Read
    } else {
        Protection::None
    }
}

fn reserve(flags: MapFlags) -> Reserve {
    if flags.contains(MapFlags::NORESERVE) { Reserve::Never } else { Reserve::IfWritable }
}

fn backing(flags: MapFlags, file: Option<BackedBy>) -> Backing {
    match file {
        None => Backing::Own,
        Some(BackedBy { file, first }) if flags.contains(MapFlags::SHARED) => Backing::Shared { file, first },
        Some(BackedBy { file, first }) => Backing::Private { file, first },
    }
}

#[cfg(test)]
mod tests {
    use mm::vm::Vpn;

    use super::*;

    const fn range(start: u32, pages: u32) -> PageRange {
        PageRange { start: Vpn(start), pages }
    }

    #[test]
    fn a_move_is_made_of_what_is_in_one_piece_on_both_sides() {
        let piece = |start, pages, skipped| Piece { range: range(start, pages), skipped };
        let one = [piece(100, 10, 0)];
        let two = [piece(500, 4, 0), piece(900, 6, 4)];
        let moved = |from, to| Call::Remap { from, to };
        let apart = [moved(range(100, 4), range(500, 4)), moved(range(104, 6), range(900, 6))];
        assert_eq!(remaps((&one, 10), (&two, 10)), apart);
        let back = [moved(range(500, 4), range(100, 4)), moved(range(900, 6), range(104, 6))];
        assert_eq!(remaps((&two, 10), (&one, 10)), back);
        let gap = [piece(100, 3, 0), piece(300, 2, 8)];
        let known = [moved(range(100, 3), range(500, 4)), moved(range(300, 2), range(904, 2))];
        assert_eq!(remaps((&gap, 10), (&two, 10)), known, "there is nothing between the pieces");
        let grown = [piece(100, 30, 0)];
        assert_eq!(remaps((&one, 10), (&grown, 30)), [moved(range(100, 10), range(100, 30))]);
        let shrunk = [piece(500, 2, 0)];
        assert_eq!(
            remaps((&two, 10), (&shrunk, 2)),
            [moved(range(500, 4), range(500, 2)), Call::Unmap(range(900, 6))]
        );
    }
}
