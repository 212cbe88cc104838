//! The parts of a `perf.data` around its records: header, attributes of events, feature sections.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};

use super::stream_len;
use crate::error::ReadError;
use crate::stream::record::{Bytes, Layout, RecordHead};

/// How a `perf.data` of a little-endian machine begins.
pub(super) const MAGIC: &[u8; 8] = b"PERFILE2";
const MAGIC_BIG_ENDIAN: &[u8; 8] = b"2ELIFREP";
/// Bytes of the header in a file; the one of a pipe has 16.
const HEADER_LEN: u64 = 104;
/// Bytes of an event's attributes in the oldest version; later fields may be missing.
const ATTR_LEN_MIN: u64 = 64;
/// No file describes more events, or has larger sections.
const ATTRS_MAX: u64 = 1 << 16;
const SECTION_MAX: u64 = 256 << 20;

/// Feature sections, by their bits.
pub(super) const FEATURE_TRACING: u32 = 1;
pub(super) const FEATURE_RELEASE: u32 = 4;
pub(super) const FEATURE_VERSION: u32 = 5;
const FEATURE_CPUS: u32 = 7;
pub(super) const FEATURE_CPU: u32 = 8;
const FEATURE_COMMAND: u32 = 11;

/// An open `perf.data`.
pub(super) struct PerfFile<R> {
    pub(super) input: R,
    /// Where the records are.
    pub(super) data: Section,
    features: BTreeMap<u32, Section>,
    layouts: Layouts,
    clock: Clock,
}

/// A part of the file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Section {
    pub(super) offset: u64,
    pub(super) len: u64,
}

/// What event times count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Clock {
    /// CLOCK_MONOTONIC, as with `perf record -k mono`.
    Monotonic,
    /// perf's own clock.
    Perf,
}

/// How the records of each event are laid out.
#[derive(Clone, Debug)]
pub(super) struct Layouts {
    first: Layout,
    /// By the events' identifiers, if there is more than one layout.
    by_id: BTreeMap<u64, Layout>,
}

impl Layouts {
    /// The layout of a record.
    #[inline]
    pub(super) fn of(&self, head: RecordHead, body: &[u8]) -> Layout {
        if self.by_id.is_empty() {
            return self.first;
        }
        let id = Layout::identifier(head, body);
        id.and_then(|id| self.by_id.get(&id)).copied().unwrap_or(self.first)
    }
}

impl<R: Read + Seek> PerfFile<R> {
    /// Reads everything but the records.
    pub(super) fn open(mut input: R) -> Result<Self, ReadError> {
        let len = stream_len(&mut input)?;
        let mut magic = vec![];
        input.by_ref().take(HEADER_LEN).read_to_end(&mut magic)?;
        if magic.starts_with(MAGIC_BIG_ENDIAN) {
            return Err(ReadError::Unsupported("comes from a big-endian machine, which cannot be imported"));
        }
        if !magic.starts_with(MAGIC) {
            return Err(ReadError::NotARecording);
        }
        let header = magic;
        let mut header = Bytes(header.get(8..).unwrap_or_default());
        let damaged = ReadError::corrupt(0, "the header is cut short");
        if header.u64() == Some(16) {
            return Err(ReadError::Unsupported(
                "was written through a pipe: let perf write to a file instead",
            ));
        }
        let (Some(attr_len), Some(attrs), Some(data), Some(_types), Some(bits)) =
            (header.u64(), section(&mut header), section(&mut header), section(&mut header), header.take(32))
        else {
            return Err(damaged);
        };
        if data.len == 0 {
            return Err(ReadError::Unsupported(
                "has no records: perf was killed before it finished, or saw nothing",
            ));
        }
        if data.offset.checked_add(data.len).is_none_or(|end| end > len) {
            return Err(ReadError::corrupt(0, "the header claims more records than there are"));
        }
        let features = read_features(&mut input, data, bits)?;
        let (layouts, clock) = read_attrs(&mut input, attrs, attr_len)?;
        Ok(Self { input, data, features, layouts, clock })
    }

    pub(super) const fn layouts(&self) -> &Layouts {
        &self.layouts
    }

    pub(super) const fn clock(&self) -> Clock {
        self.clock
    }

    /// The bytes of a feature section; `None` if the file has none.
    pub(super) fn feature(&mut self, bit: u32) -> Result<Option<Vec<u8>>, ReadError> {
        let section = self.features.get(&bit).copied();
        section.map(|section| read_section(&mut self.input, section)).transpose()
    }

    /// A feature that is one string; empty if the file has none.
    pub(super) fn text(&mut self, bit: u32) -> Result<String, ReadError> {
        let section = self.feature(bit)?.unwrap_or_default();
        Ok(string(&mut Bytes(&section)).unwrap_or_default())
    }

    /// How many CPUs the machine could have; 0 if the file does not say.
    pub(super) fn cpus(&mut self) -> Result<u32, ReadError> {
        let section = self.feature(FEATURE_CPUS)?.unwrap_or_default();
        Ok(Bytes(&section).u32().unwrap_or(0))
    }

