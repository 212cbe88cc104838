//! The flusher: the daemon that writes dirty pages to the machine's disk. It sleeps without a clock while nothing is dirty, so a
//! workload without files does not notice that it is there.
//!
//! As the kernel's, it writes while more is dirty than `vm.dirty_background_ratio` allows, all that is dirty when reclaim asks,
//! and looks every `vm.dirty_writeback_centisecs` (5 s; 0: never) for what has been dirty for `vm.dirty_expire_centisecs` (30 s). The
//! memory manager keeps no ages of dirty pages: so long after the first of them became dirty, all are written.

use mm::{Knob, Machine, Nanos};

use crate::stage::Stage;

/// Pages of a round, 4 MiB: the kernel's MAX_WRITEBACK_PAGES.
const ROUND: u64 = 1024;
/// ns of the unit in which intervals are set.
const CENTISECOND: u64 = 10_000_000;
/// Where it looks at nothing it sees so often whether that was changed.
const SEES_EVERY: Nanos = Nanos(5_000_000_000);

/// The daemon's life.
pub(crate) fn run(stage: &Stage) -> ! {
    let mut dirty_since = stage.machine().now();
    loop {
        let now = stage.machine().now();
        let interval = interval(stage);
        let expired = interval.is_some() && has_expired(stage, now.0 - dirty_since.0);
        if expired {
            dirty_since = now;
        }
        write(stage, if expired { stage.mm.files().dirty_pages().dirty } else { 0 });
        if stage.mm.files().dirty_pages().dirty > 0 {
            stage.machine().block(interval.unwrap_or(SEES_EVERY));
        } else {
            stage.machine().block(Nanos(u64::MAX));
            dirty_since = stage.machine().now();
        }
    }
}

/// How long it sleeps between its looks; `None` where it writes nothing for its age.
fn interval(stage: &Stage) -> Option<Nanos> {
    let knob = Knob::DirtyWritebackCentisecs;
    let set = stage.mm.knobs().decide(stage.machine(), knob, |set| set);
    (set > 0).then_some(Nanos(set * CENTISECOND))
}

/// Whether something that has been dirty for `ns` is to be written for that.
fn has_expired(stage: &Stage, ns: u64) -> bool {
    let by = (Knob::DirtyExpireCentisecs, ns);
    stage.mm.knobs().decide_by(stage.machine(), by, |set| set * CENTISECOND, |mark| ns >= mark)
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
