//! The slab caches of a capture against those that mm computes from their stride, the number of CPUs and the version.

use mm::slab::kmalloc::{KmallocClass, KmallocKind};
use mm::slab::{CacheFlags, CacheSizing, CacheSpec, SlabSystem, known};
use mm::version::Version;
use mm::{Knobs, Policy};
use serde::Serialize;

use super::capture::Capture;
use super::outcome::FileOutcome;
use super::sections::{FormatError, Section, clip, number};

/// A cache, as /sys/kernel/slab has it. What a kernel does not print is `None`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlabCacheInfo {
    /// Its name.
    pub name: String,
    /// Bytes of an object.
    pub object_size: u32,
    /// Bytes from one object to the next.
    pub slab_size: u32,
    /// Bytes to whose multiple objects are aligned.
    pub align: u32,
    /// Order of a slab.
    pub order: u32,
    /// Objects of a slab.
    pub objs_per_slab: u32,
    /// Objects that a CPU's partial slabs may hold.
    pub cpu_partial: Option<u32>,
    /// Partial slabs that a node keeps.
    pub min_partial: Option<u32>,
    /// Objects of a sheaf.
    pub sheaf_capacity: Option<u32>,
    /// Of 100 times that local slabs run out, how often other nodes are asked.
    pub remote_node_defrag_ratio: Option<u32>,
}

/// How many caches were compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct CachesCompared {
    /// All of them.
    pub compared: u64,
    /// Those of which every figure was equal.
    pub equal: u64,
}

/// Reads the caches of a section, a line each: `NAME object_size=48 slab_size=48 align=8 …`. Lines that name no
/// object_size are no caches.
pub(super) fn caches(section: &Section<'_>) -> Result<Vec<SlabCacheInfo>, FormatError> {
    let of_caches = section.lines.iter().filter(|(_, text)| text.contains(" object_size="));
    of_caches.map(|&(line, text)| cache(line, text)).collect()
}

fn cache(line: usize, text: &str) -> Result<SlabCacheInfo, FormatError> {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let pairs: Vec<(&str, &str)> = words.filter_map(|word| word.split_once('=')).collect();
    let find = |key: &str| -> Result<Option<u32>, FormatError> {
        let value = pairs.iter().find(|(found, _)| *found == key).map(|(_, value)| *value);
        value.filter(|value| !value.is_empty()).map(|value| number(line, key, value)).transpose()
    };
    let need = |key: &str| {
        let missing = || FormatError::new(line, format!("cache {} has no {key}", clip(name)));
        find(key)?.ok_or_else(missing)
    };
    Ok(SlabCacheInfo {
        name: name.to_string(),
        object_size: need("object_size")?,
        slab_size: need("slab_size")?,
        align: need("align")?,
        order: need("order")?,
        objs_per_slab: need("objs_per_slab")?,
        cpu_partial: find("cpu_partial")?,
        min_partial: find("min_partial")?,
        sheaf_capacity: find("sheaf_capacity")?,
        remote_node_defrag_ratio: find("remote_node_defrag_ratio")?,
    })
}

impl SlabCacheInfo {
    /// The cache as it is asked of mm; what it asks for besides its size is known by its name.
    fn spec(&self, version: Version) -> CacheSpec {
        let mut spec = CacheSpec::new(&self.name, self.object_size).aligned(self.align);
        spec.slab_size = Some(self.slab_size);
        spec.sheaf_capacity = known::asked_sheaves(&self.name, version);
        spec.with(known::bootstrap_flags(&self.name))
    }

    /// The stride that mm computes. The kernel does not print whether the free pointer lies in the object: of both, the
    /// one that is the kernel's, if any is.
    fn stride(&self) -> u32 {
        let inside = CacheSpec::new(&self.name, self.object_size).aligned(self.align);
        let outside = inside.clone().with(CacheFlags::CONSTRUCTOR).stride();
        if outside == self.slab_size { outside } else { inside.stride() }
    }
}

/// Holds mm against the caches of a capture.
pub(super) fn compare(
    capture: &Capture,
    policy: &Policy,
    outcome: &mut FileOutcome,
) -> Result<(), FormatError> {
    if capture.caches.is_empty() {
        outcome.notes.push("it says nothing of slab caches: none was compared".to_string());
        return Ok(());
    }
    let cpu_nodes = capture.nodes.iter().filter(|node| !node.cpus.is_empty()).count();
    let ground = Ground {
        policy,
        version: capture.version()?,
        system: SlabSystem { cpus: capture.present_cpus, cpu_nodes: cpu_nodes as u32 },
    };
    let mut caches = CachesCompared::default();
    for cache in &capture.caches {
        let before = outcome.differences.len();
        compare_cache(&ground, cache, outcome)?;
        caches.compared += 1;
        caches.equal += u64::from(outcome.differences.len() == before);
    }
    outcome.caches = Some(caches);
    Ok(())
}

/// What mm computes with.
struct Ground<'a> {
    policy: &'a Policy,
    version: Version,
    system: SlabSystem,
}

fn compare_cache(
    ground: &Ground<'_>,
    cache: &SlabCacheInfo,
    outcome: &mut FileOutcome,
) -> Result<(), FormatError> {
    let spec = cache.spec(ground.version);
    spec.check().map_err(|error| FormatError::new(0, error.to_string()))?;
    let rules = ground.policy.rules();
    let sizing = CacheSizing::compute(rules, &Knobs::default(), ground.system, &spec);
    let mut figure = |name: &str, kernel: Option<u32>, freehold: u32| {
        if let Some(kernel) = kernel {
            outcome.compare(|| format!("cache {} {name}", cache.name), kernel, freehold);
        }
    };
    figure("slab_size", Some(cache.slab_size), cache.stride());
    figure("order", Some(cache.order), sizing.order.get().into());
    figure("objs_per_slab", Some(cache.objs_per_slab), sizing.objects);
    figure("cpu_partial", cache.cpu_partial, sizing.cpu_partial_objects);
    figure("min_partial", cache.min_partial, sizing.min_partial);
    figure("sheaf_capacity", cache.sheaf_capacity, sizing.sheaf_capacity);
    figure("remote_node_defrag_ratio", cache.remote_node_defrag_ratio, sizing.remote_node_defrag_ratio / 10);
    if let Some(class) = kmalloc_class(&cache.name) {
        let spec = class.spec(rules);
        figure("object_size", Some(cache.object_size), spec.object_size);
        figure("align", Some(cache.align), spec.align);
    }
    Ok(())
}

fn kmalloc_class(name: &str) -> Option<KmallocClass> {
    let mut classes = KmallocKind::ALL.into_iter().flat_map(KmallocClass::row);
    classes.find(|class| class.to_string() == name)
}
