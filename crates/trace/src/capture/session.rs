//! A recording from start to end, on the calling thread: it takes what the drain thread gives, puts it in order, writes.

mod budgeted;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use super::accessed::AccessSampler;
use super::bpf::{Belongs, CountedPages, Watched};
use super::budget::Budget;
use super::child::{Ended, HugePages, WaitingChild, exit_code, terminate, try_wait};
use super::drain::{DrainedRound, Drainer};
use super::options::{Looking, Progress, RecordOptions, Status, Summary, Target};
use super::output::Output;
use super::perf::{Events, Wanted};
use super::procs::Workload;
use super::source::{Plan, Source};
use super::{Group, attach, calibrate, cgroup, host, procs, surroundings};
use crate::error::RecordError;
use crate::event::Absence;
use crate::format::{Writer, Written};
use crate::mask::Mask;
use crate::meta::{AccessedCost, Keep, Meta, RecordingCost, RecordingEnd, Usage};
use crate::stream::accessed::AccessedRound;
use crate::stream::assemble::{Assembler, Membership};
use crate::stream::attached::Attached;
use crate::stream::record::{Layout, Origin};
use crate::stream::schema::Schema;
use crate::stream::sort::Sorter;
use crate::tracefs::mount;

/// How often progress is told.
const TICK: Duration = Duration::from_millis(100);
/// How often settings are looked at for changes, and what is there goes into the file, be the chunk full or not: a crash
/// costs no more than this.
const SLOW_TICK: Duration = Duration::from_secs(1);
/// How long a command that was asked to end may take to do so.
const GRACE: Duration = Duration::from_secs(2);
/// Event times are multiples of this: half a byte an event less, and less than recording an event takes.
const TIME_STEP_NS: NonZeroU64 = NonZeroU64::new(32).unwrap();

/// A flag that becomes true on Ctrl-C, SIGTERM or SIGHUP, for [`RecordOptions::stop`]. A second such signal ends the
/// program at once.
///
/// # Errors
/// The system would not have the handlers.
pub fn stop_on_signals() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// Records as `options` say, until the command or process ends or the recording is stopped.
///
/// # Errors
/// What is not permitted or missing and how to get it; a command that cannot be started; a file that cannot be written
/// further, in which case what was written before can be read and the command was asked to end (SIGTERM).
pub fn record(options: &RecordOptions, progress: &mut dyn Progress) -> Result<Summary, RecordError> {
    options.check()?;
    if let Target::Process(pid) = options.target {
        if !procs::is_alive(pid) {
            return Err(RecordError::Options(format!("there is no process {pid}")));
        }
    }
    cgroup_folder(&options.target)?;
    let Tracepoints { schema, found, missing } = tracepoints(options)?;
    let names = found.iter().map(|(name, _)| name.clone()).collect();
    let plan = Plan {
        via: options.via,
        tracepoints: found,
        maps: options.groups.contains(&Group::Space),
        watched: watched(options),
        ring_pages: options.ring_pages,
    };
    // It is made first: what we have resident when we fork counts as the command's peak (`ru_maxrss`).
    let command = options.target.command();
    let held = command.map(|command| WaitingChild::new(command, huge_pages(options))).transpose()?;
    let mut events = Source::open(&plan)?;
    let (refusal, missed) = (events.refusal.take(), events.missed());
    let output = Output::open(&options.output)?;
    let started = start(options, &mut events, &output, (names, held))?;
    let mut summary = Session::new(started, schema, events, (options, &output), progress)?.run()?;
    (summary.missing, summary.refusal) = ([missing, missed].concat(), refusal);
    Ok(summary)
}

/// What recording `tracepoint` alone, such as `kmem:mm_page_pcpu_drain`, adds to the task that causes it, in ns an event.
/// `round` causes such events on the calling thread, a hundred thousand at most, and gives the ns that it took; it is
/// called 30 to 60 times. `None` if it caused few.
///
/// # Errors
/// What is not permitted or missing and how to get it, or what `round` says.
pub fn event_cost(
    tracepoint: &str,
    round: &mut dyn FnMut() -> io::Result<u64>,
) -> Result<Option<f64>, RecordError> {
    const RING_PAGES: usize = 8192;
    let format = mount::read_format(&mount::find()?, tracepoint)?;
    let wanted = Wanted { tracepoints: vec![format.id], maps: false };
    let events = Events::open(&wanted, &host::online_cpus(), RING_PAGES)?;
    calibrate::event_cost(&mut Source::perf(events), round)
}

