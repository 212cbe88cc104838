//! How far the devices of the recorded machine read ahead (`read_ahead_kb`), by the names of files: `8:1:7` is a file on device 8:1.

use std::collections::BTreeMap;

use mm::ids::PAGE_SIZE;

/// Where the settings are that say so, before the device's numbers and after them.
const BEFORE: &str = "/sys/class/bdi/";
const AFTER: &str = "/read_ahead_kb";

/// The most that is taken for true, pages: 1 GiB.
const MOST: u64 = 1 << 18;

/// Devices, and how many pages they read ahead.
#[derive(Debug, Default)]
pub(super) struct ReadAhead(BTreeMap<Device, u32>);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Device {
    major: u32,
    minor: u32,
}

impl Device {
    fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once(':')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

impl ReadAhead {
    /// As these settings of a machine say, by path.
    pub(super) fn of(settings: &BTreeMap<String, String>) -> Self {
        let known = settings.iter().filter_map(|(path, text)| {
            let device = Device::parse(path.strip_prefix(BEFORE)?.strip_suffix(AFTER)?)?;
            let kib: u64 = text.trim().parse().ok()?;
            Some((device, (kib / (PAGE_SIZE / 1024)).min(MOST) as u32))
        });
        Self(known.collect())
    }

    /// Pages that the device reads ahead on which the file of this name is, if that is known. A partition reads as its disk does, which is
    /// the device that is numbered next before it.
    pub(super) fn pages_of(&self, name: &str) -> Option<u32> {
        // A path may come behind, with whatever in it.
        let (device, _) = name.split(' ').next()?.rsplit_once(':')?;
        let device = Device::parse(device)?;
        let disk = self.0.range(..=device).next_back().filter(|(disk, _)| disk.major == device.major);
        disk.map(|(_, pages)| *pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_reads_as_its_disk_does() {
        let setting =
            |device: &str, kib: &str| (format!("/sys/class/bdi/{device}/read_ahead_kb"), kib.to_owned());
        let settings =
            [setting("8:0", "4096\n"), setting("8:16", "0"), setting("0:40", "64"), setting("7:0", "?")];
        let most = setting("1:0", &u64::MAX.to_string());
        let known = ReadAhead::of(&settings.into_iter().chain([most]).collect());
        let read = ["8:0:1", "8:3:77", "8:17:2", "0:40:9", "1:0:3"].map(|name| known.pages_of(name));
        assert_eq!(read, [1024, 1024, 0, 16, MOST as u32].map(Some));
        assert_eq!(known.pages_of("8:1:7 /lib/a:b c:d"), Some(1024), "whatever its path");
        assert_eq!(["9:0:1", "7:0:1", "shared memory", "7", ""].map(|name| known.pages_of(name)), [None; 5]);
    }
}
