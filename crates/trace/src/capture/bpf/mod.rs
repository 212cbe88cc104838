//! Our programs in the kernel (bpf/recorder.bpf.c): loading them, starting and stopping them, whom they record.
//!
//! `accessed` are others, which read page tables for who asks. `shared` is memory that they and we both see, `ring` what they write, `pages` where descriptors of pages lie, `per_cpu` where a CPU keeps
//! whether it is in an interrupt.

mod accessed;
mod pages;
mod per_cpu;
mod ring;
mod shared;

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use aya::maps::MapError;
use aya::programs::raw_trace_point::RawTracePointLink;
use aya::programs::tp_btf::BtfTracePointLink;
use aya::programs::{Program, ProgramError};
use aya::{Btf, Ebpf, EbpfError, EbpfLoader};

use self::ring::CPU_WORDS;
use self::shared::Shared;
use super::procs;
use crate::meta::ZoneSpan;

pub(super) use self::accessed::{Bits, PageTables, UNIT_BYTES, Unit};
pub(super) use self::pages::{PageMap, learn};
pub(super) use self::ring::{CompactRing, Left};

/// The programs, compiled.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../../bpf/recorder.bpf.o");
/// Linux has no larger task numbers.
const TASKS: usize = 1 << 22;

/// What a program that the kernel will not have means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Refused {
    /// None of them can be used.
    Ends,
    /// perf records this tracepoint.
    IsPerfs,
    /// What it records is not known.
    IsMissed,
}

/// One of our programs.
#[derive(Debug)]
struct OurProgram {
    name: &'static str,
    /// The tracepoint's name in the kernel's own list.
    tracepoint: &'static str,
    /// What it records by the names that recordings have; all that begin so if it ends with an underscore.
    records: &'static str,
    refused: Refused,
}

const fn program(name: &'static str, tracepoint: &'static str, records: &'static str) -> OurProgram {
    OurProgram { name, tracepoint, records, refused: Refused::Ends }
}

/// A program that is called as its tracepoint is.
const fn same(tracepoint: &'static str, records: &'static str) -> OurProgram {
    program(tracepoint, tracepoint, records)
}

/// One that perf can do the work of.
const fn or_perf(name: &'static str, tracepoint: &'static str, records: &'static str) -> OurProgram {
    OurProgram { refused: Refused::IsPerfs, ..program(name, tracepoint, records) }
}

/// All programs. What follows forks is first: a task that is made while the others are attached is known by then.
const PROGRAMS: [OurProgram; 20] = [
    same(FOLLOWS_FORKS, "task:task_newtask"),
    program("page_alloc", "mm_page_alloc", "kmem:mm_page_alloc"),
    program("page_free", "mm_page_free", "kmem:mm_page_free"),
    program(STAND_IN, "mm_page_free", "kmem:mm_page_free"),
    program("page_free_batched", "mm_page_free_batched", "kmem:mm_page_free_batched"),
    program("zone_locked", "mm_page_alloc_zone_locked", "kmem:mm_page_alloc_zone_locked"),
    program("pcpu_drain", "mm_page_pcpu_drain", "kmem:mm_page_pcpu_drain"),
    same("page_fault_user", "exceptions:page_fault_user"),
    same("page_fault_kernel", "exceptions:page_fault_kernel"),
    same("sched_switch", "sched:sched_switch"),
    same("sched_process_exec", "sched:sched_process_exec"),
    same("sys_enter", "syscalls:sys_enter_"),
    same("sys_exit", "syscalls:sys_exit_"),
    OurProgram {
        refused: Refused::IsMissed,
        ..program("direct", "iomap_dio_rw_begin", "syscalls:sys_enter_")
    },
    or_perf("sched_waking", "sched_waking", "sched:sched_waking"),
    or_perf("file_read", "mm_filemap_get_pages", "filemap:mm_filemap_get_pages"),
    or_perf("file_add", "mm_filemap_add_to_page_cache", "filemap:mm_filemap_add_to_page_cache"),
    or_perf("file_drop", "mm_filemap_delete_from_page_cache", "filemap:mm_filemap_delete_from_page_cache"),
    or_perf("ext4_da_write_begin", "ext4_da_write_begin", "ext4:ext4_da_write_begin"),
    or_perf("ext4_write_begin", "ext4_write_begin", "ext4:ext4_write_begin"),
];
const FOLLOWS_FORKS: &str = "task_newtask";
/// It records what page_free is skipped for, and must be called after it.
const STAND_IN: &str = "page_free_stand_in";

