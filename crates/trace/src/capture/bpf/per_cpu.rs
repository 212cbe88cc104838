//! Where a CPU keeps whether it is in an interrupt: in a variable of its own, whose place among these the kernel's account of its types has
//! (BTF, Documentation/bpf/btf.rst). A program knows where its CPU's run queue lies, which is another of these variables.

use std::collections::HashMap;
use std::fs;
use std::sync::OnceLock;

/// The run queue.
const RUN_QUEUE: &str = "runqueues";
/// The variables that hold preempt_count, and how many bytes from their start: since Linux 6.15 and before 6.2, and in between.
const COUNTS: [(&str, i64); 2] = [("__preempt_count", 0), ("pcpu_hot", 8)];
const MAGIC: u16 = 0xeb9f;
const KIND_VARIABLE: u32 = 14;
const KIND_SECTION: u32 = 15;

/// Bytes from a CPU's run queue to its preempt_count; `None` if the kernel does not say.
pub(super) fn to_preempt_count() -> Option<i64> {
    static FOUND: OnceLock<Option<i64>> = OnceLock::new();
    *FOUND.get_or_init(|| distance(&fs::read("/sys/kernel/btf/vmlinux").ok()?))
}

fn distance(types: &[u8]) -> Option<i64> {
    let places = places(types, &[RUN_QUEUE, COUNTS[0].0, COUNTS[1].0])?;
    let queue = i64::from(*places.get(RUN_QUEUE)?);
    COUNTS.iter().find_map(|(name, offset)| Some(i64::from(*places.get(name)?) + offset - queue))
}

/// Where variables of these names lie in their section.
fn places<'n>(types: &[u8], names: &[&'n str]) -> Option<HashMap<&'n str, u32>> {
    if types.get(..2)? != MAGIC.to_le_bytes() {
        return None;
    }
    let [header, types_at, types_len, names_at, names_len] = [4, 8, 12, 16, 20].map(|at| word(types, at));
    let part = |at: Option<u32>, len: Option<u32>| {
        let start = header?.checked_add(at?)? as usize;
        types.get(start..start.checked_add(len? as usize)?)
    };
    let texts = part(names_at, names_len)?;
    let name_of = |at: u32| {
        let text = texts.get(at as usize..)?;
        let end = text.iter().position(|&byte| byte == 0)?;
        names.iter().copied().find(|name| name.as_bytes() == &text[..end])
    };
    let mut variables = HashMap::new();
    let mut found = HashMap::new();
    let mut rest = part(types_at, types_len)?;
    // Types are numbered from 1; 0 is void.
    for number in 1u32.. {
        let (Some(name), Some(info)) = (word(rest, 0), word(rest, 4)) else { break };
        let (kind, count) = (info >> 24 & 31, info & 0xffff);
        let (entry, len) = (rest.get(12..)?, entries_len(kind, count)?);
        let entries = entry.get(..len)?;
        if kind == KIND_VARIABLE {
            variables.extend(name_of(name).map(|name| (number, name)));
        } else if kind == KIND_SECTION {
            for variable in entries.chunks_exact(12) {
                let name = variables.get(&word(variable, 0)?);
                found.extend(name.and_then(|name| Some((*name, word(variable, 4)?))));
            }
        }
        rest = &entry[len..];
    }
    Some(found)
}

/// Bytes that follow the twelve that all types have.
const fn entries_len(kind: u32, count: u32) -> Option<usize> {
    let count = count as usize;
    Some(match kind {
        // Pointers, forward declarations, other names, qualifiers, functions, floats, tags of types.
        2 | 7..=12 | 16 | 18 => 0,
        // Integers, variables, tags of declarations.
        1 | KIND_VARIABLE | 17 => 4,
        // Arrays.
        3 => 12,
        // Structures, unions, sections, enumerations of 64 bits.
        4 | 5 | KIND_SECTION | 19 => 12 * count,
        // Enumerations, parameters.
        6 | 13 => 8 * count,
        _ => return None,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Three variables, one section with two of them, in between a structure with one member.
    fn account() -> Vec<u8> {
        let texts = b"\0runqueues\0pcpu_hot\0other\0";
        let mut types = vec![];
        for words in [
            &[1, 14 << 24, 0, 1][..],
            &[11, 4 << 24 | 1, 8, 20, 0, 0],
            &[11, 14 << 24, 2, 1],
            &[20, 14 << 24, 0, 1],
            &[20, 15 << 24 | 2, 0, 1, 0x2000, 64, 3, 0x40, 64],
        ] {
            types.extend(words.iter().flat_map(|word: &u32| word.to_le_bytes()));
        }
        let mut all = vec![0x9f, 0xeb, 1, 0];
        for word in [24, 0, types.len() as u32, types.len() as u32, texts.len() as u32] {
            all.extend(word.to_le_bytes());
        }
        all.extend(types);
        all.extend(texts);
        all
    }

    #[test]
    fn places_come_from_the_section_that_variables_are_in() {
        assert_eq!(distance(&account()), Some(0x40 + 8 - 0x2000));
        let found = places(&account(), &["other", "runqueues"]).unwrap();
        assert_eq!(found, [("runqueues", 0x2000)].into());
        assert_eq!(distance(&account()[..100]), None);
    }

    proptest! {
        #[test]
        fn damaged_accounts_are_survived(at in 0usize..160, byte in any::<u8>(), cut in 0usize..160) {
            let mut bytes = account();
            if let Some(changed) = bytes.get_mut(at) {
                *changed = byte;
            }
            bytes.truncate(bytes.len().saturating_sub(cut));
            let _ = distance(&bytes);
        }
    }
}
