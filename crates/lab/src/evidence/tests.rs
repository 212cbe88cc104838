//! Labels by policy, machine and mechanism, with the words that a reader sees.

use mm::Policy;
use mm::policy::Mechanism;
use sim::Profile;

use super::*;
use crate::measurements::{Confidence, Label, Latency, Run};

fn policy(name: &str) -> Policy {
    Policy::parse(name).unwrap()
}

fn rules(name: &str, mechanism: Mechanism) -> Label {
    Judgement { table: Table::bundled(), policy: &policy(name), mechanism }.rules()
}

/// The table of the repository, but for the errors of `machine`'s rows, which are all `error`: what a label says
/// of an error does not hang on how well today's results came out.
fn with_errors(table: &Table, machine: &str, error: f64) -> Table {
    let mut table = table.clone();
    let rows = table.rows.iter_mut().filter(|rows| rows.machine == machine);
    rows.flat_map(|rows| &mut rows.errors).for_each(|found| *found = error);
    table
}

/// Rows of page lists were met on `xeon-8260-1n` and missed on `epyc-9654`.
fn met_and_missed() -> Table {
    with_errors(&with_errors(Table::bundled(), "xeon-8260-1n", 0.09), "epyc-9654", 0.7)
}

fn times(name: &str, mechanism: Mechanism, machine: &str) -> Label {
    let profile = Profile::load(machine).unwrap();
    Judgement { table: &met_and_missed(), policy: &policy(name), mechanism }.times(&profile).unwrap()
}

#[track_caller]
fn assert_said(label: &Label, expected: Confidence, words: &[&str]) {
    assert_eq!(label.label, expected, "{}", label.reason);
    for word in words {
        assert!(label.reason.contains(word), "{word:?} is missing from {:?}", label.reason);
    }
}

/// A run that used page lists, and what `more` counts.
fn run(more: &[(&str, u64)]) -> Run {
    let mut run = Run::default();
    run.latency.insert("refill".to_owned(), Latency::default());
    run.counters.insert("pgalloc_normal".to_owned(), 1000);
    run.counters.extend(more.iter().map(|&(name, count)| (name.to_owned(), count)));
    run
}

fn labelled(table: &Table, name: &str, machine: &str, more: &[(&str, u64)]) -> Run {
    let mut run = run(more);
    label(&mut run, table, &policy(name), &Profile::load(machine).unwrap(), Checked::ByRows);
    run
}

#[test]
fn what_was_traced_is_exact() {
    assert_said(
        &rules("linux-6.18", Mechanism::PageLists),
        Confidence::Exact,
        &["figures of traces are equal"],
    );
    assert_said(
        &rules("linux-7.2", Mechanism::Watermarks),
        Confidence::Exact,
        &["figures of captures are equal"],
    );
    assert_said(
        &rules("linux-6.1", Mechanism::Zonelists),
        Confidence::Exact,
        &["figures of captures are equal"],
    );
    let series = rules("linux-6.12+pcp_batch_scale_max", Mechanism::PageLists);
    assert_said(&series, Confidence::Exact, &["figures of traces are equal"]);
}

#[test]
fn sizes_alone_are_not_enough_for_what_page_lists_do() {
    let words = ["figures of captures are equal", "traced under", "linux-6.18"];
    assert_said(&rules("linux-7.2", Mechanism::PageLists), Confidence::Predicted, &words);
    assert_said(
        &rules("linux-6.1", Mechanism::Slabs),
        Confidence::Predicted,
        &["traced under linux-6.12 only"],
    );
}

#[test]
fn a_kernel_between_two_that_were_held_names_both() {
    for mechanism in [Mechanism::PageLists, Mechanism::Slabs, Mechanism::Watermarks, Mechanism::Zonelists] {
        let label = rules("linux-6.11", mechanism);
        assert_said(&label, Confidence::Predicted, &["linux-6.11 was held", "linux-6.1 and linux-6.12"]);
    }
    let label = rules("linux-6.19", Mechanism::PageLists);
    assert_said(&label, Confidence::Predicted, &["linux-6.18 and linux-7.2"]);
}