/// Those of the groups.
struct Tracepoints {
    /// How to decode them.
    schema: Schema,
    /// What recordings call them, and their numbers.
    found: Vec<(String, u16)>,
    /// Those that this kernel lacks and goes without.
    missing: Vec<String>,
}

fn tracepoints(options: &RecordOptions) -> Result<Tracepoints, RecordError> {
    let tracefs = mount::find()?;
    let mut found = Tracepoints { schema: Schema::default(), found: vec![], missing: vec![] };
    for (group, name) in Group::tracepoints_of(&options.groups) {
        match mount::read_format(&tracefs, name) {
            Ok(format) => {
                found.schema.add(&format).map_err(RecordError::Missing)?;
                found.found.push((name.to_owned(), format.id));
            }
            Err(RecordError::Missing(why)) => match group.absence(name) {
                Absence::Fails => return Err(RecordError::Missing(why)),
                Absence::IsTold => found.missing.push(name.to_owned()),
                Absence::IsFine => {}
            },
            Err(error) => return Err(error),
        }
    }
    if !found.schema.knows_gfp() {
        return Err(RecordError::Missing("this kernel's table of gfp flags cannot be read".into()));
    }
    Ok(found)
}

/// A recording whose events run.
struct Started {
    child: Option<Child>,
    tasks: Vec<crate::event::Task>,
    meta: Meta,
    drainer: Drainer,
    /// What the process had used before.
    usage: Option<Usage>,
    attached: Attached,
    budget: Option<Budget>,
}

/// What hides names and addresses, in the description too, where that was asked for.
fn masked(options: &RecordOptions, meta: &mut Meta) -> Result<Option<Mask>, RecordError> {
    if !options.masked {
        return Ok(None);
    }
    let random = Mask::random(&meta.zones);
    let mask = random.map_err(|error| RecordError::System { what: "drawing random numbers", error })?;
    *meta = Mask::meta(meta);
    Ok(Some(mask))
}

const fn huge_pages(options: &RecordOptions) -> HugePages {
    if options.keep_huge_pages { HugePages::Kept } else { HugePages::Off }
}

/// What recording costs; `None` if that cannot be measured.
fn cost(options: &RecordOptions, events: &mut Source) -> Result<Option<RecordingCost>, RecordError> {
    let measured = calibrate::measure(events, options.ring_pages)?;
    let looks = options.looking() != Looking::Never;
    Ok(measured.map(|cost| RecordingCost { bit_ns: if looks { calibrate::bit_ns() } else { 0 }, ..cost }))
}

/// Everything from the description of the machine to the command's first instruction.
fn start(
    options: &RecordOptions,
    events: &mut Source,
    output: &Output,
    (tracepoints, held): (Vec<String>, Option<WaitingChild>),
) -> Result<Started, RecordError> {
    let mut meta = host::describe();
    meta.cost = cost(options, events)?;
    let budget = Budget::asked_for(options, events, meta.cost)?;
    // That moved pages between the lists.
    meta.zoneinfo = host::zoneinfo();
    meta.tracepoints = tracepoints;
    meta.via = events.name().into();
    meta.keep = options.keep();
    meta.without_huge_pages = held.is_some() && huge_pages(options) == HugePages::Off;
    meta.command = options
        .target
        .command()
        .unwrap_or_default()
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let workload = match &options.target {
        Target::Process(pid) => Workload::Tree(*pid),
        Target::Cgroup(name) => Workload::These(cgroup::members(&cgroup::find(name)?)),
        _ => held.as_ref().map_or(Workload::Unnamed, |held| Workload::Tree(held.pid())),
    };
    let first = workload.first().unwrap_or_else(std::process::id);
    meta.settings = surroundings::settings(first);
    meta.memory_devices = surroundings::memory_devices(first);
    meta.counters = surroundings::counters();
    let usage = match options.target {
        Target::Process(pid) => surroundings::of_process(pid),
        _ => None,
    };
    meta.start_unix_ns = host::unix_ns();
    // What was there before has this time, and no event an earlier one.
    let now = host::now_ns();
    meta.start_ns = now - now % TIME_STEP_NS;
    let tasks = enable(events, &workload)?;
    let running: BTreeSet<u32> = match options.target {
        Target::Process(_) | Target::Cgroup(_) => {
            tasks.iter().filter(|task| task.in_workload).map(|task| task.pid).collect()
        }
        _ => BTreeSet::new(),
    };
    let rings = std::mem::take(&mut events.rings);
    let drainer = Drainer::start(rings);
    let drainer = drainer.map_err(|error| RecordError::System { what: "starting a thread", error })?;
    // The rings are emptied meanwhile.
    let attached =
        if options.groups.contains(&Group::Space) { attach::look(running) } else { Attached::default() };
    let child = held.map(WaitingChild::release).transpose()?;
    if let Err(error) = output.begin() {
        child.iter().for_each(terminate);
        return Err(error);
    }
    Ok(Started { child, tasks, meta, drainer, usage, attached, budget })
}

