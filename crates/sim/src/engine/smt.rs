//! Threads of a core share its execution: while another one works, instructions take longer. A thread that waits for a lock
//! or is idle leaves the core to the others.

use std::cell::Cell;

use super::sched::Sched;
use super::state::CpuMode;
use crate::costs::ONE;
use crate::profile::CpuPosition;
use crate::time::Ticks;

/// How the threads of each core share it.
pub(super) struct Smt {
    /// The other threads of each CPU's core; empty where sharing costs nothing.
    siblings: Box<[Box<[u16]>]>,
    /// How much longer instructions take beside a thread that works, in units of 1/[`ONE`].
    ratio: u64,
    /// That for the CPU being executed, as it was last looked at.
    now: Cell<u64>,
}

impl Smt {
    pub(super) fn new(places: &[CpuPosition], ratio: u64) -> Self {
        let siblings = |cpu: usize| {
            let others = places
                .iter()
                .enumerate()
                .filter(|(other, place)| ratio > ONE && *other != cpu && place.core == places[cpu].core);
            others.map(|(other, _)| other as u16).collect()
        };
        Self { siblings: (0..places.len()).map(siblings).collect(), ratio, now: Cell::new(ONE) }
    }

    /// Looks at what the other threads of `cpu`'s core do.
    #[inline]
    pub(super) fn look(&self, sched: &Sched, cpu: u16) {
        let works =
            |other: &u16| matches!(sched.cpus[usize::from(*other)].mode, CpuMode::Ready | CpuMode::Running);
        let shared = self.siblings[usize::from(cpu)].iter().any(works);
        self.now.set(if shared { self.ratio } else { ONE });
    }

    /// What instructions of `time` take at present.
    #[inline]
    pub(super) fn stretched(&self, time: Ticks) -> Ticks {
        let ratio = self.now.get();
        if ratio == ONE { time } else { (u128::from(time) * u128::from(ratio) / u128::from(ONE)) as Ticks }
    }
}
