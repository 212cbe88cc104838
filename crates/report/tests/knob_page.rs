//! docs/knobs.md is what the program says today; `make knobs` writes it.

use std::path::{Path, PathBuf};

use freehold_report::knob_page::markdown;
use lab::measurements::KnobOutcome;
use lab::replay::survey::{Figures, Survey, Trial, TrialOutcome};
use lab::replay::{RecordedOn, Source};
use sim::Profile;
use trace::Reader;

/// As `make knobs` names them.
const RECORDINGS: [&str; 5] = ["python-loop-128m", "git-clone", "redis", "compiler", "redis-program"];
const MACHINES: [&str; 2] = ["kvm-genoa-2c", "xeon-snb"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn workload(name: &str) -> Source {
    let mut reader = Reader::open(&root().join(format!("recordings/{name}.rec"))).unwrap();
    Source::read(&mut reader, name, &RecordedOn::StandIn(Profile::load(MACHINES[0]).unwrap())).unwrap()
}

/// What a knob did and what is measured belong together: no figure is another where no decision was.
fn check(trials: &[Trial]) {
    for trial in trials {
        let TrialOutcome::Ran(ran) = &trial.outcome else { continue };
        let is_quiet = ran.uses.outcome == KnobOutcome::Consulted;
        assert!(!is_quiet || ran.figures == Figures::Alike, "{trial:?}");
    }
}

#[test]
fn the_page_is_what_the_program_says() {
    let machines = MACHINES.map(|name| Profile::load(name).unwrap()).to_vec();
    let mut survey = Survey::of(RECORDINGS.map(workload).to_vec(), machines);
    survey.simulate(|_| true, &|_| {}).unwrap();
    check(survey.trials());
    let page = std::fs::read_to_string(root().join("docs/knobs.md")).unwrap();
    let should_be = markdown(survey.trials());
    for (number, (is, should_be)) in page.lines().zip(should_be.lines()).enumerate() {
        assert_eq!(is, should_be, "docs/knobs.md, line {}: make knobs", number + 1);
    }
    assert!(page == should_be, "docs/knobs.md has too much or too little: make knobs");
}