/// Starts the events. Gives the tasks that exist.
fn enable(events: &mut Source, workload: &Workload) -> Result<Vec<crate::event::Task>, RecordError> {
    tell_members(events, &procs::snapshot(workload));
    events.enable()?;
    let tasks = procs::snapshot(workload);
    // Those that came in between were made by tasks that nobody watched yet.
    tell_members(events, &tasks);
    Ok(tasks)
}

fn tell_members(events: &Source, tasks: &[crate::event::Task]) {
    let members = tasks.iter().filter(|task| task.in_workload);
    events.set_members(members.map(|task| task.tid), Belongs::Yes);
}

fn cgroup_folder(target: &Target) -> Result<Option<PathBuf>, RecordError> {
    match target {
        Target::Cgroup(name) => cgroup::find(name).map(Some),
        _ => Ok(None),
    }
}

/// Whose events programs in the kernel record.
fn watched(options: &RecordOptions) -> Watched {
    match (options.keep(), membership(&options.target)) {
        (Keep::System, _) | (_, Membership::Everybody) => Watched::Everybody,
        _ => Watched::Members,
    }
}

const fn membership(target: &Target) -> Membership {
    match target {
        Target::Command(_) | Target::Process(_) | Target::Cgroup(_) => Membership::Descendants,
        Target::All | Target::AllWhile(_) => Membership::Everybody,
    }
}

/// A recording that runs.
struct Session<'a> {
    options: &'a RecordOptions,
    output: &'a Output,
    progress: &'a mut dyn Progress,
    events: Source,
    drainer: Drainer,
    child: Option<Child>,
    meta: Meta,
    assembler: Assembler<&'a File>,
    sorter: Sorter,
    zoneinfo: String,
    counters: BTreeMap<String, u64>,
    /// What the process had used before the start, and by the last look.
    usage_before: Option<Usage>,
    usage: Option<Usage>,
    exit_status: Option<i32>,
    /// The folder of the cgroup that is recorded.
    cgroup: Option<PathBuf>,
    /// Who looks at accessed bits; what that cost, once nobody does any more.
    accessed: Option<AccessSampler>,
    /// What they have found that has not got its place among the events yet.
    looks: VecDeque<AccessedRound>,
    accessed_cost: Option<AccessedCost>,
    budget: Option<Budget>,
    /// What was sampled away of page events before the start, while costs were measured.
    counted_before: CountedPages,
    began: Instant,
    /// Since when the recording is about to end, its command not having ended by itself.
    stopping: Option<Instant>,
    is_interrupted: bool,
    ticked: Instant,
    slowly_ticked: Instant,
}

impl<'a> Session<'a> {
    fn new(
        started: Started,
        schema: Schema,
        events: Source,
        (options, output): (&'a RecordOptions, &'a Output),
        progress: &'a mut dyn Progress,
    ) -> Result<Self, RecordError> {
        let Started { child, tasks, mut meta, drainer, usage: usage_before, attached, budget } = started;
        let mask = masked(options, &mut meta)?;
        let writer = match Writer::new(&output.file, &meta) {
            Ok(writer) => writer,
            Err(error) => {
                child.iter().for_each(terminate);
                return Err(output.cut(Written::default(), error));
            }
        };
        let mut assembler = Assembler::new(writer, schema, membership(&options.target), options.keep());
        assembler.round_times(TIME_STEP_NS);
        if let Some(mask) = mask {
            assembler.set_mask(mask);
        }
        for task in tasks {
            assembler.add_task(task);
        }
        if let Some(child) = &child {
            assembler.wait_for_exec(child.id());
        }
        if let Err(error) = assembler.attach(meta.start_ns, &attached) {
            return Err(output.cut(assembler.writer().written(), error));
        }
        let now = Instant::now();
        let bit_ns = meta.cost.map_or(0, |cost| cost.bit_ns);
        Ok(Self {
            accessed: AccessSampler::of(options, child.as_ref().map(Child::id), bit_ns)?,
            looks: VecDeque::new(),
            accessed_cost: None,
            budget,
            counted_before: events.counted(),
            options,
            output,
            progress,
            events,
            drainer,
            child,
            meta,
            assembler,
            sorter: Sorter::default(),
            zoneinfo: String::new(),
            counters: BTreeMap::new(),
            usage_before,
            usage: None,
            exit_status: None,
            cgroup: cgroup_folder(&options.target)?,
            began: now,
            stopping: None,
            is_interrupted: false,
            ticked: now,
            slowly_ticked: now,
        })
    }

