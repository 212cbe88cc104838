//! Reading the small files in which the kernel describes itself: one value or list a file.

use std::fs;
use std::path::Path;

/// The file's text without space around it; `None` if it cannot be read.
pub(crate) fn text(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_string())
}

/// The file's number; `None` if it cannot be read or is none, as -1.
pub(crate) fn number(path: &Path) -> Option<u32> {
    text(path)?.parse().ok()
}

/// Reads a list of numbers as the kernel writes it: `0-3,8,10-11`. Empty if the file is missing or something else.
pub(crate) fn list(path: &Path) -> Vec<u32> {
    let Some(text) = text(path) else { return vec![] };
    let range = |part: &str| -> Option<std::ops::RangeInclusive<u32>> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last && last < 1 << 16).then_some(first..=last)
    };
    let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
    ranges.into_iter().flatten().flatten().collect()
}

/// Reads `32768K`.
pub(crate) fn bytes(size: &str) -> Option<u64> {
    let (number, unit) = match size.as_bytes().last()? {
        b'K' => (&size[..size.len() - 1], 10),
        b'M' => (&size[..size.len() - 1], 20),
        _ => (size, 0),
    };
    number.parse::<u64>().ok()?.checked_mul(1 << unit)
}

/// The distances between `nodes` that the firmware gives, under `root`, where the nodes' directories are; `None` if they
/// are missing or impossible.
pub(crate) fn distances(root: &Path, nodes: &[u32]) -> Option<Vec<Vec<u32>>> {
    let row = |node: &u32| -> Option<Vec<u32>> {
        let line = text(&root.join(format!("node{node}/distance")))?;
        line.split_ascii_whitespace().map(|distance| distance.parse().ok()).collect()
    };
    let rows: Vec<Vec<u32>> = nodes.iter().map(row).collect::<Option<_>>()?;
    let sound = rows.iter().enumerate().all(|(here, row)| {
        let nearer = |(there, &distance): (usize, &u32)| there == here || distance > row[here];
        row.len() == nodes.len()
            && row.iter().all(|distance| (10..=254).contains(distance))
            && row.iter().enumerate().all(nearer)
    });
    sound.then_some(rows)
}

/// Distances where the firmware gives none.
pub(crate) fn assumed_distances(nodes: usize) -> Vec<Vec<u32>> {
    /// Here, and elsewhere.
    const LOCAL: u32 = 10;
    const REMOTE: u32 = 20;
    let row = |here| (0..nodes).map(|there| if here == there { LOCAL } else { REMOTE }).collect();
    (0..nodes).map(row).collect()
}
