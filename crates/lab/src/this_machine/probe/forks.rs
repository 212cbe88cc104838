//! What an entry of a page table adds to a fork, settled by what a page was seen to add: the entry, the page's descriptor, and a part of
//! the table. The forks that were measured are simulated, and what they take too little or too much goes to the entry.

use host::probe::{ForkSlope, Grade, Measured, SampleSpread};
use sim::Profile;

use super::settle::{no_memory, timed};
use crate::scene::SceneError;

const KEY: &str = "path.copy_entry_ns";

/// The figure of `profile` that `slope` settles.
///
/// # Errors
/// A machine that cannot be simulated.
pub(super) fn settled(profile: &Profile, slope: &ForkSlope) -> Result<Measured, SceneError> {
    let besides = simulate(profile, slope.bytes)? - profile.value(KEY);
    let [few, many] = slope.bytes.map(|bytes| bytes >> 20);
    let SampleSpread { min, p25, median, p75, max, samples } = slope.page;
    let how = format!(
        "a fork with {many} MiB of small pages less one with {few} MiB, whose descriptors are in no near cache: {median:.0} ns a page, less \
         {besides:.0} ns that the simulation of the same takes besides this figure"
    );
    let [min, p25, median, p75, max] = [min, p25, median, p75, max].map(|page| (page - besides).max(0.0));
    let spread = SampleSpread { min, p25, median, p75, max, samples };
    Ok(Measured { key: KEY, spread, grade: Grade::Seen, how })
}

/// What a page more adds to a fork on the machine that `profile` is, ns.
fn simulate(profile: &Profile, bytes: [usize; 2]) -> Result<f64, SceneError> {
    let fork = |bytes: usize| {
        let script = format!("map a {bytes} nohuge\ntouch a\ntime forks\nspawn\nend\nend\nwait\n");
        let took = timed(profile, script)?.remove("forks").unwrap_or_default();
        took.first().copied().ok_or_else(|| no_memory(bytes))
    };
    let pages = bytes[1].saturating_sub(bytes[0]) as f64 / mm::ids::PAGE_SIZE as f64;
    Ok((fork(bytes[1])? - fork(bytes[0])?) / pages.max(1.0))
}

#[cfg(test)]
mod tests {
    use sim::{Figure, FigureKind};

    use super::*;

    const BYTES: [usize; 2] = [4 << 20, 20 << 20];

    fn slope(ns: f64) -> ForkSlope {
        let page = SampleSpread {
            min: ns * 0.8,
            p25: ns * 0.9,
            median: ns,
            p75: ns * 1.1,
            max: ns * 2.0,
            samples: 9,
        };
        ForkSlope { bytes: BYTES, page }
    }

    /// `kvm-genoa-2c`, with what a fork of `ns` a page settles.
    fn with(ns: f64) -> Profile {
        let base = Profile::load("kvm-genoa-2c").unwrap();
        let measured = settled(&base, &slope(ns)).unwrap();
        let figure = Figure::new(measured.spread.median, FigureKind::Measured, measured.how);
        base.with("settled", base.title(), base.shape().clone(), [(measured.key, figure)]).unwrap()
    }

    #[test]
    fn a_simulated_fork_takes_what_the_measured_one_took() {
        for ns in [60.0, 140.0] {
            let again = simulate(&with(ns), BYTES).unwrap();
            assert!((again / ns - 1.0).abs() < 0.01, "{again} ns for {ns}");
        }
        assert!(with(0.1).value(KEY) <= 0.0, "less than its parts");
    }

    #[test]
    fn a_machine_without_the_memory_says_so() {
        let base = Profile::load("kvm-genoa-2c").unwrap().to_toml();
        let small = Profile::parse("small", &base.replace("memory_mib = 24576", "memory_mib = 64")).unwrap();
        let why = settled(&small, &ForkSlope { bytes: [4 << 20, 256 << 20], ..slope(90.0) }).unwrap_err();
        assert!(why.to_string().contains("memory for 256 MiB"), "{why}");
    }
}
