//! Every workload with the smallest parameters that it accepts, each of these at 0 and at 1, and some with large ones, for
//! a moment: it runs, or is refused in one line. A task that stood still would end the run with
//! [`sim::SimError::Standstill`], which is neither.

use std::collections::BTreeSet;

use mm::{Knob, Nanos};
use serde::Deserialize;
use sim::Profile;

use super::WorkloadSpec;
use crate::scene::{Scene, SceneError, perform};

const FRAGMENT: &str = "[fragment]\nkernel = 200\nfree = 5000\nindex = 950\n";
const COLLECT: &str = "collect_every = 1\ncollect_reads = 0\ncollect_warehouse_reads = 0\n";

/// Kind, and its parameters as small as they may be.
fn smallest() -> Vec<(&'static str, String)> {
    let region = "tasks = 1\nround_ns = 0\ngrace_us = 100\ncallback_ns = 0\n";
    let disk = "disk_mb_per_second = 1\n";
    let kinds: &[(&str, &str)] = &[
        ("python-loop", "processes = 1\nmib = 1\nstagger_ms = 0\n"),
        ("page-fault", "tasks = 1\nmib = 1\n"),
        ("alloc-loop", "tasks = 1\nblocks = 1\n"),
        ("alloc-loop", "tasks = 1\nblocks = 1\nwhose = 'neighbours'\n"),
        ("producer-consumer", "pairs = 1\norders = [0]\nin_flight = 1\nsend_ns = 0\nreceive_ns = 0\n"),
        (
            "process-churn",
            "jobs = 1\nkib_min = 4\nkib_max = 4\nus_per_page = 0\nburst_pages = 1\ngap_us = 0\n",
        ),
        ("colocated", "services = 1\nevery_us = 1\nblocks = 1\nprocesses = 0\nmib = 1\n"),
        ("mmap1", region),
        ("mmap2", region),
        ("brk1", region),
        ("hackbench", "groups = 1\nsend_ns = 0\nreceive_ns = 0\nin_flight = 1\n"),
        ("hackbench", "groups = 1\nipc = 'pipes'\nsend_ns = 0\nreceive_ns = 0\nin_flight = 1\n"),
        ("slab-bulk", "tasks = 1\nsize = 8\nobjects = 1\n"),
        ("slab-bulk", "tasks = 2\nsize = 8\nobjects = 1\nwhose = 'neighbours'\nfree = 'shuffled'\n"),
        ("stream", "nodes = [0]\nthreads_per_node = 1\nmib = 1\norder = 0\n"),
        (
            "dma-devices",
            "anon_mib = 1\nfile_mib = 1\nwrite_percent = 0\nagp_mib = 0\ndrm = 0\ntv = 0\nb43 = 0\n",
        ),
        (
            "kernel-memory",
            "processes = 1\nnodes = [0]\nanon_mib = 1\nkernel_kib = 0\nfile_mib = 1\nmetadata_mib = 1\nlife_ms = 1\n",
        ),
        ("thpscale", "threads = [1]\nmemory_percent = 1\n"),
        ("proactive", "asks = 'nobody'\nholes = 1\n"),
        ("proactive", "asks = 'java'\nholes = 1\n"),
        ("hot-pages", "stretch_ms = 1\n[[processes]]\nnode = 0\nthreads = 0\nregions = [{ mib = 1 }]\n"),
        ("hot-pages", "stretch_ms = 1\n[[processes]]\nnode = 0\npasses = 1\nregions = [{ mib = 1 }]\n"),
    ];
    let mut all: Vec<_> = kinds.iter().map(|&(kind, text)| (kind, text.to_owned())).collect();
    for (kind, text) in &mut all {
        if matches!(*kind, "dma-devices" | "kernel-memory" | "thpscale") {
            text.push_str(disk);
        }
    }
    let specjbb = "warehouses = [1]\nmeasure_ms = 1\nheap_mib = 64\nlive_mib = 1\nown_ns = 1\nreads = 0\nnew_bytes = 0\n";
    all.push(("specjbb", format!("{specjbb}{COLLECT}")));
    all.push(("thp-fault", format!("mib = 2\nranges = 1\nevery_ms = 0\n{FRAGMENT}")));
    all
}

