//! What every room stands on: names of things (`ids`, `knob`), the seam to the machine (`machine`, and `bare`, the simplest one),
//! what there is of it (`topology`), mutual exclusion and atomics (`sync`), tables that are made once (`once`, `zeroed`),
//! kernel versions. Nothing here knows what memory management is.

pub mod bare;
pub mod ids;
pub(crate) mod knob;
pub mod machine;
pub(crate) mod once;
pub mod sync;
pub mod topology;
pub mod version;
pub(crate) mod zeroed;
