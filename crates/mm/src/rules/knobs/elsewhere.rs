//! Linux's settings that are no knobs: what holds here in their place. Who asks for one is told, and not offered another of a like name.

/// Settings of one reason.
struct Elsewhere {
    /// Their names as knobs would have them; one that ends in a dot stands for all that begin with it.
    names: &'static [&'static str],
    why: &'static str,
}

const fn elsewhere(names: &'static [&'static str], why: &'static str) -> Elsewhere {
    Elsewhere { names, why }
}

const ALL: &[Elsewhere] = &[
    elsewhere(
        &["vm.dirtytime_expire_seconds", "vm.laptop_mode", "vm.block_dump"],
        "times of inodes and disks that sleep are not simulated",
    ),
    elsewhere(&["vm.highmem_is_dirtyable"], "HighMem does not count for what may be dirty, as where it is 0"),
    elsewhere(
        &["vm.compact_memory", "vm.drop_caches", "vm.stat_refresh", "memory.reclaim"],
        "writing to it does something once, and leaves nothing that stands",
    ),
    elsewhere(&["vm.compact_unevictable_allowed"], "compaction moves locked pages, as where it is 1"),
    elsewhere(
        &["vm.vfs_cache_pressure", "vm.vfs_cache_pressure_denom", "vm.min_slab_ratio"],
        "caches of inodes and of names are not simulated, so nothing of them is reclaimed",
    ),
    elsewhere(
        &["vm.admin_reserve_kbytes", "vm.user_reserve_kbytes"],
        "vm.overcommit_memory=2 sets nothing aside for root or for a user",
    ),
    elsewhere(
        &["vm.overcommit_kbytes"],
        "how much may be promised is set as a part of memory, by vm.overcommit_ratio",
    ),
    elsewhere(
        &["vm.oom_kill_allocating_task", "vm.panic_on_oom", "vm.oom_dump_tasks"],
        "where the machine's memory is out nobody is killed for it here: what there is no page for is counted",
    ),
    elsewhere(&["memory.oom_control"], "a program is killed where its cgroup is full, as by default"),
    elsewhere(&["memory.oom.group"], "all tasks of a program are killed together, as where it is 1"),
    elsewhere(
        &[
            "vm.nr_hugepages",
            "vm.nr_hugepages_mempolicy",
            "vm.nr_overcommit_hugepages",
            "vm.hugetlb_shm_group",
            "vm.hugetlb_optimize_vmemmap",
            "hugetlb.",
        ],
        "huge pages that are set aside (hugetlbfs) are not simulated, only transparent ones",
    ),
    elsewhere(
        &[
            "vm.max_map_count",
            "vm.mmap_min_addr",
            "vm.legacy_va_layout",
            "vm.mmap_rnd_bits",
            "vm.mmap_rnd_compat_bits",
        ],
        "mappings are those of the recording, however many and wherever they lie",
    ),
    elsewhere(
        &["vm.memfd_noexec", "vm.unprivileged_userfaultfd"],
        "it is a permission, and a recorded program has what it was allowed",
    ),
    elsewhere(&["vm.numa_stat"], "what counting by node costs is not simulated"),
    elsewhere(&["vm.page_lock_unfairness"], "the lock of a page is not simulated"),
    elsewhere(
        &["transparent_hugepage.khugepaged.alloc_sleep_millisecs"],
        "khugepaged sleeps 60 s where there is no huge page to be had, as by default",
    ),
    elsewhere(
        &["transparent_hugepage.khugepaged.defrag"],
        "khugepaged reclaims and compacts for a huge page, as where it is 1",
    ),
    elsewhere(
        &["transparent_hugepage.khugepaged.max_ptes_swap"],
        "khugepaged brings no page back from swap, as where it is 0 (64 by default)",
    ),
    elsewhere(
        &[
            "transparent_hugepage.khugepaged.full_scans",
            "transparent_hugepage.khugepaged.pages_collapsed",
            "transparent_hugepage.hpage_pmd_size",
        ],
        "it is a figure that the kernel tells, and nothing that can be set",
    ),
    elsewhere(
        &["transparent_hugepage.shrink_underused"],
        "huge pages of which most was never written stay as they are, as where it is 0 (1 by default, since 6.12)",
    ),
    elsewhere(&["mempolicy."], "interleaved memory has as many pages on each node"),
    elsewhere(&["read_ahead_kb"], "a replay has the recorded machine's, and 128 KiB where that is not known"),
    elsewhere(&["fault_around_bytes"], "a fault on a file maps up to 64 KiB around it, as by default"),
    elsewhere(&["ksm."], "pages of the same contents are not merged here"),
    elsewhere(&["damon."], "DAMON is not simulated"),
    elsewhere(
        &["memory.swap.high", "memory.zswap.max", "memory.zswap.writeback"],
        "of swap a cgroup has memory.swap.max alone",
    ),
    elsewhere(
        &["zswap.shrinker_enabled"],
        "nothing of zswap's pool is written out only because it was not used for long, as where it is N",
    ),
    elsewhere(
        &["zswap.zpool", "zswap.same_filled_pages_enabled"],
        "how zswap keeps pages is zswap.compressor and zswap.ratio_percent",
    ),
    elsewhere(
        &["zram.mem_limit", "zram.backing_dev", "zram.max_comp_streams"],
        "a zram device is its size, its algorithm and a ratio",
    ),
    elsewhere(&["memory.limit_in_bytes"], "a cgroup's limit is memory.max, of version 2"),
    elsewhere(
        &["memory.soft_limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.kmem.limit_in_bytes"],
        "cgroups are those of version 2: memory.max, memory.high and memory.swap.max",
    ),
    elsewhere(&["memory.swappiness"], "all cgroups have vm.swappiness, as in version 2"),
];

