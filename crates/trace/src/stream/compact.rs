//! The records that our programs in the kernel make of events (bpf/ring.h): words of 64 bits, the first of which has the
//! kind of record and its time, the second the task and what is short of the event.

use mm::{MigrateType, Order, Pfn};

use super::record::Origin;
use crate::event::{Call, Decoded, EventKind, FileKey, NameId, SwitchState, file_written, requested};
use crate::tracefs::flags::GfpTable;

/// Bytes of a word.
pub(crate) const WORD: usize = 8;
/// Words of the longest record.
const WORDS_MAX: usize = 8;
const TIME_BITS: u32 = 58;

/// The kinds of records, as bpf/ring.h numbers them.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $number:literal, $words:literal;)*) => {
        /// A kind of record.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum CompactKind {
            $($(#[$doc])* $kind = $number,)*
        }

        impl CompactKind {
            /// Of a record's first word.
            #[inline]
            pub(crate) const fn of(first: u64) -> Option<Self> {
                match first >> TIME_BITS {
                    $($number => Some(Self::$kind),)*
                    _ => None,
                }
            }

            /// Words of such a record.
            #[inline]
            pub(crate) const fn words(self) -> usize {
                match self {
                    $(Self::$kind => $words,)*
                }
            }
        }
    };
}

kinds! {
    /// The rest of its page of the ring is empty.
    Fill = 1, 1;
    PageAlloc = 2, 3;
    NoPage = 3, 3;
    PageFree = 4, 2;
    PageFreeBatched = 5, 2;
    ZoneLocked = 6, 2;
    PcpuDrain = 7, 2;
    Fault = 8, 4;
    Switch = 9, 2;
    NewTask = 10, 3;
    Exec = 11, 2;
    Enter = 12, 8;
    Leave = 13, 3;
    FileRead = 14, 5;
    FileAdd = 15, 5;
    FileDrop = 16, 5;
    FileWrite = 17, 5;
    /// Where a page's descriptor lies.
    PageAddress = 18, 3;
    /// The reader's own word for records that found no room.
    Lost = 19, 3;
    Waking = 20, 2;
    /// A fault whose addresses have 48 bits.
    FaultShort = 21, 3;
    /// Pages that a direct read or write needed, there or not.
    Needed = 22, 3;
}

impl CompactKind {
    /// The first word of a record of this kind.
    pub(crate) const fn first(self, time: u64) -> u64 {
        (self as u64) << TIME_BITS | time & ((1 << TIME_BITS) - 1)
    }
}

/// A record's words; those that it does not have are zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Compact {
    pub(crate) kind: CompactKind,
    words: [u64; WORDS_MAX],
}

