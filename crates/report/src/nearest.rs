//! The nearest name to one that does not exist.

use lab::replay::ParseSettingError;
use lab::subject::AskedError;
use mm::knobs::in_place_of;
use mm::policy::{EXAMPLE_POLICIES, NEWEST, OLDEST, PolicyError, Refusal};
use mm::{KNOBS, KnobError};

/// The candidate most like `name`; `None` where none is near enough to be what was meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |candidate: &str| {
        let (name, candidate) = (name.to_lowercase(), candidate.to_lowercase());
        // A part of a long name is better than any slip of the finger: `pcp_batch` for `vm.pcp_batch_scale_max`.
        if name.len() >= 3 && candidate.contains(&name) {
            1.0
        } else {
            strsim::jaro_winkler(&name, &candidate)
        }
    };
    let mut best: Option<(f64, &str)> = None;
    for candidate in candidates {
        let likeness = likeness(candidate);
        if likeness >= 0.8 && best.is_none_or(|(most, _)| likeness > most) {
            best = Some((likeness, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// One line for a name that does not exist: ``no knob `x`; did you mean `y`? `freehold knobs` lists them``. `kind` is
/// what was named, `list` the command that lists them.
pub fn unknown<'a>(
    kind: &str,
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    list: &str,
) -> String {
    unknown_near(kind, name, nearest(name, candidates), list)
}

fn unknown_near(kind: &str, name: &str, near: Option<&str>, list: &str) -> String {
    match near {
        Some(near) => format!("no {kind} `{name}`; did you mean `{near}`? `{list}` lists them"),
        None => format!("no {kind} `{name}`; `{list}` lists them"),
    }
}

/// One line for a policy that cannot be.
pub fn no_policy(error: &PolicyError) -> String {
    let name = error.name.as_str();
    match nearest(name, EXAMPLE_POLICIES.iter().copied()) {
        Some(near) if error.why == Refusal::Unknown => format!(
            "no policy `{name}`; did you mean `{near}`? linux-X.Y from {OLDEST} to {NEWEST} are policies, `freehold policies \
             list` has all"
        ),
        _ => error.to_string(),
    }
}

/// One line for a question of `why` or `tune` that is none.
pub fn no_question(error: &AskedError) -> String {
    match error {
        AskedError::Policy(error) => no_policy(error),
        AskedError::NoVariant { experiment, name, names } => {
            let near = nearest(name, names.iter().map(String::as_str));
            let near = near.map_or_else(|| ".".to_owned(), |near| format!("; did you mean `{near}`?"));
            format!("{experiment} has no variant `{name}`{near} It has {}", names.join(", "))
        }
        AskedError::Other(error) => error.to_string(),
    }
}

/// One line for a knob that does not exist; what holds instead, where it is a setting of Linux. Huge pages are THP in speech, and `transparent_hugepage` in names.
pub(crate) fn no_knob(name: &str) -> String {
    if in_place_of(name).is_some() {
        return KnobError::Unknown { name: name.to_owned() }.to_string();
    }
    let long = name.to_lowercase().replacen("thp", "transparent_hugepage", 1);
    let near = nearest(&long, KNOBS.iter().map(|spec| spec.name));
    unknown_near("knob", name, near, "freehold knobs list")
}

/// One line for a setting or change of a knob that cannot be.
pub fn no_setting(error: &ParseSettingError) -> String {
    match error {
        ParseSettingError::Knob(KnobError::Unknown { name }) => no_knob(name),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOBS: [&str; 3] = ["vm.pcp_batch_scale_max", "vm.min_free_kbytes", "vm.watermark_scale_factor"];

    #[test]
    fn slips_parts_and_cases_are_found() {
        assert_eq!(nearest("vm.pcp_batch_scal_max", KNOBS), Some(KNOBS[0]));
        assert_eq!(nearest("min_free_kbytes", KNOBS), Some(KNOBS[1]));
        assert_eq!(nearest("VM.Watermark_Scale_Factor", KNOBS), Some(KNOBS[2]));
        assert_eq!(nearest("epyc", ["xeon-8260", "epyc-7w83", "host"]), Some("epyc-7w83"));
    }

    #[test]
    fn what_is_like_nothing_has_no_neighbour() {
        assert_eq!(nearest("zzz", KNOBS), None);
        assert_eq!(nearest("", KNOBS), None);
    }

    #[test]
    fn a_knob_is_found_by_what_people_say() {
        for said in ["thp.enabled", "thp_enabled", "THP", "transparent_hugepage.enable"] {
            let line = format!(
                "no knob `{said}`; did you mean `transparent_hugepage.enabled`? `freehold knobs list` lists them"
            );
            assert_eq!(no_knob(said), line);
        }
        assert_eq!(no_knob("zzz"), "no knob `zzz`; `freehold knobs list` lists them");
        assert_eq!(
            no_knob("vm.oom_kill_allocating_task"),
            "'vm.oom_kill_allocating_task' is no knob: where the machine's memory is out nobody is killed for it here: what there is \
             no page for is counted"
        );
    }

    #[test]
    fn the_line_says_what_to_do() {
        assert_eq!(
            unknown("machine", "epic-7w83", ["epyc-7w83", "host"], "freehold machines"),
            "no machine `epic-7w83`; did you mean `epyc-7w83`? `freehold machines` lists them"
        );
        assert_eq!(
            unknown("machine", "pdp", ["host"], "freehold machines"),
            "no machine `pdp`; `freehold machines` lists them"
        );
    }
}