/// What holds in the place of Linux's setting `name`, which is no knob; `None` for what is not known to be one.
pub fn in_place_of(name: &str) -> Option<&'static str> {
    let is_it = |known: &str| name == known || known.ends_with('.') && name.starts_with(known);
    ALL.iter().find(|all| all.names.iter().any(|known| is_it(known))).map(|all| all.why)
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::rules::knobs::KNOBS;

    /// Files of /proc/sys/vm in Linux 6.18.
    const OF_VM: &str = "admin_reserve_kbytes compact_memory compact_unevictable_allowed compaction_proactiveness defrag_mode \
        dirty_background_bytes dirty_background_ratio dirty_bytes dirty_expire_centisecs dirty_ratio dirty_writeback_centisecs \
        dirtytime_expire_seconds drop_caches extfrag_threshold hugetlb_optimize_vmemmap hugetlb_shm_group laptop_mode \
        legacy_va_layout lowmem_reserve_ratio.dma max_map_count memfd_noexec min_free_kbytes min_slab_ratio min_unmapped_ratio \
        mmap_min_addr mmap_rnd_bits mmap_rnd_compat_bits nr_hugepages nr_hugepages_mempolicy nr_overcommit_hugepages numa_stat \
        numa_zonelist_order oom_dump_tasks oom_kill_allocating_task overcommit_kbytes overcommit_memory overcommit_ratio \
        page-cluster page_lock_unfairness panic_on_oom percpu_pagelist_high_fraction stat_interval stat_refresh swappiness \
        unprivileged_userfaultfd user_reserve_kbytes vfs_cache_pressure vfs_cache_pressure_denom watermark_boost_factor \
        watermark_scale_factor zone_reclaim_mode";

    #[test]
    fn every_file_of_vm_is_a_knob_or_has_a_reason() {
        for name in OF_VM.split_ascii_whitespace().map(|name| alloc::format!("vm.{name}")) {
            let is_knob = KNOBS.iter().any(|spec| spec.name == name);
            assert!(is_knob || in_place_of(&name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_setting_is_a_knob_or_has_a_reason_and_no_name_stands_twice() {
        let names: Vec<&str> = ALL.iter().flat_map(|all| all.names).copied().collect();
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{name} twice");
        }
        for spec in KNOBS {
            assert_eq!(in_place_of(spec.name), None, "{} is a knob", spec.name);
        }
        assert!(in_place_of("ksm.run").is_some() && in_place_of("vm.panic_on_oom").is_some());
        assert!(in_place_of("ksm").is_none() && in_place_of("vm.no_such_thing").is_none());
    }
}