impl Compact {
    /// Reads the record at the front of some bytes. `None` if they are no record.
    #[inline]
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let first = u64::from_le_bytes(*bytes.first_chunk()?);
        let kind = CompactKind::of(first)?;
        let mut words = [first, 0, 0, 0, 0, 0, 0, 0];
        let body = bytes.get(WORD..kind.words() * WORD)?;
        for (word, bytes) in words[1..].iter_mut().zip(body.chunks_exact(WORD)) {
            *word = u64::from_le_bytes(bytes.try_into().ok()?);
        }
        Some(Self { kind, words })
    }

    /// Bytes of the record.
    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.kind.words() * WORD
    }

    /// When, ns.
    #[inline]
    pub(crate) const fn time(&self) -> u64 {
        self.words[0] & ((1 << TIME_BITS) - 1)
    }

    /// On whose time: the task's number.
    #[inline]
    pub(crate) const fn tid(&self) -> u32 {
        self.words[1] as u32 & 0x3f_ffff
    }

    /// Ten bits of the kind's own.
    const fn small(&self) -> u32 {
        self.words[1] as u32 >> 22
    }

    /// Thirty-two bits of the kind's own.
    const fn large(&self) -> u32 {
        (self.words[1] >> 32) as u32
    }

    /// The third word: of [`CompactKind::PageAddress`] the address, of [`CompactKind::Lost`] how many.
    pub(crate) const fn third(&self) -> u64 {
        self.words[2]
    }

    /// Whether whoever interrupted the task caused the event; known of [`CompactKind::Waking`] alone.
    pub(crate) fn is_by_interrupt(&self) -> bool {
        self.kind == CompactKind::Waking && self.small() & 1 != 0
    }

    /// When and by whom. Programs do not tell processes: who reads the records knows the tasks'.
    pub(crate) const fn origin(&self, cpu: u32) -> Origin {
        Origin { time: self.time(), pid: 0, tid: self.tid(), cpu }
    }

    fn order(&self) -> Option<Order> {
        Order::new(self.small() as u8 & 15)
    }

    fn migratetype(&self) -> Option<MigrateType> {
        MigrateType::from_index(self.small() as u8 >> 4 & 7)
    }

    /// What the record says; `None` if a value cannot be expressed. `flags` are this kernel's of requests.
    #[inline]
    pub(crate) fn decode(&self, flags: Option<&GfpTable>) -> Option<Decoded<'static>> {
        let pfn = Pfn(self.large());
        let event = match self.kind {
            CompactKind::PageAlloc | CompactKind::NoPage => {
                let pfn = (self.kind == CompactKind::PageAlloc).then_some(pfn);
                requested(pfn, self.order()?, self.migratetype()?, flags?.decode(self.words[2]))
            }
            CompactKind::PageFree => EventKind::PageFree { pfn, order: self.order()? },
            CompactKind::PageFreeBatched => EventKind::PageFreeBatched { pfn },
            CompactKind::ZoneLocked => EventKind::ZoneLocked {
                pfn,
                order: self.order()?,
                migratetype: self.migratetype()?,
                percpu_refill: self.small() >> 7 & 1 != 0,
            },
            CompactKind::PcpuDrain => {
                EventKind::PcpuDrain { pfn, order: self.order()?, migratetype: self.migratetype()? }
            }
            CompactKind::Fault => {
                EventKind::Fault { address: self.words[2], ip: self.words[3], error_code: self.large() }
            }
            CompactKind::FaultShort => EventKind::Fault {
                address: u64::from(self.large()) | (self.words[2] & 0xffff) << 32,
                ip: (self.words[2] as i64 >> 16) as u64,
                error_code: self.small(),
            },
            _ => return self.decode_other(),
        };
        Some(Decoded::Event(event))
    }

    fn decode_other(&self) -> Option<Decoded<'static>> {
        let [_, _, third, fourth, ..] = self.words;
        let call = || Call::of_x86_64(self.small());
        Some(match self.kind {
            CompactKind::Switch => {
                let none: &[u8] = &[];
                // Of several states the kernel reports the highest.
                let state = self.small().checked_ilog2().map_or(0, |bit| 1 << bit);
                let state = SwitchState::from_prev_state(state);
                Decoded::Switch { next_tid: self.large(), next_name: none, prev_name: none, state }
            }
            CompactKind::Waking => Decoded::Waking(self.large()),
            CompactKind::NewTask => Decoded::NewTask { tid: self.large(), flags: third as u32 },
            CompactKind::Exec => Decoded::Executed { old_tid: self.large() },
            CompactKind::Enter => {
                let mut arguments = [0; 6];
                arguments.copy_from_slice(&self.words[2..]);
                Decoded::Enter { call: call()?, arguments }
            }
            CompactKind::Leave => Decoded::Leave { call: call()?, result: third as i64 },
            CompactKind::Needed => {
                let advice = [EventKind::NEEDED_TO_READ, EventKind::NEEDED_TO_WRITE];
                let advice = advice[self.small() as usize & 1];
                Decoded::Needed { address: third, pages: self.large(), advice }
            }
            CompactKind::FileRead => {
                let pages = self.words[4].checked_sub(fourth)?.checked_add(1)?;
                self.file(|first, pages, file| EventKind::FileRead { file, first, pages }, pages)?
            }
            CompactKind::FileAdd => {
                self.file(|first, pages, file| EventKind::FileAdd { file, first, pages }, self.folio_pages())?
            }
            CompactKind::FileDrop => self
                .file(|first, pages, file| EventKind::FileDrop { file, first, pages }, self.folio_pages())?,
            CompactKind::FileWrite => Decoded::File(file_written(fourth, self.words[4])?, self.file_key()),
            _ => return None,
        })
    }

    fn folio_pages(&self) -> u64 {
        1 << (self.small() & 31)
    }

    const fn file_key(&self) -> FileKey {
        FileKey { device: self.large(), inode: self.words[2] }
    }

    fn file(&self, kind: fn(u32, u32, NameId) -> EventKind, pages: u64) -> Option<Decoded<'static>> {
        let (first, pages) = (u32::try_from(self.words[3]).ok()?, u32::try_from(pages).ok()?);
        Some(Decoded::File(kind(first, pages, NameId::NONE), self.file_key()))
    }
}

