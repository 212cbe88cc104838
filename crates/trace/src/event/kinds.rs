//! Every kind of event, in one table. Encoding, decoding, masking, capture and import follow it. To add a kind, add an entry
//! at the end, and say in `lab::workload` what a replay makes of it.

use mm::{MigrateType, Order, Pfn, TaskId};

use super::field::{
    ALLOCATED, Address, Attr, BATCHED, DRAINED, FREED, FieldPlace, FieldSink, FieldSource, Frame, Hide, High,
    Instruction, LOCKED, NextTask, Number, Packed, Rest, Touched, Whole,
};
use super::readers::{FILE_WRITE, SLAB_ALLOC, SLAB_FREE, file_add, file_drop, file_read, zone_locked};
use super::space::{MapFlags, PresentKind};
use super::tracepoint::{Decoded, Tracepoint};
use super::{Group, NameId, SwitchState};
use crate::gfp::Gfp;
use crate::tracefs::sample::Sample;
use Decoded::Event;

/// Makes [`EventKind`] of the table, and what reads and writes one.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal $({
        $($(#[$field_doc:meta])* $field:ident: $type:ty => $place:ty,)*
    })? from [$($tracepoint:expr),* $(,)?])*) => {
        /// What happened. Addresses are the kernel's own, unless the recording is masked.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum EventKind {
            $($(#[$doc])* $kind $({ $($(#[$field_doc])* $field: $type,)* })?,)*
        }

        #[derive(Clone, Copy)]
        enum Index {
            $($kind,)*
        }

        impl Index {
            const ALL: [Self; EventKind::COUNT] = [$(Self::$kind),*];
        }

        impl EventKind {
            /// How many kinds there are.
            pub const COUNT: usize = [$(Index::$kind),*].len();
            /// The kinds' names, by [`EventKind::index`].
            pub const NAMES: [&'static str; Self::COUNT] = [$($name),*];
            /// Which kinds have attributes in the second part.
            const HAVE_REST: [bool; Self::COUNT] = [$(false $($(|| <$place as FieldPlace<$type>>::IN_REST)*)?),*];
            /// The tracepoints that each kind comes from.
            const TRACEPOINTS: [&'static [Tracepoint]; Self::COUNT] = [$(&[$($tracepoint),*]),*];

            /// The kind's number, as recordings have it.
            #[inline]
            pub const fn index(&self) -> usize {
                match self {
                    $(Self::$kind { .. } => Index::$kind as usize,)*
                }
            }

            /// The fields that repeat.
            #[inline]
            pub(crate) fn attr(&self) -> Attr {
                let mut attr = Attr::default();
                match *self {
                    $(Self::$kind { $($($field),*)? } => {
                        $($(<$place as FieldPlace<$type>>::attr($field, &mut attr);)*)?
                    })*
                }
                attr
            }

            /// Hands on the other fields.
            #[inline]
            pub(crate) fn put(&self, into: &mut impl FieldSink) {
                match *self {
                    $(Self::$kind { $($($field),*)? } => {
                        $($(<$place as FieldPlace<$type>>::put($field, into);)*)?
                    })*
                }
            }

            /// The event of the kind with this number, of its attributes and the other fields.
            #[inline]
            pub(crate) fn take(index: usize, attr: &Attr, from: &mut impl FieldSource) -> Option<Self> {
                Some(match Index::ALL.get(index)? {
                    $(Index::$kind => Self::$kind { $($($field: <$place as FieldPlace<$type>>::take(attr, from)?),*)? },)*
                })
            }

            /// Renames what says whose recording it is.
            pub(crate) fn hide(&mut self, mask: &mut impl Hide) {
                match self {
                    $(Self::$kind { $($($field),*)? } => {
                        $($(<$place as FieldPlace<$type>>::hide($field, mask);)*)?
                    })*
                }
            }
        }
    };
}

impl EventKind {
    /// The kind's name: `page_alloc`, `page_free` …
    pub const fn name(&self) -> &'static str {
        Self::NAMES[self.index()]
    }

    /// Whether it is a page fault.
    pub(crate) const fn is_fault(&self) -> bool {
        matches!(self, Self::Fault { .. })
    }

    /// Whether the kind with this number has attributes in the second part.
    #[inline]
    pub(crate) const fn has_rest(index: usize) -> bool {
        Self::HAVE_REST[index]
    }
}

/// Every tracepoint that a kind of event comes from by itself.
pub(super) fn tracepoints() -> impl Iterator<Item = &'static Tracepoint> {
    EventKind::TRACEPOINTS.iter().copied().flatten()
}

