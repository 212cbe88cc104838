//! Scenes that ran on stock kernels: how many of their counters mm has exactly. One that had some must not lose any.

use std::path::PathBuf;

use freehold_lab::conform::{FileKind, FileOutcome, conform_file};
use freehold_lab::evidence::{Held, Table, of_scene};

fn play(scene: &str) -> FileOutcome {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/scenes");
    let outcome = conform_file(&folder.join(format!("{scene}.txt.xz"))).unwrap();
    assert_eq!(outcome.kind, FileKind::Scene);
    let table: Vec<Held> = Table::bundled().held.iter().filter(|held| held.scene == scene).cloned().collect();
    assert_eq!(
        of_scene(&outcome),
        table,
        "{scene}: labels rest on other figures; `make evidence` writes them anew"
    );
    outcome
}

/// The scene has this many figures, and only these differ.
fn assert_played(scene: &str, compared: u64, different: &[&str]) {
    let outcome = play(scene);
    let differences: Vec<String> = outcome.differences.iter().map(ToString::to_string).collect();
    assert_eq!(differences, different, "{scene}");
    assert_eq!((outcome.compared, outcome.equal), (compared, compared - different.len() as u64), "{scene}");
}

/// Scenes of which no test says more: each is what the table of evidence says.
#[test]
fn the_others_are_what_labels_rest_on() {
    for scene in [
        "anon-zram-150-mglru",
        "compaction",
        "compaction-7.2",
        "compaction-tight",
        "deferred-split",
        "deferred-split-6.18",
        "khugepaged-6.18",
        "madvise",
        "mix-max-mglru-7.2",
        "oom",
        "shared-loop-classic-7.2",
        "shared-loop-mglru",
        "shared-loop-mglru-6.18",
        "shared-loop-mglru-7.2",
        "shared-mix-classic-7.2",
        "shared-mix-mglru-6.18",
        "shared-mix-mglru-7.2",
        "virtio-mix",
        "virtio-small-classic",
        "virtio-small-classic-6.18",
        "virtio-small-mglru",
        "virtio-small-mglru-6.18",
        "zone-reclaim-classic",
        "zone-reclaim-mglru",
    ] {
        play(scene);
    }
}

/// Programs that were written, and run on three kernels, to find what is wrong where nobody had looked: locked-limit and wmark-set showed that locked
/// memory and dropped shadows were not as in the kernel, lazyfree-limit that batches forgot uses, bind-node whose turn it is on another CPU.
#[test]
fn scenes_that_were_written_to_find_faults_are_what_labels_rest_on() {
    for name in [
        "bind-node",
        "dirty-back",
        "far-node-classic",
        "far-node-mglru",
        "far-tight-classic",
        "far-tight-mglru",
        "fork-limit",
        "lazyfree-limit",
        "locked-limit",
        "private-file",
        "protect-tree",
        "shmem-huge",
        "spawned",
        "swap-max",
        "thp-limit",
        "wmark-set",
    ] {
        for kernel in ["", "-6.18", "-7.2"] {
            play(&format!("{name}{kernel}"));
        }
    }
    assert_counted("locked-limit", (1.0, 0.6), &[]);
    assert_counted("locked-limit-6.18", (3.0, 10.0), &[]);
    let of_7_2 = [("pgscan_anon", 42.0), ("pgrefill", 36.0), ("pgactivate", 35.0)];
    assert_counted("locked-limit-7.2", (10.0, 10.0), &of_7_2);
}

