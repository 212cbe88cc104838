//! Watches a running program: a command or a process, its files in /proc, and rounds until it ends.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use super::bits::{AccessedBits, Translations};
use super::document::Heat;
use super::regions::{median, regions, total};
use super::round::{LooksOfRound, RoundEnd, Waited, Watched, round};
use super::{HeatError, HeatOptions, HeatTarget, date};
use crate::capture::{child, host, procs};

/// How often it is looked whether a program still runs.
const TICK: Duration = Duration::from_millis(20);
/// How long a command that was asked to end may take to do so.
const GRACE: Duration = Duration::from_secs(2);

/// How far watching is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WatchProgress {
    /// Rounds that are over.
    pub rounds: usize,
    /// The name of the process that is watched.
    pub process: String,
}

/// Watches the pages of a program as `options` say. A command that still runs afterwards is asked to end (SIGTERM), with
/// its descendants.
///
/// # Errors
/// No such process or command, what is not permitted or missing, or that not a single round was whole.
pub fn watch(options: &HeatOptions, progress: &mut dyn FnMut(WatchProgress)) -> Result<Heat, HeatError> {
    let mut course = Course::start(options)?;
    let watched = course.watch(progress);
    course.end();
    let seen = watched?;
    let seconds = course.began.elapsed().as_secs_f64();
    let nothing = HeatError::Nothing { seconds, exit_status: course.exit_status };
    heat(options, seen, course.exit_status).ok_or(nothing)
}

/// All rounds, and what they cost.
#[derive(Default)]
struct WatchedRounds {
    /// The words of the command that ran already.
    command: Vec<String>,
    rounds: Vec<(u32, String, LooksOfRound)>,
    cut: usize,
    cpu_s: Vec<f64>,
    clear_ns: Vec<f64>,
    look_ns: Vec<f64>,
    unflushed: usize,
}

/// What is watched, from start to end.
struct Course<'a> {
    options: &'a HeatOptions,
    root: u32,
    child: Option<Child>,
    exit_status: Option<i32>,
    began: Instant,
}

impl<'a> Course<'a> {
    fn start(options: &'a HeatOptions) -> Result<Self, HeatError> {
        let child = match &options.target {
            HeatTarget::Command(words) => Some(start(words)?),
            HeatTarget::Process(_) => None,
        };
        let root = match (&child, &options.target) {
            (None, HeatTarget::Process(pid)) if !procs::is_alive(*pid) => {
                return Err(HeatError::NoProcess(*pid));
            }
            (None, HeatTarget::Process(pid)) => *pid,
            (Some(child), _) => child.id(),
            (None, HeatTarget::Command(_)) => unreachable!("a command was just started"),
        };
        Ok(Self { options, root, child, exit_status: None, began: Instant::now() })
    }

    /// Rounds until the program ends, or there are enough.
    fn watch(&mut self, progress: &mut dyn FnMut(WatchProgress)) -> Result<WatchedRounds, HeatError> {
        let mut seen = WatchedRounds { command: procs::command(self.root), ..WatchedRounds::default() };
        let first = self.began + self.options.after;
        let mut state = self.wait_until(first);
        while state == Waited::Due {
            let next = Instant::now() + self.options.interval;
            let pid = procs::largest(self.root);
            let name = procs::name(pid).unwrap_or_default();
            progress(WatchProgress { rounds: seen.rounds.len(), process: name.clone() });
            let (began, cpu_s) = (Instant::now(), procs::cpu_seconds(pid));
            state = match self.one_round(pid, &mut seen)? {
                RoundEnd::Whole(looks) => {
                    let used = procs::cpu_seconds(pid).zip(cpu_s).map(|(after, before)| after - before);
                    seen.cpu_s.extend(used.map(|used| used / began.elapsed().as_secs_f64()));
                    seen.rounds.push((pid, name, looks));
                    let enough =
                        self.options.rounds.is_some_and(|rounds| seen.rounds.len() as u64 >= rounds.into());
                    if enough { Waited::Stopped } else { self.wait_until(next) }
                }
                RoundEnd::Gone => {
                    seen.cut += 1;
                    // The next process may not be there yet.
                    self.wait_until(Instant::now() + TICK)
                }
                RoundEnd::Stopped => Waited::Stopped,
            };
        }
        Ok(seen)
    }