    fn run(mut self) -> Result<Summary, RecordError> {
        match self.follow() {
            Ok(()) => self.finish(),
            Err(error) => {
                self.child.iter().for_each(terminate);
                let _ = self.events.disable();
                Err(self.cut(error))
            }
        }
    }

    /// Writes what comes until the end.
    fn follow(&mut self) -> io::Result<()> {
        let mut is_stopping = false;
        loop {
            match self.drainer.rounds.recv_timeout(TICK) {
                Ok(round) => {
                    let is_last = round.is_last;
                    self.take(round)?;
                    if is_last {
                        return Ok(());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("the reading thread died"));
                }
            }
            if !is_stopping && self.is_over() {
                is_stopping = true;
                self.events.disable().map_err(io::Error::other)?;
                self.zoneinfo = host::zoneinfo();
                self.counters = surroundings::counters();
                self.drainer.stop();
            }
            self.look_around()?;
        }
    }

    fn take(&mut self, round: DrainedRound) -> io::Result<()> {
        for (index, bytes) in round.batches {
            let (feed, sorter) = (self.events.feeds[index], &mut self.sorter);
            feed.each(&bytes, |time, head, body| sorter.push(time, feed.cpu, head, body));
            self.drainer.recycle(bytes);
        }
        let (assembler, looks) = (&mut self.assembler, &mut self.looks);
        looks.extend(self.accessed.as_ref().into_iter().flat_map(AccessSampler::rounds));
        self.sorter.release(round.horizon, |cpu, head, body| match Layout::OURS.parse(head, body) {
            Some((origin, record)) => {
                while looks.front().is_some_and(|look| look.at_ns <= origin.time) {
                    looks.pop_front().iter().try_for_each(|look| assembler.accessed(look))?;
                }
                assembler.take(Origin { cpu, ..origin }, record)
            }
            None => Ok(()),
        })
    }

    /// Whether what was to be recorded has ended. A command that is to end early is asked to.
    fn is_over(&mut self) -> bool {
        if let Some(child) = &self.child {
            if let Ok(Some(Ended { status, usage })) = try_wait(child) {
                self.exit_status = Some(exit_code(status));
                self.usage = Some(usage);
                return true;
            }
        }
        self.look_at_usage();
        if self.stopping.is_none() {
            // Relaxed, for a signal's handler sets it and publishes nothing else.
            self.is_interrupted = self.options.stop.load(Ordering::Relaxed);
            let is_due = self.options.length.is_some_and(|length| self.began.elapsed() >= length);
            if self.is_interrupted || is_due {
                self.stopping = Some(Instant::now());
                self.child.iter().for_each(terminate);
            }
        }
        match (self.stopping, &self.options.target) {
            (Some(since), _) => self.child.is_none() || since.elapsed() > GRACE,
            (None, Target::Process(pid)) => !procs::is_alive(*pid),
            (None, _) => false,
        }
    }

    /// What a process used is not known any more when it has ended: it is looked at meanwhile.
    fn look_at_usage(&mut self) {
        if let (Target::Process(pid), Some(before)) = (&self.options.target, &self.usage_before) {
            let now = surroundings::of_process(*pid).filter(|now| now.peak_rss_pages > 0);
            self.usage = now.map(|now| surroundings::since(before, &now)).or(self.usage);
        }
    }

