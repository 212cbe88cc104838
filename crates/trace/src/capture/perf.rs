//! Opens the events: on each CPU one that only carries the ring and reports tasks, and one per tracepoint that writes
//! into the same ring.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use perf_event_open_sys as sys;
use sys::bindings::{
    PERF_COUNT_SW_DUMMY, PERF_FLAG_FD_CLOEXEC, PERF_FORMAT_LOST, PERF_SAMPLE_RAW, PERF_SAMPLE_TID,
    PERF_SAMPLE_TIME, PERF_TYPE_SOFTWARE, PERF_TYPE_TRACEPOINT, perf_event_attr,
};

use super::ring::Ring;
use crate::error::RecordError;

/// What is to be recorded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Wanted {
    /// The tracepoints' numbers.
    pub(super) tracepoints: Vec<u16>,
    /// Whether what is mapped is told, with its file.
    pub(super) maps: bool,
}

/// All events of a recording, stopped at first.
#[derive(Debug)]
pub(super) struct Events {
    /// One per CPU, in the order of [`Events::cpus`].
    pub(super) rings: Vec<Ring>,
    /// The CPUs' numbers.
    pub(super) cpus: Vec<u32>,
    /// The rings' own events, for whoever empties the rings takes them away.
    leaders: Vec<OwnedFd>,
    tracepoints: Vec<OwnedFd>,
    counts_lost: bool,
}

impl Events {
    /// Opens `what` on these CPUs, each CPU with a ring of so many pages.
    pub(super) fn open(what: &Wanted, cpus: &[u32], ring_pages: usize) -> Result<Self, RecordError> {
        // SAFETY: sysconf reads a constant.
        let page_size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let mut events =
            Self { rings: vec![], cpus: vec![], leaders: vec![], tracepoints: vec![], counts_lost: true };
        let _files = MoreFiles::allow();
        for &cpu in cpus {
            let mut attr = attributes();
            attr.type_ = PERF_TYPE_SOFTWARE;
            attr.config = u64::from(PERF_COUNT_SW_DUMMY);
            attr.set_comm(1);
            attr.set_comm_exec(1);
            attr.set_task(1);
            let maps = u64::from(what.maps);
            attr.set_mmap(maps);
            attr.set_mmap_data(maps);
            attr.set_mmap2(maps);
            attr.set_watermark(1);
            attr.__bindgen_anon_2.wakeup_watermark = (ring_pages * page_size / 4) as u32;
            let leader = match open(&attr, cpu) {
                // A CPU that is offline.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => continue,
                result => result.map_err(explain)?,
            };
            let kept = leader.try_clone();
            events
                .leaders
                .push(kept.map_err(|error| RecordError::System { what: "keeping an event", error })?);
            let ring = Ring::map(leader, ring_pages, page_size)?;
            for &id in &what.tracepoints {
                events.open_tracepoint(id, cpu, &ring)?;
            }
            events.rings.push(ring);
            events.cpus.push(cpu);
        }
        Ok(events)
    }

    fn open_tracepoint(&mut self, id: u16, cpu: u32, ring: &Ring) -> Result<(), RecordError> {
        let mut attr = attributes();
        attr.type_ = PERF_TYPE_TRACEPOINT;
        attr.config = u64::from(id);
        attr.__bindgen_anon_1.sample_period = 1;
        attr.read_format = if self.counts_lost { u64::from(PERF_FORMAT_LOST) } else { 0 };
        let fd = match open(&attr, cpu) {
            // Kernels before 6.0 do not know PERF_FORMAT_LOST.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && self.counts_lost => {
                self.counts_lost = false;
                attr.read_format = 0;
                open(&attr, cpu)
            }
            result => result,
        }
        .map_err(explain)?;
        // SAFETY: both descriptors are open events of one CPU and one clock.
        let result = unsafe { sys::ioctls::SET_OUTPUT(fd.as_raw_fd(), ring.fd()) };
        if result < 0 {
            return Err(RecordError::system("sending a tracepoint's events to its CPU's ring"));
        }
        self.tracepoints.push(fd);
        Ok(())
    }

    /// Starts all events.
    pub(super) fn enable(&self) -> Result<(), RecordError> {
        self.each(|fd| {
            // SAFETY: `fd` is an open event.
            unsafe { sys::ioctls::ENABLE(fd, 0) }
        })
    }

    /// Stops all events.
    pub(super) fn disable(&self) -> Result<(), RecordError> {
        self.each(|fd| {
            // SAFETY: `fd` is an open event.
            unsafe { sys::ioctls::DISABLE(fd, 0) }
        })
    }

    /// The rings' own events first: they must know new tasks before these are seen to do something.
    fn each(&self, control: impl Fn(i32) -> i32) -> Result<(), RecordError> {
        for fd in self.leaders.iter().chain(&self.tracepoints) {
            if control(fd.as_raw_fd()) < 0 {
                return Err(RecordError::system("starting or stopping events"));
            }
        }
        Ok(())
    }

    /// How many events found no room in all; `None` if this kernel (before 6.0) does not count.
    pub(super) fn lost(&self) -> Option<u64> {
        if !self.counts_lost {
            return None;
        }
        let mut lost = 0u64;
        for fd in &self.tracepoints {
            let mut counts = [0; 16];
            File::from(fd.try_clone().ok()?).read_exact(&mut counts).ok()?;
            lost += u64::from_le_bytes(counts[8..].try_into().ok()?);
        }
        Some(lost)
    }
}

/// As many open files as this process may have: a hundred CPUs with forty tracepoints each need thousands. The limit goes back
/// when this is dropped, before a command inherits it.
struct MoreFiles(Option<libc::rlimit>);

impl MoreFiles {
    fn allow() -> Self {
        let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `before` lives through the call, which fills it in.
        if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut before) } < 0 {
            return Self(None);
        }
        let more = libc::rlimit { rlim_cur: before.rlim_max, ..before };
        // SAFETY: reads `more`, which lives through the call.
        let is_set = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const more) } == 0;
        Self(is_set.then_some(before))
    }
}

impl Drop for MoreFiles {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // SAFETY: reads the limit, which lives through the call.
            unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const *before) };
        }
    }
}

/// What all events have in common.
fn attributes() -> perf_event_attr {
    let mut attr = perf_event_attr::default();
    attr.size = size_of::<perf_event_attr>() as u32;
    attr.sample_type = u64::from(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW);
    attr.clockid = libc::CLOCK_MONOTONIC;
    attr.set_disabled(1);
    attr.set_use_clockid(1);
    attr.set_sample_id_all(1);
    attr
}

fn open(attr: &perf_event_attr, cpu: u32) -> io::Result<OwnedFd> {
    let mut attr = *attr;
    // SAFETY: `attr` is initialised and says its size; the call makes a descriptor and touches nothing else.
    let fd =
        unsafe { sys::perf_event_open(&raw mut attr, -1, cpu as i32, -1, u64::from(PERF_FLAG_FD_CLOEXEC)) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn explain(error: io::Error) -> RecordError {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            let paranoid =
                std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
            RecordError::Permission(format!(
                "kernel events are not for you to record (kernel.perf_event_paranoid is {}): run as root or with \
                 CAP_PERFMON, or have root run 'sysctl kernel.perf_event_paranoid=-1'",
                paranoid.trim()
            ))
        }
        Some(libc::ENOSYS) => RecordError::Missing("this kernel was built without perf events".into()),
        Some(libc::EMFILE) => RecordError::Permission(
            "too many open files: raise the limit, for example with 'ulimit -n 65536'".into(),
        ),
        _ => RecordError::System { what: "opening a kernel event", error },
    }
}
