//! Swap of a run: what its knobs say, or what the recording's machine had; and what a page costs there by the machine's profile.

use mm::vm::SwapDevice;
use mm::{Knob, KnobUse, Knobs, Machine, Nanos};
use sim::{Profile, SwapTimes};

use super::Stage;

/// Swap as a run has it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Swap {
    pub(crate) device: SwapDevice,
    pub(crate) pages: u32,
    pub(crate) times: SwapTimes,
}

/// Compressors by the value of their knob, under the names that profiles have for them.
const COMPRESSORS: [&str; 3] = ["lzo_rle", "lz4", "zstd"];

impl Swap {
    /// What `knobs` say; `None` where there is no swap.
    ///
    /// # Errors
    /// Two devices at once.
    pub(crate) fn of(knobs: &Knobs, profile: &Profile) -> Result<Option<Self>, String> {
        let pages = |knob: Knob| u32::try_from(knobs.get(knob) >> mm::ids::PAGE_SHIFT).unwrap_or(u32::MAX);
        match (pages(Knob::ZramDisksize), pages(Knob::SwapDisk)) {
            (0, 0) => Ok(None),
            (pages, 0) => Ok(Some(Self::zram(knobs, profile, pages))),
            (0, pages) => Ok(Some(Self::disk(profile, pages))),
            _ => Err(format!(
                "swap is on zram or on the disk here, not on both: set {} or {}",
                Knob::ZramDisksize.spec().name,
                Knob::SwapDisk.spec().name
            )),
        }
    }

    fn zram(knobs: &Knobs, profile: &Profile, pages: u32) -> Self {
        let name = COMPRESSORS[knobs.get(Knob::ZramAlgorithm) as usize];
        let figure = |what: &str| profile.value(&format!("zram.{name}_{what}"));
        let ratio_percent = match knobs.get(Knob::ZramRatio) {
            0 => (figure("ratio") * 100.0).round() as u32,
            said => said as u32,
        };
        let time = |what: &str| Nanos(figure(what).round() as u64);
        let times = SwapTimes::Compressed { write: time("write_ns"), read: time("read_ns") };
        Self { device: SwapDevice::Zram { ratio_percent }, pages, times }
    }

    fn disk(profile: &Profile, pages: u32) -> Self {
        let page = mm::ids::PAGE_SIZE as f64 / profile.value("swap.disk_gbps");
        let latency = Nanos(profile.value("swap.latency_ns").round() as u64);
        let times = SwapTimes::Disk { latency, page: Nanos(page.round() as u64) };
        Self { device: SwapDevice::Disk, pages, times }
    }

    /// A sentence on what was assumed, where nothing was said; `None` of a disk.
    pub(crate) fn assumed(self) -> Option<String> {
        let SwapDevice::Zram { ratio_percent } = self.device else { return None };
        Some(format!(
            "pages in zram are taken to become {:.2} times smaller, and their frames are out of the machine's memory",
            f64::from(ratio_percent) / 100.0
        ))
    }
}

/// Says what the knobs of swap did: without a device no page would have gone, and with another one pages would have taken other times or
/// other frames.
pub(super) fn note_uses(stage: &Stage) {
    let knobs = stage.mm.knobs();
    let counters = stage.mm.views().counters();
    let written = counters.get("pswpout") + counters.get("swpout_zero");
    for knob in [Knob::ZramDisksize, Knob::ZramAlgorithm, Knob::ZramRatio, Knob::SwapDisk] {
        let acts = written > 0 && knobs.get(knob) != knob.spec().default;
        stage.machine().knob_used(knob, KnobUse::of(&acts, &false));
    }
}

/// Whether `knob` says that there is swap.
fn is_size(knob: Knob) -> bool {
    matches!(knob, Knob::ZramDisksize | Knob::SwapDisk)
}

/// `set`, and if that says nothing of swap, what a machine had that told so in /proc/swaps and in zram's `comp_algorithm`.
pub(crate) fn as_recorded(set: &[(Knob, u64)], swaps: &str, algorithm: &str) -> Vec<(Knob, u64)> {
    let mut all = set.to_vec();
    if set.iter().any(|(knob, _)| is_size(*knob)) {
        return all;
    }
    let (mut zram, mut disk) = (0, 0);
    for line in swaps.lines().skip(1) {
        let mut fields = line.split_ascii_whitespace();
        let (Some(name), Some(kib)) = (fields.next(), fields.nth(1).and_then(|kib| kib.parse::<u64>().ok()))
        else {
            continue;
        };
        *(if name.starts_with("/dev/zram") { &mut zram } else { &mut disk }) += kib << 10;
    }
    if zram > 0 {
        all.push((Knob::ZramDisksize, zram));
        let chosen =
            algorithm.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
        let value = chosen.and_then(|word| Knob::ZramAlgorithm.parse_one(word).ok());
        if let Some(value) = value.filter(|_| set.iter().all(|(knob, _)| *knob != Knob::ZramAlgorithm)) {
            all.push((Knob::ZramAlgorithm, value));
        }
    } else if disk > 0 {
        all.push((Knob::SwapDisk, disk));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";

    #[test]
    fn swap_is_as_it_was_where_nothing_is_said() {
        let zram =
            format!("{HEADER}/dev/zram0                              partition\t1048572\t\t0\t\t100\n");
        let size = (Knob::ZramDisksize, 1_048_572 << 10);
        assert_eq!(as_recorded(&[], &zram, "lzo-rle lzo [lz4]"), [size, (Knob::ZramAlgorithm, 1)]);
        assert_eq!(as_recorded(&[], &zram, "[842] lz4"), [size], "one that we do not know");
        let disk = format!("{HEADER}/dev/vda2 partition 4096 0 -2\n/swapfile file 4096 0 -3\n");
        assert_eq!(as_recorded(&[], &disk, ""), [(Knob::SwapDisk, 8 << 20)]);
        let none = [(Knob::ZramDisksize, 0)];
        assert_eq!(as_recorded(&none, &zram, "[lz4]"), none);
        assert_eq!(as_recorded(&[], HEADER, ""), []);
    }

    #[test]
    fn a_page_costs_what_the_profile_says() {
        let profile = Profile::load("kvm-genoa-2c").unwrap();
        let knobs = Knobs::default();
        assert_eq!(Swap::of(&knobs, &profile), Ok(None));
        knobs.set(Knob::ZramDisksize, 1 << 30).unwrap();
        knobs.set(Knob::ZramRatio, 300).unwrap();
        knobs.set(Knob::ZramAlgorithm, 1).unwrap();
        let swap = Swap::of(&knobs, &profile).unwrap().unwrap();
        assert_eq!((swap.pages, swap.device), (1 << 18, SwapDevice::Zram { ratio_percent: 300 }));
        let SwapTimes::Compressed { read, .. } = swap.times else { panic!("{swap:?}") };
        assert_eq!(read.0, profile.value("zram.lz4_read_ns") as u64);
        knobs.set(Knob::SwapDisk, 1 << 30).unwrap();
        let error = Swap::of(&knobs, &profile).unwrap_err();
        assert!(error.contains("not on both") && !error.contains('\n'), "{error}");
    }
}
