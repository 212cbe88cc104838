//! Parts settled by their sum. What user space sees of a fault is the whole of it: exception, allocation, clearing, lists, counts. A profile
//! has the parts, most of which cannot be measured here. So the measured loop is simulated on the profile as it is, and what the simulation
//! takes too little or too much goes to the figure that is the rest of the path.

use std::collections::BTreeMap;

use host::probe::{Grade, Measured, PageLoops, SampleSpread};
use mm::{Nanos, Policy};
use sim::Profile;

use crate::replay::{PageLoop, RecordedOn};
use crate::scene::{Scene, SceneError, perform};
use crate::workloads::WorkloadSpec;

/// Rounds of a loop that are simulated; the last counts.
const ROUNDS: usize = 3;
/// Simulated time that is enough for any of them.
const ENOUGH: Nanos = Nanos(60_000_000_000);

/// Bytes of a loop that a replay's price of a page is taken from.
const PRICED_BYTES: usize = 32 << 20;

/// The machine that made a recording and was measured as `profile`.
///
/// # Errors
/// A machine that cannot be simulated, or that lacks the memory.
pub fn recorded_on(profile: Profile) -> Result<RecordedOn, SceneError> {
    let simulated = simulate(&profile, PRICED_BYTES)?;
    let page = PageLoop { comes_ns: simulated.private, goes_ns: simulated.private_gone };
    Ok(RecordedOn::Measured { profile, page })
}

/// What a loop takes, ns a page.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Simulated {
    private: f64,
    private_gone: f64,
    shared: f64,
}

/// A figure of a profile that takes up the rest of a sum.
struct Rest {
    key: &'static str,
    /// What of the loop it is a part of.
    what: &'static str,
    whole: SampleSpread,
    simulated: f64,
}

/// The figures of `profile` that `loops` settle, anew.
///
/// # Errors
/// A machine that cannot be simulated.
pub(super) fn settled(profile: &Profile, loops: &PageLoops) -> Result<[Measured; 3], SceneError> {
    let simulated = simulate(profile, loops.bytes)?;
    let rests = [
        Rest {
            key: "path.fault_ns",
            what: "first write to private anonymous memory",
            whole: loops.private,
            simulated: simulated.private,
        },
        Rest {
            key: "path.unmap_ns",
            what: "munmap of private anonymous memory",
            whole: loops.private_gone,
            simulated: simulated.private_gone,
        },
        Rest {
            key: "path.shared_fault_ns",
            what: "first write to shared anonymous memory",
            whole: loops.shared,
            simulated: simulated.shared,
        },
    ];
    Ok(rests.map(|rest| rest.measured(profile, loops.bytes >> 20)))
}

impl Rest {
    fn measured(self, profile: &Profile, mib: usize) -> Measured {
        let Self { key, what, whole, simulated } = self;
        // Below its own parts a figure would change nothing any more.
        let parts = match key {
            "path.unmap_ns" => 0.0,
            _ => profile.value("path.exception_ns") + profile.value("path.lru_add_ns"),
        };
        let besides = simulated - profile.value(key);
        let rest = |whole: f64| (whole - besides).max(parts);
        let how = format!(
            "{what}, {mib} MiB a round, {} rounds over the whole time of the probe: {:.0} ns a page, less {besides:.0} ns that the simulation \
             of the same takes besides this figure",
            whole.samples, whole.median
        );
        let SampleSpread { min, p25, median, p75, max, samples } = whole;
        let [min, p25, median, p75, max] = [min, p25, median, p75, max].map(rest);
        Measured {
            key,
            spread: SampleSpread { min, p25, median, p75, max, samples },
            grade: Grade::Seen,
            how,
        }
    }
}

/// The loop on the machine that `profile` is.
fn simulate(profile: &Profile, bytes: usize) -> Result<Simulated, SceneError> {
    let round = |kind: &str| {
        format!("fork\nmap a {bytes}{kind} nohuge\ntime comes\ntouch a\nend\ntime goes\nunmap a\nend\nend\n")
    };
    let took = |kind: &str| -> Result<[f64; 2], SceneError> {
        let samples = timed(profile, round(kind).repeat(ROUNDS))?;
        let last = |name: &str| {
            let all = samples.get(name).filter(|all| all.len() == ROUNDS);
            let ns = all.and_then(|all| all.last()).ok_or_else(|| no_memory(bytes));
            ns.map(|ns| ns * mm::ids::PAGE_SIZE as f64 / bytes as f64)
        };
        Ok([last("comes")?, last("goes")?])
    };
    let [private, private_gone] = took("")?;
    let [shared, _] = took(" shared")?;
    Ok(Simulated { private, private_gone, shared })
}

