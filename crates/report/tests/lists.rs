//! Knobs, machines and the outcome of conform, as snapshots.

use freehold_report::{Style, conform, knobs, machines};
use host::KnobFile;
use lab::conform::{
    CachesCompared, CounterRow, Difference, Figure, FileKind, FileOutcome, Moves, PagesMoved, Shortage,
    Sides, StayedRow,
};
use sim::Profile;

#[test]
fn every_knob_has_a_line_and_a_page() {
    let list = knobs::list(Style::plain());
    for spec in &mm::knobs::KNOBS {
        assert!(list.contains(spec.name), "{}", spec.name);
        let page = knobs::show(Style::plain(), spec.knob, None, None);
        assert!(page.contains(&spec.stands_for.to_string()), "{page}");
    }
    assert!(list.lines().all(|line| line.chars().count() <= 110), "{list}");
}

#[test]
fn a_knob_in_full() {
    let show = |name: &str, value, here: Option<&KnobFile>| {
        knobs::show(Style::plain(), knobs::find(name).expect("a knob"), value, here)
    };
    insta::assert_snapshot!(show("vm.percpu_pagelist_high_fraction", None, Some(&KnobFile::Missing)), @r"
    vm.percpu_pagelist_high_fraction
      If not 0 (then 8 or more), a zone's CPUs together keep at most 1/this of it, and tuning is off
      range    0 and up
      default  0
      Linux    /proc/sys/vm/percpu_pagelist_high_fraction
      kernels  Linux since 5.14
      here     this kernel has no such file
      to set   echo 0 > /proc/sys/vm/percpu_pagelist_high_fraction
    ");
    let here = KnobFile::Holds("256 256 32 0 0".into());
    insta::assert_snapshot!(show("vm.lowmem_reserve_ratio.normal", Some(16), Some(&here)), @r"
    vm.lowmem_reserve_ratio.normal
      The same for Normal, against requests that could use HighMem or Movable
      range    0 and up
      default  32
      Linux    /proc/sys/vm/lowmem_reserve_ratio, number 3
      kernels  every Linux since 3.0
      here     256 256 32 0 0
      to set   echo 256 256 16 0 0 > /proc/sys/vm/lowmem_reserve_ratio
    ");
    let here = KnobFile::Holds("always [madvise] never".into());
    insta::assert_snapshot!(show("transparent_hugepage.enabled", None, Some(&here)), @r"
    transparent_hugepage.enabled
      Who gets huge pages: never (0) nobody, always (1) all, madvise (2) programs that ask. If not never,
      khugepaged runs, which raises min_free_kbytes where that was not set by hand
      range    never always madvise
      default  always
      Linux    /sys/kernel/mm/transparent_hugepage/enabled
      kernels  every Linux since 3.0
      here     always [madvise] never
      to set   echo never > /sys/kernel/mm/transparent_hugepage/enabled
               echo always > /sys/kernel/mm/transparent_hugepage/enabled
               echo madvise > /sys/kernel/mm/transparent_hugepage/enabled
    ");
    let here_alone = show("vm.pcp_batch_scale_max", None, None);
    assert!(
        here_alone.contains("no mainline kernel has this") && !here_alone.contains("to set"),
        "{here_alone}"
    );
}

#[test]
fn an_unknown_knob_has_a_neighbour() {
    let line = knobs::find("vm.pcp_batch_scal").expect_err("no knob");
    assert_eq!(
        line,
        "no knob `vm.pcp_batch_scal`; did you mean `vm.pcp_batch_scale_max`? `freehold knobs list` lists them"
    );
}

#[test]
fn every_machine_has_a_line_and_a_page() {
    let profiles: Vec<Profile> =
        Profile::builtin_names().map(|name| Profile::load(name).expect("a built-in profile")).collect();
    let list = machines::list(Style::plain(), &profiles);
    assert_eq!(list.lines().filter(|line| !line.starts_with(' ')).count(), profiles.len() + 1, "{list}");
    for profile in &profiles {
        let page = machines::show(Style::plain(), profile);
        for (spec, figure) in profile.figures() {
            assert!(page.contains(spec.key), "{}: {}", profile.name(), spec.key);
            assert!(figure.source.split_whitespace().all(|word| page.contains(word)), "{}", figure.source);
        }
    }
}

#[test]
fn counters_of_a_scene_stand_beside_the_kernels() {
    let row = |counter: &str, kernel, freehold, percent| CounterRow {
        counter: counter.into(),
        kernel,
        freehold,
        percent,
        worst_percent: 2.0 * percent,
        worst_mark: "mixed".into(),
    };
    let scene = FileOutcome {
        file: "s.txt.xz".into(),
        kind: FileKind::Scene,
        policy: "linux-6.12".into(),
        short: Shortage::default(),
        mechanisms: std::collections::BTreeMap::new(),
        kept_by: None,
        mechanism: None,
        compared: 0,
        equal: 0,
        differences: vec![],
        pages: None,
        caches: None,
        counters: vec![
            row("pgscan_file", 2000, 2200, 10.0),
            row("pswpin", 4000, 3960, -1.0),
            row("scene: pgsteal", 1000, 1000, 0.0),
        ],
        stayed: vec![StayedRow {
            name: "f cached".into(),
            mean_points: 0.72,
            worst_points: 13.04,
            worst_mark: "read".into(),
        }],
        notes: vec![],
    };
    insta::assert_snapshot!(conform::outcomes(Style::plain(), &[scene]), @r"
    s.txt.xz (linux-6.12): 0 of 0 equal
      since the first mark                    real   simulated    error  worst at a mark
      pgscan_file                             2000        2200   +10.0%  +20.0% mixed
      pswpin                                  4000        3960    -1.0%  -2.0% mixed
      scene: pgsteal                          1000        1000    +0.0%  +0.0% mixed
      3 counters: off by 1.0 % at the median, 10.0 % at most
      which pages: f cached             off by 0.7 points of an eighth on average, 13.0 at most (read)
    1 file, 0 figures compared, 0 disagreements
    ");
}

#[test]
fn disagreements_have_a_line_each_and_a_count() {
    let equal = FileOutcome {
        file: "a.txt".into(),
        kind: FileKind::Capture,
        policy: "linux-6.18".into(),
        short: Shortage::default(),
        mechanisms: std::collections::BTreeMap::new(),
        kept_by: None,
        mechanism: None,
        compared: 90,
        equal: 90,
        differences: vec![],
        pages: None,
        caches: Some(CachesCompared { compared: 241, equal: 240 }),
        counters: vec![],
        stayed: vec![],
        notes: vec![],
    };
    let moves = |count, pages| Moves { count, pages };
    let other = FileOutcome {
        file: "b.csv.xz".into(),
        kind: FileKind::PageTrace,
        compared: 12,
        equal: 11,
        differences: vec![Difference {
            what: "line 812: refill 7 of cpu 1".into(),
            kernel: Figure::Number(126),
            freehold: Figure::Number(63),
        }],
        pages: Some(PagesMoved {
            refills: Sides { kernel: moves(10, 2000), freehold: moves(10, 1937) },
            drains: Sides { kernel: moves(3, 189), freehold: moves(3, 189) },
            drains_by_kswapd: Sides::default(),
            drains_of_all: moves(2, 700),
            drains_of_idle: Moves::default(),
        }),
        caches: None,
        notes: vec!["2 lines could not be read".into()],
        ..equal.clone()
    };
    insta::assert_snapshot!(conform::outcomes(Style::plain(), &[equal, other]), @r"
    a.txt (linux-6.18): 90 of 90 equal
      241 slab caches, 240 with every figure equal
    b.csv.xz (linux-6.18): 11 of 12 equal
      line 812: refill 7 of cpu 1: kernel 126, freehold 63
      refills: kernel 10 of 2000 pages, freehold 10 of 1937 pages (-3.15 %)
      drains: kernel 3 of 189 pages, freehold 3 of 189 pages (+0.00 %)
      emptied by drain_all, told to mm: 2 of 700 pages
      2 lines could not be read
    2 files, 102 figures compared, 1 disagreement
    ");
}
