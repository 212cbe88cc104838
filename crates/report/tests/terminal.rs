//! What a terminal shows of a document, as snapshots.

mod fixture;

use freehold_report::style::{Ink, Style};
use freehold_report::{lkp, mmtests, published, replay, verdict};
use lab::measurements::{
    CgroupUse, Document, KnobOutcome, KnobUses, ProgramUse, Proof, ProofRow, Run, compare,
};

fn columns(document: Document) -> lab::measurements::Comparison {
    compare(&[("replay".into(), document)]).expect("comparable")
}

#[test]
fn the_full_account() {
    insta::assert_snapshot!(replay::full(Style::plain(), &fixture::document()));
}

#[test]
fn the_verdict() {
    insta::assert_snapshot!(verdict::replay(Style::plain(), &fixture::document()));
}

#[test]
fn the_verdict_of_two_machines_beside_published_figures_is_a_first_screen() {
    let mut document = fixture::document();
    let elsewhere = |run: &Run| Run { machine: "xeon-8260-1n".into(), ..run.clone() };
    document.runs.extend(document.runs.clone().iter().map(elsewhere));
    document.rows = fixture::published().rows;
    let text = verdict::replay(Style::plain(), &document);
    assert!(text.split_whitespace().count() < 150, "{text}");
    assert!(text.contains("the same on xeon-8260-1n\n"), "{text}");
}

#[test]
fn nothing_that_must_be_known_is_left_out_of_the_verdict() {
    let mut document = fixture::document();
    let base = document.runs[0].clone();
    let used =
        |outcome| KnobUses { outcome, consulted: 7, nearest: "far away".into(), ..KnobUses::default() };
    for (number, run) in document.runs.iter_mut().enumerate() {
        run.knob_uses.insert("vm.idle".into(), used(KnobOutcome::Consulted));
        let acted = if number < 3 { KnobOutcome::Consulted } else { KnobOutcome::Acted };
        run.knob_uses.insert("vm.acts".into(), used(acted));
        run.notes.push("a note".into());
    }
    let row = |what: &str, replayed| ProofRow {
        what: what.into(),
        unit: "count".into(),
        recorded: 100.0,
        replayed,
    };
    let rows = vec![row("faults", 109.0), row("copies", 111.0)];
    document.proofs.push(Proof { workload: "loop".into(), rows, ..Proof::default() });
    let text = verdict::replay(Style::plain(), &document);
    for part in [
        "\nno effect: vm.idle: consulted 42 times, never decided otherwise than its default: far away\n",
        "\nnot as recorded: scale-0: 12 frees without allocation\n",
        "\nas recorded: 1 of 2 figures within 10 % of the kernel's; not copies +11.0 %\n",
        "\nto set: # vm.pcp_batch_scale_max=0: no mainline kernel has this",
        "\npredicted: ",
    ] {
        assert!(text.contains(part), "{part} is missing from\n{text}");
    }
    assert_eq!(text.matches("a note").count(), 1, "{text}");
    assert!(!text.contains("vm.acts"), "{text}");
    document.runs = vec![base];
    let text = verdict::replay(Style::plain(), &document);
    assert!(text.contains("came to: ") && text.contains("one seed, so no interval"), "{text}");
}

#[test]
fn a_setting_that_acts_and_changes_nothing_has_no_command() {
    let mut document = fixture::document();
    let acted = KnobUses { outcome: KnobOutcome::Acted, consulted: 7, ..KnobUses::default() };
    for run in &mut document.runs[3..] {
        run.knob_uses.insert("vm.pcp_batch_scale_max".into(), acted.clone());
    }
    let of_use = verdict::replay(Style::plain(), &document);
    assert!(of_use.contains("\nto set: "), "{of_use}");
    let (base, other) = document.runs.split_at_mut(3);
    for (base, other) in base.iter().zip(other) {
        let set = other.clone();
        *other = Run { variant: set.variant, knobs: set.knobs, knob_uses: set.knob_uses, ..base.clone() };
    }
    let same = verdict::replay(Style::plain(), &document);
    assert!(same.contains("  same: no difference beyond the seeds'\n"), "{same}");
    assert!(!same.contains("to set:"), "{same}");
}

#[test]
fn run_time_is_the_same_if_seeds_say_so_and_of_a_killed_program_it_is_nothing() {
    let verdict = |ends_ms: [u64; 3], killed_ns: Option<u64>| {
        let mut document = fixture::document();
        let of_second = ends_ms.into_iter().map(|end_ms| (end_ms, killed_ns));
        let ends = [(400, None); 3].into_iter().chain(of_second);
        for (run, (end_ms, killed_ns)) in document.runs.iter_mut().zip(ends) {
            run.simulated_ns = 1_000_000 * end_ms;
            run.program = Some(ProgramUse::default());
            run.cgroups = vec![CgroupUse { name: "program".into(), killed_ns, ..CgroupUse::default() }];
        }
        verdict::replay(Style::plain(), &document)
    };
    let same = verdict([399, 400, 401], None);
    assert!(same.contains("  same: run time (400.0 ms -> 400.0 ms ±"), "{same}");
    let open = verdict([200, 400, 900], None);
    assert!(open.contains("  not told apart: run time (400.0 ms -> 500.0 ms ±"), "{open}");
    let killed = verdict([399, 400, 401], Some(7));
    assert!(killed.contains("  worse: killed ") && !killed.contains("run time"), "{killed}");
    assert!(!killed.contains("better:"), "{killed}");
}

#[test]
fn a_single_run_has_nothing_to_compare() {
    let mut document = fixture::document();
    document.runs.truncate(1);
    let text = replay::full(Style::plain(), &document);
    assert!(!text.contains("->  ") && !text.contains("Amean"), "{text}");
    assert!(text.contains("\navg = "), "one histogram is set as funclatency sets it:\n{text}");
}

#[test]
fn an_mmtests_table() {
    let text = mmtests::comparison(Style::plain(), &columns(fixture::document()));
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn an_mmtests_table_of_one_run_each_has_means_only() {
    let mut document = fixture::document();
    document.runs.retain(|run| run.seed == 1);
    insta::assert_snapshot!(mmtests::comparison(Style::plain(), &columns(document)));
}

#[test]
fn an_lkp_table() {
    insta::assert_snapshot!(lkp::comparison(&columns(fixture::document())));
}

#[test]
fn rows_beside_published_ones() {
    let document = fixture::published();
    insta::assert_snapshot!(published::table(Style::plain(), &document.rows, &document.score));
}

#[test]
fn everything_fits_the_width_that_was_asked_for() {
    for width in [80, 100, 120] {
        let style = Style::terminal(width).with_ink(Ink::Plain);
        let text = verdict::replay(style, &fixture::document());
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest.is_some_and(|longest| longest <= width), "{width}: {longest:?}\n{text}");
        let text = replay::full(style, &fixture::document());
        let histograms = text.lines().filter(|line| line.contains(" : ") && line.contains('|'));
        assert!(
            histograms.clone().count() > 0 && histograms.clone().all(|line| line.chars().count() <= width),
            "{text}"
        );
    }
}

#[test]
fn colours_change_nothing_but_colours() {
    let plain = replay::full(Style::terminal(110).with_ink(Ink::Plain), &fixture::document());
    let mut inked = replay::full(Style::terminal(110), &fixture::document());
    assert!(inked.contains("\x1b[1m"));
    for code in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m"] {
        inked = inked.replace(code, "");
    }
    assert_eq!(inked, plain);
}

#[test]
fn an_empty_document_is_an_empty_account() {
    assert_eq!(replay::full(Style::plain(), &Document::new("replay")), "");
}
