//! What lies around a recording: how memory management is set, what the kernel counted, what the recorded program used.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::procs;
use crate::meta::Usage;

/// Folders whose small files are settings, with those below.
const FOLDERS: [&str; 3] =
    ["/sys/kernel/mm/transparent_hugepage", "/sys/kernel/mm/lru_gen", "/sys/kernel/mm/ksm"];
/// Single settings. Those of the scheduler are in debugfs since Linux 5.13.
const FILES: [&str; 11] = [
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps",
    "/sys/kernel/mm/numa/demotion_enabled",
    "/sys/kernel/mm/swap/vma_ra_enabled",
    "/proc/cmdline",
    "/proc/swaps",
    "/sys/block/zram0/comp_algorithm",
    "/sys/module/zswap/parameters/enabled",
    "/sys/module/zswap/parameters/compressor",
    "/sys/module/zswap/parameters/max_pool_percent",
    "/sys/module/zswap/parameters/accept_threshold_percent",
];
/// Of a cgroup: what bounds its memory and where it may be.
const CGROUP_FILES: [&str; 14] = [
    "memory.min",
    "memory.low",
    "memory.high",
    "memory.max",
    "memory.swap.max",
    "memory.zswap.max",
    "cpu.max",
    "cpuset.cpus.effective",
    "cpuset.mems.effective",
    "memory.limit_in_bytes",
    "memory.soft_limit_in_bytes",
    "memory.memsw.limit_in_bytes",
    "cpuset.cpus",
    "cpuset.mems",
];
/// Folders in which settings of balancing lie in debugfs.
const SCHED_DEBUG: &str = "/sys/kernel/debug/sched/numa_balancing";
/// Of a guest: where its balloons are. What they negotiated with the host says whether free memory is given back (bit 5 of `features`).
const BALLOONS: &str = "/sys/bus/virtio/drivers/virtio_balloon";
/// File systems whose pages are memory, to be swapped where they are to go.
const MEMORY_FILE_SYSTEMS: [&str; 2] = ["tmpfs", "devtmpfs"];
/// A longer file is no setting.
const SETTING_LEN_MAX: usize = 4096;
/// No tree of settings is deeper.
const DEPTH_MAX: u32 = 3;
/// Ticks of CPU time that the kernel tells programs of, a second.
const TICKS: u64 = 100;

/// How memory management is set, for process `pid`: files by path, in the kernel's text.
pub(super) fn settings(pid: u32) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for folder in FOLDERS.iter().chain([&SCHED_DEBUG]) {
        add_folder(&mut found, Path::new(folder), DEPTH_MAX);
    }
    for file in FILES {
        add_file(&mut found, Path::new(file));
    }
    let devices = fs::read_dir("/sys/class/bdi").into_iter().flatten().flatten();
    for device in devices {
        add_file(&mut found, &device.path().join("read_ahead_kb"));
    }
    for balloon in fs::read_dir(BALLOONS).into_iter().flatten().flatten() {
        add_file(&mut found, &balloon.path().join("features"));
    }
    let swaps = found.get("/proc/swaps").cloned().unwrap_or_default();
    for device in swap_devices(&swaps) {
        add_queue(&mut found, &device);
    }
    for folder in cgroups(pid) {
        for file in CGROUP_FILES {
            add_file(&mut found, &folder.join(file));
        }
    }
    found
}

/// The disks that what /proc/swaps names is on, by their numbers: `254:0`.
fn swap_devices(swaps: &str) -> BTreeSet<String> {
    let names = swaps.lines().skip(1).filter_map(|line| line.split_ascii_whitespace().next());
    let found = names.filter_map(|name| {
        let about = fs::metadata(name).ok()?;
        let number = if about.file_type().is_block_device() { about.rdev() } else { about.dev() };
        Some(format!("{}:{}", libc::major(number), libc::minor(number)))
    });
    found.collect()
}

