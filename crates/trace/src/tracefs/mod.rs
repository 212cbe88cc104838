//! What the kernel says about its tracepoints: where fields lie in an event's bytes, and how flags are numbered.
//!
//! Both differ between kernel versions and configurations, so nothing is assumed: `format` reads an event's `format`
//! file, `flags` the table of gfp bits in its last line, `sample` reads an event's bytes by both, `mount` finds the files.

pub mod flags;
pub mod format;
pub mod mount;
pub mod sample;
