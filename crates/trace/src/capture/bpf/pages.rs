//! Where descriptors of pages lie. Programs see a page as its descriptor's address, and the kernel tells nobody where the first one is:
//! so perf and a program record the same allocations once, the one with numbers, the other with addresses.

use std::collections::BTreeMap;

use aya::Btf;

use super::{Belongs, Load, OurProgram, Programs, Watched, open, program};
use crate::capture::calibrate::{own_tid, touch_pages};
use crate::capture::perf::{Events, Wanted};
use crate::capture::{host, ring};
use crate::event::{Decoded, EventKind};
use crate::stream::compact::{CompactKind, compact_records};
use crate::stream::record::{Layout, Record};
use crate::stream::schema::Schema;
use crate::tracefs::mount;

/// Tells addresses.
static TELLER: OurProgram = program("page_address", TRACEPOINT, "");
const TRACEPOINT: &str = "mm_page_alloc";
/// Pages of the rings that this takes.
const RING_PAGES: usize = 64;
/// Pages that are touched.
const TOUCHED: usize = 256;
/// Agreeing pairs that are enough.
const PAIRS_MIN: usize = 64;
/// A program and perf see an event within so many ns of each other.
const APART_MAX: u64 = 50_000;
/// Sizes of descriptors, as powers of two: 64 bytes nearly everywhere.
const SHIFTS: [u32; 3] = [6, 7, 5];

/// Where descriptors of pages lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::capture) struct PageMap {
    /// The address of that of page 0.
    pub(super) base: u64,
    /// The size of each, as a power of two.
    pub(super) shift: u32,
}

/// Something that was allocated: when, and which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Seen {
    time: u64,
    /// A page's number, or the address of its descriptor.
    page: u64,
}

/// Finds out.
///
/// # Errors
/// In a few words, why that was not possible.
pub(in crate::capture) fn learn(types: &Btf) -> Result<PageMap, String> {
    let cpus = host::online_cpus();
    let pages = PageMap { base: 0, shift: SHIFTS[0] };
    let what = Load {
        tracepoints: &[],
        watched: Watched::Members,
        pages,
        zones: &[],
        cpus: &cpus,
        ring_pages: RING_PAGES,
    };
    let mut object = open(&what, types)?;
    super::load_program(&mut object, &TELLER, types).map_err(|error| super::refusal(&TELLER, &error))?;
    let mut programs = Programs::of(object, vec![&TELLER], &what)?;
    let failed = |error: crate::error::RecordError| error.to_string();
    let tracefs = mount::find().map_err(failed)?;
    let format = mount::read_format(&tracefs, "kmem:mm_page_alloc").map_err(failed)?;
    let mut schema = Schema::default();
    schema.add(&format)?;
    let wanted = Wanted { tracepoints: vec![format.id], maps: false };
    let mut events = Events::open(&wanted, &cpus, RING_PAGES).map_err(failed)?;
    let me = own_tid();
    programs.set_member(me, Belongs::Yes);
    programs.start().map_err(|error| format!("attaching programs: {error}"))?;
    events.enable().map_err(failed)?;
    let touched = touch_pages(TOUCHED).map_err(failed);
    events.disable().map_err(failed)?;
    programs.stop();
    touched?;
    let numbers = numbers(&mut events, &schema, me);
    let addresses = addresses(&programs, &cpus, me);
    page_map(&numbers, &addresses)
        .ok_or_else(|| "where descriptors of pages lie could not be found out".into())
}

/// What perf saw of task `me`.
fn numbers(events: &mut Events, schema: &Schema, me: u32) -> Vec<Seen> {
    let mut bytes = vec![];
    events.rings.iter_mut().for_each(|ring| ring.drain(&mut bytes));
    let records = ring::records(&bytes).filter_map(|(head, body)| Layout::OURS.parse(head, body));
    let pages = records.filter_map(|(origin, record)| match record {
        Record::Sample(raw) if origin.tid == me => match schema.decode(raw) {
            Ok(Decoded::Event(EventKind::PageAlloc { pfn, .. })) => {
                Some(Seen { time: origin.time, page: u64::from(pfn.0) })
            }
            _ => None,
        },
        _ => None,
    });
    pages.collect()
}

/// What our program saw of task `me`.
fn addresses(programs: &Programs, cpus: &[u32], me: u32) -> Vec<Seen> {
    let mut bytes = vec![];
    for &cpu in cpus {
        programs.ring(cpu).drain(&mut bytes);
    }
    let records = compact_records(&bytes).map(|(record, _)| record);
    let own = records.filter(|record| record.kind == CompactKind::PageAddress && record.tid() == me);
    own.map(|record| Seen { time: record.time(), page: record.third() }).collect()
}

/// The map on which nearly all pairs of a number and an address agree that were seen at about the same time.
fn page_map(numbers: &[Seen], addresses: &[Seen]) -> Option<PageMap> {
    let by_time: BTreeMap<u64, u64> = numbers.iter().map(|seen| (seen.time, seen.page)).collect();
    let nearest = |time: u64| {
        let before = by_time.range(..=time).next_back();
        let after = by_time.range(time..).next();
        let found = before.into_iter().chain(after).min_by_key(|(other, _)| other.abs_diff(time))?;
        (found.0.abs_diff(time) <= APART_MAX).then_some(*found.1)
    };
    let pairs: Vec<(u64, u64)> =
        addresses.iter().filter_map(|seen| Some((seen.page, nearest(seen.time)?))).collect();
    SHIFTS.into_iter().find_map(|shift| {
        let mut votes: BTreeMap<u64, usize> = BTreeMap::new();
        for (address, pfn) in &pairs {
            *votes.entry(address.wrapping_sub(pfn << shift)).or_default() += 1;
        }
        let (&base, &count) = votes.iter().max_by_key(|(_, count)| **count)?;
        (count >= PAIRS_MIN && count * 10 >= pairs.len() * 9).then_some(PageMap { base, shift })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0xffff_ea00_4000_0000;

    fn seen(shift: u32, wrong: usize) -> (Vec<Seen>, Vec<Seen>) {
        let pfns = (0..200u64).map(|index| 0x1_2000 + index * 7919 % 5000);
        let numbers: Vec<Seen> =
            pfns.enumerate().map(|(index, page)| Seen { time: 1_000 * index as u64, page }).collect();
        let address = |(index, seen): (usize, &Seen)| Seen {
            time: seen.time + 300,
            page: BASE + (seen.page << shift) + u64::from(index < wrong) * 4096 * index as u64,
        };
        let addresses = numbers.iter().enumerate().map(address).collect();
        (numbers, addresses)
    }

    #[test]
    fn pairs_that_agree_tell_base_and_size() {
        for shift in [6, 7, 5] {
            let (numbers, addresses) = seen(shift, 3);
            assert_eq!(page_map(&numbers, &addresses), Some(PageMap { base: BASE, shift }));
        }
    }

    #[test]
    fn pairs_that_disagree_tell_nothing() {
        let (numbers, addresses) = seen(6, 100);
        assert_eq!(page_map(&numbers, &addresses), None);
        assert_eq!(page_map(&numbers, &[]), None);
        let late: Vec<Seen> =
            addresses.iter().map(|seen| Seen { time: seen.time + (1 << 40), ..*seen }).collect();
        assert_eq!(page_map(&numbers, &late), None);
    }
}
