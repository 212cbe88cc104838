//! Freeing pages that can be read back or written out, so that requests find some.

pub(crate) mod events;
