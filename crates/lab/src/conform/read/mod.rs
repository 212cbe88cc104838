//! What kernels said of themselves and did: captures, traces and the texts beside them, read and checked.

pub(in crate::conform) mod attributes;
pub(in crate::conform) mod beside;
pub(in crate::conform) mod capture;
pub(in crate::conform) mod sections;
pub(in crate::conform) mod slab_cache;
pub(in crate::conform) mod slab_nodes;
pub(in crate::conform) mod slab_trace;
pub(in crate::conform) mod trace_csv;
pub(in crate::conform) mod zoneinfo;
