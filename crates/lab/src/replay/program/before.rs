//! What was there when the recording began: files' pages in memory, what processes had mapped and touched. It is brought about before any
//! time passes. What there is no room for is left out, and counted.

use std::rc::Rc;
use std::sync::Arc;

use mm::vm::{File, FileKind, Placement, Vpn};
use sim::SimMachine;

use super::process::{Process, map};
use crate::program::{Before, PageRange, Program, RecordedFile};
use crate::stage::Stage;

/// Pages that were in memory when the recording began and for which there is no room, under the name that runs count them by.
const NO_ROOM: &str = "pages_without_room";

/// The program's files, with what of them was in memory.
pub(super) fn files(stage: &Rc<Stage>, program: &Program) -> Vec<Arc<File<SimMachine>>> {
    let made: Vec<_> = program.files.iter().map(|file| open(stage, file)).collect();
    stage.machine().on_behalf_of(stage.cpu(0), || {
        for (recorded, file) in program.files.iter().zip(&made) {
            for &(first, pages) in &recorded.before {
                cache(stage, file, first, pages);
            }
        }
    });
    made
}

fn open(stage: &Stage, recorded: &RecordedFile) -> Arc<File<SimMachine>> {
    let file = stage.mm.files().new_file(recorded.kind);
    file.set_len(recorded.pages);
    file.set_memory(recorded.memory);
    if let Some(pages) = recorded.read_ahead.filter(|_| recorded.kind == FileKind::Disk) {
        file.set_read_ahead(pages);
    }
    file
}

fn cache(stage: &Stage, file: &File<SimMachine>, first: u32, pages: u32) {
    for page in first..first + pages {
        if stage.mm.files().read_file(file, page, Placement::default()).is_err() {
            stage.tally.note(NO_ROOM, u64::from(first + pages - page));
            return;
        }
    }
}

/// What an address space had.
pub(super) fn fill(stage: &Stage, files: &[Arc<File<SimMachine>>], process: &Process, before: &[Before]) {
    for what in before {
        match *what {
            Before::Mapped(call) => {
                if map(stage, files, process, &call).is_err() {
                    stage.tally.note(NO_ROOM, u64::from(call.range.pages));
                }
            }
            Before::Touched(PageRange { start, pages }, touch) => {
                for page in (start.0..start.0 + pages).map(Vpn) {
                    if stage.mm.spaces().touch_page(&process.space, page, touch).is_err() {
                        stage.tally.note(NO_ROOM, 1);
                    }
                }
            }
        }
    }
}
