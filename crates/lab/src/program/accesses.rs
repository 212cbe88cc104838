//! How often a program walked to its pages when it was recorded, from looks at accessed bits.
//!
//! A look says of each mapping how many of its resident pages got their bit back within some CPU time. Were accesses to come at any page alike and at
//! any time alike, a share `f` within `t` would mean `-ln(1-f)/t` accesses a page. What TLBs hold gets no bit, so these are walks.
//! Where most pages have their bit already, or pages are accessed in order, it is no more than a bound.

use std::collections::BTreeMap;

use mm::vm::{Vpn, ZeroPages};
use trace::EventKind;

use super::track::Track;
use super::used::{OpenPeriod, UsedPeriod};
use super::windows::Windows;

/// Shares above this say no more: the pages that have no bit are too few to be counted.
const SHARE_MAX: f64 = 0.98;
/// Terms of the logarithm's series, whose error is then below 1 %.
const TERMS: u32 = 12;

/// What a look at a process has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Walked {
    /// Walks in a second of the process's CPU time.
    pub per_second: u64,
    /// Pages that were resident.
    pub resident: u64,
}

/// What a look at a process has counted of a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LookedAt {
    /// The mapping's first page.
    pub first: Vpn,
    /// Its pages.
    pub pages: u32,
    /// Pages that were resident.
    pub resident: u64,
    /// Those of them that were used.
    pub accessed: u64,
    /// Within so much CPU time of the process, ns.
    pub cpu_ns: u64,
    /// Whether that is since the look before, and not a moment.
    pub since_before: bool,
}

/// From a step on, until the next of these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WalkedFrom {
    /// The step, as an index into the task's.
    pub step: u32,
    /// An index into [`super::Program::walked`].
    pub look: u32,
}

/// Looks, while the recording is read.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// What each has found so far.
    found: Vec<Sum>,
    /// The same by mapping.
    mappings: Vec<Vec<LookedAt>>,
    /// What private pages held then, of the looks that read any.
    zeros: Vec<Vec<ZeroPages>>,
    /// The last one's time and address space.
    last: Option<(u64, usize)>,
    /// Of address spaces: what was used since they were looked at before, which goes with the look that follows.
    since: BTreeMap<usize, Vec<LookedAt>>,
    /// Of address spaces that are looked at page by page: what was found since their bits were cleared.
    open: BTreeMap<usize, Open>,
    /// Of these, their last look.
    last_of: BTreeMap<usize, usize>,
    /// Which pages were used, by look.
    used: Vec<UsedPeriod>,
}

/// What was found since bits were cleared.
#[derive(Debug, Default)]
struct Open {
    sum: Sum,
    moment: Vec<LookedAt>,
    since: Vec<LookedAt>,
    zeros: Vec<ZeroPages>,
    period: OpenPeriod,
}

/// What all looks have found: by look, and where a look tells of mappings, by mapping.
#[derive(Debug)]
pub(super) struct LooksFound {
    pub(super) walked: Vec<Walked>,
    pub(super) looked_at: Vec<Vec<LookedAt>>,
    /// What private pages held; empty of looks that read none.
    pub(super) zeros: Vec<Vec<ZeroPages>>,
    /// Which pages were used.
    pub(super) used: Vec<UsedPeriod>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    per_second: f64,
    resident: u64,
    /// Whether some of it stood in huge pages, whose bit says little.
    has_huge: bool,
}

impl Sum {
    /// Of so many pages that were accessed, of those resident.
    fn of((accessed, resident): (u32, u32), cpu_ns: u32, huge: u32) -> Self {
        let walks = if cpu_ns > 0 && resident > 0 {
            let share = f64::from(accessed) / f64::from(resident);
            f64::from(resident) * walks_of_a_page(share, f64::from(cpu_ns)) * 1e9
        } else {
            0.0
        };
        Self { per_second: walks, resident: resident.into(), has_huge: huge > 0 }
    }

    fn add(&mut self, other: Self) {
        self.per_second += other.per_second;
        self.resident += other.resident;
        self.has_huge |= other.has_huge;
    }
}