#[test]
fn a_kernel_before_all_that_were_held_is_extrapolated() {
    let words = ["linux-3.7 is older than linux-6.1, the oldest that was held"];
    assert_said(&rules("linux-3.7", Mechanism::PageLists), Confidence::Extrapolated, &words);
}

#[test]
fn freehold_and_parts_inherit_no_label() {
    for mechanism in Mechanism::ALL {
        assert_said(&rules("freehold", mechanism), Confidence::Extrapolated, &["freehold changes its rules"]);
    }
    let touched = rules("linux-6.18+yield", Mechanism::PageLists);
    assert_said(&touched, Confidence::Extrapolated, &["+yield changes its rules, and nothing was held"]);
    let beside = rules("linux-6.18+yield", Mechanism::Watermarks);
    assert_said(&beside, Confidence::Predicted, &["under linux-6.18, without what is on top"]);
    let two = rules("linux-6.18+yield+touch", Mechanism::PageLists);
    assert_said(&two, Confidence::Extrapolated, &["+yield +touch change its rules"]);
    // The same series on the kernel before the one that was traced with it: the rules of page lists are the same.
    let series = rules("linux-6.11+pcp_batch_scale_max", Mechanism::PageLists);
    assert_said(&series, Confidence::Predicted, &["its rules are those of linux-6.12+pcp_batch_scale_max"]);
    let older = rules("linux-6.6+pcp_batch_scale_max", Mechanism::PageLists);
    assert_said(&older, Confidence::Extrapolated, &["+pcp_batch_scale_max changes"]);
}

#[test]
fn reclaim_is_as_sure_as_its_scenes_by_either_lists() {
    for mechanism in [Mechanism::Reclaim, Mechanism::Generations] {
        let label = rules("linux-6.12", mechanism);
        assert_said(&label, Confidence::Predicted, &["the median error of", "counters of", "scenes is"]);
        assert!(!label.reason.contains("traced under"), "they were seen to act: {}", label.reason);
    }
    let between = rules("linux-6.6", Mechanism::Reclaim);
    assert_said(&between, Confidence::Predicted, &["of linux-6.1 and linux-6.12 before and after it"]);
    let older = rules("linux-5.10", Mechanism::Reclaim);
    assert_said(&older, Confidence::Extrapolated, &["older than linux-6.1"]);
}

/// A table of scenes alone.
fn scenes(rows: &[(u64, u64, &str)]) -> Table {
    let row = |(compared, equal, errors): &(u64, u64, &str)| {
        format!(
            "[[held]]\npolicy = 'linux-6.15'\nmechanism = 'huge-pages'\ncheck = 'scenes'\nscene = 's'\nfiles = 1\n\
             compared = {compared}\nequal = {equal}\nerrors = {errors}\n"
        )
    };
    Table::parse(&rows.iter().map(row).collect::<String>()).unwrap()
}

#[test]
fn scenes_are_equal_or_near_or_missed() {
    let said = |rows: &[(u64, u64, &str)], name: &str| {
        let (table, policy) = (scenes(rows), policy(name));
        Judgement { table: &table, policy: &policy, mechanism: Mechanism::HugePages }.rules()
    };
    let equal = said(&[(20, 20, "[]"), (7, 7, "[]")], "linux-6.15");
    assert_said(&equal, Confidence::Exact, &["27 of 27 figures of scenes are equal"]);
    let near = said(&[(20, 19, "[]"), (0, 0, "[0.1, 0.02]"), (0, 0, "[0.3]")], "linux-6.15");
    let words =
        ["19 of 20 figures of scenes are equal and the median error of 3 counters of 2 scenes is 10 %"];
    assert_said(&near, Confidence::Predicted, &words);
    let missed = said(&[(0, 0, "[0.1, 0.7, 0.9]")], "linux-6.15");
    assert_said(&missed, Confidence::Extrapolated, &["is 70 %: half of them are missed by more than half"]);
    assert_said(&said(&[(9, 4, "[]")], "linux-6.15"), Confidence::Extrapolated, &["fewer than half"]);
    // Newer than all that was held, with the same rules; older, with others.
    let newer = said(&[(20, 20, "[]")], "linux-6.18");
    assert_said(&newer, Confidence::Predicted, &["its rules are those of linux-6.15, where 20 of 20"]);
    assert_said(&said(&[(20, 20, "[]")], "linux-4.0"), Confidence::Extrapolated, &["older than linux-6.15"]);
}

