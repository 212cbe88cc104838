//! What people look at: tables and histograms for a terminal, and a page for a browser.
//!
//! Nothing here measures or decides. Every function takes measurements and gives back text; the caller prints it. The
//! formats are those that linux-mm reads: bcc's funclatency ([`histogram`]), mmtests' compare-kernels ([`mmtests`]),
//! lkp's ([`lkp`]), vmstat's names ([`counters`]). [`replay`] is the whole account of a document on a terminal,
//! [`html`] the same as one self-contained file.

pub mod apply;
pub mod bench;
pub mod bounds;
pub mod cgroups;
pub mod changes;
pub mod conform;
pub mod contention;
pub mod counters;
pub mod csv;
mod effect;
pub mod experiment;
pub mod experiments;
pub mod explain;
pub mod findings;
pub mod forks;
pub mod heading;
pub mod heat;
pub mod histogram;
pub mod how_wrong;
pub mod html;
pub mod inspect;
pub mod interval;
pub mod knob_page;
pub mod knob_uses;
pub mod knobs;
pub mod labels;
pub mod latency;
pub mod lkp;
pub mod locks;
pub mod machines;
pub mod memory;
pub mod mmtests;
pub mod monitor;
pub mod nearest;
pub mod policies;
pub mod programs_page;
pub mod proof;
pub mod published;
pub mod recordings;
pub mod replay;
pub mod results;
pub mod sampled;
pub mod samples;
pub mod shortfall;
pub mod style;
mod table;
pub mod to_set;
pub mod tune;
pub mod units;
pub mod validate;
pub mod validate_program;
pub mod verdict;
pub mod why;
pub mod zonelists;

pub use style::Style;