    fn one_round(&mut self, pid: u32, seen: &mut WatchedRounds) -> Result<RoundEnd, HeatError> {
        let folder = format!("/proc/{pid}");
        let opened = WatchedProcess::open(self, pid);
        let result = opened.and_then(|mut live| {
            let end = round(&mut live);
            seen.clear_ns.extend(live.clear_ns);
            seen.look_ns.extend(&live.look_ns);
            seen.unflushed += usize::from(!live.flushed);
            end.map_err(|error| (format!("{folder}/smaps"), error))
        });
        let (file, error) = match result {
            Ok(end) => return Ok(end),
            Err(what) => what,
        };
        // Whoever is about to end answers with all kinds of errors.
        if !procs::is_alive(pid) {
            return Ok(RoundEnd::Gone);
        }
        Err(match error.kind() {
            ErrorKind::PermissionDenied => HeatError::Permission { file },
            ErrorKind::NotFound => HeatError::Missing { file },
            _ => HeatError::System { what: file, error },
        })
    }

    /// Whether there is more to be looked at.
    fn state(&mut self) -> Waited {
        let is_over = match &mut self.child {
            Some(child) => {
                let status = child.try_wait().ok().flatten();
                self.exit_status = status.map(child::exit_code);
                status.is_some()
            }
            None => !procs::is_alive(self.root),
        };
        let is_late = self.options.length.is_some_and(|length| self.began.elapsed() >= length);
        // Relaxed, for a signal's handler sets it and publishes nothing else.
        let is_stopped = self.options.stop.load(Ordering::Relaxed);
        if is_over || is_late || is_stopped { Waited::Stopped } else { Waited::Due }
    }

    fn wait_until(&mut self, then: Instant) -> Waited {
        loop {
            let state = self.state();
            let left = then.saturating_duration_since(Instant::now());
            if state != Waited::Due || left.is_zero() {
                return state;
            }
            thread::sleep(left.min(TICK));
        }
    }

    /// Asks the command's processes to end, if they have not.
    fn end(&mut self) {
        let Some(child) = &mut self.child else { return };
        if self.exit_status.is_some() {
            return;
        }
        procs::terminate_tree(self.root);
        let since = Instant::now();
        // What ends because we ask it to has no status of its own.
        while matches!(child.try_wait(), Ok(None)) && since.elapsed() < GRACE {
            thread::sleep(TICK);
        }
    }
}

/// Starts a command without transparent huge pages, for it and all that it starts: the 512 small pages of one have one
/// accessed bit.
fn start(words: &[OsString]) -> Result<Child, HeatError> {
    let Some((program, words)) = words.split_first() else {
        let error = io::Error::from(ErrorKind::InvalidInput);
        return Err(HeatError::Command { program: "nothing".into(), error });
    };
    let mut command = Command::new(program);
    command.args(words);
    // SAFETY: between fork and exec only a system call is made, which takes no pointer. A kernel that refuses it has no
    // huge pages.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
            Ok(())
        });
    }
    let program = program.to_string_lossy().into_owned();
    command.spawn().map_err(|error| HeatError::Command { program, error })
}

/// A process within a round.
struct WatchedProcess<'a, 'b> {
    course: &'a mut Course<'b>,
    pid: u32,
    bits: AccessedBits,
    cleared: Instant,
    flushed: bool,
    clear_ns: Option<f64>,
    look_ns: Vec<f64>,
}

