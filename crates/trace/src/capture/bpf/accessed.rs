//! Accessed bits from page tables, by programs of our own (bpf/accessed.bpf.c): page by page, in a few microseconds for 512 of them, and
//! without the lock of the address space, which `smaps` holds.
//!
//! Tables name each other by physical addresses. Where the kernel maps all memory it tells nobody, but it is a multiple of 1 GiB, not far below
//! any table: so a page of our own, whose frame's number `/proc/self/pagemap` has, is looked for at each.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

use aya::programs::Program;
use aya::{Btf, Ebpf, EbpfLoader};

use super::shared::Shared;
use crate::capture::{host, zoneinfo};

/// The programs, compiled.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../../bpf/accessed.bpf.o");
/// Pages that an entry of a table of level 2 is for, and their bytes.
const UNIT_PAGES: usize = 512;
pub(in crate::capture) const UNIT_BYTES: u64 = (UNIT_PAGES as u64) << mm::ids::PAGE_SHIFT;
/// Entries of a table.
const ENTRIES: usize = 512;
/// Bytes that a table of level 2 is for.
const REGION_BYTES: u64 = ENTRIES as u64 * UNIT_BYTES;
/// Units that one call looks at, and words of what it says of each: its state, and twice a bit for each page.
const UNITS: usize = 8;
const UNIT_WORDS: usize = 1 + 2 * UNIT_PAGES / 64;
/// Where in an answer a table is, and how long it is.
const ENTRIES_AT: usize = 1 + UNITS * UNIT_WORDS;
const ANSWER_WORDS: usize = ENTRIES_AT + ENTRIES;
/// In the place of a unit's number: none.
const NO_UNIT: u16 = u16::MAX;
/// Answers of the programs; below, nothing is there, in as much as an entry of such a level is for.
const SMALL: u64 = 6;
const LARGE: u64 = 7;
/// Where all memory is mapped is a multiple of this.
const DIRECT_MAP_STEP: u64 = 1 << 30;
/// What is looked for.
const MARK: [u64; 8] = [
    0x9e37_79b9_7f4a_7c15,
    0xbf58_476d_1ce4_e5b9,
    0x94d0_49bb_1331_11eb,
    0xd6e8_feb8_6659_fd93,
    0xa076_1d64_78bd_642f,
    0xe703_7ed1_a0b4_28db,
    0x8ebc_6af0_9c88_c6e3,
    0x5899_65cc_7537_4cc3,
];

/// Bits of 512 pages.
pub(in crate::capture) type Bits = [u64; UNIT_PAGES / 64];

/// Pages of 512 that are there, and those of them that were accessed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::capture) struct Unit {
    pub(in crate::capture) address: u64,
    pub(in crate::capture) present: Bits,
    pub(in crate::capture) accessed: Bits,
    /// Whether they are one huge page, with one accessed bit.
    pub(in crate::capture) is_huge: bool,
}

/// The programs, loaded.
#[derive(Debug)]
pub(in crate::capture) struct PageTables {
    answer: Shared,
    units_there: RawFd,
    accessed: RawFd,
    /// Where all memory is mapped.
    direct_map: u64,
    levels: u64,
    /// Owns the programs.
    _object: Ebpf,
}

impl PageTables {
    /// Loads the programs, and finds out where memory is mapped.
    ///
    /// # Errors
    /// In a few words, why this cannot be done here.
    pub(in crate::capture) fn load(types: &Btf) -> Result<Self, String> {
        let refused = |error: &dyn std::fmt::Display| super::one_line(&error.to_string()).to_owned();
        let mut object = EbpfLoader::new().btf(Some(types)).load(OBJECT).map_err(|error| refused(&error))?;
        let [there, accessed, copy] =
            ["units_there", "accessed", "kernel_bytes"].map(|name| loaded(&mut object, name));
        let array = object.map("answers").ok_or("a map is missing")?;
        let answer = Shared::map(array, ANSWER_WORDS * size_of::<u64>()).map_err(|error| refused(&error))?;
        let levels = if has_five_levels() { 5 } else { 4 };
        let (units_there, accessed) = (there?, accessed?);
        let mut tables = Self { answer, units_there, accessed, direct_map: 0, levels, _object: object };
        tables.find_memory(copy?)?;
        Ok(tables)
    }

    /// Looks at all pages between these addresses, in ascending order and without overlaps, of the process whose pagemap is open, and at
    /// what lies around them in the same 512.
    pub(in crate::capture) fn look(
        &self,
        pagemap: &File,
        ranges: impl Iterator<Item = (u64, u64)>,
    ) -> Vec<Unit> {
        let mut found = vec![];
        let mut next = 0;
        let mut region = Region::default();
        let mut batch = vec![];
        for (start, end) in ranges {
            next = (start & !(UNIT_BYTES - 1)).max(next);
            while next < end {
                if next >= region.end {
                    self.look_at(pagemap, &mut batch, &mut found);
                    region = self.region(pagemap, next);
                }
                if region.is_empty {
                    next = region.end;
                    continue;
                }
                if region.has(next) {
                    batch.push(next);
                }
                if batch.len() == UNITS {
                    self.look_at(pagemap, &mut batch, &mut found);
                }
                next += UNIT_BYTES;
            }
        }
        self.look_at(pagemap, &mut batch, &mut found);
        found
    }

