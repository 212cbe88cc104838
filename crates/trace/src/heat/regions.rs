//! Mappings over time. They come and go, grow, split and join. Two mappings of consecutive looks are one region if they have
//! addresses in common and the same path.

use super::round::{Look, LooksOfRound};
use super::smaps::Mapping;
use super::{SMALL_KIB, WINDOWS};

/// A part of a process's memory, and how often its pages are accessed.
#[derive(Clone, PartialEq, Debug)]
pub struct Region {
    /// See [`Mapping::name`]; `the rest` for what is small or was there for less than half of the rounds.
    pub name: String,
    /// Resident memory in KiB: the median of the rounds' last looks.
    pub resident_kib: u64,
    /// Shares of the resident pages, 0 to 1, that were accessed within each of [`WINDOWS`]: medians of the rounds, none
    /// smaller than the one before.
    pub within: [f64; WINDOWS.len()],
    /// Rounds in which it was there.
    pub rounds: usize,
}

/// What a region had at a look, in KiB.
#[derive(Clone, Copy, Default, Debug)]
struct Sum {
    resident: u64,
    accessed: u64,
}

impl Sum {
    fn add(&mut self, mapping: &Mapping) {
        self.resident = self.resident.saturating_add(mapping.resident_kib);
        self.accessed = self.accessed.saturating_add(mapping.accessed_kib);
    }

    fn join(&mut self, other: Self) {
        self.resident = self.resident.saturating_add(other.resident);
        self.accessed = self.accessed.saturating_add(other.accessed);
    }
}

/// The sums of one region at all looks of a round.
type Sums = [Sum; WINDOWS.len()];

/// A region while rounds are gone through.
struct Track {
    name: String,
    sums: Vec<Sums>,
    /// The track that it goes on in since a mapping joined both; itself if there is none. Never a later one.
    goes_on_in: usize,
}

/// A mapping of the look before, and its track.
struct MappingTrack {
    start: u64,
    end: u64,
    path: String,
    track: usize,
}

/// The regions of a process, the largest first, and the rest.
pub fn regions(rounds: &[LooksOfRound]) -> Vec<Region> {
    let mut found = vec![];
    let mut rest = vec![Sums::default(); rounds.len()];
    for track in tracks(rounds) {
        let region = region(&track.name, &track.sums);
        if region.resident_kib >= SMALL_KIB && region.rounds * 2 >= rounds.len() {
            found.push(region);
            continue;
        }
        for (rest, sums) in rest.iter_mut().flatten().zip(track.sums.into_iter().flatten()) {
            rest.join(sums);
        }
    }
    found.sort_by_key(|region| std::cmp::Reverse(region.resident_kib));
    let rest = region("the rest", &rest);
    found.extend((rest.resident_kib > 0).then_some(rest));
    found
}

/// All memory of a process as one region.
pub fn total(rounds: &[LooksOfRound]) -> Region {
    let sum = |look: &Look| {
        let mut sum = Sum::default();
        for mapping in look {
            sum.add(mapping);
        }
        sum
    };
    let sums: Vec<Sums> = rounds.iter().map(|round| [0, 1, 2].map(|window| sum(&round[window]))).collect();
    region("all", &sums)
}

/// What was one mapping, or several that were cut from one or joined to one, through all looks of all rounds.
fn tracks(rounds: &[LooksOfRound]) -> Vec<Track> {
    let mut tracks: Vec<Track> = vec![];
    let mut before: Vec<MappingTrack> = vec![];
    for (number, round) in rounds.iter().enumerate() {
        for (window, look) in round.iter().enumerate() {
            let mut places = Vec::with_capacity(look.len());
            for mapping in look {
                let track = follow(&mut tracks, &before, mapping).unwrap_or_else(|| {
                    let sums = vec![Sums::default(); rounds.len()];
                    tracks.push(Track { name: mapping.name(), sums, goes_on_in: tracks.len() });
                    tracks.len() - 1
                });
                tracks[track].sums[number][window].add(mapping);
                let Mapping { start, end, ref path, .. } = *mapping;
                places.push(MappingTrack { start, end, path: path.clone(), track });
            }
            // As the kernel lists them.
            places.sort_by_key(|place| place.start);
            before = places;
        }
    }
    for track in (0..tracks.len()).rev() {
        let into = tracks[track].goes_on_in;
        if into != track {
            let sums = std::mem::take(&mut tracks[track].sums);
            for (sum, other) in tracks[into].sums.iter_mut().flatten().zip(sums.into_iter().flatten()) {
                sum.join(other);
            }
        }
    }
    tracks.retain(|track| !track.sums.is_empty());
    tracks
}

/// The track that a mapping goes on with, by the look before. One that joins several makes them one.
fn follow(tracks: &mut [Track], before: &[MappingTrack], mapping: &Mapping) -> Option<usize> {
    // Mappings do not overlap each other, so that those of the look before are in order of their ends, too.
    let first = before.partition_point(|place| place.end <= mapping.start);
    let near = before[first..].iter().take_while(|place| place.start < mapping.end);
    let mut found: Option<usize> = None;
    for place in near.filter(|place| place.path == mapping.path) {
        let this = last(tracks, place.track);
        let (into, from) = found.map_or((this, this), |other| (this.min(other), this.max(other)));
        tracks[from].goes_on_in = into;
        found = Some(into);
    }
    found
}

/// Where a track goes on in the end.
fn last(tracks: &[Track], mut track: usize) -> usize {
    while tracks[track].goes_on_in != track {
        track = tracks[track].goes_on_in;
    }
    track
}

