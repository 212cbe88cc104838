//! Values as a person writes them.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::{KNOBS, Knob};
use crate::rules::policy::Policy;

fn read(knob: Knob, text: &str) -> Vec<u64> {
    knob.parse(text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn words_sizes_and_ranges_are_read() {
    assert_eq!(read(Knob::TransparentHugepage, "madvise"), [2]);
    assert_eq!(read(Knob::TransparentHugepage, "2"), [2]);
    assert_eq!(read(Knob::HugeDefrag, "defer+madvise"), [3]);
    assert_eq!(read(Knob::NumaZonelistOrder, "node"), [1]);
    assert_eq!(read(Knob::DemotionEnabled, "true"), [1]);
    assert_eq!(read(Knob::MinFreeKbytes, "64M"), [65_536]);
    assert_eq!(read(Knob::BalancingScanSize, "1G"), [1024]);
    assert_eq!(read(Knob::PromoteRateLimit, "1G"), [1024]);
    assert_eq!(read(Knob::KhugepagedPagesToScan, "16M"), [4096]);
    assert_eq!(read(Knob::Swappiness, "0-100:20"), [0, 20, 40, 60, 80, 100]);
    assert_eq!(read(Knob::Swappiness, "0-100:30"), [0, 30, 60, 90]);
    assert_eq!(read(Knob::PcpBatchScaleMax, "4-6"), [4, 5, 6]);
    assert_eq!(read(Knob::MinFreeKbytes, "64M-256M:64M"), [65_536, 131_072, 196_608, 262_144]);
}

#[test]
fn what_cannot_be_is_refused_in_a_line() {
    let refused = |knob: Knob, text: &str| knob.parse(text).unwrap_err().to_string();
    assert_eq!(
        refused(Knob::TransparentHugepage, "sometimes"),
        "transparent_hugepage.enabled = sometimes cannot be: it takes never, always, madvise, a number or a range with a step (0-100:20)"
    );
    assert_eq!(
        refused(Knob::BalancingScanSize, "1K"),
        "numa_balancing.scan_size_mb = 1K cannot be: it takes a number, a size (64M) or a range with a step (0-100:20)"
    );
    assert_eq!(
        refused(Knob::Swappiness, "64M"),
        "vm.swappiness = 64M cannot be: it takes a number or a range with a step (0-100:20)"
    );
    assert_eq!(
        refused(Knob::Swappiness, "0-100:"),
        "vm.swappiness = 0-100: cannot be: it takes a number or a range with a step (0-100:20)"
    );
    assert_eq!(
        refused(Knob::Swappiness, "0-100:0"),
        "vm.swappiness = 0-100:0 cannot be: it takes a number or a range with a step (0-100:20)"
    );
    assert_eq!(
        refused(Knob::Swappiness, "100-0"),
        "vm.swappiness = 100-0 cannot be: it takes a number or a range with a step (0-100:20)"
    );
    assert_eq!(refused(Knob::Swappiness, "0-300:100"), "vm.swappiness = 300 is out of range: 0 to 200");
    assert_eq!(
        refused(Knob::MinFreeKbytes, "0-1G"),
        "vm.min_free_kbytes = 0-1G stands for 1048577 values, and 1000 are the most; give it a longer step, as 0-100:20"
    );
    assert_eq!(
        refused(Knob::PercpuPagelistHighFraction, "0-16:4"),
        "vm.percpu_pagelist_high_fraction = 4 is out of range: 0 to 2147483647, without 1 to 7"
    );
    assert_eq!(
        refused(Knob::MinFreeKbytes, "99999999999999999999"),
        "vm.min_free_kbytes = 99999999999999999999 cannot be: it takes a number, a size (64M) or a range with a step (0-100:20)"
    );
    assert_eq!(
        refused(Knob::MinFreeKbytes, ""),
        "vm.min_free_kbytes =  cannot be: it takes a number, a size (64M) or a range with a step (0-100:20)"
    );
}

#[test]
fn the_line_that_sets_a_value_can_be_pasted() {
    let line = |knob: Knob, value: u64| knob.command(value, None).unwrap_or_default();
    assert_eq!(
        line(Knob::TransparentHugepage, 2),
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
    );
    assert_eq!(line(Knob::NumaZonelistOrder, 1), "echo node > /proc/sys/vm/numa_zonelist_order");
    assert_eq!(line(Knob::LowmemReserveNormal, 16), "echo 256 256 16 > /proc/sys/vm/lowmem_reserve_ratio");
    let here = Knob::LowmemReserveDma32.command(99, Some("256 256 32 0 0"));
    assert_eq!(here.as_deref(), Some("echo 256 99 32 0 0 > /proc/sys/vm/lowmem_reserve_ratio"));
    // A kernel without so many zones has no such number.
    assert_eq!(Knob::LowmemReserveNormal.command(16, Some("256 32")), None);
    // What the kernel chose at boot cannot be written back, and 0 would be taken at its word.
    assert_eq!(Knob::MinFreeKbytes.command(0, None), None);
    assert_eq!(Knob::HugeDefrag.command(0, None), None);
    assert_eq!(Knob::PcpBatchScaleMax.command(0, None), None);
}

#[test]
fn every_knob_with_a_file_has_an_example_that_it_takes() {
    for spec in KNOBS.iter().filter(|spec| spec.stands_for.path().is_some()) {
        let example = spec.knob.example();
        let has_words = !spec.knob.words().is_empty();
        assert!(has_words || spec.knob.command(example, None).is_some(), "{}", spec.name);
        assert_eq!(spec.knob.check(example), Ok(()), "{}", spec.name);
    }
}

#[test]
fn a_knob_has_a_file_or_a_word_of_boot_if_a_kernel_has_it() {
    for spec in &KNOBS {
        let nowhere = matches!(spec.stands_for, super::StandsFor::Nothing(_));
        assert_eq!(spec.kernels.is_none(), nowhere, "{}", spec.name);
    }
}

#[test]
fn a_kernel_without_the_knob_or_the_value_refuses_it() {
    let refused = |policy: &str, knob: Knob, value: u64| {
        let policy = Policy::parse(policy).unwrap();
        policy.check_knob(knob, value).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(
        refused("linux-4.4", Knob::CompactionProactiveness, 20),
        "vm.compaction_proactiveness is refused under linux-4.4: Linux since 5.9 has it"
    );
    assert_eq!(
        refused("linux-4.4", Knob::DemotionEnabled, 1),
        "numa.demotion_enabled is refused under linux-4.4: Linux since 5.15 has it"
    );
    assert_eq!(
        refused("linux-4.4+yield", Knob::DemotionEnabled, 1),
        "numa.demotion_enabled is refused under linux-4.4+yield: Linux since 5.15 has it"
    );
    assert_eq!(
        refused("linux-5.7", Knob::Swappiness, 150),
        "vm.swappiness = 150 is refused under linux-5.7: Linux since 5.8 takes that value"
    );
    assert_eq!(
        refused("linux-4.5", Knob::HugeDefrag, 2),
        "transparent_hugepage.defrag = defer is refused under linux-4.5: Linux since 4.6 takes that value"
    );
    assert_eq!(
        refused("linux-4.10", Knob::HugeDefrag, 3),
        "transparent_hugepage.defrag = defer+madvise is refused under linux-4.10: Linux since 4.11 takes that value"
    );
    assert_eq!(
        refused("linux-4.14", Knob::NumaZonelistOrder, 2),
        "vm.numa_zonelist_order = zone is refused under linux-4.14: Linux before 4.14 takes that value"
    );
    // A series counts by the kernel that it was posted for, ours by the one that it stands on.
    for (policy, knob, value) in [
        ("kmmscand-v0", Knob::PromoteRateLimit, 1),
        ("freehold", Knob::CompactionProactiveness, 20),
        ("linux-5.8", Knob::Swappiness, 200),
        ("linux-4.10", Knob::HugeDefrag, 2),
        ("linux-4.13", Knob::NumaZonelistOrder, 2),
        // No mainline kernel has it: it runs under any.
        ("linux-3.0", Knob::PcpBatchScaleMax, 0),
        ("linux-7.2", Knob::PcpBatch, 63),
    ] {
        assert_eq!(refused(policy, knob, value), "", "{policy}");
    }
}

/// A knob and a value that it takes.
fn taken() -> impl Strategy<Value = (Knob, u64)> {
    (0..KNOBS.len()).prop_flat_map(|index| {
        let spec = &KNOBS[index];
        (Just(spec.knob), spec.min..=spec.max)
            .prop_filter("a gap", |(knob, value)| knob.check(*value).is_ok())
    })
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back((knob, value) in taken()) {
        prop_assert_eq!(knob.parse_one(&knob.written(value).to_string()), Ok(value));
        prop_assert_eq!(knob.parse(&knob.written(value).to_string()), Ok(vec![value]));
    }

    #[test]
    fn the_file_is_given_what_is_read_back((knob, value) in taken()) {
        if let Some(line) = knob.command(value, None) {
            let (written, path) = line.strip_prefix("echo ").unwrap().split_once(" > ").unwrap();
            prop_assert_eq!(Some(path), knob.spec().stands_for.path());
            let number = written.split(' ').nth(match knob.spec().stands_for {
                super::StandsFor::SysctlNumber { place, .. } => place,
                _ => 0,
            });
            prop_assert_eq!(knob.parse_one(number.unwrap()), Ok(value));
        }
    }

    #[test]
    fn any_text_is_read_or_refused(index in 0..KNOBS.len(), text in "[0-9a-zA-Z+:-]{0,12}") {
        let knob = KNOBS[index].knob;
        if let Ok(values) = knob.parse(&text) {
            prop_assert!(!values.is_empty() && values.iter().all(|&value| knob.check(value).is_ok()));
        }
    }
}