    /// What an entry of level 3 is for, around an address.
    fn region(&self, pagemap: &File, address: u64) -> Region {
        let end = |level: u64| {
            let bits = mm::ids::PAGE_SHIFT + 9 * (level as u32 - 1);
            ((address >> bits) + 1).checked_shl(bits).unwrap_or(u64::MAX)
        };
        let state = run(self.units_there, self.arguments(pagemap, address, [0; 2])).unwrap_or(5);
        let mut region =
            Region { end: end(state.clamp(3, 5)), is_empty: state != SMALL, ..Region::default() };
        if !region.is_empty {
            region.end = address / REGION_BYTES * REGION_BYTES + REGION_BYTES;
            for index in 0..ENTRIES {
                region.there[index / 64] |= u64::from(self.word(ENTRIES_AT + index) != 0) << (index % 64);
            }
        }
        region
    }

    /// Looks at units that lie in one region, and empties `batch`.
    fn look_at(&self, pagemap: &File, batch: &mut Vec<u64>, found: &mut Vec<Unit>) {
        let Some(&first) = batch.first() else { return };
        let index = |number: usize| {
            batch.get(number).map_or(NO_UNIT, |unit| (unit / UNIT_BYTES) as u16 % ENTRIES as u16)
        };
        let packed = |first: usize| (0..4).map(|part| u64::from(index(first + part)) << (16 * part)).sum();
        if run(self.accessed, self.arguments(pagemap, first, [packed(0), packed(4)])).is_err() {
            // The answer is still that of the call before.
            return batch.clear();
        }
        for (number, address) in batch.drain(..).enumerate() {
            let at = 1 + number * UNIT_WORDS;
            let bits = |which: usize| std::array::from_fn(|word| self.word(at + 1 + which * 8 + word));
            let state = self.word(at);
            if state == SMALL || state == LARGE {
                let (present, accessed) = (bits(0), bits(1));
                found.push(Unit { address, present, accessed, is_huge: state == LARGE });
            }
        }
    }

    fn arguments(&self, pagemap: &File, address: u64, units: [u64; 2]) -> [u64; 6] {
        [pagemap.as_raw_fd() as u64, address, self.direct_map, self.levels, units[0], units[1]]
    }

    fn word(&self, index: usize) -> u64 {
        // Relaxed: the program has ended, and the kernel came back from it to this thread.
        self.answer.word(index).load(Ordering::Relaxed)
    }

    /// Finds where memory is mapped; `copy` is the program that copies from an address.
    fn find_memory(&mut self, copy: RawFd) -> Result<(), String> {
        let mark = Box::new(Marked(MARK));
        let own = |name: &str| File::open(format!("/proc/self/{name}")).map_err(|error| error.to_string());
        let pagemap = own("pagemap")?;
        let at = std::ptr::from_ref(&*mark) as u64;
        let frame = frame_of(&pagemap, at).ok_or("frames of pages are not shown")?;
        let offset = (frame << mm::ids::PAGE_SHIFT) + at % mm::ids::PAGE_SIZE;
        let zones = zoneinfo::parse(&host::zoneinfo());
        let memory = zones.iter().map(|zone| (zone.start_pfn + zone.spanned) << mm::ids::PAGE_SHIFT).max();
        self.region(&pagemap, at);
        let bases = bases(self.word(0), memory.ok_or("zones are not shown")?);
        let is_it = |base: &u64| {
            let was_read =
                run(copy, [base.wrapping_add(offset), 0, 0, 0, 0, 0]).is_ok_and(|answer| answer == SMALL);
            was_read && (0..MARK.len()).all(|word| self.word(ENTRIES_AT + word) == MARK[word])
        };
        self.direct_map =
            bases.into_iter().find(is_it).ok_or("where memory is mapped could not be found out")?;
        // It was written just now.
        match self.look(&pagemap, std::iter::once((at, at + 1))).first() {
            Some(unit) if unit.is_huge || is_set(&unit.present, at) => Ok(()),
            _ => Err("page tables are not laid out as they were expected to be".into()),
        }
    }
}

/// Where memory may be mapped, with a table at `root` and memory up to the frame address `end`. In ascending order: up to the right one, what is
/// looked at lies below the page that is looked for, in memory or where nothing is, and never where devices are mapped.
fn bases(root: u64, end: u64) -> impl Iterator<Item = u64> {
    let first = root.saturating_sub(end).next_multiple_of(DIRECT_MAP_STEP);
    (first..=root).step_by(DIRECT_MAP_STEP as usize)
}