impl OurProgram {
    /// Whether it records a tracepoint.
    fn covers(&self, tracepoint: &str) -> bool {
        let is_family = self.records.ends_with('_') && tracepoint.starts_with(self.records);
        is_family || self.records == tracepoint
    }
}

/// Watched events programs record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Watched {
    /// Those of tasks that are said to belong to the workload, and of their descendants.
    Members,
    /// Everybody's.
    Everybody,
}

/// What programs are loaded for.
#[derive(Debug)]
pub(super) struct Load<'a> {
    /// The tracepoints, by the names that recordings have.
    pub(super) tracepoints: &'a [String],
    pub(super) watched: Watched,
    pub(super) pages: PageMap,
    pub(super) zones: &'a [ZoneSpan],
    /// The CPUs' numbers.
    pub(super) cpus: &'a [u32],
    /// Pages in each CPU's ring, a power of two.
    pub(super) ring_pages: usize,
}

/// A program's hold on its tracepoint; it ends when this is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "links are held, never looked at")]
enum Link {
    Raw(RawTracePointLink),
    Typed(BtfTracePointLink),
}

/// Programs that were loaded, stopped at first.
#[derive(Debug)]
pub(super) struct Programs {
    object: Ebpf,
    loaded: Vec<&'static OurProgram>,
    /// Tracepoints that this kernel lacks, and that nothing else can record.
    missed: Vec<&'static str>,
    links: Vec<Link>,
    members: Shared,
    cpus: Arc<Shared>,
    records: Arc<Shared>,
    cpu_count: usize,
    ring_pages: usize,
}

/// The kernel's account of its types.
///
/// # Errors
/// In a few words, why programs cannot be loaded here.
pub(super) fn types() -> Result<Btf, String> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err("the programs know x86-64 only".into());
    }
    if !procs::is_root_namespace() {
        return Err("task numbers in this PID namespace are not the kernel's".into());
    }
    Btf::from_sys_fs().map_err(|_| "the kernel does not describe its types (/sys/kernel/btf/vmlinux)".into())
}

impl Programs {
    /// Loads the programs for these tracepoints.
    ///
    /// # Errors
    /// In a few words, why the kernel will not have them.
    pub(super) fn load(what: &Load<'_>, types: &Btf) -> Result<Self, String> {
        let is_wanted = |program: &&OurProgram| {
            program.name == FOLLOWS_FORKS || what.tracepoints.iter().any(|name| program.covers(name))
        };
        let mut object = open(what, types)?;
        let (mut loaded, mut missed) = (vec![], vec![]);
        let is_possible =
            |program: &&OurProgram| program.name != "sched_waking" || per_cpu::to_preempt_count().is_some();
        for program in PROGRAMS.iter().filter(is_wanted).filter(is_possible) {
            match (load_program(&mut object, program, types), program.refused) {
                (Ok(()), _) => loaded.push(program),
                (Err(_), Refused::IsPerfs) => {}
                (Err(_), Refused::IsMissed) => missed.push(program.tracepoint),
                (Err(error), Refused::Ends) => return Err(refusal(program, &error)),
            }
        }
        Ok(Self { missed, ..Self::of(object, loaded, what)? })
    }

    fn of(object: Ebpf, loaded: Vec<&'static OurProgram>, what: &Load<'_>) -> Result<Self, String> {
        let shared = |name: &str, bytes: usize| {
            let map = object.map(name).ok_or("a map is missing".to_owned())?;
            Shared::map(map, bytes).map_err(|error| format!("mapping memory of programs: {error}"))
        };
        let cpus = cpu_count(what.cpus);
        Ok(Self {
            members: shared("members", TASKS / 8)?,
            cpus: Arc::new(shared("cpus", cpus * CPU_WORDS * size_of::<u64>())?),
            records: Arc::new(shared("ring", cpus * what.ring_pages * 4096)?),
            cpu_count: cpus,
            ring_pages: what.ring_pages,
            links: vec![],
            object,
            loaded,
            missed: vec![],
        })
    }

