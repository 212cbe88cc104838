//! Small workloads for knobs to act and to rest on.

use mm::Knob;

use super::ground::Ground;

/// 80 MiB of pages that come and go.
pub(crate) fn pages() -> Ground {
    small().runs(20, "kind = 'alloc-loop'\ntasks = 2\nblocks = 20000")
}

/// A machine with two CPUs and 2 GiB.
pub(crate) fn small() -> Ground {
    Ground::new("kvm-genoa-2c", "linux-6.18").memory(&[1536])
}

/// Fewer pages than a CPU's list takes at a time.
pub(crate) fn few_pages() -> Ground {
    small().runs(2, "kind = 'alloc-loop'\ntasks = 1\nblocks = 30")
}

/// Blocks that no list takes.
pub(crate) fn large_blocks() -> Ground {
    small().runs(2, "kind = 'alloc-loop'\ntasks = 1\norder = 5\nblocks = 8")
}

/// Nearly all memory.
pub(crate) fn much_memory() -> Ground {
    small().memory(&[256]).runs(20, "kind = 'alloc-loop'\ntasks = 2\nblocks = 26000")
}

/// Objects that one task takes and the other gives back.
pub(crate) fn objects() -> Ground {
    let workload =
        "kind = 'slab-bulk'\ntasks = 2\nsize = 1000\nobjects = 4000\nwhose = 'neighbours'\nfree = 'shuffled'";
    small().under("linux-6.5").runs(5, workload)
}

/// Objects of two slabs.
pub(crate) fn few_objects() -> Ground {
    small().under("linux-6.5").runs(2, "kind = 'slab-bulk'\ntasks = 1\nsize = 1000\nobjects = 40")
}

/// Objects of one task, whose slabs become empty.
pub(crate) fn own_objects() -> Ground {
    let workload = "kind = 'slab-bulk'\ntasks = 1\nsize = 1000\nobjects = 4000";
    small().under("linux-6.5").runs(5, workload)
}

/// Objects of which a page has many, of one task.
pub(crate) fn small_objects() -> Ground {
    small().under("linux-6.5").runs(2, "kind = 'slab-bulk'\ntasks = 1\nsize = 64\nobjects = 8")
}

/// Devices that want low memory beside a program that fills memory.
pub(crate) fn devices() -> Ground {
    let workload = "kind = 'dma-devices'\nagp_mib = 16\nanon_mib = 600\nfile_mib = 100\nwrite_percent = 0";
    with_devices().runs(2500, workload)
}

/// A machine on which 32-bit devices make sense.
pub(crate) fn with_devices() -> Ground {
    Ground::new("westmere-ex", "linux-3.17")
        .memory(&[512, 512, 512, 512])
        .low_end(336)
        .with(Knob::MinFreeKbytes, 4096)
}

/// Processes of a 32-bit machine, which want low memory for page tables.
pub(crate) fn processes_of_32_bits() -> Ground {
    let workload = "kind = 'kernel-memory'\nnodes = [0]\nlife_ms = 20000\nprocesses = 20\nanon_mib = 100\n\
                    shared_mib = 4096\nkernel_kib = 512\nfile_mib = 64\nmetadata_mib = 16";
    of_32_bits().with(Knob::NumaZonelistOrder, 1).with(Knob::TransparentHugepage, 0).runs(4000, workload)
}

/// A process of a 32-bit machine. It starts within two seconds.
pub(crate) fn process_of_32_bits(ms: u64) -> Ground {
    let workload =
        "kind = 'kernel-memory'\nnodes = [0]\nprocesses = 1\nanon_mib = 8\nfile_mib = 1\nmetadata_mib = 1";
    of_32_bits().runs(ms, workload)
}

/// A machine with HighMem.
pub(crate) fn of_32_bits() -> Ground {
    Ground::new("numa-32bit", "linux-3.17").memory(&[1024, 1024, 1024, 1024])
}

/// A driver that wants blocks of memory that is in pieces.
pub(crate) fn pieces() -> Ground {
    small().memory(&[512]).runs(2500, "kind = 'proactive'\nasks = 'driver'\npause_us = 1000")
}

/// First touches of huge pages where memory must be moved for them.
pub(crate) fn huge_pages() -> Ground {
    let workload = "kind = 'thp-fault'\nmib = 8\nevery_ms = 10\n\
                    [fragment]\nkernel = 200\nscattered = 200\nfile = 3000\nfree = 2000\nindex = 950";
    small().memory(&[1024]).under("linux-4.20").with(Knob::OvercommitMemory, 1).runs(2000, workload)
}

/// The same, read before it is written.
pub(crate) fn huge_pages_read_first() -> Ground {
    let workload = "kind = 'thp-fault'\nmib = 8\nevery_ms = 10\nreads_first = true\n\
                    [fragment]\nkernel = 200\nscattered = 200\nfile = 3000\nfree = 2000\nindex = 950";
    small().memory(&[1024]).under("linux-6.18").with(Knob::OvercommitMemory, 1).runs(2000, workload)
}

/// A process whose memory is too small for a huge page.
pub(crate) fn small_process() -> Ground {
    let workload =
        "kind = 'kernel-memory'\nnodes = [0]\nprocesses = 1\nanon_mib = 1\nfile_mib = 1\nmetadata_mib = 1";
    small().with(Knob::MinFreeKbytes, 8192).runs(2200, workload)
}