/// Some with parameters at their other end, where a run stays short.
fn largest() -> Vec<(&'static str, String)> {
    let kinds: &[(&str, &str)] = &[
        ("alloc-loop", "tasks = 2\norder = 10\nblocks = 1048576\n"),
        (
            "colocated",
            "services = 1\nevery_us = 1000000000\nblocks = 1048576\norder = 3\nprocesses = 0\nmib = 1\n",
        ),
        (
            "producer-consumer",
            "pairs = 1\norders = [3]\nin_flight = 1048576\nsend_ns = 0\nreceive_ns = 4294967295\n",
        ),
        (
            "process-churn",
            "jobs = 1\nkib_min = 4\nkib_max = 1073741824\nus_per_page = 0\nburst_pages = 1048576\n",
        ),
        ("slab-bulk", "tasks = 2\nsize = 8192\nbatch = 4096\nobjects = 4096\n"),
        ("mmap1", "tasks = 1\nround_ns = 4294967295\ngrace_us = 10000000\n"),
    ];
    kinds.iter().map(|&(kind, text)| (kind, text.to_owned())).collect()
}

/// What became of a workload.
#[derive(PartialEq, Eq, Debug)]
enum End {
    /// It ran, or came to an end of its own.
    Ran,
    /// It was refused.
    Refused,
}

/// A machine of a few nodes with 512 MiB each.
fn machine() -> Profile {
    let text = Profile::load("westmere-ex").unwrap().to_toml();
    Profile::parse("small", &text.replace("memory_mib = 16384", "memory_mib = 512")).unwrap()
}

/// A millisecond of it.
fn end_of(kind: &str, parameters: &str) -> End {
    let text = format!("kind = '{kind}'\n{parameters}");
    let refused = |why: &str| {
        assert!(!why.is_empty() && !why.contains('\n'), "{text}\n{why}");
        End::Refused
    };
    let table: toml::Table = text.parse().unwrap();
    let workload = match WorkloadSpec::deserialize(table) {
        Ok(workload) => workload,
        Err(error) => return refused(error.message()),
    };
    let scene = Scene {
        workload,
        knobs: vec![(Knob::OvercommitMemory, 1)],
        ..Scene::of(machine(), "linux-6.18", "kind = 'alloc-loop'\ntasks = 1\nblocks = 1", Nanos(1_000_000))
    };
    match perform(&scene) {
        Ok(_) | Err(SceneError::Early { .. }) => End::Ran,
        Err(SceneError::Setup(why)) => refused(&why),
        Err(error) => panic!("{text}\n{error}"),
    }
}

/// The parameters with one that is a number at `value`, for each of them.
fn with_each_at(parameters: &str, value: i64) -> Vec<String> {
    let table: toml::Table = parameters.parse().unwrap();
    let numbers = table.iter().filter(|(_, at)| at.is_integer() && at.as_integer() != Some(value));
    let changed = |name: &str| {
        let mut table = table.clone();
        table.insert(name.to_owned(), toml::Value::Integer(value));
        table.to_string()
    };
    numbers.map(|(name, _)| changed(name)).collect()
}

#[test]
fn all_run_at_their_smallest() {
    for (kind, parameters) in smallest() {
        assert_eq!(end_of(kind, &parameters), End::Ran, "{kind}\n{parameters}");
    }
}

#[test]
fn each_parameter_at_0_and_at_1_runs_or_is_refused() {
    let mut ends = vec![];
    for (kind, parameters) in smallest() {
        for value in [0, 1] {
            ends.extend(with_each_at(&parameters, value).iter().map(|changed| end_of(kind, changed)));
        }
    }
    assert!(ends.contains(&End::Ran) && ends.contains(&End::Refused));
}

#[test]
fn all_run_at_their_largest() {
    for (kind, parameters) in largest() {
        assert_eq!(end_of(kind, &parameters), End::Ran, "{kind}\n{parameters}");
    }
}

#[test]
fn every_kind_is_tried() {
    let tried: BTreeSet<_> = smallest().into_iter().map(|(kind, _)| kind).collect();
    let known = "fn title(&self)";
    let source = include_str!("mod.rs");
    let kinds = source.split(known).nth(1).and_then(|rest| rest.split("\n    }\n").next()).unwrap();
    assert_eq!(tried.len(), kinds.matches("Self::").count());
}