/// More such programs, run on four kernels before any was simulated. swappiness-0 showed that who reclaims may have the last page, and when 6.1
/// brings the statistics of groups up to date; map-limit, that a fault begins anew when its page has been read; anon-64k, that private memory comes
/// back in large pages; zero-fork, that a table stays one of small pages; khugepaged-late, whom khugepaged looks at. The others showed nothing yet.
#[test]
fn later_scenes_that_were_written_to_find_faults_are_what_labels_rest_on() {
    for name in [
        "advise-file",
        "anon-64k-classic",
        "anon-64k-mglru",
        "drop-all",
        "high-zram",
        "huge-advise",
        "map-limit-classic",
        "map-limit-mglru",
        "min-free-set",
        "mthp-cow",
        "mthp-sizes",
        "spread-press",
        "swappiness-0-classic",
        "swappiness-0-mglru",
        "two-swaps",
    ] {
        for kernel in ["", "-6.18", "-7.2"] {
            play(&format!("{name}{kernel}"));
        }
    }
    for exact in ["zero-fork", "khugepaged-late"] {
        for kernel in ["", "-6.1", "-6.18", "-7.2"] {
            let outcome = play(&format!("{exact}{kernel}"));
            assert_eq!(outcome.differences, [], "{exact}{kernel}");
            assert!(outcome.compared > 19, "{exact}{kernel}");
        }
    }
    let large = [("pgmajfault", 19.0), ("pgactivate", 7.5), ("workingset_activate_anon", 6.5)];
    assert_counted("anon-64k-classic", (3.5, 1.5), &large);
    assert_counted("mthp-cow-6.1", (0.3, 0.1), &[]);
    assert_counted("two-swaps-6.18", (2.0, 0.2), &[]);
    assert_counted("drop-all-6.18", (1.1, 8.5), &[]);
    assert_counted("swappiness-0-mglru", (1.0, 1.5), &[("_direct", 12.0)]);
    assert_counted("swappiness-0-classic-6.1", (12.0, 1.5), &[("_direct", 48.0)]);
    // Of private pages, a child's and its parent's, fewer go here: not looked into.
    let away = [("_anon", 26.0), ("pswpout", 26.0), ("restore_file", 58.0), ("activate_file", 15.5)];
    assert_counted("map-limit-classic", (4.0, 7.5), &away);
}

/// Twenty more, run on four kernels before any was played. shrink-grow and min-protect showed that a child has used nothing yet; random-reads, that
/// mappings that are read in order do not say what was used; thp-swap and oom-near, whose turns let a walk begin again; shared-fork-limit, that a
/// new program is walked whole.
#[test]
fn scenes_of_common_programs_are_what_labels_rest_on() {
    for name in [
        "dirty-machine",
        "fork-swapped",
        "group-zipf",
        "group-zipf-classic",
        "high-anon",
        "huge-fragment",
        "lazy-machine",
        "min-protect",
        "min-ttl",
        "mthp-32k-limit",
        "oom-near",
        "private-map-mix",
        "random-reads",
        "shared-fork-limit",
        "shrink-grow",
        "swap-full",
        "swap-full-classic",
        "thp-swap",
        "toggle-gen",
        "weave-two-nodes",
    ] {
        for kernel in ["", "-6.18", "-7.2"] {
            play(&format!("{name}{kernel}"));
        }
    }
    for (kernel, percent) in [("", 5.5), ("-6.1", 0.5), ("-6.18", 0.5)] {
        assert_counted(&format!("oom-near{kernel}"), (percent, 1.0), &[]);
    }
    assert_counted("random-reads-6.1", (2.0, 0.5), &[]);
    // 18 % before kcompactd was played: here it empties blocks of zone DMA, where the kernel's finds too little free.
    let back = [("refault_file", 54.0), ("activate_file", 54.0)];
    assert_counted("dirty-machine", (18.0, 3.5), &back);
    assert_counted("group-zipf-6.18", (3.5, 1.0), &[]);
    assert_counted("shrink-grow", (22.5, 2.5), &[("_direct", 13.5), ("_kswapd", 35.0)]);
    assert_counted("high-anon", (3.0, 1.0), &[]);
}

/// Eight more, run on four kernels before any was played, to see what turns are worth on scenes that nobody had looked at. Two of them end by a read of more
/// than the program's buffer holds.
#[test]
fn scenes_of_turns_are_what_labels_rest_on() {
    for name in [
        "cache-serve",
        "cache-serve-classic",
        "fork-pool",
        "grow-disk",
        "log-append-classic",
        "map-stream-classic",
        "tiny-kernel-classic",
        "two-readers",
    ] {
        for kernel in ["", "-6.18", "-7.2"] {
            play(&format!("{name}{kernel}"));
        }
    }
    let back = [("pgscan_anon", 31.5), ("workingset_activate_anon", 63.5)];
    assert_counted("grow-disk-6.18", (19.5, 16.0), &back);
    assert_counted("fork-pool-6.18", (5.5, 23.5), &[]);
    assert_counted("log-append-classic-6.1", (17.0, 0.1), &[("pgskip", 100.0)]);
}

