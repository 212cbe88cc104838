//! kcompactd of a scene's machine, for each node: it works at the program's next step after somebody woke it, and looks twice a second what else
//! there is to do. It takes none of the program's time: that is the capture's, and has it in.

use std::cell::Cell;

use mm::knobs::Knob;
use mm::{Bare, Daemon, Mm, Nanos, Node};

/// How long it sleeps if nobody wakes it.
const A_SLEEP: Nanos = Nanos(500_000_000);

/// Timers that long end on a multiple of 8 ticks: looks are 512 ms apart. (In traces of file-loop-classic and grow-disk on 6.1 at multiples of that,
/// within 3 ms.)
const TIMER_STEP: u64 = 32_000_000;

/// When that of each node looks next.
#[derive(Debug)]
pub(super) struct Kcompactd {
    looks_at: Vec<Cell<Nanos>>,
}

impl Kcompactd {
    pub(super) fn new(nodes: usize) -> Self {
        Self { looks_at: vec![Cell::new(wakes_after(Nanos(0), A_SLEEP)); nodes] }
    }

    /// It is `now`, and `woken` are awake.
    pub(super) fn run(&self, mm: &Mm<Bare>, woken: &[Daemon], now: Nanos) {
        // Set to 0, it looks at nothing that it is not woken for.
        let looks = mm.knobs().get(Knob::CompactionProactiveness) > 0;
        for (node, looks_at) in (0..).map(Node).zip(&self.looks_at) {
            let is_due = looks && now >= looks_at.get();
            if !is_due && !woken.contains(&Daemon::Kcompactd(node)) {
                continue;
            }
            mm.compaction().kcompactd(node);
            let sleeps = mm.compaction().compact_proactively(node).unwrap_or(A_SLEEP);
            let slept_from = if is_due { last_look(looks_at.get(), now) } else { now };
            looks_at.set(wakes_after(slept_from, sleeps));
        }
    }
}

/// The last of the looks that were due since that of `due`, at `now`: the program may come to its next step long after one.
fn last_look(due: Nanos, now: Nanos) -> Nanos {
    let period = wakes_after(due, A_SLEEP).0 - due.0;
    Nanos(due.0 + (now.0 - due.0) / period * period)
}

/// When a sleep of `length` from `from` on is over.
fn wakes_after(from: Nanos, length: Nanos) -> Nanos {
    Nanos((from.0 + length.0).next_multiple_of(TIMER_STEP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_512_ms_apart() {
        let ms = |ms: u64| Nanos(ms * 1_000_000);
        assert_eq!(wakes_after(ms(3_584), A_SLEEP), ms(4_096), "on the grid");
        assert_eq!(wakes_after(ms(3_600), A_SLEEP), ms(4_128), "woken in between");
        assert_eq!(last_look(ms(4_096), ms(4_100)), ms(4_096), "a step came a little late");
        assert_eq!(last_look(ms(4_096), ms(5_700)), ms(5_632), "looks were missed");
    }
}