/// The records in what a ring held.
pub(crate) fn compact_records(mut bytes: &[u8]) -> impl Iterator<Item = (Compact, &[u8])> {
    std::iter::from_fn(move || {
        let record = Compact::read(bytes)?;
        let (body, rest) = bytes.split_at_checked(record.len())?;
        bytes = rest;
        Some((record, body))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn second(tid: u32, small: u32, large: u32) -> u64 {
        u64::from(tid) | u64::from(small) << 22 | u64::from(large) << 32
    }

    fn decoded(kind: CompactKind, small: u32, large: u32, more: &[u64]) -> Option<Decoded<'static>> {
        let words = [&[kind.first(9), second(77, small, large)], more].concat();
        let record = Compact::read(&bytes(&words)).unwrap();
        assert_eq!((record.origin(3).time, record.tid(), record.kind), (9, 77, kind));
        let flags = GfpTable::parse("{( unsigned long)(0x40), \"__GFP_IO\"}");
        record.decode(Some(&flags))
    }

    #[test]
    fn page_events_have_what_recordings_keep() {
        let (pfn, order, migratetype) = (Pfn(70_000), Order::new(3).unwrap(), MigrateType::Movable);
        let shape = 3 | (MigrateType::Movable as u32) << 4;
        let event = |kind, small| decoded(kind, small, 70_000, &[0x40]);
        let gfp = crate::gfp::Gfp::IO;
        let alloc = EventKind::PageAlloc { pfn, order, migratetype, gfp };
        assert_eq!(event(CompactKind::PageAlloc, shape), Some(Decoded::Event(alloc)));
        let failed = requested(None, order, migratetype, gfp);
        assert_eq!(event(CompactKind::NoPage, shape), Some(Decoded::Event(failed)));
        let free = EventKind::PageFree { pfn, order };
        assert_eq!(event(CompactKind::PageFree, 3), Some(Decoded::Event(free)));
        let locked = EventKind::ZoneLocked { pfn, order, migratetype, percpu_refill: true };
        assert_eq!(event(CompactKind::ZoneLocked, shape | 1 << 7), Some(Decoded::Event(locked)));
        let drain = EventKind::PcpuDrain { pfn, order, migratetype };
        assert_eq!(event(CompactKind::PcpuDrain, shape), Some(Decoded::Event(drain)));
        assert_eq!(event(CompactKind::PageFree, 11), None, "no block is of order 11");
    }

    #[test]
    fn other_events_have_what_recordings_keep() {
        let fault = EventKind::Fault { address: 0x7f00_0000_1000, ip: 0x40_1000, error_code: 6 };
        let found = decoded(CompactKind::Fault, 0, 6, &[0x7f00_0000_1000, 0x40_1000]);
        assert_eq!(found, Some(Decoded::Event(fault)));
        for ip in [0x40_1000u64, 0xffff_ffff_8123_4567] {
            let fault = EventKind::Fault { address: 0x7f00_1234_1000, ip, error_code: 6 };
            let found = decoded(CompactKind::FaultShort, 6, 0x1234_1000, &[ip << 16 | 0x7f00]);
            assert_eq!(found, Some(Decoded::Event(fault)));
        }
        let state = |small| match decoded(CompactKind::Switch, small, 5, &[]) {
            Some(Decoded::Switch { next_tid: 5, state, .. }) => state,
            other => panic!("{other:?}"),
        };
        assert_eq!([0, 0x100].map(state), [SwitchState::Runnable; 2]);
        assert_eq!([1, 2, 0x80].map(state), [SwitchState::Sleeping, SwitchState::Blocked, SwitchState::Idle]);
        assert_eq!([0x12, 0x20, 4, 0x40].map(state)[..2], [SwitchState::Dead; 2]);
        let enter = decoded(CompactKind::Enter, 11, 0, &[1, 2, 3, 4, 5, 6]);
        assert_eq!(enter, Some(Decoded::Enter { call: Call::Munmap, arguments: [1, 2, 3, 4, 5, 6] }));
        let leave = decoded(CompactKind::Leave, 329, 0, &[-12i64 as u64]);
        assert_eq!(leave, Some(Decoded::Leave { call: Call::PkeyMprotect, result: -12 }));
        assert_eq!(decoded(CompactKind::Leave, 0, 0, &[0]), None, "read is none of ours");
        let needed = |advice| Some(Decoded::Needed { address: 0x7f00_0000_1000, pages: 5, advice });
        let found = [0, 1].map(|writes| decoded(CompactKind::Needed, writes, 5, &[0x7f00_0000_1000]));
        assert_eq!(found, [EventKind::NEEDED_TO_READ, EventKind::NEEDED_TO_WRITE].map(needed));
        assert_eq!(decoded(CompactKind::Waking, 1, 9, &[]), Some(Decoded::Waking(9)));
        let file = FileKey { device: 0xfe0_0001, inode: 12 };
        let (name, first) = (NameId::NONE, 4);
        let of = |kind, small, more: &[u64]| decoded(kind, small, 0xfe0_0001, more);
        let read = EventKind::FileRead { file: name, first, pages: 3 };
        assert_eq!(of(CompactKind::FileRead, 0, &[12, 4, 6]), Some(Decoded::File(read, file)));
        let add = EventKind::FileAdd { file: name, first, pages: 16 };
        assert_eq!(of(CompactKind::FileAdd, 4, &[12, 4, 0]), Some(Decoded::File(add, file)));
        let write = EventKind::FileWrite { file: name, first, pages: 2 };
        assert_eq!(
            of(CompactKind::FileWrite, 0, &[12, 4 * 4096 + 4000, 200]),
            Some(Decoded::File(write, file))
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(words in prop::collection::vec(any::<u64>(), 0..40), cut in 0usize..8) {
            let mut bytes = bytes(&words);
            bytes.truncate(bytes.len().saturating_sub(cut));
            for (record, body) in compact_records(&bytes) {
                prop_assert_eq!(body.len(), record.len());
                let _ = record.decode(None);
            }
        }
    }
}