impl Looks {
    /// Takes in what was found of a mapping, whose first page is `first`, in address space `space` at `time`: a look begins with the first of
    /// its mappings.
    pub(super) fn add(
        &mut self,
        (time, space): (u64, usize),
        tracks: &mut [Track],
        (kind, first): (&EventKind, Option<Vpn>),
    ) {
        let counted = |accessed: u32, pages, cpu_ns: u32, resident: u32| {
            let (accessed, resident, cpu_ns) = (accessed.into(), resident.into(), cpu_ns.into());
            first.map(|first| LookedAt { first, pages, accessed, resident, cpu_ns, since_before: false })
        };
        let found = match *kind {
            EventKind::Accessed { pages, accessed, cpu_ns, resident, huge, .. } => {
                let sum = Sum::of((accessed, resident), cpu_ns, huge);
                (sum, counted(accessed, pages, cpu_ns, resident))
            }
            EventKind::AccessedSince { pages, accessed, cpu_ns, resident, .. } => {
                let counted = counted(accessed, pages, cpu_ns, resident);
                let since = counted.map(|counted| LookedAt { since_before: true, ..counted });
                let open = self.open.get_mut(&space).map(|open| &mut open.since);
                open.unwrap_or_else(|| self.since.entry(space).or_default()).extend(since);
                return;
            }
            _ => return,
        };
        if let Some(open) = self.open.get_mut(&space) {
            open.sum.add(found.0);
            open.moment.extend(found.1);
            return;
        }
        if self.last != Some((time, space)) {
            self.last = Some((time, space));
            let mappings = self.since.remove(&space).unwrap_or_default();
            let look = self.push(Open { moment: mappings, ..Open::default() }, 0);
            tracks.iter_mut().filter(|track| track.space == Some(space)).for_each(|track| track.look(look));
        }
        let (Some(sum), Some(mappings)) = (self.found.last_mut(), self.mappings.last_mut()) else { return };
        sum.add(found.0);
        mappings.extend(found.1);
    }

    /// The number of a look that has found this.
    fn push(&mut self, mut open: Open, own_ns: u64) -> u32 {
        self.found.push(open.sum);
        open.since.append(&mut open.moment);
        self.mappings.push(open.since);
        self.zeros.push(open.zeros);
        self.used.push(open.period.end(own_ns));
        self.found.len() as u32 - 1
    }

    /// The bits of address space `space` were cleared at `time`. What was found since they were cleared before is a look, which holds until
    /// now; the first holds what the next one finds.
    pub(super) fn cleared(&mut self, time: u64, space: usize, tracks: &mut [Track]) {
        let open = self.open.insert(space, Open::default());
        self.end(open.unwrap_or_default(), (time, space), tracks);
    }

    fn end(&mut self, mut open: Open, (time, space): (u64, usize), tracks: &mut [Track]) {
        let own = |track: &&mut Track| track.space == Some(space);
        let own_ns = tracks.iter_mut().filter(own).map(|track| track.divide(time)).sum();
        let before = self.last_of.get(&space).copied();
        if let Some(before) = before.filter(|_| open.moment.is_empty()) {
            // It ended before there was a moment that tells something.
            open.sum = self.found[before];
            open.moment = self.mappings[before].iter().filter(|found| !found.since_before).copied().collect();
        }
        let (sum, moment) = (open.sum, open.moment.clone());
        let look = self.push(open, own_ns);
        if let Some(first) = before.filter(|before| self.mappings[*before].is_empty()) {
            (self.found[first], self.mappings[first]) = (sum, moment);
        }
        self.last_of.insert(space, look as usize);
        tracks.iter_mut().filter(own).for_each(|track| track.look(look));
    }

    /// Address space `space` was looked at page by page, so many µs after its bits were cleared, of which it had a CPU for `cpu_us`.
    pub(super) fn looked(&mut self, space: usize, (passed_us, cpu_us): (u32, u32)) {
        if let Some(open) = self.open.get_mut(&space) {
            open.period.look(passed_us, cpu_us);
        }
    }

    /// That look has found these bits, of the 64 pages from `address` on.
    pub(super) fn used(&mut self, space: usize, windows: &Windows, (address, bits): (u64, u64)) {
        if let Some(open) = self.open.get_mut(&space) {
            open.period.used(windows, address, bits);
        }
    }

    /// The recording ends at `time`, and with it all that was looked at.
    pub(super) fn end_all(&mut self, time: u64, tracks: &mut [Track]) {
        for (space, open) in std::mem::take(&mut self.open) {
            if !open.period.is_empty() {
                self.end(open, (time, space), tracks);
            }
        }
    }

