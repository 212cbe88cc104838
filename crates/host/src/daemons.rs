//! The daemons as threads: a kswapd for each node with memory, and one thread that gives every CPU its vmstat tick.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fmt, io};

use mm::{Cpu, Mm, Node};

use crate::machine::HostMachine;
use crate::signal::{Signal, Woken};

/// Running daemons. They end when this is dropped.
pub struct Daemons {
    mm: Arc<Mm<HostMachine>>,
    shared: Arc<DaemonState>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct DaemonState {
    stop: AtomicBool,
    tick: Signal,
}

impl Daemons {
    /// Starts the daemons of `mm`.
    ///
    /// # Errors
    /// What the system says when it cannot start a thread; those that were started have ended by then.
    pub fn start(mm: Arc<Mm<HostMachine>>) -> io::Result<Self> {
        let mut daemons = Self { mm, shared: Arc::default(), threads: vec![] };
        let nodes = daemons.mm.topology().nodes.iter().zip(0..);
        let nodes: Vec<Node> =
            nodes.filter(|(node, _)| !node.zones.is_empty()).map(|(_, number)| Node(number)).collect();
        for node in nodes {
            daemons.spawn(&format!("kswapd{}", node.0), move |mm, shared| kswapd(mm, shared, node))?;
        }
        daemons.spawn("vmstat", vmstat)?;
        Ok(daemons)
    }

    fn spawn(
        &mut self,
        name: &str,
        run: impl FnOnce(&Mm<HostMachine>, &DaemonState) + Send + 'static,
    ) -> io::Result<()> {
        let (mm, shared) = (Arc::clone(&self.mm), Arc::clone(&self.shared));
        let builder = thread::Builder::new().name(name.to_string());
        self.threads.push(builder.spawn(move || run(&mm, &shared))?);
        Ok(())
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        // Release pairs with the acquire in `Signal::wait`; before the bells, for a daemon looks at it when it hears one.
        self.shared.stop.store(true, Ordering::Release);
        self.shared.tick.notify();
        for signal in self.mm.machine().kswapd() {
            signal.notify();
        }
        for thread in self.threads.drain(..) {
            // A daemon that panicked has said so; there is nobody here to tell.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Daemons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Daemons").field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

fn kswapd(mm: &Mm<HostMachine>, shared: &DaemonState, node: Node) {
    let signal = &mm.machine().kswapd()[usize::from(node.0)];
    while signal.wait(&shared.stop, None) != Woken::Stopped {
        mm.reclaim().kswapd(node);
    }
}

fn vmstat(mm: &Mm<HostMachine>, shared: &DaemonState) {
    loop {
        let interval = Duration::from_nanos(mm.pages().stat_interval_ns());
        if shared.tick.wait(&shared.stop, Some(interval)) == Woken::Stopped {
            return;
        }
        tick_all(mm);
    }
}

/// A vmstat tick of every CPU.
pub(crate) fn tick_all(mm: &Mm<HostMachine>) {
    for cpu in 0..mm.topology().cpus.len() {
        mm.vmstat_tick(Cpu(cpu as u16));
    }
}
