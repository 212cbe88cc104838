//! What of a recorded address space was used when, by the recording's own addresses: to be shown, and nothing is replayed from it.
//!
//! Each look at a process's accessed bits counts by mapping ([`super::accesses`] has what follows from that). Here looks are
//! put together into moments that fit a picture, and small mappings into one.

use std::collections::BTreeMap;

use trace::{EventKind, MapFlags};

use super::accesses::walks_of_a_page;
use super::layout::Touched;
use crate::measurements::{HeatMap, HeatedMapping};

/// Moments of a map, at most.
const MOMENTS: usize = 64;
/// Mappings that have a line of their own, at most.
const MAPPINGS: usize = 15;
/// What the others are called together.
const REST: &str = "the rest";

/// The maps of a recording while it is read, by address space.
#[derive(Debug, Default)]
pub(super) struct HeatMaps {
    spaces: BTreeMap<usize, Space>,
}

#[derive(Debug, Default)]
struct Space {
    process: String,
    at_ns: Vec<u64>,
    /// By first address.
    mappings: BTreeMap<u64, Mapping>,
}

#[derive(Clone, Debug, Default)]
struct Mapping {
    name: String,
    pages: u64,
    looks: Vec<Look>,
}

/// What a look has counted of a mapping.
#[derive(Clone, Copy, Debug)]
struct Look {
    /// An index into the space's moments.
    moment: usize,
    resident: u64,
    /// As in [`HeatedMapping::walks_per_second`].
    walks: Option<f64>,
}

impl HeatMaps {
    /// Takes in what a look at address space `space` has found of a mapping; `kind` is [`EventKind::Accessed`], anything else is passed over. `name` gives the process's and the mapping's.
    pub(super) fn add(
        &mut self,
        (time, space): (u64, usize),
        kind: &EventKind,
        name: impl Fn() -> [String; 2],
    ) {
        let EventKind::Accessed { address, accessed, pages, cpu_ns, resident, huge } = *kind else { return };
        let space = self.spaces.entry(space).or_default();
        if space.at_ns.last() != Some(&time) {
            space.at_ns.push(time);
        }
        let moment = space.at_ns.len() - 1;
        let is_known = resident > 0 && huge == 0 && cpu_ns > 0;
        let share = f64::from(accessed) / f64::from(resident.max(1));
        let walks = is_known.then(|| walks_of_a_page(share, f64::from(cpu_ns) * 1e-9));
        let mapping = space.mappings.entry(address).or_insert_with(|| {
            let [process, mapping] = name();
            space.process = process;
            Mapping { name: mapping, ..Mapping::default() }
        });
        mapping.pages = mapping.pages.max(pages.into());
        mapping.looks.push(Look { moment, resident: resident.into(), walks });
    }

    /// The maps, of processes in the order in which they were looked at first; `recording` is what it is called.
    pub(super) fn finish(self, recording: &str, start_ns: u64) -> Vec<HeatMap> {
        self.spaces.into_values().map(|space| space.finish(recording, start_ns)).collect()
    }
}

impl Space {
    fn finish(self, recording: &str, start_ns: u64) -> HeatMap {
        let looks_a_moment = self.at_ns.len().div_ceil(MOMENTS).max(1);
        let moments = self.at_ns.len().div_ceil(looks_a_moment);
        let shown = |(address, mapping): &Placed| mapping.shown(*address, moments, looks_a_moment);
        let (mut own, rest) = divide(self.mappings);
        own.sort_by_key(|(address, _)| *address);
        let at_ns = self.at_ns.iter().step_by(looks_a_moment).map(|at| at.saturating_sub(start_ns)).collect();
        let mappings = own.iter().chain(&rest).map(shown).collect();
        HeatMap { recording: recording.to_owned(), process: self.process, at_ns, mappings }
    }
}

/// A mapping behind its first address.
type Placed = (u64, Mapping);

/// Mappings that have a line of their own, and the rest as one, if there is any.
fn divide(mappings: BTreeMap<u64, Mapping>) -> (Vec<Placed>, Option<Placed>) {
    let mut all: Vec<Placed> = mappings.into_iter().collect();
    let most = |mapping: &Mapping| mapping.looks.iter().map(|look| look.resident).max();
    all.sort_by_key(|(_, mapping)| std::cmp::Reverse(most(mapping)));
    let others = all.split_off(all.len().min(MAPPINGS));
    let rest = others.into_iter().map(|(_, mapping)| mapping).reduce(|mut sum, mapping| {
        sum.pages += mapping.pages;
        sum.looks.extend(mapping.looks);
        sum
    });
    (all, rest.map(|rest| (0, Mapping { name: REST.to_owned(), ..rest })))
}

impl Mapping {
    fn shown(&self, address: u64, moments: usize, looks_a_moment: usize) -> HeatedMapping {
        let mut sums = vec![Sum::default(); moments];
        for look in &self.looks {
            sums[look.moment / looks_a_moment].add(look);
        }
        HeatedMapping {
            name: self.name.clone(),
            address,
            pages: self.pages,
            resident_pages: sums.iter().map(Sum::resident_at_most).collect(),
            walks_per_second: sums.iter().map(Sum::walks).collect(),
        }
    }
}

