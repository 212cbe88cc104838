//! Recordings of what a workload asked of the kernel's memory management: captured, kept, read.
//!
//! `record` captures page, scheduler, fault, slab and lock events with `perf_event_open` while a command runs and
//! writes them as a file of Freehold's own format, which [`Reader`] reads back; `import` makes the same of a
//! `perf.data`. `inspect` says what is in a recording, `slabs` which of its page events are the slab allocator's, and
//! `mask` hides whose it was. `heat` says how often a program's pages are accessed, which no event tells. Only this crate
//! and `host` talk to the system, and neither prints.

pub mod capture;
pub mod error;
pub mod event;
pub mod format;
pub mod gfp;
pub mod heat;
pub mod import;
pub mod inspect;
pub mod mask;
pub mod meta;
pub mod slabs;
mod stream;
pub mod tracefs;

pub use capture::{
    Group, Looking, Progress, RecordOptions, Status, Summary, Target, Via, event_cost, record,
    stop_on_signals,
};
pub use error::{ReadError, RecordError};
pub use event::{
    Call, Decoded, Event, EventKind, FileKey, MapFlags, NameId, NodeCall, NodeFlags, PolicyMode, PresentKind,
    SaidOfNodes, SwitchState, Task,
};
pub use format::{Damage, Events, How, Reader, Writer, Written};
pub use gfp::Gfp;
pub use import::{Imported, import, is_perf_data};
pub use inspect::{Inspection, inspect};
pub use mask::{Mask, mask};
pub use meta::{
    AccessedCost, CacheInfo, Keep, Meta, NodeInfo, RecordingCost, RecordingEnd, Sampled, SamplingStep, Usage,
    ZoneSpan,
};
pub use slabs::{SlabPages, slab_pages};
pub use stream::schema::Schema;