/// Eleven programs, run on four kernels before any was played: snapshot-fork showed that kswapd runs for the zone for DMA alone, index-scan how much the
/// flusher writes at a time, buffer-pool nothing.
#[test]
fn scenes_of_common_programs_again_are_what_labels_rest_on() {
    for name in [
        "buffer-pool",
        "compile-many",
        "gc-heap",
        "huge-and-files",
        "index-scan",
        "map-db",
        "snapshot-fork",
        "snapshot-fork-gen",
        "step-limit",
        "swap-random",
        "two-cpus-press",
    ] {
        for kernel in ["", "-6.18", "-7.2"] {
            play(&format!("{name}{kernel}"));
        }
    }
    assert_counted("step-limit", (0.5, 0.5), &[]);
    assert_counted("step-limit-7.2", (1.0, 0.5), &[]);
    assert_counted("buffer-pool", (1.0, 1.0), &[]);
    assert_counted("buffer-pool-7.2", (2.0, 0.5), &[]);
}

/// All pages of other zones are skipped, once or twice over. How often is chance, but here it came out as in the kernel.
#[test]
fn kswapd_runs_for_the_zone_for_dma_alone() {
    assert_counted("tiny-kernel-classic-6.1", (0.5, 0.1), &[]);
    assert_counted("min-free-set-6.1", (0.1, 0.1), &[]);
    assert_counted("wmark-300-6.1", (3.5, 0.1), &[]);
}

/// Shared memory in huge pages and in pages of 64 KiB, captured before any was simulated; by what its plays showed then the rules are: where one is made
/// whole, how what does not come back so is divided, and that walks look at each huge entry.
#[test]
fn shared_memory_has_large_pages() {
    for name in ["64k", "back", "fallback", "khugepaged", "who", "zipf-classic", "zipf-mglru"] {
        for kernel in ["", "-6.18", "-7.2"] {
            play(&format!("shmem-{name}{kernel}"));
        }
    }
    assert_counted("shmem-huge", (0.2, 0.5), &[]);
    assert_counted("shmem-huge-6.18", (0.5, 0.5), &[]);
    assert_counted("shmem-64k", (0.5, 0.5), &[]);
    assert_counted("shmem-64k-6.18", (1.0, 0.5), &[]);
    // Which walks find the program away for a moment, and look at its tables, is chance: a kernel with a trace on has as many batches as the play.
    let walked = [("pgactivate", 75.0), ("pgrefill", 100.0), ("pgmajfault", 17.5)];
    assert_counted("shmem-back-6.18", (7.5, 7.5), &walked);
    assert_counted("shmem-back-7.2", (4.0, 0.5), &[]);
    assert_counted("shmem-fallback", (0.5, 0.5), &[]);
    assert_counted("shmem-fallback-6.18", (1.0, 0.5), &[]);
    let scanned = ["mark collapsed: thp_scan_exceed_none_pte: kernel 58, freehold 60"];
    for kernel in ["", "-6.18", "-7.2"] {
        assert_played(&format!("shmem-khugepaged{kernel}"), 33, &scanned);
    }
    assert_played("shmem-who-7.2", 82, &["mark denied: minor faults: kernel 1025, freehold 1024"]);
}

/// Captured on 6.1.192 (shared memory in huge pages on 6.1.176), by whose scenes no rules were made but those of what reclaim sees of groups' own lists, and
/// of where a fault makes shared memory huge.
#[test]
fn scenes_of_6_1_are_what_labels_rest_on() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/scenes");
    let names =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let scenes: Vec<String> = names
        .filter_map(|name| Some(name.strip_suffix(".txt.xz")?.to_owned()))
        .filter(|name| name.ends_with("-6.1"))
        .collect();
    assert!(scenes.len() > 20, "{scenes:?}");
    for scene in scenes {
        play(&scene);
    }
    for exact in [
        "compaction",
        "fork-cow-always",
        "fork-cow-never",
        "khugepaged",
        "madvise",
        "thp-stride-always",
        "thp-stride-never",
    ] {
        let outcome = play(&format!("{exact}-6.1"));
        assert_eq!(outcome.differences, [], "{exact}");
        assert!(outcome.compared > 10, "{exact}");
    }
}

