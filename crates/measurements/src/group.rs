//! Which runs are repetitions of one thing, and which belong beside each other.

use super::document::Run;

/// Runs that differ in nothing but their seed.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    /// What tells it from its siblings: a variant's name, or whatever else differs among them.
    pub label: String,
    /// The repetitions, in the document's order; never empty.
    pub runs: Vec<&'a Run>,
}

/// Groups of one workload on one machine, to be shown beside each other.
#[derive(Clone, Debug)]
pub struct Scene<'a> {
    /// The workload.
    pub workload: &'a str,
    /// The machine.
    pub machine: &'a str,
    /// Its variants, in the document's order; never empty.
    pub groups: Vec<Group<'a>>,
}

impl<'a> Group<'a> {
    /// The first of the repetitions, which speaks for all where they cannot differ (knobs, policy, label).
    pub fn first(&self) -> &'a Run {
        self.runs[0]
    }
}

/// The repetitions put together, in order of first appearance, labelled by what differs among them.
pub fn groups(runs: &[Run]) -> Vec<Group<'_>> {
    label(collect(runs))
}

/// The groups, workload by workload and machine by machine; labelled within their scene.
pub fn scenes(runs: &[Run]) -> Vec<Scene<'_>> {
    let mut scenes: Vec<Scene<'_>> = vec![];
    for group in collect(runs) {
        let run = group.first();
        let here = |scene: &&mut Scene<'_>| scene.workload == run.workload && scene.machine == run.machine;
        match scenes.iter_mut().find(here) {
            Some(scene) => scene.groups.push(group),
            None => {
                scenes.push(Scene { workload: &run.workload, machine: &run.machine, groups: vec![group] });
            }
        }
    }
    for scene in &mut scenes {
        scene.groups = label(std::mem::take(&mut scene.groups));
    }
    scenes
}

fn collect(runs: &[Run]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = vec![];
    for run in runs {
        match groups.iter_mut().find(|group| is_repetition(group.first(), run)) {
            Some(group) => group.runs.push(run),
            None => groups.push(Group { label: String::new(), runs: vec![run] }),
        }
    }
    groups
}

fn is_repetition(one: &Run, other: &Run) -> bool {
    one.experiment == other.experiment
        && one.workload == other.workload
        && one.machine == other.machine
        && one.policy == other.policy
        && one.variant == other.variant
        && one.knobs == other.knobs
}

fn label(mut groups: Vec<Group<'_>>) -> Vec<Group<'_>> {
    let parts: Vec<[String; 4]> = groups.iter().map(|group| parts(group.first())).collect();
    let differs: [bool; 4] = std::array::from_fn(|part| parts.iter().any(|of| of[part] != parts[0][part]));
    for (group, of) in groups.iter_mut().zip(&parts) {
        let told: Vec<&str> =
            of.iter().zip(differs).filter(|(_, differs)| *differs).map(|(part, _)| part.as_str()).collect();
        group.label = if told.is_empty() { of[3].clone() } else { told.join("/") };
    }
    groups
}

/// Workload, machine, policy, and the variant's name; knobs stand in for a variant without one.
fn parts(run: &Run) -> [String; 4] {
    let variant = if !run.variant.is_empty() {
        run.variant.clone()
    } else if run.knobs.is_empty() {
        "defaults".to_owned()
    } else {
        let knobs: Vec<String> = run.knobs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        knobs.join(" ")
    };
    [run.workload.clone(), run.machine.clone(), run.policy.clone(), variant]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(machine: &str, policy: &str, variant: &str, seed: u64) -> Run {
        Run {
            machine: machine.into(),
            policy: policy.into(),
            variant: variant.into(),
            seed,
            ..Run::default()
        }
    }

    #[test]
    fn seeds_are_repetitions_and_variants_are_not() {
        let runs = [run("m", "p", "scale-5", 1), run("m", "p", "scale-0", 1), run("m", "p", "scale-5", 2)];
        let groups = groups(&runs);
        let told: Vec<(&str, usize)> = groups.iter().map(|g| (g.label.as_str(), g.runs.len())).collect();
        assert_eq!(told, [("scale-5", 2), ("scale-0", 1)]);
    }

    #[test]
    fn a_label_says_only_what_differs() {
        let runs =
            [run("m", "linux-6.18", "a", 1), run("m", "freehold", "a", 1), run("n", "freehold", "a", 1)];
        let labels: Vec<String> = groups(&runs).into_iter().map(|group| group.label).collect();
        assert_eq!(labels, ["m/linux-6.18", "m/freehold", "n/freehold"]);
        let scenes = scenes(&runs);
        assert_eq!(scenes.len(), 2);
        assert_eq!(scenes[0].groups[1].label, "freehold");
        assert_eq!(scenes[1].groups[0].label, "a");
    }

    #[test]
    fn knobs_speak_for_a_variant_without_a_name() {
        let mut one = run("m", "p", "", 1);
        one.knobs.insert("vm.pcp_batch_scale_max".into(), 0.into());
        let labels: Vec<String> =
            groups(&[one, run("m", "p", "", 1)]).into_iter().map(|group| group.label).collect();
        assert_eq!(labels, ["vm.pcp_batch_scale_max=0", "defaults"]);
    }
}
