//! The flusher: the daemon that writes dirty pages to the machine's disk. It sleeps without a clock while nothing is dirty, so a
//! workload without files does not notice that it is there.
//!
//! As the kernel's, it writes while more is dirty than `vm.dirty_background_ratio` allows, all that is dirty when reclaim asks,
//! and looks every 5 s (`vm.dirty_writeback_centisecs`) for what has been dirty for 30 s (`vm.dirty_expire_centisecs`). The
//! memory manager keeps no ages of dirty pages: 30 s after the first of them became dirty, all are written.

use mm::{Machine, Nanos};

use crate::stage::Stage;

/// Pages of a round, 4 MiB: the kernel's MAX_WRITEBACK_PAGES.
const ROUND: u64 = 1024;
const INTERVAL: Nanos = Nanos(5_000_000_000);
const EXPIRE: Nanos = Nanos(30_000_000_000);

/// The daemon's life.
pub(crate) fn run(stage: &Stage) -> ! {
    let mut dirty_since = stage.machine().now();
    loop {
        let now = stage.machine().now();
        let expired = now.0 - dirty_since.0 >= EXPIRE.0;
        if expired {
            dirty_since = now;
        }
        write(stage, if expired { stage.mm.files().dirty_pages().dirty } else { 0 });
        if stage.mm.files().dirty_pages().dirty > 0 {
            stage.machine().block(INTERVAL);
        } else {
            stage.machine().block(Nanos(u64::MAX));
            dirty_since = stage.machine().now();
        }
    }
}

/// Writes `due` pages, and more as long as there is a reason to.
fn write(stage: &Stage, mut due: u64) {
    let mm = &stage.mm;
    loop {
        due = due.max(mm.files().take_flush_request());
        if due == 0 && !mm.files().wants_writeback() {
            return;
        }
        let taken = mm.files().take_dirty(ROUND);
        if taken.is_empty() {
            return;
        }
        let pages = taken.iter().map(|folio| u64::from(folio.pages)).sum();
        stage.disk.transfer(stage.machine(), pages);
        mm.files().written(&taken);
        due = due.saturating_sub(pages);
    }
}
