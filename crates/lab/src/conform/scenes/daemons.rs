//! Daemons of a scene's machine: they get the CPU some time after they were woken, and work to their end at once.

use mm::{Daemon, GroupId, Nanos, Node};

use super::play::Player;

/// How long who runs goes on after kswapd was woken: what 6.12 takes until the program comes to a point at which it gives the
/// CPU away. Fitted by two captures (file-loop-classic and its second boot), in which requests reclaim a tenth by themselves.
const UNTIL_IT_RUNS: Nanos = Nanos(300_000);

/// How often the kernel brings the statistics of groups up to date (500 ticks, and four more by its timer wheel's steps of
/// eight), and when it did so first, which is fitted by two captures (exec-map-classic, mix-max-classic): how long these guests take until timers run.
const FLUSHES_EVERY: u64 = 2_016_000_000;
const FIRST_FLUSH: u64 = 2_171_000_000;

/// Who was woken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Woken {
    node: Node,
    at: Nanos,
}

impl Player {
    /// Runs who was woken long enough ago. The clock is the machine's.
    pub(super) fn run_daemons(&self) {
        let now = self.clock.borrow().now();
        let mm = &self.machine.mm;
        mm.machine().set_now(now);
        let flushes = now.0.saturating_add(FLUSHES_EVERY).saturating_sub(FIRST_FLUSH) / FLUSHES_EVERY;
        if self.machine.flushes.replace(flushes) < flushes {
            mm.lru().flush_stats(GroupId::ROOT);
        }
        mm.machine().take_seen();
        for daemon in mm.machine().take_woken() {
            match daemon {
                Daemon::Kswapd(node) => {
                    let mut woken = self.machine.woken.borrow_mut();
                    if !woken.iter().any(|woken| woken.node == node) {
                        woken.push(Woken { node, at: now });
                    }
                }
                Daemon::Flusher => self.machine.flush.set(true),
                _ => {}
            }
        }
        let due = |woken: &Woken| now.0 >= woken.at.0.saturating_add(UNTIL_IT_RUNS.0);
        while let Some(at) = { self.machine.woken.borrow().iter().position(due) } {
            let woken = self.machine.woken.borrow_mut().swap_remove(at);
            mm.reclaim().kswapd(woken.node);
        }
        if self.machine.flush.take() && (mm.files().take_flush_request() > 0 || mm.files().wants_writeback())
        {
            self.write_back();
        }
    }
}