    /// With the last look, so many pages of the mapping whose first page is `first` were read.
    pub(super) fn read(&mut self, at: (u64, usize), first: Option<Vpn>, (read, zeros): (u32, u32)) {
        let (mappings, known) = if let Some(open) = self.open.get_mut(&at.1) {
            (&open.moment, &mut open.zeros)
        } else if let (true, Some(mappings), Some(known)) =
            (self.last == Some(at), self.mappings.last(), self.zeros.last_mut())
        {
            (mappings, known)
        } else {
            return;
        };
        let mapping = mappings.iter().find(|mapping| Some(mapping.first) == first);
        let share = u64::from(zeros.min(read)) << 16;
        if let (Some(mapping), Some(share)) = (mapping, share.checked_div(read.into())) {
            known.push(ZeroPages { start: mapping.first, pages: mapping.pages, share: share as u32 });
        }
    }

    /// What all have found. One that met huge pages has found nothing of walks.
    pub(super) fn finish(self) -> LooksFound {
        let walked = |sum: Sum| Walked {
            per_second: if sum.has_huge { 0 } else { sum.per_second as u64 },
            resident: sum.resident,
        };
        let walked = self.found.into_iter().map(walked).collect();
        LooksFound { walked, looked_at: self.mappings, zeros: self.zeros, used: self.used }
    }
}

/// How often a page was walked to in a unit of the time `within`, of which a share of the pages got their bit back.
pub(super) fn walks_of_a_page(share: f64, within: f64) -> f64 {
    minus_ln_of_rest(share.min(SHARE_MAX)) / within
}

/// `-ln(1 - share)`, for 0 to [`SHARE_MAX`], by additions and multiplications alone: the same to the bit on every machine.
fn minus_ln_of_rest(share: f64) -> f64 {
    // Squaring halves: -ln(1-f) = 4 · -ln(⁴√(1-f)); roots are exact to the bit, and the series is quick near 1.
    let root = (1.0 - share).sqrt().sqrt();
    let ratio = (1.0 - root) / (1.0 + root);
    let square = ratio * ratio;
    let (mut power, mut sum) = (ratio, 0.0);
    for term in 0..TERMS {
        sum += power / f64::from(2 * term + 1);
        power *= square;
    }
    8.0 * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_one() {
        for (share, wanted) in
            [(0.0, 0.0), (0.1, 0.105_360_5), (0.5, std::f64::consts::LN_2), (0.98, 3.912_023)]
        {
            assert!((minus_ln_of_rest(share) - wanted).abs() < 1e-6, "{share}: {}", minus_ln_of_rest(share));
        }
    }

    #[test]
    fn mappings_of_one_look_add_up() {
        let found = |accessed, huge| EventKind::Accessed {
            address: 0,
            accessed,
            pages: 2000,
            cpu_ns: 1_000_000,
            resident: 1000,
            huge,
        };
        let mut looks = Looks::default();
        looks.read((5, 0), Some(Vpn(7)), (64, 16));
        looks.add((5, 0), &mut [], (&found(500, 0), Some(Vpn(7))));
        looks.add((5, 0), &mut [], (&found(0, 0), None));
        looks.read((5, 0), Some(Vpn(7)), (64, 16));
        looks.read((5, 0), Some(Vpn(8)), (64, 64));
        looks.read((5, 0), Some(Vpn(7)), (0, 0));
        looks.read((6, 0), Some(Vpn(7)), (64, 1));
        let since = EventKind::AccessedSince {
            address: 0,
            accessed: 1800,
            pages: 2000,
            cpu_ns: 9_000_000,
            resident: 1000,
            huge: 0,
        };
        looks.add((9, 0), &mut [], (&since, Some(Vpn(7))));
        looks.add((9, 0), &mut [], (&found(1000, 0), Some(Vpn(8))));
        looks.add((9, 1), &mut [], (&found(1000, 512), Some(Vpn(9))));
        let LooksFound { walked: found, looked_at, zeros, .. } = looks.finish();
        let quarter = ZeroPages { start: Vpn(7), pages: 2000, share: 16_384 };
        assert_eq!(zeros, [vec![quarter], vec![], vec![]]);
        let first = LookedAt {
            since_before: false,
            first: Vpn(7),
            pages: 2000,
            resident: 1000,
            accessed: 500,
            cpu_ns: 1_000_000,
        };
        assert_eq!((&looked_at[0][..], looked_at.len()), (&[first][..], 3));
        assert_eq!(found.len(), 3);
        assert_eq!(found[0], Walked { per_second: 693_147, resident: 2000 });
        assert!(found[1].per_second > 3_900_000, "all that a full share can mean");
        assert_eq!(found[2].per_second, 0, "one bit for 512 pages says little");
    }
}
