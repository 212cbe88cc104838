//! Pages, handed out and taken back: zones, their free lists, the page lists of CPUs, and the way of a request through them.
//!
//! ```text
//!   request ─▶ alloc_path ─▶ zonelist ─▶ zone ─▶ pcp   (this CPU's lists, under pcp->lock)
//!              free                       │       │ refill, drain
//!                                         │       ▼
//!                                         └─▶ arena ─▶ buddy   (under zone->lock; fallback when a type runs out)
//! ```
//!
//! `frame`, `list`, `pageblock` and `buddy` are the free lists, `arena` divides them among CPUs; `watermark` says what must
//! stay free, `highatomic` what is kept for atomic requests, `zone_price` what low zones keep, `fair` whose turn it is;
//! `daemons` is what no request waits for, `direct` has doors to single mechanisms, for conformance.

pub(crate) mod alloc_path;
pub(crate) mod arena;
pub(crate) mod buddy;
pub(crate) mod daemons;
mod direct;
pub(crate) mod fair;
pub(crate) mod fallback;
pub(crate) mod frame;
mod free;
mod highatomic;
pub(crate) mod list;
pub(crate) mod pageblock;
pub(crate) mod pcp;
pub mod request;
pub mod stat;
pub(crate) mod summary;
pub mod watermark;
pub(crate) mod zone;
pub(crate) mod zone_price;
pub(crate) mod zone_watch;
pub mod zonelist;