/// What a table of level 2 is for, or more if there is none.
#[derive(Debug, Default)]
struct Region {
    /// The first address behind it.
    end: u64,
    is_empty: bool,
    /// Entries that are not empty.
    there: [u64; ENTRIES / 64],
}

impl Region {
    fn has(&self, address: u64) -> bool {
        let index = (address / UNIT_BYTES) as usize % ENTRIES;
        self.there[index / 64] >> (index % 64) & 1 == 1
    }
}

/// What is looked for, within one page.
#[repr(align(64))]
struct Marked(#[expect(dead_code, reason = "the kernel's mapping of it is read")] [u64; 8]);

/// Whether the bit of the page at `address` is set.
fn is_set(bits: &Bits, address: u64) -> bool {
    let page = (address >> mm::ids::PAGE_SHIFT) as usize % UNIT_PAGES;
    bits[page / 64] >> (page % 64) & 1 == 1
}

/// The number of the frame in which the page at `address` is; `None` where it is not there, or not said.
fn frame_of(pagemap: &File, address: u64) -> Option<u64> {
    const PRESENT: u64 = 1 << 63;
    const FRAME: u64 = (1 << 55) - 1;
    let mut entry = [0; 8];
    pagemap.read_exact_at(&mut entry, (address >> mm::ids::PAGE_SHIFT) * 8).ok()?;
    let entry = u64::from_ne_bytes(entry);
    (entry & PRESENT != 0 && entry & FRAME != 0).then_some(entry & FRAME)
}

/// Whether page tables have five levels, which a processor says only if the kernel uses them.
fn has_five_levels() -> bool {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = text.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|line| line.split_ascii_whitespace().any(|flag| flag == "la57"))
}

fn loaded(object: &mut Ebpf, name: &str) -> Result<RawFd, String> {
    let Some(Program::RawTracePoint(program)) = object.program_mut(name) else {
        return Err("a program is missing".into());
    };
    program.load().map_err(|error| format!("the program {name}: {}", super::one_line(&error.to_string())))?;
    program.fd().map(|fd| fd.as_fd().as_raw_fd()).map_err(|error| error.to_string())
}

/// Calls a program; gives what it returns.
fn run(program: RawFd, arguments: [u64; 6]) -> io::Result<u64> {
    const BPF_PROG_TEST_RUN: libc::c_int = 10;
    /// Of union bpf_attr what belongs to that command.
    #[repr(C)]
    #[derive(Default)]
    struct Call {
        program: u32,
        returned: u32,
        data_sizes: [u32; 2],
        data: [u64; 2],
        repeat: u32,
        duration: u32,
        context_sizes: [u32; 2],
        contexts: [u64; 2],
        flags: u32,
        cpu: u32,
        batch_size: u32,
        padding: u32,
    }
    let mut call = Call {
        program: program as u32,
        context_sizes: [size_of_val(&arguments) as u32, 0],
        contexts: [arguments.as_ptr() as u64, 0],
        ..Call::default()
    };
    // SAFETY: `call` is laid out as the kernel has it and lives through the call, as do `arguments`, whose size it says.
    let result = unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_TEST_RUN, &raw mut call, size_of::<Call>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(call.returned.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_memory_may_be_mapped_is_looked_at_from_below() {
        const GIB: u64 = 1 << 30;
        let base = 0xffff_8880_0000_0000 + 37 * GIB;
        let candidates: Vec<u64> = bases(base + 5 * GIB / 2, 8 * GIB).collect();
        assert_eq!(candidates, (0..8).map(|step| base - 5 * GIB + step * GIB).collect::<Vec<u64>>());
        assert!(candidates.contains(&base));
    }

    /// Pages of this process: those that are touched are there and accessed, others are not.
    #[test]
    fn pages_of_this_process_are_seen() {
        let Ok(types) = super::super::types() else { return eprintln!("skipped: no types") };
        let tables = match PageTables::load(&types) {
            Ok(tables) => tables,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        let memory = Shared::anonymous(3 * UNIT_BYTES as usize / size_of::<u64>());
        let at = std::ptr::from_ref(memory.word(0)) as u64;
        let start = at.next_multiple_of(UNIT_BYTES);
        for page in [0, 1, 63, 64, 511] {
            memory.word((start - at) as usize / 8 + page * 512).store(1, Ordering::Relaxed);
        }
        let pagemap = File::open("/proc/self/pagemap").unwrap();
        let units = tables.look(&pagemap, std::iter::once((start + 4096, start + 8192)));
        let mut wanted = [0; 8];
        (wanted[0], wanted[1], wanted[7]) = (1 << 63 | 3, 1, 1 << 63);
        assert_eq!(units, [Unit { address: start, present: wanted, accessed: wanted, is_huge: false }]);
        assert_eq!(tables.look(&pagemap, std::iter::once((1 << 44, 1 << 46))), [], "skipped whole");
        let began = std::time::Instant::now();
        for _ in 0..1000 {
            tables.look(&pagemap, std::iter::once((start, start + 1)));
        }
        eprintln!("a look takes {:?} / 1000", began.elapsed());
    }
}