#[test]
fn times_are_predicted_where_rows_of_the_machine_were() {
    let checked = times("linux-6.18", Mechanism::PageLists, "xeon-8260-1n");
    assert_said(
        &checked,
        Confidence::Predicted,
        &["median error", "published rows on xeon-8260-1n", "pcp-batch"],
    );
    let unchecked = times("linux-6.18", Mechanism::PageLists, "epyc-7742");
    assert_said(&unchecked, Confidence::Extrapolated, &["no published figure of page lists on epyc-7742"]);
    // Checked, and missed.
    let missed = times("linux-6.18", Mechanism::PageLists, "epyc-9654");
    assert_said(&missed, Confidence::Extrapolated, &["published rows on epyc-9654 were missed by"]);
    let ours = times("freehold", Mechanism::PageLists, "xeon-8260-1n");
    assert_said(
        &ours,
        Confidence::Extrapolated,
        &["freehold changes its rules, and no figure was published"],
    );
    let series = times("linux-6.12+pcp_batch_scale_max", Mechanism::PageLists, "xeon-8260-1n");
    assert_said(&series, Confidence::Predicted, &["median error", "(pcp-batch)"]);
    let old = times("linux-3.7", Mechanism::PageLists, "xeon-8260-1n");
    assert_said(&old, Confidence::Extrapolated, &["whose rules are others"]);
}

/// Rows were simulated on the profile that comes with the program, not on one that took its name.
#[test]
fn a_profile_with_a_known_name_and_other_figures_is_unchecked() {
    let text = Profile::load("xeon-8260-1n").unwrap().to_toml();
    let same = Profile::parse("xeon-8260-1n", &text).unwrap();
    let other = Profile::load("xeon-8260").unwrap().to_toml().replace("xeon-8260", "xeon-8260-1n");
    let other = Profile::parse("xeon-8260-1n", &other).unwrap();
    assert_eq!((same.name(), other.name()), ("xeon-8260-1n", "xeon-8260-1n"));
    let policy = policy("linux-6.18");
    let judgement = Judgement { table: Table::bundled(), policy: &policy, mechanism: Mechanism::PageLists };
    assert_said(&judgement.times(&other).unwrap(), Confidence::Extrapolated, &["nothing was published"]);
}

#[test]
fn evidence_that_is_taken_away_lowers_the_label() {
    let full = &met_and_missed();
    let before = labelled(full, "linux-6.18", "xeon-8260-1n", &[]);
    assert_eq!(before.confidence, Confidence::Predicted);
    assert_eq!(before.labels["page-lists"].counts.label, Confidence::Exact);

    let mut untraced = full.clone();
    untraced.held.retain(|held| held.check == Check::Captures);
    let after = labelled(&untraced, "linux-6.18", "xeon-8260-1n", &[]);
    assert_eq!(after.labels["page-lists"].counts.label, Confidence::Predicted);

    let mut unequal = full.clone();
    unequal.held.iter_mut().for_each(|held| held.equal = held.equal.saturating_sub(1));
    let after = labelled(&unequal, "linux-6.18", "xeon-8260-1n", &[]);
    assert_eq!(after.labels["page-lists"].counts.label, Confidence::Predicted);

    let mut unpublished = full.clone();
    unpublished.rows.clear();
    let after = labelled(&unpublished, "linux-6.18", "xeon-8260-1n", &[]);
    assert_eq!(after.confidence, Confidence::Extrapolated);

    let mut fitted = full.clone();
    for rows in &mut fitted.rows {
        rows.fitted += rows.errors.len() as u64;
        rows.errors.clear();
    }
    let after = labelled(&fitted, "linux-6.18", "xeon-8260-1n", &[]);
    assert_said(
        after.labels["page-lists"].times.as_ref().unwrap(),
        Confidence::Extrapolated,
        &["fitted, none predicted"],
    );

    let mut missed = full.clone();
    missed.rows.iter_mut().flat_map(|rows| &mut rows.errors).for_each(|error| *error = 0.77);
    let after = labelled(&missed, "linux-6.18", "xeon-8260-1n", &[]);
    assert_said(
        after.labels["page-lists"].times.as_ref().unwrap(),
        Confidence::Extrapolated,
        &["missed by 77 %"],
    );
}

