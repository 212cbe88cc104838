//! Swap of the machine that a program was recorded on, by its files, as knobs.

use mm::Knob;

/// What files said of a machine's swap; empty where the recording does not have them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SwapFiles {
    /// /proc/swaps.
    pub swaps: String,
    /// zram's `comp_algorithm`.
    pub algorithm: String,
    /// Whether a disk of it turns, or says so (`queue/rotational`).
    pub turns: bool,
}

impl SwapFiles {
    /// The knob that says how much there is; `None`: nothing.
    pub(super) fn size(&self) -> Option<Knob> {
        as_recorded(&[], self).into_iter().map(|(knob, _)| knob).find(|&knob| is_size(knob))
    }
}

/// Whether `knob` says that there is swap.
fn is_size(knob: Knob) -> bool {
    matches!(knob, Knob::ZramDisksize | Knob::SwapDisk)
}

/// `set`, and if that says nothing of swap, what a machine had whose files told `files`.
pub(crate) fn as_recorded(set: &[(Knob, u64)], files: &SwapFiles) -> Vec<(Knob, u64)> {
    let SwapFiles { swaps, algorithm, turns } = files;
    let mut all = set.to_vec();
    if set.iter().any(|(knob, _)| is_size(*knob)) {
        return all;
    }
    let (mut zram, mut disk) = (0, 0);
    for line in swaps.lines().skip(1) {
        let mut fields = line.split_ascii_whitespace();
        let (Some(name), Some(kib)) = (fields.next(), fields.nth(1).and_then(|kib| kib.parse::<u64>().ok()))
        else {
            continue;
        };
        *(if name.starts_with("/dev/zram") { &mut zram } else { &mut disk }) += kib << 10;
    }
    if zram > 0 {
        all.push((Knob::ZramDisksize, zram));
        let chosen =
            algorithm.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
        let value = chosen.and_then(|word| Knob::ZramAlgorithm.parse_one(word).ok());
        if let Some(value) = value.filter(|_| set.iter().all(|(knob, _)| *knob != Knob::ZramAlgorithm)) {
            all.push((Knob::ZramAlgorithm, value));
        }
    } else if disk > 0 {
        all.push((Knob::SwapDisk, disk));
        if *turns && set.iter().all(|(knob, _)| *knob != Knob::SwapRotational) {
            all.push((Knob::SwapRotational, 1));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";

    #[test]
    fn swap_is_as_it_was_where_nothing_is_said() {
        let zram =
            format!("{HEADER}/dev/zram0                              partition\t1048572\t\t0\t\t100\n");
        let size = (Knob::ZramDisksize, 1_048_572 << 10);
        let files = |swaps: &str, algorithm: &str| SwapFiles {
            swaps: swaps.to_owned(),
            algorithm: algorithm.to_owned(),
            turns: false,
        };
        let lz4 = files(&zram, "lzo-rle lzo [lz4]");
        assert_eq!(as_recorded(&[], &lz4), [size, (Knob::ZramAlgorithm, 1)]);
        assert_eq!((lz4.size(), files(HEADER, "").size()), (Some(Knob::ZramDisksize), None));
        assert_eq!(as_recorded(&[], &files(&zram, "[842] lz4")), [size], "one that we do not know");
        let disk = format!("{HEADER}/dev/vda2 partition 4096 0 -2\n/swapfile file 4096 0 -3\n");
        let disk = files(&disk, "");
        let on_disk = (Knob::SwapDisk, 8 << 20);
        assert_eq!(as_recorded(&[], &disk), [on_disk]);
        let turning = SwapFiles { turns: true, ..disk };
        assert_eq!(as_recorded(&[], &turning), [on_disk, (Knob::SwapRotational, 1)]);
        let not = [(Knob::SwapRotational, 0)];
        assert_eq!(as_recorded(&not, &turning), [not[0], on_disk], "said otherwise");
        let none = [(Knob::ZramDisksize, 0)];
        assert_eq!(as_recorded(&none, &lz4), none);
        assert_eq!(as_recorded(&[], &files(HEADER, "")), []);
    }
}
