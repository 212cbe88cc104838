//! The command to record. Its process is made at once, so that its number is known, and waits until all is ready.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::thread::{self, JoinHandle};

use super::surroundings::of_rusage;
use crate::error::RecordError;
use crate::meta::Usage;

/// Whether a command may have transparent huge pages. They hide which small pages it touches first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HugePages {
    /// As the machine is set.
    Kept,
    /// None, for the command and its descendants (`PR_SET_THP_DISABLE`).
    Off,
}

/// A process that waits before it becomes the command.
pub(super) struct WaitingChild {
    pid: u32,
    program: String,
    gate: File,
    starter: JoinHandle<io::Result<Child>>,
}

impl WaitingChild {
    /// Makes the process.
    pub(super) fn new(command: &[OsString], huge_pages: HugePages) -> Result<Self, RecordError> {
        let program = command[0].to_string_lossy().into_owned();
        let failed = |error| RecordError::Command { program: program.clone(), error };
        let Pipe { reader: gate_out, writer: gate } = Pipe::new().map_err(failed)?;
        let Pipe { reader: mut pid_out, writer: pid_in } = Pipe::new().map_err(failed)?;
        let fds = [pid_in.as_raw_fd(), gate_out.as_raw_fd(), gate.as_raw_fd()];
        let mut child = Command::new(&command[0]);
        child.args(&command[1..]);
        // SAFETY: `wait_at_gate` makes only system calls, which are safe between fork and exec, on descriptors that
        // the starter thread keeps open until then.
        unsafe {
            child.pre_exec(move || {
                wait_at_gate(fds, huge_pages);
                Ok(())
            });
        }
        // `spawn` returns when the command runs, so somebody else has to wait for it.
        let starter = thread::Builder::new().name("freehold-start".into()).spawn(move || {
            let result = child.spawn();
            drop((pid_in, gate_out));
            result
        });
        let starter = starter.map_err(failed)?;
        let mut pid = [0; 4];
        if pid_out.read_exact(&mut pid).is_err() {
            let error = match starter.join() {
                Ok(Err(error)) => error,
                _ => io::Error::other("the new process did not report"),
            };
            return Err(RecordError::Command { program, error });
        }
        Ok(Self { pid: u32::from_le_bytes(pid), program, gate, starter })
    }

    /// The process's number.
    pub(super) const fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets it become the command.
    pub(super) fn release(mut self) -> Result<Child, RecordError> {
        let sent = self.gate.write_all(&[1]);
        let started = self.starter.join().unwrap_or_else(|_| Err(io::Error::other("its starter died")));
        let result = sent.and(started);
        result.map_err(|error| RecordError::Command { program: self.program, error })
    }
}

/// A pipe, neither of whose ends a command inherits.
struct Pipe {
    reader: File,
    writer: File,
}

impl Pipe {
    fn new() -> io::Result<Self> {
        let mut fds = [0; 2];
        // SAFETY: `fds` has room for the two descriptors that the call makes.
        if unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptors are new and nobody else's.
        let [reader, writer] = fds.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }.into());
        Ok(Self { reader, writer })
    }
}

/// Runs in the new process: says its number, then waits until the gate is opened. A gate that closes unopened ends it.
fn wait_at_gate([pid_in, gate_out, gate]: [RawFd; 3], huge_pages: HugePages) {
    let mut byte = [0u8];
    // SAFETY: the descriptors are this process's own copies, and the buffers live through the calls. Its copy of the
    // gate's writing end is closed first, so that it notices if the recorder is gone.
    let got = unsafe {
        libc::close(gate);
        if huge_pages == HugePages::Off {
            // Kernels that were built without huge pages refuse, and have none.
            libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
        }
        let pid = libc::getpid().to_le_bytes();
        libc::write(pid_in, pid.as_ptr().cast(), pid.len());
        libc::read(gate_out, byte.as_mut_ptr().cast(), 1)
    };
    if got != 1 {
        // An error would be std's to report, to a parent that may be gone: then std aborts, and says so on the terminal.
        // SAFETY: it ends this process at once, and runs nothing that the parent registered for its own end.
        unsafe { libc::_exit(127) };
    }
}

/// What has become of a command.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) usage: Usage,
}

/// Looks whether a command has ended, and takes it off the system's books if so.
pub(super) fn try_wait(child: &Child) -> io::Result<Option<Ended>> {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which zeros are a value.
    let mut usage = unsafe { std::mem::zeroed::<libc::rusage>() };
    // SAFETY: both live through the call, which fills them in.
    let found = unsafe { libc::wait4(child.id() as i32, &raw mut status, libc::WNOHANG, &raw mut usage) };
    match found {
        0 => Ok(None),
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(Some(Ended { status: ExitStatus::from_raw(status), usage: of_rusage(&usage) })),
    }
}

/// Asks a process to end.
pub(super) fn terminate(child: &Child) {
    // SAFETY: signals a child that was not waited for yet, so the number is still its own.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
}

/// As shells count: the exit status, or 128 + the signal.
pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}
