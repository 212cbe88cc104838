//! Files that a scene writes to: settings, groups and their limits, and what the kernel is told to do at once.

use mm::{GroupId, Limit, Node};

use super::play::{At, Player, Stop};
use super::process::Process;
use crate::script::names::PAGE;
use crate::script::words::size;

/// What was set that is no knob's.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) has_disk: bool,
    pub(super) has_zram: bool,
    /// When the machine is out of memory, whoever asked for it goes, not the largest.
    pub(super) kills_who_asks: bool,
    /// Files that nothing here stands for.
    pub(super) unplayed: Vec<String>,
}

/// Where groups are.
const GROUPS: &str = "/sys/fs/cgroup/";
/// What writing a group's limit counts as, in operations; a bound for how long a play may last, and no cost that a kernel has.
const LIMIT_STEPS: u64 = 500;

impl Player {
    pub(super) fn set(
        &mut self,
        process: &mut Process,
        (file, value): (&str, &str),
        at: At,
    ) -> Result<(), Stop> {
        let number = value.trim().parse::<i64>();
        let nodes = 0..self.machine.mm.topology().nodes.len() as u16;
        if let Some((group, knob)) = file.strip_prefix(GROUPS).and_then(|rest| rest.split_once("/memory.")) {
            let bytes = (value.trim() != "max").then(|| size(value.trim()));
            return self.limit(process, (Some(group), knob, bytes), at);
        }
        match (file, number) {
            ("/proc/sys/vm/compact_memory", Ok(_)) => {
                nodes.for_each(|node| self.machine.mm.compaction().compact_node(Node(node)));
            }
            ("/proc/sys/vm/drop_caches", Ok(what)) => {
                if what & 1 != 0 {
                    self.drop_caches(at)?;
                }
            }
            ("/proc/sys/vm/oom_kill_allocating_task", Ok(set)) => {
                self.machine.settings.borrow_mut().kills_who_asks = set != 0;
            }
            ("/proc/self/oom_score_adj", Ok(score @ -1000..=1000)) => process.score = score,
            ("/proc/sys/vm/stat_refresh", _) => {}
            // The flusher of a scene writes nothing for its age.
            ("/proc/sys/vm/dirty_writeback_centisecs" | "/proc/sys/vm/dirty_expire_centisecs", _) => {
                self.leave_unplayed(file);
            }
            (file, number) => {
                let node = file.strip_prefix("/sys/devices/system/node/node");
                let node = node.and_then(|rest| rest.strip_suffix("/compact")?.parse().ok());
                match node.filter(|node| nodes.contains(node)) {
                    Some(node) if number.is_ok() => self.machine.mm.compaction().compact_node(Node(node)),
                    _ => self.set_knob((file, value), at),
                }
            }
        }
        Ok(())
    }

    /// What cannot be read as a value of its file is refused, and what nothing stands for is told.
    fn set_knob(&mut self, (file, value): (&str, &str), at: At) {
        let is_set = self.machine.set(file, value);
        if !is_set && super::machine::has_knob(file) {
            self.refused(at, "set");
        } else if !is_set {
            self.leave_unplayed(file);
        }
    }

    fn leave_unplayed(&self, file: &str) {
        let unplayed = &mut self.machine.settings.borrow_mut().unplayed;
        let file: String = file.chars().filter(|letter| !letter.is_control()).take(120).collect();
        if !unplayed.contains(&file) && unplayed.len() < 16 {
            unplayed.push(file);
        }
    }

    /// Moves to a group, which is made if it is not there.
    pub(super) fn join_group(&mut self, process: &mut Process, name: &str, at: At) -> Result<(), Stop> {
        // Groups below others have no memory controller: what is in them is charged to the one above.
        let name = name.trim_matches('/').split('/').next().unwrap_or("");
        let memcg = self.machine.mm.memcg();
        let group = if name.is_empty() || name == "." {
            Some(GroupId::ROOT)
        } else {
            memcg.group(GroupId::ROOT, name)
        };
        process.group = group.ok_or_else(|| at.stop("too many groups"))?;
        memcg.join(process.task, process.group);
        Ok(())
    }

    /// Writes a group's file, by default the own group's. `None`: `max`.
    pub(super) fn limit(
        &mut self,
        process: &mut Process,
        (group, knob, bytes): (Option<&str>, &str, Option<u64>),
        at: At,
    ) -> Result<(), Stop> {
        let memcg = self.machine.mm.memcg();
        let called =
            |name: &str| memcg.all().find(|&group| group != GroupId::ROOT && memcg.name(group) == name);
        let group = match group {
            None => Some(process.group).filter(|&group| group != GroupId::ROOT),
            Some(name) => called(name.trim_matches('/')),
        };
        // The root has no such files.
        let Some(group) = group else {
            self.refused(at, "limit");
            return Ok(());
        };
        // Where nothing can go, reclaim goes through the group's lists again and again before it gives up.
        self.step(at, LIMIT_STEPS)?;
        let pages = bytes.map_or(u64::MAX, |bytes| bytes / PAGE);
        if let Some(limit) = Limit::ALL.into_iter().find(|limit| limit.name() == knob) {
            return self.set_limit(process, group, (limit, pages));
        }
        if knob == "reclaim" {
            if !memcg.reclaim(group, u32::try_from(pages).unwrap_or(u32::MAX)) {
                self.refused(at, "limit");
            }
        } else {
            self.set_knob((&format!("memory.{knob}"), ""), at);
        }
        Ok(())
    }
}
