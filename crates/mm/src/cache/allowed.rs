//! How much may be dirty (`domain_dirty_limits`): a part of what could be, or so many bytes, on the machine; in a group the same part
//! of the group's.

use super::{AllowedDoor, FilesGround};
use crate::ground::{Machine, PAGE_SIZE, Relaxed, ZoneKind};
use crate::rules::knobs::Knob;

/// Two knobs of one bound: the one in bytes counts where it is not 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Bound {
    bytes: Knob,
    ratio: Knob,
}

/// Above this, who writes waits.
const WRITERS: Bound = Bound { bytes: Knob::DirtyBytes, ratio: Knob::DirtyRatio };
/// Above this the flusher writes unasked.
const FLUSHER: Bound = Bound { bytes: Knob::DirtyBackgroundBytes, ratio: Knob::DirtyBackgroundRatio };

/// What the flusher begins at, in pages, where `own` is its bound and `writers` that of writers: below theirs in any case.
const fn before_writers(own: u64, writers: u64) -> u64 {
    if own >= writers { writers / 2 } else { own }
}

impl<M: Machine, G: FilesGround<M>> AllowedDoor<'_, M, G> {
    /// Whether `pages` that are dirty are no more than writers may have.
    pub(super) fn writers_are_within(self, pages: u64) -> bool {
        let dirtyable = self.dirtyable();
        self.decide(self.in_force(WRITERS), pages, |knob, value| self.limit(knob, value, dirtyable))
    }

    /// Whether they are no more than the flusher leaves.
    pub(super) fn flusher_is_within(self, pages: u64) -> bool {
        let dirtyable = self.dirtyable();
        let (own, writers) = (self.in_force(FLUSHER), self.in_force(WRITERS));
        let limit = |knob, value| self.limit(knob, value, dirtyable);
        let [own_limit, writers_limit] = [own, writers].map(|knob| limit(knob, self.knobs().get(knob)));
        // The same by either; each says whether its knob made the difference.
        let by_writers =
            self.decide(writers, pages, |knob, value| before_writers(own_limit, limit(knob, value)));
        self.decide(own, pages, |knob, value| before_writers(limit(knob, value), writers_limit)) && by_writers
    }

    /// The one of the two that counts.
    fn in_force(self, bound: Bound) -> Knob {
        if self.knobs().get(bound.bytes) == 0 { bound.ratio } else { bound.bytes }
    }

    /// Whether `pages` are no more than what follows from `knob` at its value.
    fn decide(self, knob: Knob, pages: u64, limit: impl Fn(Knob, u64) -> u64) -> bool {
        let mark = |value| limit(knob, value);
        self.knobs().decide_by(self.machine(), (knob, pages), mark, |limit| pages <= limit)
    }

    /// Pages of `dirtyable` ones that may be dirty where `knob` is `value`. Without bytes it is the ratio that counts.
    fn limit(self, knob: Knob, value: u64, dirtyable: u64) -> u64 {
        let bytes = [WRITERS, FLUSHER].into_iter().find(|bound| bound.bytes == knob);
        match bytes {
            Some(Bound { ratio, .. }) if value == 0 => dirtyable * self.knobs().get(ratio) / 100,
            Some(_) => value.div_ceil(PAGE_SIZE),
            None => dirtyable * value / 100,
        }
    }

    /// `bound` of a group that could have `dirtyable` pages dirty: bytes are the part of it that they are of the machine's.
    fn limit_in_group(self, bound: Bound, dirtyable: u64) -> u64 {
        match self.knobs().get(bound.bytes) {
            0 => dirtyable.saturating_mul(self.knobs().get(bound.ratio)) / 100,
            bytes => {
                let part = bytes.div_ceil(self.dirtyable().max(1)).min(PAGE_SIZE);
                dirtyable.saturating_mul(part) / PAGE_SIZE
            }
        }
    }

    /// Whether no more of the task's group is dirty or being written than writers may have of it.
    pub(super) fn group_is_within_writers(self) -> bool {
        self.group_is_within(|dirtyable| self.limit_in_group(WRITERS, dirtyable))
    }

    /// The same of what the flusher leaves.
    pub(super) fn group_is_within_flusher(self) -> bool {
        self.group_is_within(|dirtyable| {
            before_writers(self.limit_in_group(FLUSHER, dirtyable), self.limit_in_group(WRITERS, dirtyable))
        })
    }

    fn group_is_within(self, limit: impl Fn(u64) -> u64) -> bool {
        let dirt = if self.memcg().in_use() { self.memcg().dirt() } else { None };
        dirt.is_none_or(|dirt| dirt.pending <= limit(dirt.dirtyable))
    }

    /// Pages that could be dirty (`global_dirtyable_memory`): free ones that zones do not keep, and those of files, HighMem apart
    /// (`vm.highmem_is_dirtyable` is 0).
    fn dirtyable(self) -> u64 {
        let zones = self.zones().iter().zip(&self.own().zones);
        let low =
            zones.filter(|(zone, _)| zone.kind() <= ZoneKind::Normal || zone.kind() == ZoneKind::Movable);
        let (mut free, mut file, mut kept) = (0, 0, 0);
        for (zone, pages) in low {
            free += u64::from(zone.free_pages());
            file += pages.file.load(Relaxed).max(0) as u64;
            kept += u64::from(zone.kept());
        }
        u64::saturating_sub(free, kept) + file
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::mm::Mm;
    use crate::{Bare, Knobs, Policy, Topology};

    /// 32 MiB.
    fn mm(knobs: &[(Knob, u64)]) -> Mm<Bare> {
        let topology = Topology::one_node(&[ZoneKind::Dma32, ZoneKind::Normal], 4096, 1);
        let policy = Policy::parse("linux-6.12").unwrap();
        let mm = Mm::new(Bare::default(), topology, policy, Knobs::default()).unwrap();
        for (knob, value) in knobs {
            mm.set_knob(*knob, *value).unwrap();
        }
        mm
    }

    /// The most pages that may be dirty before writers wait, and before the flusher writes.
    fn limits(knobs: &[(Knob, u64)]) -> [u64; 2] {
        let mm = mm(knobs);
        let most =
            |is_within: &dyn Fn(u64) -> bool| (0..1 << 20).find(|pages| !is_within(pages + 1)).unwrap();
        let allowed = mm.files().allowed();
        [most(&|pages| allowed.writers_are_within(pages)), most(&|pages| allowed.flusher_is_within(pages))]
    }

    #[test]
    fn what_zones_keep_is_nobodys_to_be_dirty() {
        let mm = mm(&[]);
        let kept: u64 = mm.zones().iter().map(|zone| u64::from(zone.kept())).sum();
        let free: u64 = mm.zones().iter().map(|zone| u64::from(zone.free_pages())).sum();
        assert!(kept > 0);
        assert_eq!(mm.files().allowed().dirtyable(), free - kept);
        assert_eq!(limits(&[]), [(free - kept) / 5, (free - kept) / 10]);
    }

    #[test]
    fn bytes_count_where_they_are_not_0_and_pages_are_whole() {
        let bytes = [(Knob::DirtyBytes, 1 << 20), (Knob::DirtyBackgroundBytes, (1 << 19) + 1)];
        assert_eq!(limits(&bytes), [256, 129]);
        let [by_ratio, _] = limits(&[]);
        assert_eq!(limits(&bytes[1..]), [by_ratio, 129]);
        // Whoever is set last is in force.
        assert_eq!(limits(&[bytes[0], (Knob::DirtyRatio, 20)])[0], by_ratio);
        assert_eq!(limits(&[(Knob::DirtyRatio, 20), bytes[0]])[0], 256);
    }

    #[test]
    fn the_flusher_begins_before_writers_wait() {
        assert_eq!(limits(&[(Knob::DirtyBytes, 1 << 20)]), [256, 128], "its own would be more");
        assert_eq!(limits(&[(Knob::DirtyBytes, 1 << 20), (Knob::DirtyBackgroundBytes, 1 << 20)]), [256, 128]);
    }

    #[test]
    fn in_a_group_bytes_are_as_large_a_part_as_of_the_machine() {
        let in_group =
            |knobs: &[(Knob, u64)], dirtyable| mm(knobs).files().allowed().limit_in_group(WRITERS, dirtyable);
        assert_eq!(in_group(&[], 1000), 200);
        let all = mm(&[]).files().allowed().dirtyable();
        let quarter = in_group(&[(Knob::DirtyBytes, all * PAGE_SIZE / 4)], 1000);
        assert!((249..=251).contains(&quarter), "{quarter}");
        assert_eq!(in_group(&[(Knob::DirtyBytes, 1 << 40)], 1000), 1000, "no more than there is");
    }
}
