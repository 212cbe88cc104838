//! An experiment on other machines than its own. Where the file has variants on such a machine, those are kept. Else
//! everything that is told apart by more than its machine runs there, and what was published elsewhere is not set
//! beside it: the rows stay, without a published figure.

use mm::Nanos;
use sim::Profile;

use super::spec::{Case, Comparison, Experiment, Figure, Published, Setup, Sweep, Variant};
use crate::measurements::Confidence;

const BECAUSE: &str =
    "the machine was chosen on the command line; the experiment's figures are of other machines";

impl Experiment {
    /// The same experiment on `machines`; on its own if there are none.
    #[must_use]
    pub fn on(self, machines: &[Profile]) -> Self {
        if machines.is_empty() {
            return self;
        }
        let mut moved = Self {
            variants: vec![],
            comparisons: vec![],
            sweeps: vec![],
            // It was learnt of the experiment's own machines.
            learnt: String::new(),
            ..self.clone()
        };
        for machine in machines {
            let place: Vec<Option<usize>> = if self.runs_on(machine) {
                self.kept(machine, &mut moved.variants)
            } else {
                self.moved(machine, &mut moved.variants)
            };
            moved
                .comparisons
                .extend(self.comparisons.iter().filter_map(|of| compared(of, &place, &moved.variants)));
        }
        moved.sweeps = self.sweeps.iter().map(|sweep| swept(sweep, machines)).collect();
        moved
    }

    /// Has the variant of `case` run on `machine`, if that is another than its own.
    pub fn move_to(&mut self, case: Case, machine: &Profile) {
        let variant = &mut self.variants[case.variant];
        if variant.setup.profile.name() != machine.name() {
            *variant = Variant { name: variant.name.clone(), ..elsewhere(variant, machine) };
        }
    }

    /// The same, but a variant's phases and its warm-up last `permille` thousandths of their time.
    #[must_use]
    pub fn shortened(&self, case: Case, permille: u64) -> Self {
        let mut shorter = self.clone();
        let variant = &mut shorter.variants[case.variant];
        let part = |whole: Nanos| Nanos((u128::from(whole.0) * u128::from(permille) / 1000) as u64);
        variant.setup.warm_up = part(variant.setup.warm_up);
        for phase in &mut variant.phases {
            phase.length = part(phase.length);
        }
        shorter
    }

    fn runs_on(&self, machine: &Profile) -> bool {
        self.variants.iter().any(|variant| variant.setup.profile.name() == machine.name())
    }

    /// Adds the variants that are on `machine`, and says where each of all went.
    fn kept(&self, machine: &Profile, to: &mut Vec<Variant>) -> Vec<Option<usize>> {
        let keep = |variant: &Variant| {
            (variant.setup.profile.name() == machine.name()).then(|| {
                to.push(variant.clone());
                to.len() - 1
            })
        };
        self.variants.iter().map(keep).collect()
    }

    /// Adds what is told apart by more than its machine, and says where each variant went.
    fn moved(&self, machine: &Profile, to: &mut Vec<Variant>) -> Vec<Option<usize>> {
        let mut place: Vec<Option<usize>> = vec![];
        for (index, variant) in self.variants.iter().enumerate() {
            let earlier = self.variants[..index].iter().position(|other| is_same_but_machine(other, variant));
            place.push(earlier.map_or_else(
                || {
                    to.push(elsewhere(variant, machine));
                    Some(to.len() - 1)
                },
                |earlier| place[earlier],
            ));
        }
        place
    }
}

fn is_same_but_machine(one: &Variant, other: &Variant) -> bool {
    let (a, b): (&Setup, &Setup) = (&one.setup, &other.setup);
    a.policy == b.policy
        && a.knobs == b.knobs
        && a.workload == b.workload
        && a.cpus == b.cpus
        && a.shrink == b.shrink
        && a.warm_up == b.warm_up
        && one.phases == other.phases
}

fn elsewhere(variant: &Variant, machine: &Profile) -> Variant {
    let unpublished = |figure: &Figure| match figure.published {
        Published::Value(_) | Published::Range(_) => {
            Some(Figure { published: Published::Value(f64::NAN), ..figure.clone() })
        }
        Published::Sequence(_) | Published::Histogram(_) => None,
    };
    // CPU numbers mean something on the machine that they were given for.
    let setup = Setup { profile: machine.clone(), cpus: vec![], ..variant.setup.clone() };
    Variant {
        name: format!("{} as {}", machine.name(), variant.name),
        setup,
        phases: variant.phases.clone(),
        confidence: Confidence::Extrapolated,
        because: BECAUSE.into(),
        figures: variant.figures.iter().filter_map(unpublished).collect(),
        histograms: vec![],
    }
}

/// A comparison where its variants went; not one of a variant with itself.
fn compared(of: &Comparison, place: &[Option<usize>], variants: &[Variant]) -> Option<Comparison> {
    let case = |case: Case| Some(Case { variant: place[case.variant]?, ..case });
    let (this, against) = (case(of.case)?, case(of.against)?);
    let is_kept = variants[this.variant].because != BECAUSE;
    let published = if is_kept { of.published } else { f64::NAN };
    (this != against).then(|| Comparison { case: this, against, published, ..of.clone() })
}

fn swept(sweep: &Sweep, machines: &[Profile]) -> Sweep {
    let on = |name: &str| -> Vec<&Variant> {
        sweep.cells.iter().filter(|cell| cell.setup.profile.name() == name).collect()
    };
    let first = sweep.cells.first().map(|cell| on(cell.setup.profile.name())).unwrap_or_default();
    let mut moved = Sweep { cells: vec![], ..sweep.clone() };
    for machine in machines {
        match on(machine.name()) {
            own if own.is_empty() => moved.cells.extend(first.iter().map(|cell| elsewhere(cell, machine))),
            own => moved.cells.extend(own.into_iter().cloned()),
        }
    }
    moved.name();
    moved
}
