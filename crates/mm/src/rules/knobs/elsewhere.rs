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
        &["vm.defrag_mode"],
        "requests of different mobility mix here before memory is reclaimed or compacted, as where it is 0",
    ),
    elsewhere(
        &["vm.dirtytime_expire_seconds", "vm.laptop_mode", "vm.block_dump"],
        "times of inodes and disks that sleep are not simulated",
    ),
    elsewhere(&["vm.highmem_is_dirtyable"], "HighMem does not count for what may be dirty, as where it is 0"),
    elsewhere(
        &["vm.compact_memory", "vm.drop_caches", "vm.stat_refresh"],
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
        &["vm.max_map_count", "vm.mmap_min_addr", "vm.legacy_va_layout", "vm.mmap_rnd_bits"],
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