#[test]
fn a_run_is_as_sure_as_the_least_of_what_it_used() {
    let table = met_and_missed();
    let plain = labelled(&table, "linux-6.18", "xeon-8260-1n", &[]);
    assert_eq!(plain.labels.keys().collect::<Vec<_>>(), ["page-lists"]);
    assert!(
        plain.confidence_reason.starts_with("page lists under linux-6.18: "),
        "{}",
        plain.confidence_reason
    );
    let short =
        labelled(&table, "linux-6.18", "xeon-8260-1n", &[("pgscan_kswapd", 1), ("thp_fault_alloc", 0)]);
    assert_eq!(short.labels.keys().collect::<Vec<_>>(), ["page-lists", "reclaim", "watermarks"]);
    assert_eq!(short.confidence, Confidence::Extrapolated);
    assert!(
        short.confidence_reason.contains("no published figure of reclaim"),
        "{}",
        short.confidence_reason
    );
    assert_eq!(short.labels["watermarks"].times, None);
}

#[test]
fn mechanisms_are_those_that_counters_tell_of() {
    let names =
        |more: &[(&str, u64)]| -> Vec<&str> { used(&run(more)).into_iter().map(Mechanism::name).collect() };
    assert_eq!(names(&[]), ["page-lists"]);
    assert_eq!(names(&[("slab_alloc_fastpath", 1)]), ["page-lists", "slabs"]);
    assert_eq!(names(&[("numa_miss", 10)]), ["page-lists"]);
    assert_eq!(names(&[("numa_miss", 11)]), ["page-lists", "zonelists"]);
    assert_eq!(names(&[("pgalloc_dma32", 1000)]), ["page-lists", "zonelists"]);
    assert_eq!(names(&[("compact_stall", 1)]), ["page-lists", "compaction"]);
    assert_eq!(names(&[("thp_fault_alloc", 1)]), ["page-lists", "huge-pages"]);
    assert_eq!(names(&[("pgpromote_success", 1)]), ["page-lists", "promotion"]);
    assert_eq!(names(&[("pageoutrun", 1)]), ["watermarks", "page-lists", "reclaim"]);
    assert_eq!(names(&[("pgfault", 1)]), ["page-lists", "address-spaces"]);
    let mut by_generations = run(&[("pgscan_direct", 1)]);
    by_generations.knobs.insert("lru_gen.enabled".to_owned(), "0x0007".into());
    let used = used(&by_generations);
    assert_eq!(used, [Mechanism::Watermarks, Mechanism::PageLists, Mechanism::Generations]);
}

#[test]
fn a_claim_lowers_a_label_and_never_raises_it() {
    let about = &[Mechanism::PageLists];
    let claim = |label| Claim { label, because: "the file says so", about };
    let on = |machine, label| {
        let mut run = labelled(&met_and_missed(), "linux-6.18", machine, &[]);
        run.policy = "linux-6.18".to_owned();
        claim(label).bound(&mut run);
        assert_eq!(run.claimed, label);
        (run.confidence, run.confidence_reason)
    };
    let granted = |label| (label, "the file says so".to_owned());
    assert_eq!(on("xeon-8260-1n", Confidence::Exact), granted(Confidence::Exact));
    assert_eq!(on("xeon-8260-1n", Confidence::Predicted), granted(Confidence::Predicted));
    assert_eq!(on("xeon-8260-1n", Confidence::Extrapolated), granted(Confidence::Extrapolated));
    let (label, reason) = on("epyc-7742", Confidence::Predicted);
    assert_eq!(label, Confidence::Extrapolated);
    assert!(reason.starts_with("page lists under linux-6.18: no published figure"), "{reason}");
    let mut newer = labelled(&met_and_missed(), "linux-7.2", "xeon-8260-1n", &[]);
    claim(Confidence::Exact).bound(&mut newer);
    assert_eq!(newer.confidence, Confidence::Predicted, "its page lists were never traced");
}
