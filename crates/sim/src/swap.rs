//! What writing and reading a page of swap takes: a CPU's time where swap is compressed memory, a turn at the disk otherwise.
//!
//! A disk serves one page at a time, in the order in which they come, at a steady rate. Who reads waits for its turn and for the
//! disk's latency; who writes goes on (how many requests may be on their way is `mm`'s to know).

use std::cell::Cell;

use mm::{Nanos, SwapIo};

use crate::engine::Core;
use crate::machine::SimMachine;
use crate::time::{Ticks, from_nanos, to_nanos};

/// What a page takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SwapTimes {
    /// Nothing.
    #[default]
    None,
    /// The CPU's own time.
    Compressed {
        /// To compress a page and put it away.
        write: Nanos,
        /// To find it and get it back.
        read: Nanos,
    },
    /// A disk's.
    Disk {
        /// From the beginning of a read to its end, the page's own turn apart.
        latency: Nanos,
        /// A page's turn.
        page: Nanos,
    },
}

/// What zswap takes of a CPU's time for a page, whatever device is behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ZswapTimes {
    /// To compress it and put it away.
    pub compress: Nanos,
    /// To find it and get it back.
    pub decompress: Nanos,
}

/// The device.
#[derive(Debug, Default)]
pub(crate) struct Swap {
    times: Cell<SwapTimes>,
    zswap: Cell<ZswapTimes>,
    /// When the disk will have served all that has come.
    free_at: Cell<Ticks>,
}

impl Swap {
    /// A page comes at `now`: when it has had its turn.
    fn book(&self, now: Ticks, page: Ticks) -> Ticks {
        let done = now.max(self.free_at.get()) + page;
        self.free_at.set(done);
        done
    }
}

impl SimMachine {
    /// Swap takes so long from now on.
    pub fn set_swap_times(&self, times: SwapTimes) {
        self.0.swap().times.set(times);
    }

    /// zswap takes so long from now on.
    pub fn set_zswap_times(&self, times: ZswapTimes) {
        self.0.swap().zswap.set(times);
    }
}

impl Core {
    /// Gives when the device is done.
    pub(crate) fn swap_io(&self, io: SwapIo) -> Nanos {
        if !self.in_task() {
            return to_nanos(self.now());
        }
        let ZswapTimes { compress, decompress } = self.swap().zswap.get();
        match (self.swap().times.get(), io) {
            (_, SwapIo::Compress) => self.instructions(from_nanos(compress)),
            (_, SwapIo::Decompress) => self.instructions(from_nanos(decompress)),
            (SwapTimes::None, _) => {}
            (SwapTimes::Compressed { write: time, .. }, SwapIo::Write)
            | (SwapTimes::Compressed { read: time, .. }, SwapIo::Read | SwapIo::ReadAhead) => {
                self.instructions(from_nanos(time));
            }
            (SwapTimes::Disk { latency, page }, io) => {
                // Requests come in order of simulated time.
                self.sync();
                let page = from_nanos(page);
                let turn = self.swap().book(self.now(), page);
                let done = turn + from_nanos(latency);
                if io == SwapIo::Read && self.may_sleep() {
                    self.sleep(done);
                }
                return to_nanos(done);
            }
        }
        to_nanos(self.now())
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use mm::Machine;

    use super::*;
    use crate::{Profile, Sim, SimOptions, TaskSpec};

    /// When a task that does `io` so many times is through, ns from its start.
    fn takes(times: SwapTimes, io: SwapIo, count: u32) -> u64 {
        let mut sim = Sim::new(&Profile::load("kvm-genoa-2c").unwrap(), SimOptions::default());
        let (machine, took) = (sim.machine(), Rc::new(Cell::new(0)));
        machine.set_swap_times(times);
        machine.set_zswap_times(ZswapTimes { compress: Nanos(3000), decompress: Nanos(2000) });
        let seen = Rc::clone(&took);
        sim.spawn(TaskSpec::new("swaps"), move || {
            let begun = machine.now();
            for _ in 0..count {
                machine.swap_io(io);
            }
            seen.set(machine.now().0 - begun.0);
        });
        sim.run(None).unwrap();
        took.get()
    }

    #[test]
    fn compression_takes_the_cpus_time() {
        let times = SwapTimes::Compressed { write: Nanos(3000), read: Nanos(2000) };
        let all = [SwapIo::Write, SwapIo::Read, SwapIo::ReadAhead];
        assert_eq!(all.map(|io| takes(times, io, 10)), [30_000, 20_000, 20_000]);
        assert_eq!(takes(SwapTimes::None, SwapIo::Read, 10), 0);
        assert_eq!(takes(times, SwapIo::Compress, 10), 30_000, "whatever is behind it");
        assert_eq!(takes(times, SwapIo::Decompress, 10), 20_000);
    }

    #[test]
    fn readers_wait_for_a_disk_and_writers_do_not() {
        let times = SwapTimes::Disk { latency: Nanos(100_000), page: Nanos(10_000) };
        // A wake-up comes after each sleep.
        let read = takes(times, SwapIo::Read, 10);
        assert!((1_100_000..1_100_000 + 10 * 10_000).contains(&read), "{read}");
        assert_eq!(takes(times, SwapIo::Write, 1000), 0);
        assert_eq!(takes(times, SwapIo::ReadAhead, 200), 0, "nobody waits for what comes with another");
    }
}
