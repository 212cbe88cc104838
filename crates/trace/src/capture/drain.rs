//! The thread that empties the rings. It only copies, so that the rings stay empty even while the file's writer
//! waits.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use super::bpf::Left;
use super::source::AnyRing;
use crate::capture::host::now_ns;

/// Bytes that may wait for the writer. Beyond, records stay in the rings, and what finds no room there is counted lost.
const BACKLOG_MAX: usize = 512 << 20;
/// How long to wait for a ring to fill by a quarter, in ms.
const PATIENCE_MS: i32 = 20;

/// What one round over all rings gave.
pub(super) struct DrainedRound {
    /// No record older than this comes in a later round: the time at which the round before began.
    pub(super) horizon: u64,
    /// Whether this is the last.
    pub(super) is_last: bool,
    /// The records of each ring that had any: the ring's index and the bytes.
    pub(super) batches: Vec<(usize, Vec<u8>)>,
}

/// The thread and what it shares.
pub(super) struct Drainer {
    pub(super) rounds: Receiver<DrainedRound>,
    shared: Arc<DrainState>,
    thread: Option<JoinHandle<Vec<AnyRing>>>,
}

#[derive(Default)]
struct DrainState {
    stop: AtomicBool,
    backlog: AtomicUsize,
    /// Buffers to be used again: fresh ones would cost page faults, which are recorded too.
    spare: Mutex<VecDeque<Vec<u8>>>,
}

impl Drainer {
    /// Starts to empty `rings`.
    pub(super) fn start(rings: Vec<AnyRing>) -> io::Result<Self> {
        let shared = Arc::new(DrainState::default());
        let (sender, rounds) = channel();
        let for_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("freehold-drain".into())
            .spawn(move || run(rings, &for_thread, &sender))?;
        Ok(Self { rounds, shared, thread: Some(thread) })
    }

    /// Asks for one last round.
    pub(super) fn stop(&self) {
        // Release pairs with the acquire in `run`: what was recorded before the stop is in the last round.
        self.shared.stop.store(true, Ordering::Release);
    }

    /// Gives a buffer back.
    pub(super) fn recycle(&self, mut buffer: Vec<u8>) {
        // Relaxed: a measure of how far behind we are; the channel and the lock of `spare` hand the buffers over.
        self.shared.backlog.fetch_sub(buffer.len(), Ordering::Relaxed);
        buffer.clear();
        if let Ok(mut spare) = self.shared.spare.lock() {
            spare.push_back(buffer);
        }
    }

    /// Waits for the thread's end, after the last round.
    pub(super) fn join(mut self) -> Vec<AnyRing> {
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Drainer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(mut rings: Vec<AnyRing>, shared: &DrainState, rounds: &Sender<DrainedRound>) -> Vec<AnyRing> {
    let mut horizon = 0;
    loop {
        // Read before the rings are: what comes after it may be missing from the last round, but nothing before it.
        let is_last = shared.stop.load(Ordering::Acquire);
        let began = now_ns();
        let mut batches = vec![];
        let mut is_whole = true;
        for (index, ring) in rings.iter_mut().enumerate() {
            if !is_last && shared.backlog.load(Ordering::Relaxed) > BACKLOG_MAX {
                break;
            }
            let mut buffer =
                shared.spare.lock().ok().and_then(|mut spare| spare.pop_front()).unwrap_or_default();
            is_whole &= ring.drain(&mut buffer) == Left::Nothing;
            shared.backlog.fetch_add(buffer.len(), Ordering::Relaxed);
            batches.push((index, buffer));
        }
        // A round that left rings out, or a record that was being written, proves nothing about them.
        let is_full = is_whole && batches.len() == rings.len();
        let round = DrainedRound { horizon: if is_last { u64::MAX } else { horizon }, is_last, batches };
        if rounds.send(round).is_err() || is_last {
            return rings;
        }
        if is_full {
            horizon = began;
        }
        wait(&rings);
    }
}

/// Waits until a ring is a quarter full, or a little while.
fn wait(rings: &[AnyRing]) {
    let fds = rings.iter().filter_map(AnyRing::fd);
    let mut fds: Vec<libc::pollfd> =
        fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
    // SAFETY: `fds` is an array of that many entries, and the descriptors are open as long as the rings.
    unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, PATIENCE_MS) };
}
