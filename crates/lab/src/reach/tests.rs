//! Who can act where.

use mm::{KNOBS, Knob, Policy};
use sim::Profile;

use super::{Brings, Where, refusals, too_late};

const RECORDING: Brings = Brings { is_recording: true, ..Brings::PAGES };

/// Names of the knobs that `brings` refuses on `machine` under `policy`, each set alone.
fn refused(brings: Brings, machine: &str, policy: &str) -> Vec<&'static str> {
    let (profile, policy) = (Profile::load(machine).unwrap(), Policy::parse(policy).unwrap());
    let topology = profile.topology();
    let alone = |knob: Knob| {
        let set = [(knob, knob.spec().max)];
        let place = Where { brings, topology: &topology, policy: &policy, set: &set };
        !refusals(&place).is_empty()
    };
    KNOBS.iter().filter(|spec| alone(spec.knob)).map(|spec| spec.name).collect()
}

#[test]
fn a_recording_refuses_what_only_address_spaces_and_files_reach() {
    let refused = refused(RECORDING, "epyc-7w83", "linux-6.18");
    let taken: Vec<&str> =
        KNOBS.iter().map(|spec| spec.name).filter(|name| !refused.contains(name)).collect();
    insta::assert_snapshot!(taken.join("\n"), @r"
    vm.pcp_batch_scale_max
    vm.percpu_pagelist_high_fraction
    vm.min_free_kbytes
    vm.watermark_scale_factor
    vm.watermark_boost_factor
    vm.lowmem_reserve_ratio.dma
    vm.lowmem_reserve_ratio.dma32
    vm.stat_interval
    freehold.pcp_batch
    freehold.pcp_high_batches
    vm.defrag_mode
    ");
}

#[test]
fn slab_events_bring_slab_knobs() {
    let with = refused(Brings { slabs: true, ..RECORDING }, "epyc-7w83", "linux-6.18");
    let without = refused(RECORDING, "epyc-7w83", "linux-6.18");
    let gained: Vec<&&str> = without.iter().filter(|name| !with.contains(name)).collect();
    assert_eq!(
        gained,
        [
            &"slab_max_order",
            &"slab_min_objects",
            &"freehold.cpu_partial_scale",
            &"freehold.node_partial_scale"
        ]
    );
}

#[test]
fn the_reason_names_what_is_missing() {
    let (profile, policy) = (Profile::load("epyc-7w83").unwrap(), Policy::parse("linux-6.18").unwrap());
    let topology = profile.topology();
    let said = |set: &[(Knob, u64)]| {
        let place = Where { brings: RECORDING, topology: &topology, policy: &policy, set };
        refusals(&place).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let (huge, small) = (Knob::TransparentHugepage, Knob::MinFreeKbytes);
    insta::assert_snapshot!(said(&[(huge, 0), (huge, 1)]), @"transparent_hugepage.enabled cannot act here: the recording has page and slab events, but not what the program did to its memory (record has it by default); forced, it would show only what khugepaged's wish does to vm.min_free_kbytes");
    insta::assert_snapshot!(said(&[(small, 4096), (huge, 0)]), @"transparent_hugepage.enabled cannot act here: the recording has page and slab events, but not what the program did to its memory (record has it by default)");
    insta::assert_snapshot!(said(&[(Knob::NumaZonelistOrder, 1), (Knob::Arenas, 2)]), @r"
    vm.numa_zonelist_order cannot act here: linux-6.18: since 4.14 there is only node order
    freehold.arenas cannot act here: linux-6.18: a zone has one set of free lists (+arenas and +zones divide it)
    ");
    assert_eq!(said(&[(Knob::PcpBatchScaleMax, 0), (Knob::StatInterval, 3)]), "");
}

/// What is read ahead is so from disks, and from zram before 6.14 or after a fork before 7.0; what swap there is is as set, or else as recorded.
#[test]
fn what_reads_ahead_needs_a_disk() {
    let profile = Profile::load("epyc-7w83").unwrap();
    let topology = profile.topology();
    let refusal = |policy: &str, swap: Option<Knob>, set: &[(Knob, u64)]| {
        let brings = Brings { swap, ..Brings::SPACES };
        let policy = Policy::parse(policy).unwrap();
        let place = Where { brings, topology: &topology, policy: &policy, set };
        refusals(&place).first().map(ToString::to_string)
    };
    let (zram, disk) = (Some(Knob::ZramDisksize), Some(Knob::SwapDisk));
    let cluster = (Knob::PageCluster, 0);
    assert_eq!(refusal("linux-6.18", disk, &[cluster]), None);
    assert_eq!(refusal("linux-6.18", zram, &[cluster, (Knob::SwapDisk, 1 << 30)]), None);
    assert_eq!(refusal("linux-6.12", zram, &[cluster]), None);
    let told = |refusal: Option<String>, what: &str| refusal.is_some_and(|text| text.contains(what));
    assert!(told(refusal("linux-6.18", zram, &[cluster]), "from zram each page is read alone"));
    assert!(told(refusal("linux-6.18", disk, &[cluster, (Knob::ZramDisksize, 1 << 30)]), "read alone"));
    assert!(told(refusal("linux-6.18", None, &[cluster]), "there is no swap"));
    let by_region = (Knob::VmaRaEnabled, 0);
    assert!(told(refusal("linux-6.12", zram, &[by_region]), "read alone"));
    assert!(told(refusal("linux-6.12", zram, &[(Knob::SwapRotational, 0)]), "no swap on a disk"));
    for knob in [Knob::SwapRotational, Knob::VmaRaEnabled] {
        assert_eq!(refusal("linux-6.18", disk, &[(knob, 0)]), None);
    }
    let forked = |policy: &str, set: (Knob, u64)| {
        let brings = Brings { swap: zram, forks: true, ..Brings::SPACES };
        let policy = Policy::parse(policy).unwrap();
        let place = Where { brings, topology: &topology, policy: &policy, set: &[set] };
        refusals(&place).is_empty()
    };
    assert!(forked("linux-6.18", cluster) && forked("linux-6.18", by_region));
    assert!(!forked("linux-7.0", cluster) && !forked("linux-7.0", by_region));
}

/// What swap is on, and how it is compressed, is not asked again in mid-run.
#[test]
fn what_is_read_at_the_start_cannot_change_later() {
    let later = [Knob::ZswapRatio, Knob::Swappiness, Knob::SwapDisk, Knob::ZswapRatio, Knob::ZswapEnabled];
    let told: Vec<String> = too_late(later.into_iter(), &[Knob::ZswapRatio, Knob::SwapDisk])
        .iter()
        .map(ToString::to_string)
        .collect();
    let text =
        |name: &str| format!("{name} cannot act here: it is read when a run begins, and not in mid-run");
    assert_eq!(told, [text("swap.disk"), text("zswap.ratio_percent")]);
}

#[test]
fn huge_pages_may_be_had_by_their_own_file() {
    let (profile, policy) = (Profile::load("epyc-7w83").unwrap(), Policy::parse("linux-6.18").unwrap());
    let topology = profile.topology();
    let brings = Brings { spaces: true, ..Brings::PAGES };
    let refused = |set: &[(Knob, u64)]| {
        let place = Where { brings, topology: &topology, policy: &policy, set };
        refusals(&place).into_iter().map(|refusal| refusal.missing).collect::<Vec<String>>()
    };
    let defrag = (Knob::HugeDefrag, 1);
    let [none, own, never] =
        [(Knob::TransparentHugepage, 0), (Knob::Hugepages2048kB, 1), (Knob::Hugepages2048kB, 0)];
    assert!(refused(&[defrag, none])[0].starts_with("transparent_hugepage.enabled is 0"));
    assert_eq!(refused(&[defrag, none, own]), Vec::<String>::new());
    assert!(refused(&[defrag, never])[0].starts_with("transparent_hugepage.hugepages-2048kB.enabled is 0"));
}
