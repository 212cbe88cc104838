//! Settings of the recorded machine that stood at other values than its kernel's defaults: a replay begins with the defaults, unless it
//! is to begin with these.

use mm::Knob;
use mm::vm::is_as_by_default;

use super::plan::{Plan, Setting};
use super::run::ReplayError;
use super::source::Source;

/// Knobs that `plan` leaves at their defaults, and that stood otherwise where the first program of `source` was recorded: each with the value
/// there. Left out are those that cannot act here, and those that a replay has as they stood in any case (how a kernel was built, swap).
fn otherwise(plan: &Plan, source: &Source) -> Vec<(Knob, u64)> {
    let Some(program) = source.programs().first() else { return vec![] };
    let is_set = |knob: Knob| plan.settings.iter().any(|setting| setting.knob == knob);
    let stood = program.surroundings.unrecorded.iter().copied().filter(|&(knob, value)| {
        let is_open = !is_set(knob) && knob.spec().distributed.is_none();
        is_open && plan.policy.check_knob(knob, value).is_ok() && !is_as_by_default(&plan.policy, knob, value)
    });
    let reaches = |&(knob, value): &(Knob, u64)| {
        let alone =
            Plan { settings: vec![Setting::of_all(knob, vec![value])], changes: vec![], ..plan.clone() };
        alone.refusals(source).is_empty()
    };
    stood.filter(reaches).collect()
}

/// Has `plan` begin with them.
///
/// # Errors
/// A recording without a program: a replay of its events has none of the machine's settings.
pub fn begin_as_recorded(plan: &mut Plan, source: &Source) -> Result<(), ReplayError> {
    if source.programs().is_empty() {
        let what =
            "the settings of the recorded machine are known of programs alone, and this replays events";
        return Err(ReplayError::Plan(what.to_owned()));
    }
    let stood = otherwise(plan, source).into_iter();
    let settings = stood.map(|(knob, value)| Setting::of_all(knob, vec![value]));
    plan.settings.splice(0..0, settings);
    Ok(())
}

/// A sentence on what stood otherwise where each of `plans` runs, and `how` to begin with it, for who did not ask for that; each once.
pub fn stood_otherwise(plans: &[Plan], source: &Source, how: &str) -> Vec<String> {
    let mut told: Vec<String> = vec![];
    for plan in plans {
        let sentence = sentence(&otherwise(plan, source), how);
        told.extend(sentence.filter(|sentence| !told.contains(sentence)));
    }
    told
}

fn sentence(stood: &[(Knob, u64)], how: &str) -> Option<String> {
    let written = |&(knob, value): &(Knob, u64)| format!("{}={}", knob.spec().name, knob.written(value));
    let all: Vec<String> = stood.iter().map(written).collect();
    let told = || {
        let all = all.join(" ");
        format!("recorded with {all}, replayed with the kernel's defaults; {how} begins as recorded")
    };
    (!all.is_empty()).then(told)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mm::Policy;
    use sim::Profile;

    use super::*;
    use crate::program::{Program, Surroundings};

    fn source() -> Source {
        let unrecorded = vec![
            (Knob::WatermarkScaleFactor, 200),
            (Knob::TransparentHugepage, 2),
            (Knob::LruGenEnabled, 0),
            (Knob::HugeDefrag, 4),
            (Knob::NumaBalancing, 1),
        ];
        let surroundings = Surroundings { unrecorded, ..Surroundings::default() };
        Source::Program(Arc::new(Program { surroundings, ..Program::default() }))
    }

    #[test]
    fn a_replay_begins_with_what_stood_where_it_can_act() {
        let plan = |machine: &str, policy: &str| {
            Plan::new(Profile::load(machine).unwrap(), Policy::parse(policy).unwrap())
        };
        let stood = |machine: &str, policy: &str| otherwise(&plan(machine, policy), &source());
        let everywhere = [(Knob::WatermarkScaleFactor, 200), (Knob::TransparentHugepage, 2)];
        assert_eq!(stood("kvm-genoa-2c", "linux-6.18"), everywhere, "it has no second node to balance");
        let before = [(Knob::TransparentHugepage, 2), (Knob::HugeDefrag, 4)];
        assert_eq!(
            stood("kvm-genoa-2c", "linux-4.4"),
            before,
            "4.6 has the one, and chooses the other itself"
        );

        let mut plan = plan("kvm-genoa-2c", "linux-6.18");
        plan.settings = vec![Setting::of_all(Knob::TransparentHugepage, vec![0, 1])];
        begin_as_recorded(&mut plan, &source()).unwrap();
        let names: Vec<String> = plan.variants().iter().map(super::super::Variant::name).collect();
        let variant =
            |huge: &str| format!("vm.watermark_scale_factor=200 transparent_hugepage.enabled={huge}");
        assert_eq!(names, ["never", "always"].map(variant));
        assert_eq!(otherwise(&plan, &source()), [], "nothing is left to tell");
    }

    /// What stood is no setting, and is refused nothing; but what is set needs what stands.
    #[test]
    fn what_needs_generations_is_refused_where_the_recorded_kernel_had_none() {
        let surroundings = Surroundings {
            kernel: "6.18.44".into(),
            unrecorded: vec![(Knob::LruGenEnabled, 0)],
            ..Surroundings::default()
        };
        let source = Source::Program(Arc::new(Program { surroundings, ..Program::default() }));
        let refused = |policy: &str, settings: &[(Knob, u64)]| {
            let machine = Profile::load("kvm-genoa-2c").unwrap();
            let settings =
                settings.iter().map(|(knob, value)| Setting::of_all(*knob, vec![*value])).collect();
            let plan = Plan { settings, ..Plan::new(machine, Policy::parse(policy).unwrap()) };
            plan.refusals(&source).into_iter().map(|refusal| refusal.knob).collect::<Vec<_>>()
        };
        let ttl = (Knob::LruGenMinTtlMs, 1000);
        assert_eq!(refused("linux-6.18", &[]), []);
        assert_eq!(refused("linux-6.18", &[ttl]), [Knob::LruGenMinTtlMs]);
        assert_eq!(refused("linux-6.18", &[(Knob::LruGenEnabled, 7), ttl]), []);
        assert_eq!(refused("linux-6.12", &[ttl]), [], "as distributions build it");
    }

    #[test]
    fn who_did_not_ask_is_told_what_stood() {
        let stood = [(Knob::WatermarkScaleFactor, 200), (Knob::TransparentHugepage, 2)];
        assert_eq!(
            sentence(&stood, "--as-recorded").unwrap(),
            "recorded with vm.watermark_scale_factor=200 transparent_hugepage.enabled=madvise, replayed with the kernel's defaults; \
             --as-recorded begins as recorded"
        );
        assert_eq!(sentence(&[], "--as-recorded"), None);
    }
}
