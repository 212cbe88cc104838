//! Where files in memory begin, for huge pages. Linux maps one at an address that is in step with its pages, where `shmem_enabled` lets it
//! have huge ones (`shmem_get_unmapped_area`). Where it did not when the program was recorded, the file begins later here by as many pages
//! as put it in step with its first mapping that is large enough: what is mapped, and where, stays as it was recorded. Of what such a
//! mapping holds, one huge page fewer fits.

use mm::ids::PAGEBLOCK_PAGES;
use mm::vm::FileKind;

use super::files::RecordedFile;
use super::steps::{Backing, Before, Call, FileRange, MapCall, Program};

/// Puts the files of `program` that are in memory in step with what maps them.
pub(super) fn align(program: &mut Program) {
    let shifts: Vec<u32> = (0..program.files.len()).map(|file| shift_of(program, file as u32)).collect();
    if shifts.iter().all(|shift| *shift == 0) {
        return;
    }
    for (file, &shift) in program.files.iter_mut().zip(&shifts) {
        move_file(file, shift);
    }
    program.calls.iter_mut().for_each(|call| move_call(call, &shifts));
    let before = program.before.iter_mut().flatten();
    before.filter_map(mapped).for_each(|call| move_map(call, &shifts));
}

/// The mapping that was there before, if it is one.
fn mapped(before: &mut Before) -> Option<&mut MapCall> {
    match before {
        Before::Mapped(call) => Some(call),
        Before::Touched(..) => None,
    }
}

/// By how many pages file `file` is to begin later.
fn shift_of(program: &Program, file: u32) -> u32 {
    if program.files[file as usize].kind != FileKind::Memory {
        return 0;
    }
    let before = program.before.iter().flatten().filter_map(|before| match before {
        Before::Mapped(call) => Some(call),
        Before::Touched(..) => None,
    });
    let calls = program.calls.iter().filter_map(|call| match call {
        Call::Map(call) => Some(call),
        _ => None,
    });
    let of_file =
        |call: &&MapCall| call.range.pages >= PAGEBLOCK_PAGES && of(call).is_some_and(|(at, _)| at == file);
    let first = before.chain(calls).find(of_file);
    first.and_then(|call| Some(call.range.start.0.wrapping_sub(of(call)?.1) % PAGEBLOCK_PAGES)).unwrap_or(0)
}

/// The file that a call maps to be shared, and that's page at its start.
fn of(call: &MapCall) -> Option<(u32, u32)> {
    match call.backing {
        Backing::Shared { file, first } => Some((file, first)),
        Backing::Own | Backing::Private { .. } => None,
    }
}

fn move_file(file: &mut RecordedFile, shift: u32) {
    file.before.iter_mut().for_each(|(first, _)| *first = first.saturating_add(shift));
    file.pages = file.pages.saturating_add(shift);
}

fn move_call(call: &mut Call, shifts: &[u32]) {
    match call {
        Call::Map(call) => move_map(call, shifts),
        Call::Read(range) | Call::Fill(range) | Call::Write(range) | Call::Drop(range) => {
            let FileRange { file, first, .. } = range;
            *first = first.saturating_add(shifts[*file as usize]);
        }
        _ => {}
    }
}

fn move_map(call: &mut MapCall, shifts: &[u32]) {
    if let Backing::Shared { file, first } | Backing::Private { file, first } = &mut call.backing {
        *first = first.saturating_add(shifts[*file as usize]);
    }
}

#[cfg(test)]
mod tests {
    use mm::vm::{MemoryFile, Vpn};

    use super::*;
    use crate::program::PageRange;

    fn file(kind: FileKind) -> RecordedFile {
        let memory = MemoryFile::default();
        RecordedFile {
            name: String::new(),
            kind,
            memory,
            before: vec![(0, 2)],
            pages: 1024,
            read_ahead: None,
        }
    }

    fn map(start: u32, pages: u32, backing: Backing) -> Call {
        let range = PageRange { start: Vpn(start), pages };
        Call::Map(MapCall { backing, ..MapCall::own(range) })
    }

    #[test]
    fn a_file_in_memory_comes_in_step_with_its_first_large_mapping() {
        let shared = |file, first| Backing::Shared { file, first };
        let write = |file| Call::Write(FileRange { file, first: 3, pages: 1 });
        let calls = vec![
            map(7, 16, shared(1, 0)),
            map(512 + 100, 1024, shared(1, 20)),
            map(90, 1024, shared(0, 0)),
            write(0),
            write(1),
        ];
        let files = vec![file(FileKind::Disk), file(FileKind::Memory)];
        let mut program = Program { calls, files, ..Program::default() };
        align(&mut program);
        let firsts = program.calls.iter().map(|call| match call {
            Call::Map(call) => of(call).unwrap().1,
            Call::Write(range) => range.first,
            _ => unreachable!(),
        });
        assert_eq!(firsts.collect::<Vec<u32>>(), [80, 100, 0, 3, 83]);
        let files = program.files.iter().map(|file| (file.before[0].0, file.pages));
        assert_eq!(files.collect::<Vec<_>>(), [(0, 1024), (80, 1104)]);
    }
}
