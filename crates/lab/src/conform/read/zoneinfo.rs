//! Reads `/proc/zoneinfo`, or an excerpt of it: a zone's marks and sizes, and each CPU's pageset of it.

use super::sections::{FormatError, Section, number};

/// A zone, as its kernel prints it. Counts are pages. What an excerpt or an older kernel leaves out is `None` or 0.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ZoneInfo {
    /// Its node's number.
    pub node: u16,
    /// `DMA`, `DMA32`, `Normal`, `Movable`, `Device`.
    pub name: String,
    /// Where it begins in the file, from 1.
    pub line: usize,
    /// Free pages.
    pub free: u64,
    /// By how much the marks are raised for the moment; they are printed with it.
    pub boost: u64,
    /// The min mark.
    pub min: u64,
    /// The low mark.
    pub low: u64,
    /// The high mark.
    pub high: u64,
    /// The promo mark.
    pub promo: Option<u64>,
    /// Pages of memory and of files on its lists, but for those that cannot be evicted.
    pub listed: u64,
    /// Frames from the first to the last.
    pub spanned: u32,
    /// Frames that exist.
    pub present: u32,
    /// Frames that the page allocator has.
    pub managed: u32,
    /// What is kept from requests that could be served by each higher zone.
    pub protection: Vec<u64>,
    /// The first frame.
    pub start_pfn: Option<u32>,
    /// By CPU, those that the file names.
    pub pagesets: Vec<PagesetInfo>,
}

/// A CPU's pageset of a zone, in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PagesetInfo {
    /// The CPU.
    pub cpu: u16,
    /// Pages on the lists.
    pub count: u32,
    /// Pages that they may hold.
    pub high: u32,
    /// The batch.
    pub batch: u32,
    /// Lower bound of `high`, from 6.18 on or so.
    pub high_min: Option<u32>,
    /// Upper bound of `high`.
    pub high_max: Option<u32>,
    /// By how much the CPU's counters may differ before they are folded in.
    pub stat_threshold: Option<u32>,
}

/// Reads the zones of a section.
pub(in crate::conform) fn zones(section: &Section<'_>) -> Result<Vec<ZoneInfo>, FormatError> {
    let mut zones: Vec<ZoneInfo> = vec![];
    for &(line, text) in &section.lines {
        if let Some(rest) = text.strip_prefix("Node ") {
            zones.push(heading(line, rest)?);
        } else if let Some(zone) = zones.last_mut() {
            read_line(zone, line, text.trim())?;
        }
    }
    if zones.is_empty() {
        return Err(FormatError::new(0, "zoneinfo names no zone"));
    }
    Ok(zones)
}

/// `0, zone      DMA`
fn heading(line: usize, rest: &str) -> Result<ZoneInfo, FormatError> {
    let wrong = || FormatError::new(line, "a zone begins with 'Node N, zone NAME'");
    let (node, rest) = rest.split_once(',').ok_or_else(wrong)?;
    let name = rest.trim().strip_prefix("zone").ok_or_else(wrong)?.trim();
    Ok(ZoneInfo {
        node: number(line, "the node", node)?,
        name: name.to_string(),
        line,
        ..ZoneInfo::default()
    })
}

fn read_line(zone: &mut ZoneInfo, line: usize, text: &str) -> Result<(), FormatError> {
    if let Some(list) = text.strip_prefix("protection:") {
        let list = list.trim().trim_start_matches('(').trim_end_matches(')');
        let columns = list.split(',').map(|column| number(line, "protection", column));
        zone.protection = columns.collect::<Result<_, _>>()?;
        return Ok(());
    }
    if let Some((key, value)) = text.split_once(':') {
        return read_pageset(zone, line, key, value.trim());
    }
    let mut words = text.split_whitespace();
    let (Some(key), Some(value)) = (words.next(), words.next()) else { return Ok(()) };
    match (key, words.next()) {
        ("pages", Some(free)) if value == "free" => zone.free = number(line, "free", free)?,
        ("boost", None) => zone.boost = number(line, key, value)?,
        ("min", None) => zone.min = number(line, key, value)?,
        ("low", None) => zone.low = number(line, key, value)?,
        ("high", None) => zone.high = number(line, key, value)?,
        ("promo", None) => zone.promo = Some(number(line, key, value)?),
        ("spanned", None) => zone.spanned = number(line, key, value)?,
        ("present", None) => zone.present = number(line, key, value)?,
        (
            "nr_zone_inactive_anon" | "nr_zone_active_anon" | "nr_zone_inactive_file" | "nr_zone_active_file",
            None,
        ) => {
            zone.listed = zone.listed.saturating_add(number(line, key, value)?);
        }
        ("managed", None) => zone.managed = number(line, key, value)?,
        _ => {}
    }
    Ok(())
}

fn read_pageset(zone: &mut ZoneInfo, line: usize, key: &str, value: &str) -> Result<(), FormatError> {
    match key {
        "cpu" => zone.pagesets.push(PagesetInfo { cpu: number(line, key, value)?, ..PagesetInfo::default() }),
        "start_pfn" => zone.start_pfn = Some(number(line, key, value)?),
        _ => {
            let Some(pageset) = zone.pagesets.last_mut() else { return Ok(()) };
            match key {
                "count" => pageset.count = number(line, key, value)?,
                "high" => pageset.high = number(line, key, value)?,
                "batch" => pageset.batch = number(line, key, value)?,
                "high_min" => pageset.high_min = Some(number(line, key, value)?),
                "high_max" => pageset.high_max = Some(number(line, key, value)?),
                "vm stats threshold" => pageset.stat_threshold = Some(number(line, key, value)?),
                _ => {}
            }
        }
    }
    Ok(())
}
