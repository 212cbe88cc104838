//! The programs of docs/published.md#raghavendra-2024: their memory begins on a slow node, their threads touch it by a
//! statistical model, and promotion is to bring what they touch to fast nodes. abench of the post is one process of 64
//! threads that goes over all of its memory, in random order, so many times.
//!
//! `completion` is how long a process takes for its accesses, from the start of the clock, in ns; `scan`, `migrate`, `hint-scan`
//! and `hint-fault` are the times that promotion spent, all threads together, and `overhead` is their sum; the counters
//! `accesses_fast` and `accesses_slow` say, in units of 1024, which tier's memory was accessed. An operation is 1024 accesses.
//!
//! Left out: setting memory up (it lies on its node before the clock starts), page faults, everything else that the programs do
//! between accesses (part of what an access costs).

#[cfg(test)]
mod tests;
mod thread;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use mm::Node;
use mm::policy::Mechanism;
use serde::Deserialize;
use sim::{Sim, TaskSpec};

use crate::daemons;
use crate::promotion::{Program, ProgramSpec, RegionSpec, World};
use crate::reach::Brings;
use crate::stage::Stage;
use crate::workloads::workload::{Workload, WorkloadKind, number, within};
use thread::Running;

/// Processes that are alike.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProcessSpec {
    /// How many.
    #[serde(default = "number::<1>")]
    pub count: u32,
    /// Threads of each; 0: its memory is there, and nobody touches it.
    #[serde(default = "number::<1>")]
    pub threads: u32,
    /// How often each thread accesses as many pages as the process has; 0: until the end.
    #[serde(default)]
    pub passes: u32,
    /// What a thread computes for each access, on what it has in its caches, ns.
    #[serde(default)]
    pub think_ns: u32,
    /// Whether it has just written all of its memory, so that every page is marked as accessed; else that was long ago.
    #[serde(default)]
    pub fresh: bool,
    /// The node that its memory is on at first.
    pub node: u16,
    /// Its mappings, upwards.
    pub regions: Vec<RegionSpec>,
}

/// Parameters of the workload.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HotPages {
    /// What runs.
    pub processes: Vec<ProcessSpec>,
    /// A thread's stretch of accesses between two looks at the clock, ms: that finely its hint faults and its turns of what is
    /// hot come.
    #[serde(default = "number::<20>")]
    pub stretch_ms: u32,
    /// Of hint faults that are to move a page, so many in a hundred find it in use by somebody, and it stays.
    #[serde(default)]
    pub hint_busy_percent: u32,
    /// How many pages each page of the model stands for.
    #[serde(skip, default = "number::<1>")]
    pub grain: u32,
}

/// What the file of an experiment calls it.
pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "hot-pages",
    tests: &[Mechanism::Promotion],
    brings: Brings::PROGRAMS,
    groups: &["all"],
    read: WorkloadKind::read::<HotPages>,
    smallest: &[
        "stretch_ms = 1\n[[processes]]\nnode = 0\nthreads = 0\nregions = [{ mib = 1 }]\n",
        "stretch_ms = 1\n[[processes]]\nnode = 0\npasses = 1\nregions = [{ mib = 1 }]\n",
    ],
    largest: &[],
};

impl Workload for HotPages {
    fn title(&self) -> String {
        let each = |spec: &ProcessSpec| {
            let mib = spec.regions.iter().map(|region| u64::from(region.mib) * u64::from(region.copies));
            let (mib, threads) = (mib.sum::<u64>(), spec.threads);
            let of = if spec.count == 1 { String::new() } else { format!("{} processes, each ", spec.count) };
            format!("{of}{threads} threads over {mib} MiB on node {}", spec.node)
        };
        self.processes.iter().map(each).collect::<Vec<_>>().join("; ")
    }

    /// Memory keeps its size, but is modelled by that many fewer pages.
    fn shrunk(&self, by: u32) -> Option<Arc<dyn Workload>> {
        Some(Arc::new(Self { grain: self.grain * by, ..self.clone() }))
    }

    fn start(&self, sim: &Sim, stage: &Rc<Stage>) -> Result<(), String> {
        self.check(stage)?;
        let world = World::new(stage, self.grain, self.hint_busy_percent);
        let mut started = 0;
        for spec in &self.processes {
            for _ in 0..spec.count {
                self.start_process(spec, &mut started, sim, &world)?;
            }
        }
        // What is new is not yet on the lists that pages are taken off to be moved.
        stage.mm.lru().lru_drain_all();
        for name in ["accesses_fast", "accesses_slow", "pgpromote_success", "numa_hint_faults"] {
            stage.tally.note(name, 0);
        }
        daemons::promotion::start(sim, &world);
        Ok(())
    }
}

impl HotPages {
    fn check(&self, stage: &Stage) -> Result<(), String> {
        within("processes", self.processes.len() as u64, 1..=1000)?;
        within("hint_busy_percent", self.hint_busy_percent.into(), 0..=99)?;
        within("stretch_ms", self.stretch_ms.into(), 1..=10_000)?;
        let nodes = stage.mm.topology().nodes.len() as u64;
        for spec in &self.processes {
            within("count", spec.count.into(), 1..=100_000)?;
            within("threads", spec.threads.into(), 0..=4096)?;
            within("think_ns", spec.think_ns.into(), 0..=1_000_000)?;
            within("node", spec.node.into(), 0..=nodes - 1)?;
            within("regions", spec.regions.len() as u64, 1..=10_000)?;
            for region in &spec.regions {
                within("mib", region.mib.into(), 1..=1 << 24)?;
                within("copies", region.copies.into(), 1..=100_000)?;
                let least = region.parts().iter().map(|(mib, _)| *mib).min().unwrap_or(0);
                let pages = u64::from(least) * 256;
                within(
                    "MiB of a segment, in pages of the model,",
                    pages / u64::from(self.grain),
                    1..=1 << 32,
                )?;
            }
            let weight =
                spec.regions.iter().flat_map(RegionSpec::parts).map(|(_, weight)| u64::from(weight)).sum();
            within(
                "weights of all segments, if there are threads,",
                weight,
                spec.threads.min(1).into()..=1 << 40,
            )?;
        }
        Ok(())
    }

    fn start_process(
        &self,
        spec: &ProcessSpec,
        started: &mut u32,
        sim: &Sim,
        world: &Rc<World>,
    ) -> Result<(), String> {
        let of = ProgramSpec { node: Node(spec.node), regions: &spec.regions, grain: self.grain };
        let program = Rc::new(Program::new(&world.stage, &of)?);
        if spec.fresh {
            program.write_all();
        }
        world.enter(&program);
        let running = Rc::new(Running {
            accesses: u64::from(spec.passes) * program.real_pages(),
            stretch_ns: u64::from(self.stretch_ms) * 1_000_000,
            think_ns: spec.think_ns.into(),
            threads: Cell::new(spec.threads),
            program,
        });
        for _ in 0..spec.threads {
            let (running, world) = (Rc::clone(&running), Rc::clone(world));
            let cpu = world.stage.cpu(*started);
            running.program.begin_thread(Node(world.stage.places[usize::from(cpu.0)].node));
            let task = TaskSpec::new("thread").on(cpu);
            *started += 1;
            sim.spawn(task, move || running.run(&world));
        }
        if spec.threads == 0 {
            let (running, world) = (Rc::clone(&running), Rc::clone(world));
            sim.spawn(TaskSpec::new("memory"), move || running.stay(&world));
        }
        Ok(())
    }
}