    /// perf's command line.
    pub(super) fn command(&mut self) -> Result<Vec<String>, ReadError> {
        let section = self.feature(FEATURE_COMMAND)?.unwrap_or_default();
        let mut bytes = Bytes(&section);
        let count = bytes.u32().unwrap_or(0);
        Ok((0..count).map_while(|_| string(&mut bytes)).collect())
    }
}

fn section(bytes: &mut Bytes<'_>) -> Option<Section> {
    Some(Section { offset: bytes.u64()?, len: bytes.u64()? })
}

/// A length, then so many bytes with zeros at their end.
fn string(bytes: &mut Bytes<'_>) -> Option<String> {
    let len = bytes.u32()? as usize;
    Some(String::from_utf8_lossy(Bytes(bytes.take(len)?).text()).into_owned())
}

fn read_section(input: &mut (impl Read + Seek), section: Section) -> Result<Vec<u8>, ReadError> {
    if section.len > SECTION_MAX {
        return Err(ReadError::corrupt(section.offset, "a section claims to be larger than it can be"));
    }
    input.seek(SeekFrom::Start(section.offset))?;
    let mut bytes = vec![];
    input.take(section.len).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == section.len {
        Ok(bytes)
    } else {
        Err(ReadError::corrupt(section.offset, "a section is cut short"))
    }
}

/// The sections' places follow the records, one for each bit that is set.
fn read_features(
    input: &mut (impl Read + Seek),
    data: Section,
    bits: &[u8],
) -> Result<BTreeMap<u32, Section>, ReadError> {
    let set = (0..256u32).filter(|bit| bits[*bit as usize / 8] >> (bit % 8) & 1 != 0);
    let places = data.offset + data.len;
    input.seek(SeekFrom::Start(places))?;
    let mut bytes = vec![];
    input.take(256 * 16).read_to_end(&mut bytes)?;
    let mut bytes = Bytes(&bytes);
    set.map(|bit| Some((bit, section(&mut bytes)?)))
        .collect::<Option<_>>()
        .ok_or(ReadError::corrupt(places, "the list of sections is cut short"))
}

/// Reads the layouts of all events and their clock. Events without tracepoint data (perf adds some of its own) matter
/// only for where their records keep the time.
fn read_attrs(
    input: &mut (impl Read + Seek),
    attrs: Section,
    attr_len: u64,
) -> Result<(Layouts, Clock), ReadError> {
    let damaged = |what| ReadError::corrupt(attrs.offset, what);
    if !(ATTR_LEN_MIN + 16..=4096).contains(&attr_len) || attrs.len / attr_len > ATTRS_MAX {
        return Err(damaged("the events' attributes have a size that cannot be"));
    }
    let bytes = read_section(input, attrs)?;
    let (mut found, mut clock) = (vec![], Clock::Perf);
    for attr in bytes.chunks_exact(attr_len as usize) {
        let parsed = parse_attr(attr).ok_or(damaged("an event's attributes are cut short"))?;
        if parsed.is_monotonic {
            clock = Clock::Monotonic;
        }
        found.push((parsed.layout, parsed.ids));
    }
    let usable = found.iter().map(|(layout, _)| *layout).find(|layout| layout.is_enough());
    let first = usable.ok_or(ReadError::Unsupported(
        "has no tracepoint events with time, task and CPU: record with 'perf record -a -e kmem:*'",
    ))?;
    let mut layouts = Layouts { first, by_id: BTreeMap::new() };
    if found.iter().all(|(layout, _)| *layout == first) {
        return Ok((layouts, clock));
    }
    if found.iter().any(|(layout, _)| !layout.has_identifier()) {
        return Err(ReadError::Unsupported("mixes events whose records cannot be told apart"));
    }
    for (layout, ids) in found {
        for id in read_section(input, ids)?.chunks_exact(8) {
            layouts.by_id.insert(Bytes(id).u64().unwrap_or(0), layout);
        }
    }
    Ok((layouts, clock))
}

/// What matters of an event's attributes.
struct Attr {
    layout: Layout,
    is_monotonic: bool,
    ids: Section,
}

fn parse_attr(attr: &[u8]) -> Option<Attr> {
    let (attr, ids) = attr.split_at_checked(attr.len().checked_sub(16)?)?;
    let at = |offset: usize| Bytes(attr.get(offset..)?).u64();
    let flags = at(40)?;
    let (sample_id_all, use_clockid) = (flags >> 18 & 1 != 0, flags >> 25 & 1 != 0);
    let clockid = attr.get(92..).and_then(|bytes| Bytes(bytes).u32());
    Some(Attr {
        layout: Layout { sample_type: at(24)?, sample_id_all },
        is_monotonic: use_clockid && clockid == Some(1),
        ids: section(&mut Bytes(ids))?,
    })
}