#[test]
fn writes_strides_and_zeros_with_and_without_huge_pages() {
    assert_played("thp-stride-always", 27, &[]);
    assert_played("thp-stride-never", 18, &[]);
}

#[test]
fn copies_on_write_by_children_and_by_the_parent() {
    assert_played("fork-cow-always", 25, &[]);
    assert_played("fork-cow-never", 15, &[]);
}

#[test]
fn khugepaged_finds_sparse_regions() {
    assert_played("khugepaged", 29, &[]);
}

/// Counters at the last mark are within `percent` of the kernel's, but for those of `but`, which are within theirs; and the mean of
/// what stayed is within `points` of an eighth.
fn assert_counted(scene: &str, (percent, points): (f64, f64), but: &[(&str, f64)]) {
    let outcome = play(scene);
    assert!(outcome.counters.len() > 5, "{scene}: {:?}", outcome.counters);
    assert!(outcome.notes.is_empty(), "{scene}: {:?}", outcome.notes);
    for row in &outcome.counters {
        let most =
            but.iter().find(|(name, _)| row.counter.ends_with(name)).map_or(percent, |(_, most)| *most);
        assert!(row.percent.abs() <= most, "{scene}: {row:?}");
    }
    for row in &outcome.stayed {
        assert!(row.mean_points <= points, "{scene}: {row:?}");
    }
}

/// Six more, run on four kernels before any was played; sort-out showed that 6.12 sorts what is dirty among the oldest. page-cluster and prefork-serve of
/// 6.12 depend on a few hundred pages, or on when statistics are brought up to date (docs/reclaim.md).
#[test]
fn scenes_of_a_fifth_time_are_what_labels_rest_on() {
    for name in ["boost-off", "heap-trim", "high-file-mix", "page-cluster", "prefork-serve", "sort-out"] {
        for kernel in ["-6.1", "", "-6.18", "-7.2"] {
            play(&format!("{name}{kernel}"));
        }
    }
    for kernel in ["-6.1", "", "-6.18", "-7.2"] {
        assert_counted(&format!("high-file-mix{kernel}"), (6.5, 0.6), &[]);
    }
}

/// Programs with `vm.defrag_mode` and, but for it, the same without. For its rules defrag-huge and defrag-late on 6.18 were traced; of the others nothing was
/// looked at before.
#[test]
fn scenes_of_defrag_mode_are_what_labels_rest_on() {
    for kernel in ["-6.18", "-7.2"] {
        for name in ["full", "late", "tables", "tables-off"] {
            play(&format!("defrag-{name}{kernel}"));
        }
        for name in ["huge", "huge-off"] {
            assert_counted(&format!("defrag-{name}{kernel}"), (1.5, 5.5), &[]);
        }
    }
}

/// Five programs that `lru_gen.min_ttl_ms` has killed on all kernels but 6.1, captured before the rule was played. ttl-short of 6.12 comes to one mark
/// more here; in ttl-two of 6.18 and 7.2 the other program goes too.
#[test]
fn who_uses_memory_too_fast_is_killed_where_the_kernel_kills_it() {
    let too_many = ["ttl-two-6.18", "ttl-two-7.2"];
    for scene in ["files", "kept", "short", "thrash", "two"] {
        for kernel in ["-6.1", "", "-6.18", "-7.2"] {
            let name = format!("ttl-{scene}{kernel}");
            let outcome = play(&name);
            let kills = outcome.counters.iter().find(|row| row.counter == "oom_kill");
            let (real, here) = kills.map_or((0, 0), |row| (row.kernel, row.freehold));
            let more = u64::from(too_many.contains(&&*name));
            assert_eq!(here, real + more, "{name}");
            assert!(kernel != "-6.1" || real == 0, "{name}");
            // Nothing is counted where the first pass kills: what says so is that both come to the same marks.
            let is_told = more == 0 && name != "ttl-short";
            assert_eq!(outcome.notes.is_empty(), is_told, "{name}: {:?}", outcome.notes);
        }
    }
}

