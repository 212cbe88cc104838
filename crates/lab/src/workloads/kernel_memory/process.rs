//! One process after the other: its memory, its work, its end.

use std::rc::Rc;
use std::sync::Arc;

use mm::ids::PAGEBLOCK_PAGES;
use mm::vm::{AddressSpace, Cached, File, MapSpec, Placement, Touch, Vpn};
use mm::{AllocError, Machine, Nanos, Order, Pfn, Request};
use sim::{Path, SimMachine};

use super::KernelMemory;
use crate::stage::{Random, Stage};

/// What is counted besides.
pub(super) const NOTES: [&str; 2] = ["processes_done", "processes_killed"];

/// Pages of data that are read or written together.
const PIECE: u32 = 16;
/// Pages of metadata for a piece of data: the inode's, a bitmap's or an indirect block's.
const METADATA_PER_PIECE: u32 = 2;
/// Steps in which a process gets its memory, so that kinds of memory come side by side.
const STEPS: u32 = 32;
/// Parts of the shared segment, of 2 MiB each, that a round of work comes to.
const PARTS_PER_ROUND: u32 = 8;
/// What a round of work computes: an estimate.
const ROUND: Nanos = Nanos(200_000);
/// From the end of a process to the start of the next, and longer after one that was killed.
const GAP: Nanos = Nanos(10_000_000);
const GAP_KILLED: Nanos = Nanos(500_000_000);

type Blocks = Vec<(Pfn, Order)>;

/// What all processes work on.
pub(super) struct Files {
    pub(super) data: Arc<File<SimMachine>>,
    pub(super) metadata: Arc<File<SimMachine>>,
    pub(super) shared: Arc<File<SimMachine>>,
}

/// Where processes come from, one at a time.
pub(super) struct Process {
    spec: KernelMemory,
    stage: Rc<Stage>,
    files: Rc<Files>,
    random: Random,
}

/// Memory could not be had: the process is over.
struct Killed;

impl From<AllocError> for Killed {
    fn from(_: AllocError) -> Self {
        Self
    }
}

impl From<mm::vm::FaultError> for Killed {
    fn from(_: mm::vm::FaultError) -> Self {
        Self
    }
}

impl From<mm::vm::MapError> for Killed {
    fn from(_: mm::vm::MapError) -> Self {
        Self
    }
}

impl Process {
    pub(super) fn new(spec: &KernelMemory, stage: Rc<Stage>, files: Rc<Files>, random: Random) -> Self {
        Self { spec: spec.clone(), stage, files, random }
    }

    /// Process after process until it is over.
    pub(super) fn run(mut self) {
        let stage = Rc::clone(&self.stage);
        while !stage.is_over() {
            let space = stage.mm.spaces().new_space();
            let mut kernel = Blocks::new();
            let killed = self.live(&space, &mut kernel).is_err();
            stage.mm.spaces().exit(&space);
            for (pfn, order) in kernel {
                stage.mm.free(pfn, order).expect("an exit frees only what the process had");
            }
            if !stage.is_over() {
                stage.tally.note(NOTES[usize::from(killed)], 1);
            }
            stage.machine().sleep(if killed { GAP_KILLED } else { GAP });
        }
    }

    /// From start to exit.
    fn live(&mut self, space: &Arc<AddressSpace<SimMachine>>, kernel: &mut Blocks) -> Result<(), Killed> {
        let stage = Rc::clone(&self.stage);
        self.start(&stage, space, kernel)?;
        let parts = (self.spec.shared_mib << 8) / PAGEBLOCK_PAGES;
        let shared = match parts {
            0 => None,
            _ => Some(
                stage
                    .mm
                    .spaces()
                    .mmap(space, MapSpec::shared(&self.files.shared, parts * PAGEBLOCK_PAGES))?,
            ),
        };
        let life = u64::from(self.spec.life_ms) * 1_000_000;
        let end = stage.machine().now().0 + life / 2 + self.random.below(life);
        while !stage.is_over() && stage.machine().now().0 < end {
            stage.machine().compute(ROUND);
            if let Some(shared) = shared {
                self.visit(&stage, space, (shared, parts))?;
            }
            self.piece(&stage)?;
            stage.tally.did(1);
        }
        Ok(())
    }

    /// Gets its anonymous memory and what the kernel keeps for it, a part of each at a time.
    fn start(
        &mut self,
        stage: &Stage,
        space: &Arc<AddressSpace<SimMachine>>,
        kernel: &mut Blocks,
    ) -> Result<(), Killed> {
        let mm = &stage.mm;
        let anon = self.spec.anon_mib << 8;
        let private = mm.spaces().mmap(space, MapSpec::anonymous(anon))?;
        // The stack: two pages together.
        kernel.push(get(stage, Order::new(1).expect("order 1"))?);
        for step in 0..STEPS {
            if stage.is_over() {
                return Ok(());
            }
            let part = |of: u32| of * step / STEPS..of * (step + 1) / STEPS;
            let pages = part(anon);
            mm.spaces().populate(space, private.add(pages.start), pages.len() as u32, Touch::Write)?;
            for _ in part(self.spec.kernel_kib / 4) {
                kernel.push(get(stage, Order::ZERO)?);
            }
            self.piece(stage)?;
        }
        Ok(())
    }

    /// Touches a page in some parts of the segment at `shared.0`, which has `shared.1`.
    fn visit(
        &mut self,
        stage: &Stage,
        space: &AddressSpace<SimMachine>,
        shared: (Vpn, u32),
    ) -> Result<(), Killed> {
        for _ in 0..PARTS_PER_ROUND {
            let part = self.random.below(u64::from(shared.1)) as u32;
            stage.mm.spaces().touch_page(space, shared.0.add(part * PAGEBLOCK_PAGES), Touch::Write)?;
        }
        Ok(())
    }

    /// Reads or writes a piece of the data anywhere, and what metadata goes with it.
    fn piece(&mut self, stage: &Stage) -> Result<(), Killed> {
        let here = Placement::default();
        let writes = self.random.below(100) < u64::from(self.spec.write_percent);
        let mut missing = 0;
        for _ in 0..METADATA_PER_PIECE {
            let page = self.random.below(u64::from(self.spec.metadata_mib) << 8) as u32;
            missing += miss(stage.mm.files().read_file(&self.files.metadata, page, here)?);
            if writes {
                stage.mm.files().write_file(&self.files.metadata, page, here)?;
            }
        }
        let pieces = (self.spec.file_mib << 8) / PIECE;
        let start = self.random.below(u64::from(pieces)) as u32 * PIECE;
        for page in start..start + PIECE {
            if writes {
                stage.mm.files().write_file(&self.files.data, page, here)?;
            } else {
                missing += miss(stage.mm.files().read_file(&self.files.data, page, here)?);
            }
        }
        if missing > 0 {
            stage.disk.transfer(stage.machine(), missing);
        }
        Ok(())
    }
}

fn miss(cached: Cached) -> u64 {
    u64::from(cached == Cached::Miss)
}

/// A block of the kernel's.
fn get(stage: &Stage, order: Order) -> Result<(Pfn, Order), Killed> {
    stage.machine().charge(Path::Syscall);
    let request = Request { allowed: stage.allowed, ..Request::KERNEL };
    Ok((stage.mm.alloc(request.of_order(order))?, order))
}
