//! The daemons of a simulated machine, all of them. [`start`] starts those that every machine has; [`promotion`] and [`rcu`] are
//! started by workloads that need them.
//!
//! What a daemon does in a round, and how long it then pauses, is the memory manager's to say; here it gets its task. The host's
//! daemons (`host::Daemons`) make the same calls, on threads that wait for bells and can be stopped: beside these calls the two
//! have nothing in common.

mod flusher;
pub(crate) mod promotion;
pub(crate) mod rcu;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use mm::{Daemon, Machine, Nanos, Node};
use sim::{Sim, TaskSpec};

use crate::stage::Stage;

/// A pause that only whoever wakes the daemon ends.
const UNTIL_WOKEN: Nanos = Nanos(u64::MAX);

/// Starts the vmstat tick of every CPU, a kswapd for every node, and what only some workloads need: the flusher, khugepaged, and a
/// kcompactd for every node.
pub(crate) fn start(sim: &Sim, stage: &Rc<Stage>) {
    start_working(sim, stage);
    start_waiting(sim, stage);
}

/// Those that every workload feels.
fn start_working(sim: &Sim, stage: &Rc<Stage>) {
    let (asked, ticking) = (Rc::clone(stage), Rc::clone(stage));
    let interval = move || Nanos(asked.mm.pages().stat_interval_ns());
    let tick = move || ticking.mm.vmstat_tick(ticking.machine().cpu());
    stage.note_first_ticks(sim.every(interval, "vmstat", tick));
    for node in nodes(stage) {
        let kept = Rc::clone(stage);
        let spec = TaskSpec::new(format!("kswapd{}", node.0));
        sim.spawn_daemon(Daemon::Kswapd(node), spec, move || kswapd(&kept, node));
    }
}

/// Those that never start where no file is written to, no huge fault fails, nothing is in pieces and nobody is to be killed.
fn start_waiting(sim: &Sim, stage: &Rc<Stage>) {
    start_when_woken(sim, stage, Daemon::Flusher, "flusher", |stage| flusher::run(stage));
    start_when_woken(sim, stage, Daemon::ZswapShrinker, "zswap-shrink", |stage| zswap_shrinker(stage));
    start_when_woken(sim, stage, Daemon::Khugepaged, "khugepaged", |stage| khugepaged(stage));
    start_when_woken(sim, stage, Daemon::OomKiller, "oom_killer", |stage| oom_killer(stage));
    for node in nodes(stage) {
        let run = move |stage: &Stage| kcompactd(stage, node);
        start_when_woken(sim, stage, Daemon::Kcompactd(node), &format!("kcompactd{}", node.0), run);
    }
}

fn nodes(stage: &Stage) -> impl Iterator<Item = Node> + use<> {
    (0..stage.mm.topology().nodes.len() as u16).map(Node)
}

/// `daemon` starts when it is first woken.
fn start_when_woken(
    sim: &Sim,
    stage: &Rc<Stage>,
    daemon: Daemon,
    name: &str,
    run: impl FnOnce(&Stage) + 'static,
) {
    // What never starts must not keep the stage, which keeps the machine, which keeps it.
    let stage = Rc::downgrade(stage);
    let body = move || {
        if let Some(stage) = stage.upgrade() {
            run(&stage);
        }
    };
    sim.spawn_daemon(daemon, TaskSpec::new(name).at(UNTIL_WOKEN), body);
}

fn kswapd(stage: &Stage, node: Node) -> ! {
    loop {
        stage.machine().block(UNTIL_WOKEN);
        stage.mm.reclaim().kswapd(node);
    }
}

/// A run for each time that somebody finds the pool full, however often meanwhile.
fn zswap_shrinker(stage: &Stage) -> ! {
    loop {
        stage.mm.swap().shrink_zswap();
        stage.machine().block(UNTIL_WOKEN);
    }
}

/// Whoever workloads say goes, each time that kswapd asks. The kernel's kswapd does it itself.
fn oom_killer(stage: &Stage) -> ! {
    loop {
        stage.kill_largest();
        stage.machine().block(UNTIL_WOKEN);
    }
}

/// What it is asked for when it is woken, and what [`mm::Mm::compact_proactively`] finds to do besides.
fn kcompactd(stage: &Stage, node: Node) -> ! {
    loop {
        stage.mm.compaction().kcompactd(node);
        let pause = stage.mm.compaction().compact_proactively(node);
        stage.machine().block(pause.unwrap_or(UNTIL_WOKEN));
    }
}

/// Rounds with pauses as [`mm::Mm::khugepaged`] says, and sleep without a clock where no address space may have huge pages.
fn khugepaged(stage: &Stage) -> ! {
    loop {
        let pause = stage.mm.collapses().khugepaged();
        stage.machine().block(pause.unwrap_or(UNTIL_WOKEN));
    }
}