/// A process with huge pages, of which there are enough.
pub(crate) fn large_process() -> Ground {
    let workload =
        "kind = 'kernel-memory'\nnodes = [0]\nprocesses = 1\nanon_mib = 64\nfile_mib = 1\nmetadata_mib = 1";
    small_process().runs(2200, workload)
}

/// A process that reads again what did not fit its cgroup.
pub(crate) fn limited_process() -> Ground {
    let script = "cgroup one\nlimit max 16M\nmap a 24M nohuge\ntouch a\nmark first pswpin\ntouch a read\nmark again pswpin";
    let workload = format!("kind = 'script'\ntext = '''\n{script}\n'''");
    small().with(Knob::OvercommitMemory, 1).runs(4000, &workload)
}

/// Processes for each of which the kernel keeps half as much as it has.
pub(crate) fn mixed_processes() -> Ground {
    let workload = "kind = 'kernel-memory'\nnodes = [0]\nprocesses = 12\nanon_mib = 30\nfile_mib = 16\nmetadata_mib = 4\n\
                    kernel_kib = 16384\nlife_ms = 300";
    small().memory(&[512]).runs(2500, workload)
}

/// Processes that want more memory than there is.
pub(crate) fn many_processes() -> Ground {
    let workload =
        "kind = 'kernel-memory'\nnodes = [0]\nprocesses = 8\nanon_mib = 50\nfile_mib = 16\nmetadata_mib = 4";
    small().memory(&[512]).runs(2500, workload)
}

/// A process that writes faster than its disk.
pub(crate) fn writers() -> Ground {
    let workload = "kind = 'kernel-memory'\nnodes = [0]\nprocesses = 2\nanon_mib = 8\nfile_mib = 128\nmetadata_mib = 4\n\
                    write_percent = 100\ndisk_mb_per_second = 10";
    small().memory(&[512]).runs(2500, workload)
}

/// A machine with memory that is slower, on a node without CPUs.
pub(crate) fn tiered() -> Ground {
    Ground::new("epyc-512-cxl", "linux-6.11").memory(&[1024, 1024, 2048]).cpus(4)
}

/// Four threads whose 128 MiB are on the slow node.
pub(crate) fn hot_pages() -> Ground {
    hot_pages_for(4000)
}

pub(crate) fn hot_pages_for(ms: u64) -> Ground {
    let workload = "kind = 'hot-pages'\nprocesses = [{ threads = 4, node = 2, regions = [{ mib = 128 }] }]";
    tiered().with(Knob::NumaBalancing, 2).with(Knob::OvercommitMemory, 1).runs(ms, workload)
}

/// Fewer than a window of NUMA balancing has.
pub(crate) fn few_hot_pages() -> Ground {
    hot_pages()
        .runs(2500, "kind = 'hot-pages'\nprocesses = [{ threads = 2, node = 2, regions = [{ mib = 8 }] }]")
}

/// Processes that fill the fast node.
pub(crate) fn cold_pages() -> Ground {
    let workload = "kind = 'kernel-memory'\nnodes = [0]\nprocesses = 4\nanon_mib = 64\nfile_mib = 64\nmetadata_mib = 4\n\
                    write_percent = 0";
    tiered().memory(&[192, 192, 512]).with(Knob::TransparentHugepage, 0).runs(3000, workload)
}

/// The same with memory for all.
pub(crate) fn with_room(ground: Ground) -> Ground {
    ground.memory(&[3072, 3072, 1024])
}

/// Halves of blocks that khugepaged could make huge pages of.
pub(crate) fn half_blocks() -> Ground {
    let workload = "kind = 'thpscale'\nthreads = [2]\nmemory_percent = 60\ndisk_mb_per_second = 500";
    small().memory(&[512]).with(Knob::KhugepagedScanSleep, 10).runs(2000, workload)
}

/// STREAM, which takes its arrays from the page allocator.
pub(crate) fn stream() -> Ground {
    let workload = "kind = 'stream'\nnodes = [0]\nthreads_per_node = 2\nmib = 64";
    small().memory(&[256]).with(Knob::MinFreeKbytes, 8192).runs(20, workload)
}

/// Processes that come and go, in nearly all memory.
pub(crate) fn churn() -> Ground {
    let workload =
        "kind = 'process-churn'\njobs = 4\nkib_min = 64\nkib_max = 32768\nus_per_page = 0\nslab_percent = 50";
    small().memory(&[48]).with(Knob::MinFreeKbytes, 8192).runs(20, workload)
}

/// Shared memory of which a program touches all.
pub(crate) fn shared_memory() -> Ground {
    small().runs(100, "kind = 'script'\ntext = '''\nmap s 8M shared\ntouch s\nmark end pgfault\n'''")
}

/// Programs of which one is more than memory.
pub(crate) fn too_large_program() -> Ground {
    let script = "map a 1800M nohuge\ntouch a times 2";
    small()
        .with(Knob::OvercommitMemory, 1)
        .with(Knob::ZramDisksize, 4 << 30)
        .runs(4000, &format!("kind = 'script'\ntext = '''\n{script}\n'''"))
}
