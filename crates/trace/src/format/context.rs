//! What an event is compared with: the state of its CPU, fresh in each chunk, so that chunks can be read alone.

use super::codec::Column;
use crate::event::EventKind;
use crate::event::field::Attr;
use mm::TaskId;

/// A CPU's last values.
#[derive(Clone, Debug)]
pub(super) struct Context {
    /// Who ran.
    pub(super) task: TaskId,
    /// The last frame of each kind of page event.
    pub(super) pfn: [u32; Column::PFN_COUNT],
    /// The last address.
    pub(super) address: u64,
    /// The last instruction pointer.
    pub(super) ip: u64,
    /// The attributes that each kind had last.
    pub(super) attr: [Attr; EventKind::COUNT],
}

impl Default for Context {
    fn default() -> Self {
        Self {
            task: TaskId(0),
            pfn: [0; Column::PFN_COUNT],
            address: 0,
            ip: 0,
            attr: [Attr::default(); EventKind::COUNT],
        }
    }
}
