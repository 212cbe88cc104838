//! The kernel's paths, and a free lock.

use super::Plan;
use crate::probe::{Result, kernel, pair};

impl Plan<'_> {
    pub(super) fn lock(&mut self) {
        let samples = self.at_home(|_| pair::lock());
        let how = "compare-and-exchange and store, over and over, on a line that the CPU has";
        self.offer("cpu.lock_ns", samples, how);
    }

    pub(super) fn paths(&mut self) {
        let syscall = self.at_home(|_| kernel::syscall());
        self.offer("path.syscall_ns", syscall, "getppid, over and over");
        self.fault();
        let pipe = self.at_home(|_| kernel::pipe()).and_then(|pipe| pipe).map(|pipe| pipe.median());
        self.switch(&pipe);
        self.wakeup(&pipe);
    }

    fn fault(&mut self) {
        let fault = self.at_home(|_| kernel::fault()).and_then(|fault| fault);
        match fault {
            Ok(fault) => {
                let clear = fault.clear.median();
                let how = format!(
                    "first write to a page of private anonymous memory, 128 in a row that were just given back: {:.0} ns, \
                     less {clear:.0} ns to clear it in cache; taking it from a CPU's list is in it",
                    fault.whole.median()
                );
                let samples = fault.whole.map(|ns| (ns - clear).max(0.0));
                self.add("path.fault_ns", &samples, how);
            }
            Err(why) => self.lack("path.fault_ns", why),
        }
    }

    fn switch(&mut self, pipe: &Result<f64>) {
        let switch = pipe.clone().and_then(|pipe| Ok((kernel::switch(self.home.number)?, pipe)));
        match switch {
            Ok((samples, pipe)) => {
                let how = format!(
                    "a byte to and fro through pipes between two threads of a process on one CPU: {:.0} ns one way, \
                     less {pipe:.0} ns for its write and read",
                    samples.median()
                );
                self.add("path.context_switch_ns", &samples.map(|ns| (ns - pipe).max(0.0)), how);
            }
            Err(why) => self.lack("path.context_switch_ns", why),
        }
    }

    fn wakeup(&mut self, pipe: &Result<f64>) {
        let key = "path.wakeup_ns";
        // A sibling thread would share its core with the waker.
        let far = self.cpus.iter().rev().find(|cpu| cpu.core != self.home.core).or(self.cpus.get(1));
        let Some(far) = far else { return self.lack(key, "it takes a second CPU") };
        let cpus = (self.home.number, far.number);
        let woken = pipe.clone().and_then(|pipe| Ok((kernel::wakeup(cpus)?, pipe)));
        match woken {
            Ok((samples, pipe)) => {
                let how = format!(
                    "CPU {} writes to a pipe that a thread on CPU {} has waited at for 400 us: {:.0} ns until it \
                     has read, less {:.0} ns, half a write and read",
                    cpus.0,
                    cpus.1,
                    samples.median(),
                    pipe / 2.0
                );
                self.add(key, &samples.map(|ns| (ns - pipe / 2.0).max(0.0)), how);
            }
            Err(why) => self.lack(key, why),
        }
    }
}