fn region(name: &str, sums: &[Sums]) -> Region {
    const LAST: usize = WINDOWS.len() - 1;
    let there = |sums: &&Sums| sums[LAST].resident > 0;
    let resident = sums.iter().filter(there).map(|sums| sums[LAST].resident as f64).collect();
    let mut at_least = 0.0_f64;
    let within = [0, 1, 2].map(|window| {
        let looks = sums.iter().map(|sums| sums[window]).filter(|sum| sum.resident > 0);
        let shares = looks.map(|sum| sum.accessed as f64 / sum.resident as f64).collect();
        // Where pages were given back between two looks, the later median can be a little below.
        at_least = at_least.max(median(shares));
        at_least
    });
    let rounds = sums.iter().filter(there).count();
    Region { name: name.into(), resident_kib: median(resident) as u64, within, rounds }
}

/// The middle of some figures, 0 of none.
pub(super) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    match figures.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => figures[odd / 2],
        even => f64::midpoint(figures[even / 2 - 1], figures[even / 2]),
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "figures that are exact in binary, or the same everywhere")]
mod tests {
    use std::ops::Range;

    use proptest::prelude::*;

    use super::*;

    const MIB: u64 = 1024;

    /// From `start` to `end` in MiB, all of it resident, with some of that accessed.
    fn mapping(path: &str, Range { start, end }: Range<u64>, accessed_mib: u64) -> Mapping {
        Mapping {
            start: start << 20,
            end: end << 20,
            path: path.into(),
            resident_kib: (end - start) * MIB,
            accessed_kib: accessed_mib * MIB,
            ..Mapping::default()
        }
    }

    /// A round that sees the same mappings three times.
    fn steady(look: &[Mapping]) -> LooksOfRound {
        [look.to_vec(), look.to_vec(), look.to_vec()]
    }

    fn names_and_mib(regions: &[Region]) -> Vec<(&str, u64)> {
        regions.iter().map(|region| (region.name.as_str(), region.resident_kib / MIB)).collect()
    }

    #[test]
    fn shares_are_medians_and_grow_with_the_window() {
        let round = |accessed: [u64; 3]| accessed.map(|mib| vec![mapping("[heap]", 0..100, mib)]);
        let rounds = [round([10, 30, 60]), round([90, 90, 90]), round([20, 15, 70])];
        let found = regions(&rounds);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].within, [0.2, 0.3, 0.7]);
        assert_eq!((found[0].name.as_str(), found[0].rounds), ("heap", 3));
        assert_eq!(total(&rounds).within, found[0].within);
        let shrinks = [10, 0, 0].map(|mib| vec![mapping("", 0..100, mib)]);
        assert_eq!(regions(&[shrinks])[0].within, [0.1; 3], "none smaller than the one before");
    }

    #[test]
    fn a_mapping_that_grows_at_either_end_stays_one() {
        let rounds: Vec<LooksOfRound> =
            (0..4).map(|round| steady(&[mapping("", 100 - 10 * round..200 + 5 * round, 1)])).collect();
        assert_eq!(names_and_mib(&regions(&rounds)), [("[anon]", 122)]);
    }

    #[test]
    fn what_is_cut_in_two_or_joined_stays_one() {
        let whole = steady(&[mapping("", 0..100, 50)]);
        let cut = steady(&[mapping("", 0..40, 20), mapping("", 50..100, 25)]);
        for rounds in [[whole.clone(), cut.clone()], [cut, whole]] {
            let found = regions(&rounds);
            assert_eq!(names_and_mib(&found), [("[anon]", 95)]);
            assert_eq!(found[0].within, [0.5; 3]);
        }
    }

    #[test]
    fn neighbours_of_another_name_are_another_region() {
        let rounds = [steady(&[mapping("[heap]", 0..10, 0), mapping("/a/b.db", 10..40, 30)])];
        let found = regions(&rounds);
        assert_eq!(names_and_mib(&found), [("b.db", 30), ("heap", 10)]);
    }

    #[test]
    fn what_is_small_or_seldom_there_is_the_rest() {
        let small = Mapping { resident_kib: 100, accessed_kib: 50, ..mapping("/bin/x", 500..501, 0) };
        let steady_ones = [mapping("[heap]", 0..10, 0), small];
        let mut rounds = vec![steady(&steady_ones); 5];
        rounds[0][1].push(mapping("", 700..710, 10));
        rounds[0][2].push(mapping("", 700..710, 10));
        let found = regions(&rounds);
        assert_eq!(names_and_mib(&found), [("heap", 10), ("the rest", 0)]);
        assert_eq!(found[1].within, [0.5; 3], "the median of the rounds");
        assert_eq!(found[1].resident_kib, 100);
    }

    proptest! {
        #[test]
        fn shares_stay_shares_whatever_the_looks(
            looks in prop::collection::vec(prop::collection::vec((0..40_u64, 1..9_u64, 0..9_u64, 0..2_usize), 0..9), 9)
        ) {
            let looks = looks.into_iter().map(|look| {
                let mappings = look.into_iter().map(|(start, length, accessed, path)| {
                    let path = ["", "[heap]"][path];
                    mapping(path, start..start + length, accessed.min(length))
                });
                mappings.collect::<Look>()
            });
            let looks: Vec<Look> = looks.collect();
            let rounds: Vec<LooksOfRound> =
                looks.chunks(3).map(|three| [three[0].clone(), three[1].clone(), three[2].clone()]).collect();
            for region in regions(&rounds).iter().chain([&total(&rounds)]) {
                prop_assert!(region.within.iter().all(|share| (0.0..=1.0).contains(share)), "{region:?}");
                prop_assert!(region.within.is_sorted(), "{region:?}");
            }
        }
    }

    #[test]
    fn nothing_gives_nothing() {
        assert_eq!(regions(&[]), []);
        assert_eq!(total(&[]).resident_kib, 0);
        assert_eq!(regions(&[LooksOfRound::default()]), []);
    }
}
