//! What measuring cost inside of what was published: the measurement's, and none of the machine's.

use sim::{Figure, FigureKind, Profile, ProfileError};

/// What took an experiment's published times.
#[derive(Clone, PartialEq, Debug)]
pub struct Tracer {
    /// What it adds to each refill and each drain, ns.
    pub ns: f64,
    /// Which one it is, and where the figure is from.
    pub because: String,
}

/// Paths whose spans it looks at: these begin before the lock is taken and end after it was given back.
const TRACED: [&str; 2] = ["path.refill_ns", "path.drain_ns"];

impl Tracer {
    /// `machine` with the tracer at work on it.
    ///
    /// # Errors
    /// A path would be longer than any machine's.
    pub fn on(&self, machine: &Profile) -> Result<Profile, ProfileError> {
        let mut traced = machine.clone();
        for key in TRACED {
            let own = machine.value(key);
            let source = format!("the machine's {own}, and the tracer's {}: {}", self.ns, self.because);
            traced.set(key, Figure::new(own + self.ns, FigureKind::Fitted, source))?;
        }
        Ok(traced)
    }
}

#[cfg(test)]
mod tests {
    use crate::experiment::Experiment;
    use sim::Profile;

    #[test]
    fn a_tracer_is_on_the_paths_that_it_looks_at_and_the_machine_stays_what_it_is() {
        for name in ["pcp-hold", "pcp-batch"] {
            let experiment = Experiment::load(name).unwrap();
            for variant in &experiment.variants {
                let setup = &variant.setup;
                let ns = setup.tracer.as_ref().unwrap().ns;
                assert_eq!(setup.profile, Profile::load(setup.profile.name()).unwrap());
                let measured = setup.measured().unwrap();
                for (spec, figure) in setup.profile.figures() {
                    let on_top =
                        if ["path.refill_ns", "path.drain_ns"].contains(&spec.key) { ns } else { 0.0 };
                    assert!((measured.value(spec.key) - figure.value - on_top).abs() < 1e-6, "{}", spec.key);
                }
            }
        }
    }

    #[test]
    fn nothing_measures_for_less_than_nothing_or_for_days() {
        let file = include_str!("../../../../experiments/pcp-hold.toml");
        for wrong in ["ns = -1", "ns = 1e15"] {
            let text = file.replace("ns = 160", wrong);
            let error = Experiment::parse("pcp-hold", &text).unwrap_err().to_string();
            assert!(error.contains("tracer.ns"), "{error}");
        }
    }
}