    /// Tracepoints that this kernel lacks, so that what they tell is in no recording.
    pub(super) fn missed(&self) -> &[&'static str] {
        &self.missed
    }

    /// Whether a tracepoint is recorded by one of them.
    pub(super) fn cover(&self, tracepoint: &str) -> bool {
        self.loaded.iter().any(|program| program.covers(tracepoint))
    }

    /// The ring of a CPU.
    pub(super) fn ring(&self, cpu: u32) -> CompactRing {
        CompactRing::new(Arc::clone(&self.cpus), Arc::clone(&self.records), cpu, self.ring_pages)
    }

    /// Attaches all programs.
    pub(super) fn start(&mut self) -> io::Result<()> {
        for program in &self.loaded {
            let link = attach(&mut self.object, program).map_err(io::Error::other)?;
            self.links.push(link);
        }
        Ok(())
    }

    /// Detaches them, the last first.
    pub(super) fn stop(&mut self) {
        while self.links.pop().is_some() {}
    }

    /// Says whether a task belongs to the workload; tasks that it makes from here on do too.
    pub(super) fn set_member(&self, tid: u32, belongs: Belongs) {
        let word = self.members.word(tid as usize % TASKS / 64);
        let bit = 1 << (tid % 64);
        // Relaxed: programs look at the bit alone.
        match belongs {
            Belongs::Yes => word.fetch_or(bit, Ordering::Relaxed),
            Belongs::No => word.fetch_and(!bit, Ordering::Relaxed),
        };
    }

    /// From here on page events of one unit of frames in `one_in`, a power of two, are recorded.
    pub(super) fn sample_pages(&self, one_in: u32) {
        (0..self.cpu_count).for_each(|cpu| ring::sample(&self.cpus, cpu, one_in.trailing_zeros()));
    }

    /// What was sampled away of page events so far.
    pub(super) fn counted(&self) -> CountedPages {
        let each = (0..self.cpu_count).map(|cpu| ring::counted(&self.cpus, cpu));
        each.fold(CountedPages::default(), |sum, [events, user_pages]| CountedPages {
            events: sum.events + events,
            user_pages: sum.user_pages + user_pages,
        })
    }

    /// Events that programs could not record: there was no room, or an interrupt came while the same program ran.
    pub(super) fn lost(&self) -> u64 {
        let without_room: u64 = (0..self.cpu_count).map(|cpu| ring::lost(&self.cpus, cpu)).sum();
        without_room + self.skipped_events()
    }

    /// Of the lost ones, those that the kernel skipped a program for.
    pub(super) fn skipped_events(&self) -> u64 {
        let stood_in: u64 = (0..self.cpu_count).map(|cpu| ring::stood_in(&self.cpus, cpu)).sum();
        self.skipped().saturating_sub(stood_in)
    }

    /// How often the kernel skipped a program; the stand-in is not needed then.
    fn skipped(&self) -> u64 {
        let recorders = self.loaded.iter().filter(|program| program.name != STAND_IN);
        recorders.filter_map(|program| recursion_misses(self.fd(program)?)).sum()
    }

    fn fd(&self, program: &OurProgram) -> Option<RawFd> {
        match self.object.program(program.name)? {
            Program::RawTracePoint(program) => Some(program.fd().ok()?.as_fd().as_raw_fd()),
            Program::BtfTracePoint(program) => Some(program.fd().ok()?.as_fd().as_raw_fd()),
            _ => None,
        }
    }
}

/// Page events that were sampled away.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct CountedPages {
    pub(super) events: u64,
    /// Pages for user space that they handed out.
    pub(super) user_pages: u64,
}

/// Whether a task belongs to the workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Belongs {
    Yes,
    No,
}

