//! What a capture says of its slab caches.

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

/// Reads the caches of a section, a line each: `NAME object_size=48 slab_size=48 align=8 …`. Lines that name no
/// object_size are no caches.
pub(in crate::conform) fn caches(section: &Section<'_>) -> Result<Vec<SlabCacheInfo>, FormatError> {
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
