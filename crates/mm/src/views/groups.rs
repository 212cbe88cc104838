//! A group's statistics, as `memory.stat` and the files beside it have them.

use super::{ViewsDoor, ViewsGround};
use crate::ground::Machine;
use crate::lru::{LruList, VecEvent};
use crate::memcg::GroupId;
use crate::pages::Counters;

impl<M: Machine, G: ViewsGround<M>> ViewsDoor<'_, M, G> {
    /// What is counted of `group` and those below it, in base pages, under the names of `memory.stat`. Who reads it brings what
    /// reclaim sees up to date, as in the kernel.
    pub fn memory_stat(self, group: GroupId) -> Counters {
        self.lru().flush_stats(group);
        let mut counters = Counters::default();
        for list in LruList::ALL {
            let name = list.name().trim_start_matches("nr_");
            counters.add(name, self.lru().group_list_size(group, list));
        }
        let locked = self.unevictable().group_size(group);
        if locked > 0 {
            counters.add("unevictable", locked);
        }
        for event in VecEvent::ALL {
            let count = self.lru().counted(group, event);
            match event {
                VecEvent::ScanAnon | VecEvent::ScanFile => counters.add("pgscan", count),
                VecEvent::StealAnon | VecEvent::StealFile => counters.add("pgsteal", count),
                event => counters.add(event.name(), count),
            }
        }
        counters
    }
}