impl<'a, 'b> WatchedProcess<'a, 'b> {
    fn open(course: &'a mut Course<'b>, pid: u32) -> Result<Self, (String, io::Error)> {
        let bits = AccessedBits::open(pid)?;
        let cleared = Instant::now();
        Ok(Self { course, pid, bits, cleared, flushed: true, clear_ns: None, look_ns: vec![] })
    }
}

impl Watched for WatchedProcess<'_, '_> {
    fn clear(&mut self) -> io::Result<()> {
        let cleared = self.bits.clear(Translations::Flushed)?;
        self.flushed = cleared.is_whole;
        self.clear_ns = Some(cleared.took.as_nanos() as f64);
        // A look goes over the pages in the same order and takes its time, too: from the one start to the other is how
        // long each page had, nearly.
        self.cleared = cleared.began;
        Ok(())
    }

    fn wait(&mut self, since_clearing: Duration) -> Waited {
        let due = self.cleared + since_clearing;
        loop {
            if self.course.state() == Waited::Stopped {
                return Waited::Stopped;
            }
            if !procs::is_alive(self.pid) {
                return Waited::Gone;
            }
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Waited::Due;
            }
            thread::sleep(left.min(TICK));
        }
    }

    fn look(&mut self) -> io::Result<String> {
        let looked = self.bits.look()?;
        self.look_ns.push(looked.took.as_nanos() as f64);
        Ok(looked.text)
    }
}

/// The document of the process that was seen most often; of two, the larger one's.
fn heat(options: &HeatOptions, seen: WatchedRounds, exit_status: Option<i32>) -> Option<Heat> {
    let of = |pid: u32| {
        let rounds = seen.rounds.iter().filter(move |(other, ..)| *other == pid);
        rounds.map(|(_, _, round)| round.clone()).collect::<Vec<LooksOfRound>>()
    };
    let pids = seen.rounds.iter().map(|(pid, ..)| *pid);
    let pid = pids.max_by_key(|&pid| {
        let rounds = of(pid);
        (rounds.len(), total(&rounds).resident_kib)
    })?;
    let rounds = of(pid);
    let process = seen.rounds.iter().rev().find(|(other, ..)| *other == pid)?.1.clone();
    let command = match &options.target {
        HeatTarget::Command(words) => shell_words(words.iter().map(|word| word.to_string_lossy())),
        HeatTarget::Process(_) => {
            let words = seen.command.iter().map(|word| Cow::Borrowed(word.as_str()));
            format!("{} (which ran already)", shell_words(words))
        }
    };
    let machine = host::describe();
    let huge = rounds.last()?.last()?.iter().map(|mapping| mapping.huge_kib);
    Some(Heat {
        title: options.title.clone().unwrap_or_else(|| format!("{process}: {command}")),
        command,
        process,
        kernel: machine.kernel,
        cpu_model: machine.cpu_model,
        date: date::day(host::unix_ns() / 1_000_000_000),
        rounds: rounds.len(),
        rounds_left_out: seen.cut + seen.rounds.len() - rounds.len(),
        interval_s: options.interval.as_secs_f64(),
        after_s: options.after.as_secs_f64(),
        cpu_s: median(seen.cpu_s),
        clear_ns: median(seen.clear_ns) as u64,
        look_ns: median(seen.look_ns) as u64,
        flushed: seen.unflushed == 0,
        huge_kib: huge.fold(0, u64::saturating_add),
        exit_status,
        all: total(&rounds),
        regions: regions(&rounds),
    })
}

/// A command as a shell takes it.
fn shell_words<'a>(words: impl Iterator<Item = Cow<'a, str>>) -> String {
    words.map(|word| shell_word(&word)).collect::<Vec<_>>().join(" ")
}

fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_as_a_shell_takes_them() {
        let said: Vec<String> = ["a.db", "", "two words", "it's"].map(shell_word).into();
        assert_eq!(said, ["a.db", "''", "'two words'", r"'it'\''s'"]);
    }
}