fn cpu_count(cpus: &[u32]) -> usize {
    cpus.iter().max().map_or(1, |cpu| *cpu as usize + 1)
}

/// Makes the maps and prepares the programs for this kernel.
fn open(what: &Load<'_>, types: &Btf) -> Result<Ebpf, String> {
    let cpus = cpu_count(what.cpus);
    let frames = what.zones.iter().map(|zone| zone.start_pfn + zone.spanned).max().unwrap_or(0);
    let everybody = u32::from(what.watched == Watched::Everybody);
    let (base, shift) = (what.pages.base, what.pages.shift);
    let ring_shift = what.ring_pages.trailing_zeros();
    let to_preempt_count = per_cpu::to_preempt_count().unwrap_or(0);
    let mut loader = EbpfLoader::new();
    loader
        .btf(Some(types))
        .set_global("everybody", &everybody, true)
        .set_global("page_base", &base, true)
        .set_global("page_shift", &shift, true)
        .set_global("to_preempt_count", &to_preempt_count, true)
        .set_global("ring_shift", &ring_shift, true)
        .set_max_entries("cpus", cpus as u32)
        .set_max_entries("ring", (cpus * what.ring_pages) as u32)
        .set_max_entries("held", frames.div_ceil(64).max(1) as u32);
    loader.load(OBJECT).map_err(|error| match &error {
        EbpfError::MapError(MapError::CreateError { io_error, .. }) => not_permitted(io_error),
        EbpfError::BtfError(_) => not_permitted(&io::Error::last_os_error()),
        _ => format!("the programs do not fit this kernel: {}", one_line(&error.to_string())),
    })
}

fn load_program(object: &mut Ebpf, program: &OurProgram, types: &Btf) -> Result<(), ProgramError> {
    match object.program_mut(program.name) {
        Some(Program::RawTracePoint(loaded)) => loaded.load(),
        Some(Program::BtfTracePoint(loaded)) => loaded.load(program.tracepoint, types),
        _ => Err(ProgramError::UnexpectedProgramType),
    }
}

fn attach(object: &mut Ebpf, program: &OurProgram) -> Result<Link, ProgramError> {
    match object.program_mut(program.name) {
        Some(Program::RawTracePoint(loaded)) => {
            let id = loaded.attach(program.tracepoint)?;
            Ok(Link::Raw(loaded.take_link(id)?))
        }
        Some(Program::BtfTracePoint(loaded)) => {
            let id = loaded.attach()?;
            Ok(Link::Typed(loaded.take_link(id)?))
        }
        _ => Err(ProgramError::UnexpectedProgramType),
    }
}

fn refusal(program: &OurProgram, error: &ProgramError) -> String {
    match error {
        ProgramError::LoadError { io_error, .. } if io_error.raw_os_error() == Some(libc::EPERM) => {
            not_permitted(io_error)
        }
        ProgramError::LoadError { io_error, .. } => {
            format!("this kernel will not have the program {}: {io_error}", program.name)
        }
        error => format!("the program {}: {}", program.name, one_line(&error.to_string())),
    }
}

fn not_permitted(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "CAP_BPF and CAP_PERFMON are needed".into(),
        _ => format!("making room for programs: {error}"),
    }
}

fn one_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// How often the kernel skipped a program because it ran already on that CPU; `None` if it does not say.
fn recursion_misses(program: RawFd) -> Option<u64> {
    const BPF_OBJ_GET_INFO_BY_FD: libc::c_int = 15;
    /// Of struct bpf_prog_info, in bytes.
    const MISSES_AT: usize = 208;
    #[repr(C)]
    struct Ask {
        fd: u32,
        len: u32,
        info: u64,
    }
    let mut info = [0u64; 64];
    let ask = Ask { fd: program as u32, len: size_of_val(&info) as u32, info: info.as_mut_ptr() as u64 };
    // SAFETY: `ask` is laid out as the kernel has it and lives through the call, as does `info`, whose size it says.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &raw const ask, size_of::<Ask>()) };
    (result == 0).then(|| info[MISSES_AT / size_of::<u64>()])
}
