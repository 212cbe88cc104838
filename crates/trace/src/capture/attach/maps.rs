//! The maps of a process, from the text of its `smaps`, which alone says what was advised and locked.

use crate::event::{FileKey, MapFlags};
use crate::stream::attached::AttachedMap;

/// Two letters of `VmFlags` and our flag for them.
const FLAGS: [(&str, MapFlags); 4] = [
    ("gd", MapFlags::STACK),
    ("lo", MapFlags::LOCKED),
    ("nr", MapFlags::NORESERVE),
    ("ht", MapFlags::HUGETLB),
];
/// Two letters of `VmFlags` and the advice that they come of.
const ADVICE: [(&str, u32); 4] = [("sr", 2), ("rr", 1), ("hg", 14), ("nh", 15)];

/// The maps in the text, in its order.
pub(super) fn parse(text: &[u8]) -> Vec<AttachedMap> {
    let mut maps: Vec<AttachedMap> = vec![];
    for line in text.split(|&byte| byte == b'\n') {
        if let Some(words) = line.strip_prefix(b"VmFlags:") {
            if let Some(map) = maps.last_mut() {
                add_flags(map, &String::from_utf8_lossy(words));
            }
        } else if let Some(map) = head(line) {
            maps.push(map);
        }
    }
    // vsyscall lies beyond what programs may map.
    maps.retain(|map| map.address < 1 << 63);
    maps
}

fn add_flags(map: &mut AttachedMap, words: &str) {
    for word in words.split_ascii_whitespace() {
        if let Some((_, flag)) = FLAGS.iter().find(|(letters, _)| *letters == word) {
            map.flags = map.flags | *flag;
        }
        if let Some((_, advice)) = ADVICE.iter().find(|(letters, _)| *letters == word) {
            map.advice = Some(*advice);
        }
    }
}

/// `7f12a000-7f13b000 rw-p 00001000 fe:01 1234    /a/file with spaces`
fn head(line: &[u8]) -> Option<AttachedMap> {
    let mut words = line.splitn(6, |&byte| byte == b' ');
    let mut next = || std::str::from_utf8(words.next()?).ok();
    let hex = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let (start, end) = next()?.split_once('-')?;
    let (start, end) = (hex(start)?, hex(end)?);
    let modes = next()?;
    let offset = hex(next()?)?;
    let (major, minor) = next()?.split_once(':')?;
    let device = (hex(major)? << 20 | hex(minor)?) as u32;
    let file = FileKey { device, inode: next()?.parse().ok()? };
    let path = words.next().unwrap_or_default().trim_ascii_start().to_vec();
    let mut flags = MapFlags::default();
    for (letter, flag) in
        [('r', MapFlags::READ), ('w', MapFlags::WRITE), ('x', MapFlags::EXECUTE), ('s', MapFlags::SHARED)]
    {
        if modes.contains(letter) {
            flags = flags | flag;
        }
    }
    if path == b"[heap]" {
        flags = flags | MapFlags::HEAP;
    }
    let pages = end.checked_sub(start)? >> mm::ids::PAGE_SHIFT;
    let first = if file == FileKey::NONE { 0 } else { offset >> mm::ids::PAGE_SHIFT };
    Some(AttachedMap {
        address: start,
        pages: pages.try_into().unwrap_or(u32::MAX),
        flags,
        file,
        path,
        first: first.try_into().unwrap_or(u32::MAX),
        advice: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_have_their_files_flags_and_advice() {
        let text = b"7f0000-7f3000 rw-s 00002000 fe:03 77    /a b\nSize: 12 kB\nVmFlags: rd wr sh lo hg \n\
            800000-801000 rw-p 00000000 00:00 0    [heap]\nVmFlags: rd wr mr nh \n\
            900000-902000 ---p 00000000 00:00 0 \nVmFlags: gd nr\n\
            ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0    [vsyscall]\n";
        let maps = parse(text);
        let file = FileKey { device: 0xfe << 20 | 3, inode: 77 };
        assert_eq!(maps.len(), 3);
        assert_eq!((maps[0].file, maps[0].first, maps[0].pages, maps[0].advice), (file, 2, 3, Some(14)));
        assert_eq!(maps[0].flags, MapFlags(1 | 2 | 8 | 32));
        assert_eq!(maps[0].path, b"/a b");
        assert_eq!((maps[1].flags, maps[1].advice), (MapFlags(1 | 2 | 128), Some(15)));
        assert_eq!((maps[2].flags, maps[2].path.len()), (MapFlags(64 | 512), 0));
    }
}
