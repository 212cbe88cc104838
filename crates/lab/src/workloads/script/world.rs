//! Processes of a script, as they come and go, and who of them goes when memory is out (`oom_badness`, `select_bad_process`: pages that a
//! process has, in memory and in swap, and its page tables).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use mm::vm::{AddressSpace, FileId};
use mm::{GroupEvent, GroupId, Nanos, TaskId};
use sim::{SimMachine, WaitQueue};

use super::Disk;
use super::player::End;
use crate::stage::Stage;

/// What is counted besides.
pub(super) const NOTES: [&str; 3] = [DONE, KILLED, REFUSED];
pub(super) const DONE: &str = "script_done";
pub(super) const KILLED: &str = "script_killed";
pub(super) const REFUSED: &str = "script_refused";

/// Who had somebody killed looks so often whether that has gone.
const LOOKS_EVERY: Nanos = Nanos(1_000_000);

/// What all processes share.
pub(super) struct World {
    pub(super) stage: Rc<Stage>,
    pub(super) disk: Disk,
    /// Of files, how often they were read by calls, and how often nobody had to wait for that.
    reads: RefCell<BTreeMap<FileId, Reads>>,
    /// Those that live, by task.
    live: RefCell<BTreeMap<TaskId, Rc<Life>>>,
    /// Of groups, how often each could not be charged.
    ooms: RefCell<BTreeMap<GroupId, u64>>,
}

/// Calls that read a file.
#[derive(Clone, Copy, Default)]
pub(super) struct Reads {
    pub(super) all: u64,
    /// All that was asked for was there.
    pub(super) hits: u64,
}

/// A process.
pub(super) struct Life {
    pub(super) task: TaskId,
    pub(super) space: Arc<AddressSpace<SimMachine>>,
    pub(super) group: Cell<GroupId>,
    pub(super) is_killed: Cell<bool>,
    has_ended: Cell<bool>,
    /// Children that live, and who waits for one to end.
    children: Cell<u32>,
    ended: WaitQueue,
    parent: Option<Rc<Life>>,
}

impl Life {
    /// Waits until `child` has ended, or all children (`None`).
    pub(super) fn wait_for(&self, machine: &SimMachine, child: Option<&Self>) {
        machine.wait_until(&self.ended, || {
            child.map_or(self.children.get() == 0, |child| child.has_ended.get()) || self.is_killed.get()
        });
    }
}

impl World {
    pub(super) fn new(stage: &Rc<Stage>, disk: Disk) -> Rc<Self> {
        Rc::new(Self {
            stage: Rc::clone(stage),
            disk,
            reads: RefCell::default(),
            live: RefCell::default(),
            ooms: RefCell::default(),
        })
    }

    /// A call read of `file`.
    pub(super) fn count_read(&self, file: FileId, was_there: bool) {
        let mut reads = self.reads.borrow_mut();
        let reads = reads.entry(file).or_default();
        reads.all += 1;
        reads.hits += u64::from(was_there);
    }

    /// What was read of `file` so far.
    pub(super) fn reads_of(&self, file: FileId) -> Reads {
        self.reads.borrow().get(&file).copied().unwrap_or_default()
    }

    /// `task` begins in `space`, as a child of `parent`, in whose group it is.
    pub(super) fn begin(
        &self,
        task: TaskId,
        space: Arc<AddressSpace<SimMachine>>,
        parent: Option<&Rc<Life>>,
    ) -> Rc<Life> {
        let stage = &self.stage;
        stage.has_space(&space);
        let group = match parent {
            Some(parent) => parent.group.get(),
            None => stage.group(super::GROUP),
        };
        if group != GroupId::ROOT {
            stage.mm.memcg().join(task, group);
        }
        if let Some(parent) = parent {
            parent.children.set(parent.children.get() + 1);
        }
        let life = Rc::new(Life {
            task,
            space,
            group: Cell::new(group),
            is_killed: Cell::default(),
            has_ended: Cell::default(),
            children: Cell::default(),
            ended: WaitQueue::default(),
            parent: parent.cloned(),
        });
        self.live.borrow_mut().insert(task, Rc::clone(&life));
        life
    }

    /// `life` is over: its memory goes, and who waits for it goes on.
    pub(super) fn end(&self, life: &Life) {
        let mm = &self.stage.mm;
        mm.spaces().exit(&life.space);
        mm.memcg().leave(life.task);
        mm.pages().forget_task(life.task);
        self.live.borrow_mut().remove(&life.task);
        life.has_ended.set(true);
        if let Some(parent) = &life.parent {
            parent.children.set(parent.children.get() - 1);
            self.stage.machine().notify_all(&parent.ended);
        }
    }

    /// There is no memory for `life`: the largest process goes, of the group which is full if it is one. Returns when that has
    /// gone.
    ///
    /// # Errors
    /// It was `life` itself.
    pub(super) fn out_of_memory(&self, life: &Life) -> Result<(), End> {
        let full = self.full_group();
        self.kill_largest(life, full)
    }

    /// The group that could not be charged just now; `None`: it was the machine's memory that was out.
    fn full_group(&self) -> Option<GroupId> {
        let memcg = self.stage.mm.memcg();
        let counts = memcg.all().map(|group| (group, memcg.events(group, GroupEvent::Oom)));
        let counts: BTreeMap<GroupId, u64> = counts.collect();
        let before = self.ooms.replace(counts);
        let more = |(group, count): (&GroupId, &u64)| {
            (*count > before.get(group).copied().unwrap_or(0)).then_some(*group)
        };
        self.ooms.borrow().iter().find_map(more)
    }

    /// Whether anybody is in `group`.
    pub(super) fn has_process(&self, group: GroupId) -> bool {
        self.live.borrow().values().any(|life| life.group.get() == group)
    }

    /// The largest process of `group`, or of all, goes; `life` waits for that.
    ///
    /// # Errors
    /// It was `life` itself, or there is nobody else to wait for.
    pub(super) fn kill_largest(&self, life: &Life, group: Option<GroupId>) -> Result<(), End> {
        let Some(victim) = self.largest(group).filter(|victim| victim.task != life.task) else {
            self.kill(life);
            return Err(End::Killed);
        };
        self.kill(&victim);
        while !victim.has_ended.get() && !life.is_killed.get() {
            self.stage.machine().sleep(LOOKS_EVERY);
        }
        if life.is_killed.get() { Err(End::Killed) } else { Ok(()) }
    }

    /// The largest process of all goes, for kswapd asks for it; returns when that has gone.
    pub(super) fn kill_for_kswapd(&self) {
        let Some(victim) = self.largest(None) else { return };
        self.kill(&victim);
        while !victim.has_ended.get() {
            self.stage.machine().sleep(LOOKS_EVERY);
        }
    }

    /// The largest process of `group`, or of all.
    fn largest(&self, group: Option<GroupId>) -> Option<Rc<Life>> {
        let size = |life: &Life| {
            let space = &life.space;
            space.resident_pages() + space.swapped_pages() + space.table_pages()
        };
        let live = self.live.borrow();
        let may_go = live.values().filter(|other| group.is_none_or(|group| other.group.get() == group));
        may_go.max_by_key(|other| (size(other), other.task)).cloned()
    }

    /// `life` has to end; what it does next it does not.
    fn kill(&self, life: &Life) {
        if life.is_killed.replace(true) {
            return;
        }
        self.stage.count_kill(life.group.get());
        self.stage.mm.pages().kill(life.task);
        self.stage.machine().notify_all(&life.ended);
        self.stage.machine().unblock(life.task);
    }
}