    /// Tells progress and looks for settings that changed, each from time to time.
    fn look_around(&mut self) -> io::Result<()> {
        if self.ticked.elapsed() >= TICK {
            self.ticked = Instant::now();
            self.look_who_joined()?;
            self.look_at_budget()?;
            let counts = self.assembler.counts();
            self.progress.tick(Status {
                events: counts.events,
                bytes: self.assembler.writer().written().bytes,
                lost: counts.lost,
                elapsed_ns: host::now_ns() - self.meta.start_ns,
            });
        }
        if self.slowly_ticked.elapsed() >= SLOW_TICK {
            self.slowly_ticked = Instant::now();
            self.assembler.flush()?;
            let settings = host::vm_settings();
            for (name, value) in
                settings.iter().filter(|(name, value)| self.meta.vm.get(*name) != Some(value))
            {
                let origin = Origin { time: self.assembler.counts().last_time, pid: 0, tid: 0, cpu: 0 };
                self.assembler.mark(origin, &format!("vm.{name}={value}"))?;
            }
            self.meta.vm = settings;
        }
        Ok(())
    }

    /// Processes that came into the cgroup from outside are recorded from now on, with what they have.
    fn look_who_joined(&mut self) -> io::Result<()> {
        let Some(folder) = &self.cgroup else { return Ok(()) };
        for pid in cgroup::members(folder) {
            if !self.assembler.is_recorded(pid) {
                let attached = attach::look([pid]);
                let threads = procs::threads(pid);
                self.events.set_members(threads.iter().copied(), Belongs::Yes);
                self.assembler.join(&threads, &attached)?;
            }
        }
        Ok(())
    }

    /// Nobody looks at accessed bits any more. Writes what was found that no event comes after; gives what it cost.
    fn end_looks(&mut self) -> io::Result<Option<AccessedCost>> {
        let cost = self.accessed.as_mut().and_then(AccessSampler::stop).or(self.accessed_cost);
        self.looks.extend(self.accessed.as_ref().into_iter().flat_map(AccessSampler::rounds));
        std::mem::take(&mut self.looks).iter().try_for_each(|look| self.assembler.accessed(look))?;
        Ok(cost)
    }

    fn finish(mut self) -> Result<Summary, RecordError> {
        let accessed = self.end_looks().map_err(|error| self.cut(error))?;
        let sampled = self.sampled();
        let end_ns = host::now_ns();
        let counted = self.assembler.counts().lost;
        // Losses are reported along with the next event that finds room; the last ones may have had none.
        if let Some(rest) =
            self.events.lost().and_then(|lost| lost.checked_sub(counted)).filter(|&rest| rest > 0)
        {
            let origin = Origin { time: end_ns, pid: 0, tid: 0, cpu: 0 };
            let result = self.assembler.take(origin, crate::stream::record::Record::Lost(rest));
            if let Err(error) = result {
                return Err(self.cut(error));
            }
        }
        let counts = self.assembler.counts();
        let outcome = RecordingEnd {
            end_ns,
            end_unix_ns: host::unix_ns(),
            events: counts.events,
            lost: counts.lost,
            unreadable: counts.unreadable,
            left_out: counts.left_out,
            exit_status: self.exit_status,
            interrupted: self.is_interrupted,
            counters: std::mem::take(&mut self.counters),
            usage: self.usage,
            accessed,
            sampled: sampled.clone(),
        };
        let tasks = self.assembler.task_count();
        if let Err(error) = self.assembler.flush() {
            return Err(self.cut(error));
        }
        self.drainer.join();
        let kept = self.assembler.writer().written();
        let written = match self.assembler.into_writer().finish(outcome) {
            Ok((_, written)) => written,
            Err(error) => return Err(self.output.cut(kept, error)),
        };
        Ok(Summary {
            events: counts.events,
            bytes: written.bytes,
            lost: counts.lost,
            left_out: counts.left_out,
            unreadable: counts.unreadable,
            tasks,
            duration_ns: end_ns - self.meta.start_ns,
            via: self.meta.via,
            without_huge_pages: self.meta.without_huge_pages,
            cost: self.meta.cost,
            accessed,
            skipped: self.events.skipped(),
            sampled,
            zoneinfo: self.zoneinfo,
            exit_status: self.exit_status,
            interrupted: self.is_interrupted,
            ..Summary::default()
        })
    }

    fn cut(&self, error: io::Error) -> RecordError {
        self.output.cut(self.assembler.writer().written(), error)
    }
}