/// What the timed parts of a script took on the machine that `profile` is, by name, ns.
pub(super) fn timed(profile: &Profile, script: String) -> Result<BTreeMap<String, Vec<f64>>, SceneError> {
    let workload = toml::Table::from_iter([("kind".into(), "script".into()), ("text".into(), script.into())]);
    let workload: WorkloadSpec =
        workload.try_into().map_err(|error: toml::de::Error| SceneError::setup(error.to_string()))?;
    let scene = Scene::plain(profile.clone(), Policy::default(), workload, ENOUGH);
    let outcome = perform(&scene)?.pop();
    Ok(outcome.map(|outcome| outcome.run.samples).unwrap_or_default())
}

pub(super) fn no_memory(bytes: usize) -> SceneError {
    SceneError::setup(format!("memory for {} MiB a round is not there", bytes >> 20))
}

#[cfg(test)]
mod tests {
    use sim::{Figure, FigureKind};

    use super::*;

    const BYTES: usize = 16 << 20;

    fn around(ns: f64) -> SampleSpread {
        SampleSpread { min: ns * 0.8, p25: ns * 0.9, median: ns, p75: ns * 1.1, max: ns * 2.0, samples: 20 }
    }

    fn loops(private: f64, private_gone: f64, shared: f64) -> PageLoops {
        let [private, private_gone, shared] = [private, private_gone, shared].map(around);
        PageLoops { bytes: BYTES, private, private_gone, shared }
    }

    /// `kvm-genoa-2c`, with what `loops` settle.
    fn with(loops: &PageLoops) -> Profile {
        let base = Profile::load("kvm-genoa-2c").unwrap();
        let figure = |measured: Measured| {
            (measured.key, Figure::new(measured.spread.median, FigureKind::Measured, measured.how))
        };
        let figures = settled(&base, loops).unwrap().map(figure);
        base.with("settled", base.title(), base.shape().clone(), figures).unwrap()
    }

    #[test]
    fn the_simulated_loop_takes_what_the_measured_one_took() {
        let measured = loops(1700.0, 310.0, 2600.0);
        let profile = with(&measured);
        let again = simulate(&profile, BYTES).unwrap();
        for (simulated, wanted) in [
            (again.private, measured.private.median),
            (again.private_gone, measured.private_gone.median),
            (again.shared, measured.shared.median),
        ] {
            assert!((simulated / wanted - 1.0).abs() < 0.01, "{simulated} ns for {wanted}: {again:?}");
        }
        let [fault, ..] = settled(&profile, &measured).unwrap();
        assert!((fault.spread.median / profile.value("path.fault_ns") - 1.0).abs() < 0.01, "settled already");
        assert!(fault.how.contains("16 MiB a round, 20 rounds") && fault.how.contains("1700 ns a page"));
    }

    #[test]
    fn a_loop_that_is_shorter_than_its_parts_leaves_these() {
        let profile = with(&loops(100.0, 1.0, 100.0));
        let parts = profile.value("path.exception_ns") + profile.value("path.lru_add_ns");
        for (key, least) in
            [("path.fault_ns", parts), ("path.shared_fault_ns", parts), ("path.unmap_ns", 0.0)]
        {
            assert!((profile.value(key) - least).abs() < 1.0, "{key} is {}", profile.value(key));
        }
    }

    #[test]
    fn a_machine_without_the_memory_says_so() {
        let base = Profile::load("kvm-genoa-2c").unwrap().to_toml();
        let small = base.replace("memory_mib = 24576", "memory_mib = 64");
        let small = Profile::parse("small", &small).unwrap();
        let huge = PageLoops { bytes: 256 << 20, ..loops(1700.0, 310.0, 2600.0) };
        let why = settled(&small, &huge).unwrap_err().to_string();
        assert!(why.contains("memory for 256 MiB a round"), "{why}");
    }
}
