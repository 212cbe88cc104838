//! What this machine says of itself in /proc and /sys.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::meta::{CacheInfo, Meta, NodeInfo};

/// Files of /proc/sys/vm that are commands: reading them does something, or cannot be done.
const COMMANDS: [&str; 3] = ["compact_memory", "drop_caches", "stat_refresh"];

/// CLOCK_MONOTONIC, the clock of event times, in ns.
pub(crate) fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives through the call, which fills it in.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The time of day in ns since 1970.
pub(crate) fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// A description of this machine, without what a recording adds.
pub(crate) fn describe() -> Meta {
    let cpus = online_cpus();
    let zoneinfo = zoneinfo();
    Meta {
        source: concat!("freehold ", env!("CARGO_PKG_VERSION")).into(),
        clock: "monotonic".into(),
        kernel: read("/proc/sys/kernel/osrelease").unwrap_or_default(),
        cpu_model: cpu_model(),
        cpus: cpus.iter().max().map_or(1, |cpu| cpu + 1),
        nodes: nodes(&cpus),
        cache: cache(),
        zones: super::zoneinfo::parse(&zoneinfo),
        zoneinfo,
        vm: vm_settings(),
        ..Meta::default()
    }
}

/// `/proc/zoneinfo`; empty if it cannot be read.
pub(super) fn zoneinfo() -> String {
    fs::read_to_string("/proc/zoneinfo").unwrap_or_default()
}

/// The numbers of the CPUs that are online.
pub(super) fn online_cpus() -> Vec<u32> {
    let list = read("/sys/devices/system/cpu/online").and_then(|list| parse_list(&list));
    list.unwrap_or_else(|| vec![0])
}

/// The files of /proc/sys/vm that are settings, by name.
pub(super) fn vm_settings() -> BTreeMap<String, String> {
    let entries = fs::read_dir("/proc/sys/vm").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter(|name| !COMMANDS.contains(&name.as_str()))
        .filter_map(|name| Some((name.clone(), read(Path::new("/proc/sys/vm").join(name))?)))
        .collect()
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn cpu_model() -> String {
    let text = read("/proc/cpuinfo").unwrap_or_default();
    let value = |key: &str| {
        text.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix(':').map(str::trim))
    };
    // x86 names the model; others may name only the implementer's part number.
    value("model name").or_else(|| value("CPU part")).unwrap_or_default().to_owned()
}

fn nodes(cpus: &[u32]) -> Vec<NodeInfo> {
    let directory = Path::new("/sys/devices/system/node");
    let Some(online) = read(directory.join("online")).and_then(|list| parse_list(&list)) else {
        let cpus = cpus.iter().map(|&cpu| cpu as u16).collect();
        return vec![NodeInfo { node: 0, cpus, distance: vec![10] }];
    };
    online.into_iter().map(|node| node_info(&directory.join(format!("node{node}")), node)).collect()
}

fn node_info(directory: &Path, node: u32) -> NodeInfo {
    let cpus = read(directory.join("cpulist")).and_then(|list| parse_list(&list)).unwrap_or_default();
    let distance = read(directory.join("distance")).unwrap_or_default();
    NodeInfo {
        node: node as u16,
        cpus: cpus.into_iter().map(|cpu| cpu as u16).collect(),
        distance: distance.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect(),
    }
}

/// The cache of the highest level that CPU 0 has.
fn cache() -> Option<CacheInfo> {
    let directory = Path::new("/sys/devices/system/cpu/cpu0/cache");
    let levels = (0..8).filter_map(|index| {
        let directory = directory.join(format!("index{index}"));
        let level: u32 = read(directory.join("level"))?.parse().ok()?;
        let size = read(directory.join("size"))?;
        let kibibytes: u64 = size.strip_suffix('K')?.parse().ok()?;
        let shared_by = parse_list(&read(directory.join("shared_cpu_list"))?)?.len() as u32;
        Some((level, CacheInfo { bytes: kibibytes << 10, shared_by }))
    });
    levels.max_by_key(|(level, _)| *level).map(|(_, cache)| cache)
}

/// `0-3,8,10-11`
fn parse_list(list: &str) -> Option<Vec<u32>> {
    let mut numbers = vec![];
    for range in list.split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if last > 1 << 16 {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(parse_list("0-3,8,10-11"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(parse_list(""), Some(vec![]));
        assert_eq!(parse_list("0-x"), None);
        assert_eq!(parse_list("0-4294967295"), None);
    }

    #[test]
    fn this_machine_can_be_described_to_mm() {
        let meta = describe();
        assert!(meta.cpus > 0 && !meta.kernel.is_empty() && !meta.vm.is_empty());
        let topology = meta.topology().unwrap();
        assert_eq!(topology.nodes.len(), meta.nodes.len());
        assert!(now_ns() > 0 && unix_ns() > 1_600_000_000_000_000_000);
    }
}
