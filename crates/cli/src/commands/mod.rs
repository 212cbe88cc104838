//! One file per command.

pub(crate) mod apply;
mod ask_tell;
pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod conform;
pub(crate) mod evidence;
pub(crate) mod fault_loop;
pub(crate) mod heat;
pub(crate) mod inspect;
pub(crate) mod knobs;
pub(crate) mod lab;
pub(crate) mod machines;
pub(crate) mod policies;
pub(crate) mod record;
pub(crate) mod reference;
pub(crate) mod replay;
pub(crate) mod schema;
pub(crate) mod subject;
pub(crate) mod sweep;
pub(crate) mod tour;
pub(crate) mod tune;
pub(crate) mod validate;
mod validate_program;
pub(crate) mod why;
