//! Who goes where kswapd asks for it (`lru_gen.min_ttl_ms`): workloads of programs say how, a daemon has it done.

use std::cell::RefCell;
use std::rc::Rc;

use mm::{GroupEvent, GroupId};

use super::Stage;
use crate::measurements::OOM_KILL;

/// How the largest program is killed; nothing where there are no programs.
#[derive(Default)]
pub(super) struct Killer(RefCell<Option<Rc<dyn Fn()>>>);

impl Stage {
    /// From now on `kill` is called where somebody is to go: it takes its choice, and returns when that is gone.
    pub(crate) fn kills_by(&self, kill: impl Fn() + 'static) {
        self.killer.0.replace(Some(Rc::new(kill)));
    }

    /// The largest program goes.
    pub(crate) fn kill_largest(&self) {
        let kill = self.killer.0.borrow().clone();
        if let Some(kill) = kill {
            kill();
        }
    }

    /// A program of `group` is killed for want of memory: counted for its group, and in the run.
    pub(crate) fn count_kill(&self, group: GroupId) {
        self.mm.memcg().count(group, GroupEvent::OomKill);
        self.tally.note(OOM_KILL, 1);
    }
}