/// Of what requests reclaim by themselves a second boot of the kernel differs by 42 %, and play by 54 % since it has kcompactd.
const BY_REQUESTS: [(&str, f64); 3] =
    [("pgscan_direct", 54.0), ("pgsteal_direct", 54.0), ("allocstall", 54.0)];

/// Shared memory in swap: read alone since 6.14, by clusters before. In a loop the last pages are looked at once more by the kernel, or once
/// less.
#[test]
fn shared_memory_comes_back_as_it_does_in_linux() {
    let end = [("pgactivate", 36.0), ("pgdeactivate", 100.0), ("pgrefill", 100.0)];
    assert_counted("shared-loop-classic", (4.0, 0.5), &end);
    assert_counted("shared-loop-classic-6.18", (2.5, 0.5), &end[..1]);
    // A read that finds no room unmaps shared memory and leaves it; here it looks at up to 22 % more of it.
    let looked = [("pgscan_anon", 22.5), ("scene: pgscan", 18.5)];
    let aged = [("pgdeactivate", 24.0), ("pgrefill", 24.0)];
    let but = [&looked[..], &aged, &[("workingset_activate_anon", 48.0)]].concat();
    assert_counted("shared-mix-classic", (5.5, 1.5), &but);
    assert_counted("shared-mix-classic-6.18", (8.0, 3.0), &but);
    let back = [("workingset_activate_anon", 16.0), ("workingset_restore_anon", 16.0)];
    // Of the file 2,071 pages come back, 586 here.
    let few = [("workingset_refault_file", 72.0), ("workingset_activate_file", 72.0), ("pgrefill", 39.0)];
    assert_counted("shared-mix-mglru", (10.0, 1.0), &[back.as_slice(), &few].concat());
}

/// Of three boots of the kernel this one is apart: requests scan 52,522 pages, in the others 31,298 and 31,696.
#[test]
fn a_file_larger_than_memory_evicts_what_it_needs_next() {
    let but = [("direct", 54.0), ("allocstall", 54.0), ("_kswapd", 12.5)];
    assert_counted("file-loop-classic", (2.0, 1.5), &but);
}

#[test]
fn a_passing_scan_costs_a_working_set_by_popularity() {
    // A second boot has 6 % less for kswapd.
    let but = [&BY_REQUESTS[..], &[("_kswapd", 7.0)]].concat();
    assert_counted("zipf-scan-classic", (2.0, 0.6), &but);
}

/// How often a boost wakes kswapd for the zone for DMA alone, where it skips all others' pages, is chance: the capture's kernel skips 83,113 of what it
/// looks at, 256,052 are skipped here, and a boot with the trace on, and 4 MiB more for that, looks at 496,378 for 347,753. What that costs the pages in use differs by as much.
#[test]
fn executable_pages_outlive_a_stream() {
    let scanned =
        [("pgscan_file", 42.0), ("pgscan_kswapd", 54.5), ("scene: pgscan", 42.0), ("pgskip", 208.5)];
    let used = [("_direct", 45.5), ("pgactivate", 64.0), ("workingset_activate_file", 624.5)];
    assert_counted("exec-map-classic", (25.5, 22.5), &[&scanned[..], &used].concat());
}

/// What comes back lies at the edge between early and late: which pages of the file stay differs (a second boot of the kernel
/// differs too), how many do does not.
#[test]
fn files_and_private_memory_share_a_limit() {
    let edge = [("workingset_activate_file", 35.0), ("workingset_restore_file", 55.0)];
    // 12.5 % while the time at which its kernel flushes statistics was fitted to it, and not traced.
    let away = [("pgsteal_anon", 23.5), ("pswpout", 23.5), ("pgactivate", 25.0)];
    let but = [&edge[..], &away].concat();
    // 21.3 points, and events of the limit by 10.8 %, while writes made pages of files active.
    assert_counted("mix-max-classic", (12.5, 17.0), &but);
}

