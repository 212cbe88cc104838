//! Swap of a run: what its knobs say, or what the recording's machine had; and what a page costs there by the machine's profile.

use mm::vm::SwapDevice;
use mm::{Knob, KnobUse, Knobs, Machine, Nanos};
use sim::{Profile, SwapTimes, ZswapTimes};

use super::Stage;

/// Swap as a run has it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Swap {
    pub(crate) device: SwapDevice,
    pub(crate) pages: u32,
    pub(crate) times: SwapTimes,
    pub(crate) zswap: Zswap,
}

/// What zswap before it takes for a page, and makes of it, from the start or once it is switched on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Zswap {
    is_on: bool,
    pub(crate) ratio_percent: u32,
    pub(crate) times: ZswapTimes,
}

/// A disk that reads in so many ns is let have more than the requests to write that it begins with (`wbt`'s 2 ms, from memory).
const KEEPS_UP: f64 = 2e6;

/// Knobs that are read when a run begins, and not again.
pub(crate) const AT_START: [Knob; 6] = [
    Knob::ZramDisksize,
    Knob::ZramAlgorithm,
    Knob::ZramRatio,
    Knob::SwapDisk,
    Knob::ZswapCompressor,
    Knob::ZswapRatio,
];

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
            (pages, 0) => {
                let (device, times) = Self::zram(knobs, profile);
                Ok(Some(Self { device, pages, times, zswap }))
            }
            (0, pages) => {
                let keeps_up = profile.value("swap.latency_ns") <= KEEPS_UP;
                let device = if keeps_up { SwapDevice::DISK } else { SwapDevice::NEW_DISK };
                Ok(Some(Self { device, pages, times: Self::disk(profile), zswap }))
            }
            _ => Err(format!(
                "swap is on zram or on the disk here, not on both: set {} or {}",
                Knob::ZramDisksize.spec().name,
                Knob::SwapDisk.spec().name
            )),
        }
    }

    fn zram(knobs: &Knobs, profile: &Profile) -> (SwapDevice, SwapTimes) {
        let compressor = Compressor { profile, name: COMPRESSORS[knobs.get(Knob::ZramAlgorithm) as usize] };
        let ratio_percent = compressor.ratio_percent(knobs.get(Knob::ZramRatio));
        let times =
            SwapTimes::Compressed { write: compressor.time("write_ns"), read: compressor.time("read_ns") };
        (SwapDevice::Zram { ratio_percent }, times)
    }

    fn zswap(knobs: &Knobs, profile: &Profile) -> Zswap {
        let name = COMPRESSORS[knobs.get(Knob::ZswapCompressor) as usize];
        let compressor = Compressor { profile, name };
        Zswap {
            is_on: knobs.get(Knob::ZswapEnabled) == 1,
            ratio_percent: compressor.ratio_percent(knobs.get(Knob::ZswapRatio)),
            times: ZswapTimes {
                compress: compressor.time("write_ns"),
                decompress: compressor.time("read_ns"),
            },
        }
    }

    fn disk(profile: &Profile) -> SwapTimes {
        let page = mm::ids::PAGE_SIZE as f64 / profile.value("swap.disk_gbps");
        let latency = Nanos(profile.value("swap.latency_ns").round() as u64);
        SwapTimes::Disk { latency, page: Nanos(page.round() as u64) }
    }

    /// A sentence on what was assumed, where nothing was said; `None` of a disk alone.
    pub(crate) fn assumed(self) -> Option<String> {
        let zswap = self.zswap.is_on.then_some(("zswap", self.zswap.ratio_percent));
        let zram = match self.device {
            SwapDevice::Zram { ratio_percent } => Some(("zram", ratio_percent)),
            SwapDevice::Disk { .. } | SwapDevice::Synchronous => None,
        };
        let each = |(name, ratio_percent): (&str, u32)| {
            format!(
                "pages in {name} are taken to become {:.2} times smaller",
                f64::from(ratio_percent) / 100.0
            )
        };
        let all: Vec<String> = zswap.into_iter().chain(zram).map(each).collect();
        let told = all.join(", ");
        (!all.is_empty()).then(|| format!("{told}, and their frames are out of the machine's memory"))
    }
}

/// Says what the knobs of swap did: without a device no page would have gone, and with another one pages would have taken other times or
/// other frames.
pub(super) fn note_uses(stage: &Stage) {
    let knobs = stage.mm.knobs();
    let counters = stage.mm.views().counters();
    let stored = counters.get("zswpout");
    let written = counters.get("pswpout") + counters.get("swpout_zero") + stored;
    for knob in AT_START {
        let is_zswaps = matches!(knob, Knob::ZswapCompressor | Knob::ZswapRatio);
        let pages = if is_zswaps { stored } else { written };
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
        let assumed = |knobs: &Knobs| Swap::of(knobs, &profile).unwrap().unwrap().assumed().unwrap();
        assert!(!assumed(&knobs).contains("zswap"), "it is off");
        knobs.set(Knob::ZswapEnabled, 1).unwrap();
        knobs.set(Knob::ZswapCompressor, 2).unwrap();
        let zswap = Swap::of(&knobs, &profile).unwrap().unwrap().zswap;
        assert_eq!(zswap.times.compress.0, profile.value("zram.zstd_write_ns") as u64);
        assert_eq!(zswap.ratio_percent, 270, "as published");
        knobs.set(Knob::ZswapRatio, 150).unwrap();
        let both = "in zswap are taken to become 1.50 times smaller, pages in zram are taken to become 3.00";
        assert!(assumed(&knobs).contains(both), "{}", assumed(&knobs));
        knobs.set(Knob::SwapDisk, 1 << 30).unwrap();
        let error = Swap::of(&knobs, &profile).unwrap_err();
        assert!(error.contains("not on both") && !error.contains('\n'), "{error}");
    }
}
