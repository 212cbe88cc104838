//! Work on threads of its own, with the GIL released. While it goes on Python hears how far it is, and Ctrl-C or an error of who listens
//! ends it: the simulations are told to stop and are waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;

use crate::error::failed;

/// How long Python may wait to hear of a signal.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How work is done.
pub(crate) struct Hands<'py> {
    /// Threads; 0: as many as there are CPUs.
    pub(crate) jobs: usize,
    /// All that is to be done, in what the work counts it in.
    pub(crate) total: u64,
    /// How much of it is a step of progress.
    pub(crate) step: u64,
    /// Called with how many steps have ended, how many there are, and what the last one was.
    pub(crate) progress: Option<Bound<'py, PyAny>>,
}

/// A simulation has ended.
struct Told {
    what: String,
    amount: u64,
}

/// Does `work`, which tells its argument of each simulation that ends, and how much of the total it was.
pub(crate) fn work<T: Send>(
    py: Python<'_>,
    hands: &Hands<'_>,
    work: impl FnOnce(&(dyn Fn(&str, u64) + Sync)) -> T + Send,
) -> PyResult<T> {
    let sign = Arc::new(AtomicBool::new(false));
    let watched = Arc::clone(&sign);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(hands.jobs)
        .start_handler(move |_| sim::stop_when(Arc::clone(&watched)))
        .build()
        .map_err(failed)?;
    let (tell, hear) = channel::<Told>();
    std::thread::scope(|scope| {
        // Nobody listens any more after an error.
        let done = move |what: &str, amount: u64| drop(tell.send(Told { what: what.to_owned(), amount }));
        let worker = scope.spawn(move || pool.install(|| work(&done)));
        let heard = listen(py, hands, hear);
        if heard.is_err() {
            // Relaxed: the simulations look at this alone.
            sign.store(true, Ordering::Relaxed);
        }
        let done = py.detach(|| worker.join());
        heard?;
        done.map_err(|_| failed("a bug of freehold's: a thread panicked; what it said is on stderr"))
    })
}

/// Waits until the work is done, or somebody wants no more of it.
fn listen(py: Python<'_>, hands: &Hands<'_>, mut hear: Receiver<Told>) -> PyResult<()> {
    let mut ended = 0;
    loop {
        py.check_signals()?;
        let listener = &mut hear;
        match py.detach(move || listener.recv_timeout(LOOK_EVERY)) {
            Ok(Told { what, amount }) => {
                ended += amount;
                if let Some(progress) = &hands.progress {
                    progress.call1((ended / hands.step, hands.total / hands.step, what))?;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            // The work has ended, and its teller with it.
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}
