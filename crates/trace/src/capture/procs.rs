//! The tasks that exist when a recording starts, from /proc.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::event::Task;

/// A process as /proc shows it.
struct Process {
    pid: u32,
    parent: u32,
    tasks: Vec<Task>,
}

/// All tasks of the system; `root` and its descendants, if given, are the workload.
pub(super) fn snapshot(root: Option<u32>) -> Vec<Task> {
    let processes: Vec<Process> = numbers(Path::new("/proc")).filter_map(read_process).collect();
    let workload = root.map(|root| descendants(root, &processes)).unwrap_or_default();
    let mut tasks: Vec<Task> = vec![Task { name: "swapper".into(), ..Task::default() }];
    for process in processes {
        let in_workload = workload.contains(&process.pid);
        tasks.extend(process.tasks.into_iter().map(|task| Task { in_workload, ..task }));
    }
    tasks
}

/// Whether a process exists and has not ended.
pub(super) fn is_alive(pid: u32) -> bool {
    parent_and_state(pid).is_some_and(|(_, state)| state != 'Z')
}

fn numbers(directory: &Path) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn read_process(pid: u32) -> Option<Process> {
    let (parent, _) = parent_and_state(pid)?;
    let directory = format!("/proc/{pid}/task");
    let tasks = numbers(Path::new(&directory)).filter_map(|tid| {
        let name = fs::read(format!("{directory}/{tid}/comm")).ok()?;
        let name = String::from_utf8_lossy(&name).trim_end().to_owned();
        Some(Task { pid, tid, name, in_workload: false })
    });
    Some(Process { pid, parent, tasks: tasks.collect() })
}

/// From `PID (NAME) STATE PARENT …`; the name may hold anything, parentheses too.
fn parent_and_state(pid: u32) -> Option<(u32, char)> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((fields.next()?.parse().ok()?, state))
}

fn descendants(root: u32, processes: &[Process]) -> BTreeSet<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for process in processes {
        children.entry(process.parent).or_default().push(process.pid);
    }
    let mut found = BTreeSet::new();
    let mut next = vec![root];
    while let Some(pid) = next.pop() {
        if found.insert(pid) {
            next.extend(children.get(&pid).into_iter().flatten());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_finds_itself_and_its_threads() {
        let me = std::process::id();
        let tasks = snapshot(Some(me));
        let own: Vec<_> = tasks.iter().filter(|task| task.pid == me).collect();
        assert!(own.iter().any(|task| task.tid == me));
        assert!(own.iter().all(|task| task.in_workload && !task.name.is_empty()));
        assert!(tasks.iter().any(|task| !task.in_workload));
        assert!(is_alive(me));
        assert!(!is_alive(u32::MAX));
    }
}