/// The tracepoints of faults have the same fields.
const FAULT: Tracepoint = Tracepoint {
    group: Group::Fault,
    name: "",
    needed: &["address", "ip", "error_code"],
    optional: &[],
    read: |of| {
        let (address, ip, error_code) = (of.number(0)?, of.number(1)?, of.number(2)? as u32);
        Some(Event(EventKind::Fault { address, ip, error_code }))
    },
};

kinds! {
    /// A block of pages was handed out (`kmem:mm_page_alloc`). The type is the one asked for.
    PageAlloc = "page_alloc" {
        /// First frame.
        pfn: Pfn => Frame<ALLOCATED>,
        /// Order of the block.
        order: Order => Packed,
        /// Type of the request.
        migratetype: MigrateType => Packed,
        /// Flags of the request.
        gfp: Gfp => Packed,
    } from [
        Tracepoint {
            group: Group::Page,
            name: "kmem:mm_page_alloc",
            needed: &["pfn", "order", "migratetype", "gfp_flags"],
            optional: &[],
            read: page_alloc,
        },
    ]
    /// A request for pages failed (`kmem:mm_page_alloc` without a page).
    PageAllocFailed = "page_alloc_failed" {
        /// Order of the request.
        order: Order => Packed,
        /// Type of the request.
        migratetype: MigrateType => Packed,
        /// Flags of the request.
        gfp: Gfp => Packed,
    } from []
    /// A block of pages was freed (`kmem:mm_page_free`). A block may come back in smaller pieces than it went out.
    PageFree = "page_free" {
        /// First frame.
        pfn: Pfn => Frame<FREED>,
        /// Order of the block.
        order: Order => Packed,
    } from [
        Tracepoint {
            group: Group::Page,
            name: "kmem:mm_page_free",
            needed: &["pfn", "order"],
            optional: &[],
            read: |of| Some(Event(EventKind::PageFree { pfn: of.pfn(0)?, order: of.order(1)? })),
        },
    ]
    /// A page that was freed as one of a batch (`kmem:mm_page_free_batched`); repeats a [`EventKind::PageFree`].
    PageFreeBatched = "page_free_batched" {
        /// First frame.
        pfn: Pfn => Frame<BATCHED>,
    } from [
        Tracepoint {
            group: Group::Page,
            name: "kmem:mm_page_free_batched",
            needed: &["pfn"],
            optional: &[],
            read: |of| Some(Event(EventKind::PageFreeBatched { pfn: of.pfn(0)? })),
        },
    ]
    /// A block was taken from the buddy lists (`kmem:mm_page_alloc_zone_locked`).
    ZoneLocked = "zone_locked" {
        /// First frame.
        pfn: Pfn => Frame<LOCKED>,
        /// Order of the block.
        order: Order => Packed,
        /// Type of the request.
        migratetype: MigrateType => Packed,
        /// Whether it went to a per-CPU list.
        percpu_refill: bool => Packed,
    } from [
        Tracepoint {
            group: Group::Page,
            name: "kmem:mm_page_alloc_zone_locked",
            needed: &["pfn", "order", "migratetype"],
            optional: &["percpu_refill"],
            read: zone_locked,
        },
    ]
    /// A block went from a per-CPU list back to the buddy lists (`kmem:mm_page_pcpu_drain`).
    PcpuDrain = "pcpu_drain" {
        /// First frame.
        pfn: Pfn => Frame<DRAINED>,
        /// Order of the block.
        order: Order => Packed,
        /// Type of the block's pageblock.
        migratetype: MigrateType => Packed,
    } from [
        Tracepoint {
            group: Group::Page,
            name: "kmem:mm_page_pcpu_drain",
            needed: &["pfn", "order", "migratetype"],
            optional: &[],
            read: |of| {
                let (pfn, order, migratetype) = (of.pfn(0)?, of.order(1)?, of.migratetype(2)?);
                Some(Event(EventKind::PcpuDrain { pfn, order, migratetype }))
            },
        },
    ]
    /// The CPU went from the event's task to another (`sched:sched_switch`).
    Switch = "switch" {
        /// Who runs now.
        next: TaskId => NextTask,
        /// How the event's task, who ran until now, stays behind.
        state: SwitchState => Whole,
    } from [
        Tracepoint {
            group: Group::Sched,
            name: "sched:sched_switch",
            needed: &["next_pid", "prev_state", "next_comm", "prev_comm"],
            optional: &[],
            read: |of| {
                Some(Decoded::Switch {
                    next_tid: of.short(0)?,
                    state: SwitchState::from_prev_state(of.number(1)?),
                    next_name: of.text(2)?,
                    prev_name: of.text(3)?,
                })
            },
        },
    ]
    /// The event's task made another.
    Fork = "fork" {
        /// The new task.
        child: TaskId => Number,
        /// What they share, as `clone` numbers it (0x100 is the address space); 0 if that was not seen.
        flags: u32 => Whole,
        /// How long the call had taken when the new task was there, ns; 0 if that was not seen.
        took_ns: u32 => High,
    } from [
        Tracepoint {
            group: Group::Space,
            name: "task:task_newtask",
            needed: &["pid", "clone_flags"],
            optional: &[],
            read: |of| Some(Decoded::NewTask { tid: of.short(0)?, flags: of.number(1)? as u32 }),
        },
    ]
    /// The event's task ended.
    Exit = "exit" from []
    /// The event's task touched an address that was not mapped, or not to be written (`exceptions:page_fault_user`), or the
    /// kernel did for it (`exceptions:page_fault_kernel`), as in a read() into fresh memory.
    Fault = "fault" {
        /// The address touched.
        address: u64 => Touched,
        /// The instruction that touched it.
        ip: u64 => Instruction,
        /// The CPU's error code: 1 protection, 2 write, 4 user, 16 instruction.
        error_code: u32 => Whole,
    } from [
        Tracepoint { name: "exceptions:page_fault_user", ..FAULT },
        Tracepoint { name: "exceptions:page_fault_kernel", ..FAULT },
    ]
    /// An object was handed out (`kmem:kmem_cache_alloc`, `kmem:kmalloc`).
    SlabAlloc = "slab_alloc" {
        /// The object's address.
        object: u64 => Address,
        /// Its cache, [`NameId::NONE`] for kmalloc.
        cache: NameId => Whole,
        /// Bytes asked for.
        requested: u32 => Rest<0>,
        /// Bytes that the object takes.
        allocated: u32 => Rest<1>,
        /// Flags of the request.
        gfp: Gfp => Rest<2>,
        /// The node asked for; -1 for any.
        node: i16 => Rest<3>,
    } from [
        Tracepoint { name: "kmem:kmem_cache_alloc", ..SLAB_ALLOC },
        Tracepoint { name: "kmem:kmalloc", ..SLAB_ALLOC },
        Tracepoint { name: "kmem:kmem_cache_alloc_node", ..SLAB_ALLOC },
        Tracepoint { name: "kmem:kmalloc_node", ..SLAB_ALLOC },
    ]
    /// An object was given back (`kmem:kmem_cache_free`, `kmem:kfree`).
    SlabFree = "slab_free" {
        /// The object's address.
        object: u64 => Address,
        /// Its cache, [`NameId::NONE`] for kfree.
        cache: NameId => Whole,
    } from [
        Tracepoint { name: "kmem:kmem_cache_free", ..SLAB_FREE },
        Tracepoint { name: "kmem:kfree", ..SLAB_FREE },
    ]
    /// The event's task begins to wait for a lock (`lock:contention_begin`).
    ContentionBegin = "contention_begin" {
        /// The lock's address.
        lock: u64 => Address,
        /// Its kind: 1 spin, 2 read, 4 write, 8 real-time, 16 per CPU, 32 mutex.
        flags: u32 => Whole,
    } from [
        Tracepoint {
            group: Group::Lock,
            name: "lock:contention_begin",
            needed: &["lock_addr", "flags"],
            optional: &[],
            read: |of| {
                Some(Event(EventKind::ContentionBegin { lock: of.number(0)?, flags: of.number(1)? as u32 }))
            },
        },
    ]
    /// The wait is over (`lock:contention_end`).
    ContentionEnd = "contention_end" {
        /// The lock's address.
        lock: u64 => Address,
        /// 0 if the lock was got, otherwise a negative error.
        result: i32 => Whole,
    } from [
        Tracepoint {
            group: Group::Lock,
            name: "lock:contention_end",
            needed: &["lock_addr", "ret"],
            optional: &[],
            read: |of| {
                Some(Event(EventKind::ContentionEnd { lock: of.number(0)?, result: of.number(1)? as i32 }))
            },
        },
    ]
    /// Whoever recorded wrote something down, such as a knob that was changed (`knob=value`).
    Mark = "mark" {
        /// What was written.
        text: NameId => Number,
    } from []
    /// So many events were lost on the CPU before this time.
    Lost = "lost" {
        /// How many.
        count: u64 => Whole,
    } from []
    /// A range of the task's address space is mapped from here on, in the place of what was there: `mmap`, `brk` that
    /// grows, what exec maps; at the start of a recording, what was mapped already.
    Map = "map" {
        /// The first page's address.
        address: u64 => Touched,
        /// The file behind it; [`NameId::NONE`] for memory of the program's own.
        file: NameId => Number,
        /// What may be done with it, and how it was asked for.
        flags: MapFlags => Whole,
        /// Pages, up to 16 TiB.
        pages: u32 => Rest<0>,
        /// The file's page at the range's start.
        first: u32 => Rest<1>,
        /// How long the call took, ns, up to its return at the event's time; 0 if that was not seen.
        took_ns: u32 => Rest<3>,
    } from []
    /// A range is mapped no more (`munmap`, `brk` that shrinks).
    Unmap = "unmap" {
        /// The first page's address.
        address: u64 => Touched,
        /// Pages.
        pages: u32 => Rest<0>,
        /// How long the call took, ns, up to its return at the event's time; 0 if that was not seen.
        took_ns: u32 => Rest<3>,
    } from []
    /// A range was moved, or made longer or shorter (`mremap`).
    Remap = "remap" {
        /// Where it began.
        from: u64 => Touched,
        /// Where it begins from here on.
        to: u64 => Touched,
        /// Its pages before.
        old_pages: u32 => Rest<0>,
        /// Its pages from here on.
        pages: u32 => Rest<1>,
        /// How long the call took, ns, up to its return at the event's time; 0 if that was not seen.
        took_ns: u32 => Rest<3>,
    } from []
    /// What may be done with a range changes (`mprotect`).
    Protect = "protect" {
        /// The first page's address.
        address: u64 => Touched,
        /// What may be done from here on.
        flags: MapFlags => Whole,
        /// Pages.
        pages: u32 => Rest<0>,
        /// How long the call took, ns, up to its return at the event's time; 0 if that was not seen.
        took_ns: u32 => Rest<3>,
    } from []
    /// The task said what it does with a range (`madvise`), or where memory is to come from (`mbind`, `set_mempolicy`).
    Advise = "advise" {
        /// The first page's address.
        address: u64 => Touched,
        /// The word, as Linux numbers it: 4 `MADV_DONTNEED`, 14 `MADV_HUGEPAGE` …, or [`EventKind::FORBID_HUGE_PAGES`] and its
        /// opposite, [`EventKind::NEEDED_TO_READ`] and its like, or one of [`SaidOfNodes`](super::SaidOfNodes)'s.
        advice: u32 => Whole,
        /// Pages.
        pages: u32 => Rest<0>,
        /// The nodes that it names, a bit for each, where the word is about nodes.
        nodes: u64 => Rest<1>,
        /// How long the call took, ns, up to its return at the event's time; 0 if that was not seen.
        took_ns: u32 => Rest<3>,
    } from []
    /// A range's pages are brought in and stay (`mlock`, 1), stay once they are touched (`MLOCK_ONFAULT`, 2), may go again
    /// (`munlock`, 0). All that is mapped is 4294967295 pages from address 0 (`mlockall`).
    Pin = "pin" {
        /// The first page's address.
        address: u64 => Touched,
        /// 1, 2 or 0.
        held: u32 => Whole,
        /// Pages.
        pages: u32 => Rest<0>,
        /// How long the call took, ns, up to its return at the event's time; 0 if that was not seen.
        took_ns: u32 => Rest<3>,
    } from []
    /// The task's process runs another program from here on, in an address space with nothing in it.
    Exec = "exec" from [
        Tracepoint {
            group: Group::Space,
            name: "sched:sched_process_exec",
            needed: &["old_pid"],
            optional: &[],
            read: |of| Some(Decoded::Executed { old_tid: of.short(0)? }),
        },
    ]
    /// The event's task lets another run that waited (`sched:sched_waking`). The idle task stands for timers, devices and all
    /// else that comes by an interrupt.
    Waking = "waking" {
        /// Who may run.
        task: TaskId => Number,
    } from [
        Tracepoint {
            group: Group::Sched,
            name: "sched:sched_waking",
            needed: &["pid"],
            optional: &[],
            read: |of| Some(Decoded::Waking(of.short(0)?)),
        },
    ]
    /// A range of a file was read through the page cache.
    FileRead = "file_read" {
        /// Its name; the first word tells it from all others.
        file: NameId => Number,
        /// The first page.
        first: u32 => Rest<0>,
        /// Pages.
        pages: u32 => Rest<1>,
    } from [
        Tracepoint {
            group: Group::File,
            name: "filemap:mm_filemap_get_pages",
            needed: &["s_dev", "i_ino", "index", "last_index"],
            optional: &[],
            read: file_read,
        },
    ]
    /// A range of a file was written to in the page cache.
    FileWrite = "file_write" {
        /// Its name.
        file: NameId => Number,
        /// The first page.
        first: u32 => Rest<0>,
        /// Pages.
        pages: u32 => Rest<1>,
    } from [
        Tracepoint { name: "ext4:ext4_da_write_begin", needed: &["dev", "ino", "pos", "len"], ..FILE_WRITE },
        Tracepoint { name: "ext4:ext4_write_begin", needed: &["dev", "ino", "pos", "len"], ..FILE_WRITE },
        Tracepoint { name: "f2fs:f2fs_write_begin", needed: &["dev", "ino", "pos", "len"], ..FILE_WRITE },
        Tracepoint {
            name: "xfs:xfs_file_buffered_write",
            needed: &["dev", "ino", "offset", "count"],
            ..FILE_WRITE
        },
    ]
    /// Pages came into the page cache: what was read or mapped before without this was there when the recording began.
    FileAdd = "file_add" {
        /// Whose pages.
        file: NameId => Number,
        /// The first.
        first: u32 => Rest<0>,
        /// Pages of the folio.
        pages: u32 => Rest<1>,
    } from [
        Tracepoint {
            group: Group::File,
            name: "filemap:mm_filemap_add_to_page_cache",
            needed: &["s_dev", "i_ino", "index"],
            optional: &["order"],
            read: file_add,
        },
    ]
    /// What was there in an address space: when the recording began, or, of private pages that were read and of looks at accessed bits, at
    /// that time.
    Present = "present" {
        /// The first page's address.
        address: u64 => Touched,
        /// What.
        kind: PresentKind => Whole,
        /// Pages.
        pages: u32 => Rest<0>,
        /// Of pages that were read, those that hold nothing but zeros.
        zeros: u32 => Rest<1>,
    } from []
    /// Pages of a file that were in the page cache when the recording began.
    Cached = "cached" {
        /// Whose pages.
        file: NameId => Number,
        /// The first page of the range that this is about.
        first: u32 => Rest<0>,
        /// Pages of the range.
        pages: u32 => Rest<1>,
        /// How many of them were there.
        cached: u32 => Rest<2>,
    } from []
    /// Pages of a mapping whose accessed bits were set again since they were cleared, a moment before. The process had so much CPU
    /// time in between; who was not flushed from a TLB then has no bit.
    Accessed = "accessed" {
        /// The first page's address.
        address: u64 => Touched,
        /// How many of the pages.
        accessed: u32 => Whole,
        /// Pages of the mapping.
        pages: u32 => Rest<0>,
        /// CPU time that the process had between clearing and looking, ns.
        cpu_ns: u32 => Rest<1>,
        /// Those of its pages that were resident.
        resident: u32 => Rest<2>,
        /// Those of these that stood in huge pages, which have one bit for 512.
        huge: u32 => Rest<3>,
    } from []
    /// Pages went out of the page cache on the task's time: their file was cut short or deleted, or memory was short.
    FileDrop = "file_drop" {
        /// Whose pages.
        file: NameId => Number,
        /// The first.
        first: u32 => Rest<0>,
        /// Pages of the folio.
        pages: u32 => Rest<1>,
    } from [
        Tracepoint {
            group: Group::File,
            name: "filemap:mm_filemap_delete_from_page_cache",
            needed: &["s_dev", "i_ino", "index"],
            optional: &["order"],
            read: file_drop,
        },
    ]
    /// The same as [`EventKind::Accessed`] without clearing: the bits that were set again since a round before had cleared them.
    AccessedSince = "accessed_since" {
        /// The first page's address.
        address: u64 => Touched,
        /// How many of the pages.
        accessed: u32 => Whole,
        /// Pages of the mapping.
        pages: u32 => Rest<0>,
        /// CPU time that the process has had since, ns.
        cpu_ns: u32 => Rest<1>,
        /// Those of its pages that were resident.
        resident: u32 => Rest<2>,
        /// Those of these that stood in huge pages.
        huge: u32 => Rest<3>,
    } from []
}

fn page_alloc<'a>(of: &Sample<'_, 'a>) -> Option<Decoded<'a>> {
    let (order, migratetype, gfp) = (of.order(1)?, of.migratetype(2)?, of.gfp(3)?);
    let pfn = if of.number(0)? == u64::MAX { None } else { Some(of.pfn(0)?) };
    Some(Event(requested(pfn, order, migratetype, gfp)))
}

/// What a request for pages is that was given a block, or none.
pub(crate) fn requested(pfn: Option<Pfn>, order: Order, migratetype: MigrateType, gfp: Gfp) -> EventKind {
    match pfn {
        Some(pfn) => EventKind::PageAlloc { pfn, order, migratetype, gfp },
        None => EventKind::PageAllocFailed { order, migratetype, gfp },
    }
}
