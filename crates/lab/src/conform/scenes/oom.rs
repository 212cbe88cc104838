//! When memory is out, the largest process goes (`oom_badness`, `select_bad_process`): pages that it has, in memory and in swap, and
//! its page tables. In a group's name the largest of that group; whoever asked tries again, unless it was the one.

use std::collections::BTreeMap;

use mm::vm::FaultError;
use mm::{AllocError, GroupEvent, GroupId, Limit, TaskId};

use super::play::{At, Player, Stop};
use super::process::Process;

/// Less than this, and a process is never taken.
const NEVER: i64 = -1000;

/// Why an access failed.
#[derive(Debug)]
pub(super) enum Failure {
    Memory(AllocError),
    /// SIGSEGV.
    Address,
}

impl From<FaultError> for Failure {
    fn from(error: FaultError) -> Self {
        match error {
            FaultError::Alloc(error) => Self::Memory(error),
            FaultError::NoRegion(_) | FaultError::Forbidden(_) => Self::Address,
        }
    }
}

impl From<AllocError> for Failure {
    fn from(error: AllocError) -> Self {
        Self::Memory(error)
    }
}

impl Player {
    /// Does what needs memory, and where there is none has a process killed and does it again.
    pub(super) fn until_done(
        &mut self,
        process: &mut Process,
        at: At,
        mut does: impl FnMut(&Self, &mut Process) -> Result<(), Failure>,
    ) -> Result<(), Stop> {
        loop {
            match does(self, process) {
                Ok(()) => return Ok(()),
                Err(Failure::Address) => return Err(Stop::Signal("it touched what was not its own")),
                Err(Failure::Memory(AllocError::OutOfMemory)) => self.out_of_memory(process, at)?,
                Err(Failure::Memory(error)) => return Err(at.stop(error)),
            }
        }
    }

    /// A process goes: the largest of those that are in the group which is full, or of all.
    fn out_of_memory(&mut self, process: &mut Process, at: At) -> Result<(), Stop> {
        let full = self.full_group();
        if full.is_none() && self.machine.settings.borrow().kills_who_asks {
            return Err(self.kill(process.task, process.group));
        }
        match self.largest(process, full) {
            None => Err(at.stop("memory is out, and no process may be killed")),
            Some(victim) => self.kill_one(process, victim),
        }
    }

    /// The largest process of all goes where kswapd has asked for it, whoever runs.
    pub(super) fn kill_for_kswapd(&mut self, process: &Process) -> Result<(), Stop> {
        if !self.machine.daemons.take_kill() {
            return Ok(());
        }
        match self.largest(process, None) {
            None => Err(Stop::Here("kswapd wants a process killed, and none may be".into())),
            Some(victim) => self.kill_one(process, victim),
        }
    }

    /// `victim` goes, which may be `process` itself.
    fn kill_one(&mut self, process: &Process, (task, group): (TaskId, GroupId)) -> Result<(), Stop> {
        let stop = self.kill(task, group);
        if task == process.task {
            return Err(stop);
        }
        if let Some(killed) = self.processes.remove(&task) {
            self.end(&killed);
        }
        Ok(())
    }

    /// The group that could not be charged just now; `None`: it was the machine's memory that was out.
    fn full_group(&mut self) -> Option<GroupId> {
        let memcg = self.machine.mm.memcg();
        let counts = memcg.all().map(|group| (group, memcg.events(group, GroupEvent::Oom)));
        let counts: BTreeMap<GroupId, u64> = counts.collect();
        let before = std::mem::replace(&mut self.ooms, counts);
        let more = |(group, count): (&GroupId, &u64)| {
            (*count > before.get(group).copied().unwrap_or(0)).then_some(*group)
        };
        self.ooms.iter().find_map(more)
    }

    /// The process with most, the last of several with as much. Groups of scenes lie beside each other.
    fn largest(&self, process: &Process, within: Option<GroupId>) -> Option<(TaskId, GroupId)> {
        let mm = &self.machine.mm;
        let all = match within.map(|group| mm.memcg().limit(group, Limit::Max)) {
            Some(pages) if pages < u64::MAX => pages,
            _ => {
                let memory: u64 = mm.zones().iter().map(|zone| u64::from(zone.managed())).sum();
                memory + u64::from(mm.spaces().swap_pages().1)
            }
        };
        let points = |this: &Process| {
            let space = &this.space;
            let has = space.resident_pages() + space.swapped_pages() + space.table_pages();
            has as i64 + this.score * (all / 1000) as i64
        };
        let processes = self.processes.values().chain([process]);
        let may_go = processes.filter(|this| this.score > NEVER);
        let may_go = may_go.filter(|this| within.is_none_or(|group| this.group == group));
        may_go.max_by_key(|this| (points(this), this.task.0)).map(|this| (this.task, this.group))
    }

    /// Counts that `task` is killed.
    fn kill(&mut self, task: TaskId, group: GroupId) -> Stop {
        self.kills += 1;
        self.machine.mm.memcg().count(group, GroupEvent::OomKill);
        self.note_end(task, "it was killed, for memory was out");
        Stop::Killed
    }

    /// Writes a limit of a group; while it has more than its `max`, its processes go.
    pub(super) fn set_limit(
        &mut self,
        process: &mut Process,
        group: GroupId,
        (limit, pages): (Limit, u64),
    ) -> Result<(), Stop> {
        while !self.machine.mm.memcg().set_limit(group, limit, pages) {
            self.full_group();
            match self.largest(process, Some(group)) {
                None => break,
                Some(victim) => self.kill_one(process, victim)?,
            }
        }
        self.full_group();
        Ok(())
    }
}