/// Whether the disk `device` turns; a partition's is that of the disk.
fn add_queue(found: &mut BTreeMap<String, String>, device: &str) {
    let folder = Path::new("/sys/dev/block").join(device);
    let Ok(folder) = folder.canonicalize() else { return };
    let of_disk = [Some(folder.as_path()), folder.parent()].into_iter().flatten();
    if let Some(queue) = of_disk.map(|at| at.join("queue/rotational")).find(|file| file.exists()) {
        add_file(found, &queue);
    }
}

fn add_folder(found: &mut BTreeMap<String, String>, folder: &Path, depth: u32) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => add_folder(found, &path, depth - 1),
            Ok(kind) if kind.is_file() => add_file(found, &path),
            _ => {}
        }
    }
}

fn add_file(found: &mut BTreeMap<String, String>, path: &Path) {
    if let (Some(name), Ok(text)) = (path.to_str(), fs::read_to_string(path)) {
        if text.len() <= SETTING_LEN_MAX {
            found.insert(name.to_owned(), text.trim().to_owned());
        }
    }
}

/// The folders of the cgroups that a process is in, and of those above, which bound it too: of version 2, and of version 1's
/// memory and cpuset.
fn cgroups(pid: u32) -> Vec<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    text.lines().flat_map(cgroup_folders).collect()
}

/// Of a line `ID:CONTROLLERS:PATH`.
fn cgroup_folders(line: &str) -> Vec<PathBuf> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return vec![] };
    let names = ["memory", "cpuset"];
    let places: Vec<String> = if controllers.is_empty() {
        ["", "/unified"].map(|place| format!("/sys/fs/cgroup{place}")).into()
    } else {
        let names = names.into_iter().filter(|name| controllers.split(',').any(|of| of == *name));
        names.map(|name| format!("/sys/fs/cgroup/{name}")).collect()
    };
    let relative = Path::new(path.trim_start_matches('/'));
    let above = || relative.ancestors();
    places.iter().flat_map(|place| above().map(|of| Path::new(place).join(of))).collect()
}

/// Devices of file systems that are in memory, those that process `pid`, the first process and this one have mounted.
pub(super) fn memory_devices(pid: u32) -> Vec<String> {
    let mounts = [pid, 1, std::process::id()].map(|pid| format!("/proc/{pid}/mountinfo"));
    let texts = mounts.iter().filter_map(|path| fs::read_to_string(path).ok());
    let devices: BTreeSet<String> =
        texts.flat_map(|text| text.lines().filter_map(memory_device).collect::<Vec<_>>()).collect();
    devices.into_iter().collect()
}

/// The device of a line of mountinfo, `ID PARENT DEVICE ROOT PLACE OPTIONS … - TYPE SOURCE OPTIONS`, if what is mounted is in memory.
fn memory_device(line: &str) -> Option<String> {
    let (mount, file_system) = line.split_once(" - ")?;
    let kind = file_system.split(' ').next()?;
    MEMORY_FILE_SYSTEMS.contains(&kind).then(|| mount.split(' ').nth(2).map(str::to_owned))?
}

/// /proc/vmstat.
pub(super) fn counters() -> BTreeMap<String, u64> {
    let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.filter_map(|(name, value)| Some((name.to_owned(), value.trim().parse().ok()?))).collect()
}

/// What wait4(2) says of a command and its descendants.
pub(super) fn of_rusage(usage: &libc::rusage) -> Usage {
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    Usage {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        peak_rss_pages: (usage.ru_maxrss as u64) << 10 >> mm::ids::PAGE_SHIFT,
    }
}

