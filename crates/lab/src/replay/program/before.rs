//! What was there when the recording began: files' pages in memory, what processes had mapped and touched. It is brought about before any
//! time passes.

use std::rc::Rc;
use std::sync::Arc;

use mm::vm::{File, Placement, Vpn};
use sim::SimMachine;

use super::process::{Process, map};
use crate::program::{Before, PageRange, Program};
use crate::stage::Stage;

/// The program's files, with what of them was in memory. Where there is no room for all, the last ones are without.
pub(super) fn files(stage: &Rc<Stage>, program: &Program) -> Result<Vec<Arc<File<SimMachine>>>, String> {
    let door = stage.mm.files();
    let made: Vec<_> = program.files.iter().map(|file| door.new_file(file.kind)).collect();
    stage.machine().on_behalf_of(stage.cpu(0), || {
        for (recorded, file) in program.files.iter().zip(&made) {
            let pages = recorded.before.iter().flat_map(|&(first, count)| first..first + count);
            for page in pages {
                let read = stage.mm.files().read_file(file, page, Placement::default());
                read.map_err(|error| {
                    format!("the files of the recording do not fit into this machine: {error}")
                })?;
            }
        }
        Ok::<(), String>(())
    })?;
    Ok(made)
}

/// What an address space had.
pub(super) fn fill(
    stage: &Stage,
    files: &[Arc<File<SimMachine>>],
    process: &Process,
    before: &[Before],
) -> Result<(), String> {
    for what in before {
        match *what {
            Before::Mapped(call) => {
                map(stage, files, process, &call)
                    .map_err(|error| format!("what was mapped before: {error}"))?;
            }
            Before::Touched(PageRange { start, pages }, touch) => {
                for page in (start.0..start.0 + pages).map(Vpn) {
                    let touched = stage.mm.spaces().touch_page(&process.space, page, touch);
                    touched.map_err(|error| {
                        format!("what the program had in memory does not fit into this machine: {error}")
                    })?;
                }
            }
        }
    }
    Ok(())
}
