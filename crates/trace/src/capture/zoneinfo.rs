//! Where zones lie, from the text of `/proc/zoneinfo`.

use crate::meta::ZoneSpan;

/// The zones that span any frames, in the order of the text.
pub fn parse(text: &str) -> Vec<ZoneSpan> {
    let mut zones: Vec<ZoneSpan> = vec![];
    for line in text.lines() {
        if let Some(zone) = header(line) {
            zones.push(zone);
            continue;
        }
        let mut words = line.split_ascii_whitespace();
        let (Some(key), Some(value), Some(zone)) = (words.next(), words.next(), zones.last_mut()) else {
            continue;
        };
        let Ok(value) = value.parse() else { continue };
        match key {
            "spanned" => zone.spanned = value,
            "present" => zone.present = value,
            "managed" => zone.managed = value,
            "start_pfn:" => zone.start_pfn = value,
            _ => {}
        }
    }
    zones.retain(|zone| zone.spanned > 0);
    zones
}

/// `Node 0, zone   Normal`
fn header(line: &str) -> Option<ZoneSpan> {
    let (node, name) = line.strip_prefix("Node ")?.split_once(", zone")?;
    Some(ZoneSpan { node: node.trim().parse().ok()?, name: name.trim().to_owned(), ..ZoneSpan::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_found_and_empty_zones_left_out() {
        let text = "Node 0, zone      DMA\n  per-node stats\n      nr_dirty 44\n  pages free     3840\n\
                    \x20       spanned  4095\n        present  3998\n        managed  3840\n  start_pfn:           1\n\
                    Node 1, zone  Movable\n  pages free     0\n        spanned  0\n  start_pfn:           0\n";
        let zone = ZoneSpan {
            node: 0,
            name: "DMA".into(),
            start_pfn: 1,
            spanned: 4095,
            present: 3998,
            managed: 3840,
        };
        assert_eq!(parse(text), [zone]);
    }
}
