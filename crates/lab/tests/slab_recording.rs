//! A recording with slab events of a real program, replayed: `git clone` of a repository, on Linux 6.18
//! (docs/slab-replay.md).

use std::path::Path;
use std::sync::Arc;

use freehold_lab::measurements::Run;
use freehold_lab::recorded::{Action, HostCosts, ObjectCache, Recorded, from_recording};
use freehold_lab::replay::{Plan, Source, Variant, replay};
use mm::Policy;
use sim::Profile;
use trace::{EventKind, Gfp, Reader, slab_pages};

fn recording() -> Reader {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings/git-clone.rec");
    Reader::open(&path).unwrap()
}

fn workload() -> Arc<Recorded> {
    Arc::new(from_recording(&mut recording(), "git-clone", HostCosts::NONE).unwrap())
}

fn played(workload: &Arc<Recorded>, machine: &str, policy: &str, copies: u32) -> Run {
    let mut plan = Plan::new(Profile::load(machine).unwrap(), Policy::parse(policy).unwrap());
    plan.copies = copies;
    let mut run = replay(&Source::Events(Arc::clone(workload)), &plan, &Variant::default()).unwrap();
    run.wall_ns = 0;
    run
}

/// Two ways to know a slab's pages agree: an object lies in them, and the flags of the request are those of slabs.
#[test]
fn slabs_pages_are_those_that_were_asked_for_as_slabs() {
    let mut reader = recording();
    let pages = slab_pages(&mut reader).unwrap();
    let mut asked = 0;
    for (number, event) in reader.events().unwrap().enumerate() {
        let EventKind::PageAlloc { gfp, .. } = event.unwrap().kind else { continue };
        let as_slab = gfp.contains(Gfp::NOWARN | Gfp::NORETRY | Gfp::COMP) && !gfp.contains(Gfp::MOVABLE);
        assert_eq!(pages.contains(number as u64), as_slab, "event {number}");
        asked += u64::from(as_slab);
    }
    assert_eq!((pages.allocations, pages.frees, asked), (218, 17, 218));
}

#[test]
fn every_object_that_was_recorded_is_a_step() {
    let workload = workload();
    let steps = workload.tasks.iter().flat_map(|task| &task.ops).map(|op| op.action);
    let (mut got, mut freed) = (0, 0);
    for action in steps {
        got += u32::from(matches!(action, Action::AllocObject { .. }));
        freed += u32::from(matches!(action, Action::FreeObject(_)));
    }
    assert_eq!((got, workload.objects), (49_425, 49_425));
    assert_eq!(freed, 29_338 + 7_412, "those recorded and those implied");
    let omissions = workload.omissions;
    assert_eq!((omissions.implied_object_frees, omissions.object_frees_without_allocation), (7_412, 119));
    assert_eq!(omissions.page_events_of_slabs, 235);
    assert_eq!((omissions.objects_of_unnamed_caches, omissions.objects_of_impossible_caches), (0, 0));
    let names: Vec<String> = workload.caches.iter().map(ToString::to_string).collect();
    for name in ["vm_area_struct", "maple_node", "dentry", "kmalloc-96", "kmalloc-cg-64"] {
        assert!(names.iter().any(|known| known == name), "{name} in {names:?}");
    }
    let dentry = workload.caches.iter().find(|cache| cache.to_string() == "dentry");
    let Some(ObjectCache::Named(spec)) = dentry else { panic!("{dentry:?}") };
    assert_eq!(spec.stride(), 192);
    assert!(spec.flags.has(mm::slab::CacheFlags::RECLAIMABLE), "its slabs are of reclaimable pages");
}

#[test]
fn it_plays_alike_each_time_and_leaves_what_it_left() {
    let workload = workload();
    for policy in ["linux-6.5", "linux-6.18", "linux-7.2", "freehold"] {
        let run = played(&workload, "kvm-genoa-2c", policy, 1);
        assert_eq!(run, played(&workload, "kvm-genoa-2c", policy, 1), "{policy}");
        assert_eq!(run.latency["slab_alloc"].count, 49_425);
        assert_eq!(run.latency["slab_free"].count, 36_750);
        assert!(!run.omissions.contains_key("failed_allocations"), "{:?}", run.omissions);
    }
}

#[test]
fn copies_on_a_large_machine_meet_at_list_lock() {
    let workload = workload();
    let acquired = |policy: &str| played(&workload, "xeon-spr", policy, 12).locks["list"].acquired;
    let (base, patched) = (acquired("linux-6.5"), acquired("linux-6.5+slub-cpu-partial-4x"));
    assert!(2 * patched < base, "Feng Tang's second patch keeps more on the CPUs: {base} and {patched}");
}
