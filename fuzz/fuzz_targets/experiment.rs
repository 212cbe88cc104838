//! An experiment file. What is read can be run: every variant has a phase, every comparison two of them; what is refused
//! must be refused in one line.
#![no_main]

use lab::experiment::Experiment;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Experiment::parse("fuzz", text) {
        Ok(experiment) => {
            assert!(!experiment.machines().is_empty());
            let cells = experiment.sweeps.iter().flat_map(|sweep| &sweep.cells);
            for variant in experiment.variants.iter().chain(cells) {
                assert!(variant.phases.iter().all(|phase| phase.length.0 > 0) && !variant.phases.is_empty());
                assert!(variant.figures.iter().all(|figure| figure.phase < variant.phases.len()));
            }
            for comparison in &experiment.comparisons {
                assert!(!experiment.case_name(comparison.case).is_empty());
                assert!(!experiment.case_name(comparison.against).is_empty());
            }
            for sweep in &experiment.sweeps {
                assert_eq!(sweep.cells.len(), sweep.values.len() * sweep.rows.len());
            }
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
});