#[test]
fn private_memory_under_a_limit_goes_to_zram() {
    let but = [("workingset_restore_file", 70.0), ("workingset_activate_anon", 25.0)];
    assert_counted("anon-zram-60-classic", (15.0, 10.0), &but);
}

/// The same programs on kernels that keep pages by generations: nothing of them was fitted.
#[test]
fn files_by_generations() {
    assert_counted("file-loop-mglru", (4.0, 3.0), &BY_REQUESTS);
    // While statistics of groups are old, its shadows are too many: of 163,840 pages of the second pass 86,652 count as come back.
    assert_counted("file-loop-mglru-6.18", (2.5, 1.0), &[("_direct", 120.5)]);
    assert_counted("zipf-scan-mglru", (10.0, 2.0), &[("pgrefill", 33.0)]);
    assert_counted("refault-mglru", (1.5, 1.0), &[("_direct", 5.0)]);
    let but = [("_direct", 39.0), ("_kswapd", 6.5), ("workingset_activate_file", 23.5)];
    assert_counted("exec-map-mglru", (0.5, 4.0), &but);
}

/// How much kswapd leaves to requests where little lies between the marks, and where much does.
#[test]
fn the_distance_of_the_marks_decides_who_reclaims() {
    assert_counted("wmark-10", (1.0, 4.0), &[("_direct", 5.5)]);
    assert_counted("wmark-300", (2.0, 3.0), &[]);
}

/// In which rows the groups stand is chance: a second boot of the kernel takes other pages of the protected file, and 12 % fewer.
#[test]
fn a_protected_group_gives_by_chance_by_generations() {
    let by_requests = [("_direct", 40.5), ("kept: pgscan", 30.0), ("kept: pgsteal", 30.0)];
    assert_counted("memory-low", (20.0, 24.5), &[&by_requests[..], &[("pgrefill", 51.0)]].concat());
}

#[test]
fn a_group_at_its_limit_by_generations() {
    assert_counted("mix-max-mglru", (2.0, 1.0), &[]);
    assert_counted("mix-max-mglru-6.18", (2.0, 1.0), &[]);
    assert_counted("anon-zram-10-mglru", (1.0, 1.0), &[]);
}

/// Where node 0 ends is off by 257 of 57,344 pages: pages come by batches of hundreds. (A second boot of the kernel has 572 more.)
#[test]
fn memory_lands_on_the_nodes_that_policies_say() {
    let node0 = |tail: &str| {
        format!("kernel 7168,7168,7168,7168,5419,{tail}, freehold 7168,7168,7168,7168,5676,{tail}")
    };
    let node1 = |tail: &str| format!("kernel 0,0,0,0,1749,{tail}, freehold 0,0,0,0,1492,{tail}");
    let at = |mark: &str, tails: [&str; 2]| {
        [
            format!("mark {mark}: d node0: {}", node0(tails[0])),
            format!("mark {mark}: d node1: {}", node1(tails[1])),
        ]
    };
    let again = ["0,1024,7168", "7168,6144,0"];
    let differs: Vec<String> =
        [at("spilled", ["0,0,0", "7168,7168,7168"]), at("again", again), at("from-cpu-1", again)].concat();
    let differs: Vec<&str> = differs.iter().map(String::as_str).collect();
    assert_played("numa-place", 53, &differs);
}

/// Pages of the program's own (stack, data) have hint faults too, which are not played. Of the marks, h's last window is a little late.
#[test]
fn hint_faults_bring_memory_to_its_task_and_after_it() {
    let own = [
        "mark brought-over: minor faults: kernel 8233, freehold 8224",
        "mark moved-to-node-1: minor faults: kernel 8251, freehold 8228",
    ];
    assert_played("numa-balancing", 25, &own);
    for row in play("numa-balancing").counters {
        let most = if row.counter == "numa_pte_updates" { 15.0 } else { 0.5 };
        assert!(row.percent.abs() <= most, "{row:?}");
    }
}
