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
    pub(crate) zswap: Option<Zswap>,
}

/// What zswap before it takes for a page, and makes of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Zswap {
    pub(crate) ratio_percent: u32,
    pub(crate) compress: Nanos,
    pub(crate) decompress: Nanos,
}

/// A compressor of a profile.
#[derive(Clone, Copy)]
struct Compressor<'a> {
    profile: &'a Profile,
    name: &'a str,
}

impl Compressor<'_> {
    fn figure(self, what: &str) -> f64 {
        self.profile.value(&format!("zram.{}_{what}", self.name))
    }

    fn time(self, what: &str) -> Nanos {
        Nanos(self.figure(what).round() as u64)
    }

    /// As is said, in percent, or else as published.
    fn ratio_percent(self, said: u64) -> u32 {
        if said == 0 { (self.figure("ratio") * 100.0).round() as u32 } else { said as u32 }
    }
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
        let zswap = Self::zswap(knobs, profile);
        match (pages(Knob::ZramDisksize), pages(Knob::SwapDisk)) {
            (0, 0) => Ok(None),
            (pages, 0) => Ok(Some(Self { zswap, ..Self::zram(knobs, profile, pages) })),
            (0, pages) => Ok(Some(Self { zswap, ..Self::disk(profile, pages) })),
            _ => Err(format!(
                "swap is on zram or on the disk here, not on both: set {} or {}",
                Knob::ZramDisksize.spec().name,
                Knob::SwapDisk.spec().name
            )),
        }
    }

    fn zram(knobs: &Knobs, profile: &Profile, pages: u32) -> Self {
        let compressor = Compressor { profile, name: COMPRESSORS[knobs.get(Knob::ZramAlgorithm) as usize] };
        let ratio_percent = compressor.ratio_percent(knobs.get(Knob::ZramRatio));
        let times =
            SwapTimes::Compressed { write: compressor.time("write_ns"), read: compressor.time("read_ns") };
        Self { device: SwapDevice::Zram { ratio_percent }, pages, times, zswap: None }
    }

    fn zswap(knobs: &Knobs, profile: &Profile) -> Option<Zswap> {
        let name = COMPRESSORS[knobs.get(Knob::ZswapCompressor) as usize];
        let compressor = Compressor { profile, name };
        (knobs.get(Knob::ZswapEnabled) == 1).then(|| Zswap {
            ratio_percent: compressor.ratio_percent(knobs.get(Knob::ZswapRatio)),
            compress: compressor.time("write_ns"),
            decompress: compressor.time("read_ns"),
        })
    }

    fn disk(profile: &Profile, pages: u32) -> Self {
        let page = mm::ids::PAGE_SIZE as f64 / profile.value("swap.disk_gbps");
        let latency = Nanos(profile.value("swap.latency_ns").round() as u64);
        let times = SwapTimes::Disk { latency, page: Nanos(page.round() as u64) };
        Self { device: SwapDevice::Disk, pages, times, zswap: None }
    }

    /// A sentence on what was assumed, where nothing was said; `None` of a disk alone.
    pub(crate) fn assumed(self) -> Option<String> {
        let (kept, ratio_percent) = match (self.zswap, self.device) {
            (Some(zswap), _) => ("zswap", zswap.ratio_percent),
            (None, SwapDevice::Zram { ratio_percent }) => ("zram", ratio_percent),
            (None, SwapDevice::Disk | SwapDevice::Synchronous) => return None,
        };
        Some(format!(
            "pages in {kept} are taken to become {:.2} times smaller, and their frames are out of the machine's memory",
            f64::from(ratio_percent) / 100.0
        ))
    }
}

/// Says what the knobs of swap did: without a device no page would have gone, and with another one pages would have taken other times or
/// other frames.
pub(super) fn note_uses(stage: &Stage) {
    let knobs = stage.mm.knobs();
    let counters = stage.mm.views().counters();
    let stored = counters.get("zswpout");
    let written = counters.get("pswpout") + counters.get("swpout_zero") + stored;
    let device = [Knob::ZramDisksize, Knob::ZramAlgorithm, Knob::ZramRatio, Knob::SwapDisk];
    let zswap = [Knob::ZswapCompressor, Knob::ZswapRatio];
    let all = device.map(|knob| (knob, written)).into_iter().chain(zswap.map(|knob| (knob, stored)));
    for (knob, pages) in all {
        let acts = pages > 0 && knobs.get(knob) != knob.spec().default;
        stage.machine().knob_used(knob, KnobUse::of(&acts, &false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(swap.zswap, None);
        knobs.set(Knob::ZswapEnabled, 1).unwrap();
        knobs.set(Knob::ZswapCompressor, 2).unwrap();
        let zswap = Swap::of(&knobs, &profile).unwrap().unwrap().zswap.unwrap();
        assert_eq!(zswap.compress.0, profile.value("zram.zstd_write_ns") as u64);
        assert_eq!(zswap.ratio_percent, 270, "as published");
        knobs.set(Knob::ZswapRatio, 150).unwrap();
        assert_eq!(Swap::of(&knobs, &profile).unwrap().unwrap().zswap.unwrap().ratio_percent, 150);
        knobs.set(Knob::SwapDisk, 1 << 30).unwrap();
        let error = Swap::of(&knobs, &profile).unwrap_err();
        assert!(error.contains("not on both") && !error.contains('\n'), "{error}");
    }
}