/// What a process has used since it began, by /proc; `None` if it is gone.
pub(super) fn of_process(pid: u32) -> Option<Usage> {
    let stat = procs::stat_figures(pid)?;
    let figure = |index: usize| stat.get(index).copied().unwrap_or(0);
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB"));
    Some(Usage {
        minor_faults: figure(MINFLT) + figure(CMINFLT),
        major_faults: figure(MAJFLT) + figure(CMAJFLT),
        user_ns: (figure(UTIME) + figure(CUTIME)) * (1_000_000_000 / TICKS),
        system_ns: (figure(STIME) + figure(CSTIME)) * (1_000_000_000 / TICKS),
        peak_rss_pages: peak.and_then(|peak| peak.trim().parse::<u64>().ok()).unwrap_or(0) << 10
            >> mm::ids::PAGE_SHIFT,
    })
}

/// Places of figures after the state in /proc/PID/stat.
const MINFLT: usize = 6;
const CMINFLT: usize = 7;
const MAJFLT: usize = 8;
const CMAJFLT: usize = 9;
const UTIME: usize = 10;
const STIME: usize = 11;
const CUTIME: usize = 12;
const CSTIME: usize = 13;

/// What was used between two looks.
pub(super) fn since(before: &Usage, now: &Usage) -> Usage {
    Usage {
        user_ns: now.user_ns.saturating_sub(before.user_ns),
        system_ns: now.system_ns.saturating_sub(before.system_ns),
        minor_faults: now.minor_faults.saturating_sub(before.minor_faults),
        major_faults: now.major_faults.saturating_sub(before.major_faults),
        peak_rss_pages: now.peak_rss_pages,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroups_of_both_versions_are_found_with_those_above() {
        let folders = cgroup_folders("0::/system.slice/redis.service");
        assert_eq!(folders[0], Path::new("/sys/fs/cgroup/system.slice/redis.service"));
        assert_eq!(folders[1], Path::new("/sys/fs/cgroup/system.slice"));
        assert_eq!(folders[2], Path::new("/sys/fs/cgroup/"));
        let folders = cgroup_folders("7:memory:/a");
        assert_eq!(folders, [Path::new("/sys/fs/cgroup/memory/a"), Path::new("/sys/fs/cgroup/memory/")]);
        assert!(cgroup_folders("3:freezer:/a").is_empty() && cgroup_folders("x").is_empty());
    }

    #[test]
    fn what_is_mounted_in_memory_is_told_by_its_type() {
        let line = "36 28 0:31 /part /mnt/a\\040- rw,nosuid shared:2 - tmpfs shm rw,size=1k";
        assert_eq!(memory_device(line).as_deref(), Some("0:31"));
        assert_eq!(memory_device("36 28 254:1 / / rw - ext4 /dev/vda1 rw"), None);
        assert_eq!(memory_device("36 28 0:31 / /mnt"), None);
        assert!(memory_devices(std::process::id()).iter().all(|device| device.starts_with("0:")));
    }

    #[test]
    fn a_swap_file_is_on_the_disk_of_its_file_system() {
        let file = std::env::current_exe().unwrap();
        let about = fs::metadata(&file).unwrap().dev();
        let swaps = format!(
            "Filename Type Size Used Priority\n{} file 4 0 -2\n/dev/gone partition 4 0 -3",
            file.display()
        );
        let number = format!("{}:{}", libc::major(about), libc::minor(about));
        assert_eq!(swap_devices(&swaps), [number.clone()].into());
        let mut found = BTreeMap::new();
        add_queue(&mut found, &number);
        assert!(
            found.iter().all(|(path, text)| path.ends_with("queue/rotational") && text.parse::<u8>().is_ok())
        );
        add_queue(&mut found, "999:999");
    }

    #[test]
    fn this_process_has_settings_counters_and_usage() {
        let me = std::process::id();
        assert!(settings(me).values().all(|text| text.len() <= SETTING_LEN_MAX));
        assert!(counters()["pgfault"] > 0);
        let usage = of_process(me).unwrap();
        assert!(usage.minor_faults > 0 && usage.peak_rss_pages > 0);
        let more = Usage { minor_faults: usage.minor_faults + 7, ..usage };
        assert_eq!(since(&usage, &more).minor_faults, 7);
        assert_eq!(of_process(u32::MAX), None);
    }
}