/// Looks of one moment.
#[derive(Clone, Debug, Default)]
struct Sum {
    /// Resident pages by look.
    resident: BTreeMap<usize, u64>,
    /// Pages of looks that tell how often they were walked to, and their walks.
    known_pages: u64,
    walks: f64,
}

impl Sum {
    fn add(&mut self, look: &Look) {
        *self.resident.entry(look.moment).or_default() += look.resident;
        if let Some(walks) = look.walks {
            self.known_pages += look.resident;
            self.walks += walks * look.resident as f64;
        }
    }

    fn resident_at_most(&self) -> u64 {
        self.resident.values().copied().max().unwrap_or(0)
    }

    fn walks(&self) -> Option<f64> {
        (self.known_pages > 0).then(|| self.walks / self.known_pages as f64)
    }
}

/// What a mapping is called whose file is `file`, if it has one.
pub(super) fn name(mapped: Option<Touched>, file: Option<&str>) -> String {
    let flags = mapped.map_or(MapFlags(0), |mapped| mapped.flags);
    let path = file.map(|file| file.split_once(' ').map_or(file, |(_, path)| path));
    let own = [(MapFlags::HEAP, "[heap]"), (MapFlags::STACK, "[stack]"), (MapFlags::SHARED, "[shared]")];
    // What memory that is shared has behind it, where no file does.
    let path = path.filter(|path| !path.starts_with("/dev/zero"));
    match (path, own.iter().find(|(flag, _)| flags.contains(*flag))) {
        (Some(path), _) => path.rsplit('/').next().unwrap_or(path).to_owned(),
        (None, Some((_, name))) => (*name).to_owned(),
        (None, None) if file.is_some() => "[shared]".to_owned(),
        (None, None) => "[anon]".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(address: u64, accessed: u32, resident: u32, huge: u32) -> EventKind {
        EventKind::Accessed { address, accessed, pages: 2 * resident, cpu_ns: 1_000_000_000, resident, huge }
    }

    fn names() -> [String; 2] {
        ["db".to_owned(), "[heap]".to_owned()]
    }

    #[test]
    fn a_look_gives_each_mapping_its_walks() {
        let mut maps = HeatMaps::default();
        maps.add((1_500, 3), &found(4096, 50, 100, 0), names);
        maps.add((1_500, 3), &found(8192, 1, 512, 512), names);
        maps.add((2_500, 3), &found(4096, 0, 80, 0), names);
        let [map] = &maps.finish("rec", 500)[..] else { panic!("one process was looked at") };
        assert_eq!((map.process.as_str(), &map.at_ns[..]), ("db", &[1_000, 2_000][..]));
        let [heap, huge] = &map.mappings[..] else { panic!("{map:?}") };
        assert_eq!((heap.pages, &heap.resident_pages[..]), (200, &[100, 80][..]));
        let [Some(walks), Some(still)] = heap.walks_per_second[..] else { panic!("{heap:?}") };
        assert!((walks - std::f64::consts::LN_2).abs() < 1e-6 && still == 0.0, "{walks} {still}");
        assert_eq!(huge.walks_per_second, [None, None], "one bit for 512 pages, and then nothing resident");
    }

    #[test]
    fn many_mappings_and_looks_fit_a_picture() {
        let mut maps = HeatMaps::default();
        for at in 0..1_000 {
            for mapping in 0..40 {
                maps.add((at, 0), &found(mapping << 20, 10, 100 + mapping as u32, 0), names);
            }
        }
        let map = &maps.finish("rec", 0)[0];
        assert!(map.at_ns.len() <= MOMENTS && map.at_ns.len() > MOMENTS / 2, "{}", map.at_ns.len());
        assert_eq!((map.mappings.len(), map.mappings[MAPPINGS].name.as_str()), (MAPPINGS + 1, REST));
        let resident: u64 = map.mappings.iter().map(|mapping| mapping.resident_pages[5]).sum();
        assert_eq!(resident, (0..40).map(|mapping| 100 + mapping).sum::<u64>(), "nothing is lost");
        assert!(map.mappings.is_sorted_by_key(|mapping| (mapping.name == REST, mapping.address)));
    }

    #[test]
    fn mappings_are_called_by_their_file_or_kind() {
        let mapped = |flags| Some(Touched { flags, file: None, grows_by: 0, below: 0, above: 0 });
        assert_eq!(name(mapped(MapFlags::HEAP), None), "[heap]");
        assert_eq!(name(mapped(MapFlags::READ), Some("8:1:7 /usr/lib/libc.so.6")), "libc.so.6");
        assert_eq!(
            name(mapped(MapFlags::READ), Some("8:1:7")),
            "8:1:7",
            "a path that is masked or not known"
        );
        assert_eq!(name(mapped(MapFlags::READ), Some("0:1:9 /dev/zero (deleted)")), "[shared]");
        assert_eq!(name(None, None), "[anon]");
    }
}
