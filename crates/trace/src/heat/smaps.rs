//! `/proc/PID/smaps`: the mappings of a process, each with how much of it is resident and how much was accessed.

/// A mapping of a process.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Mapping {
    /// Its first address.
    pub start: u64,
    /// The first address behind it.
    pub end: u64,
    /// What the kernel calls it: a path, `[heap]`, nothing for anonymous memory. Bytes that are no UTF-8 are replaced.
    pub path: String,
    /// Whether it holds code.
    pub executable: bool,
    /// What is resident, in KiB.
    pub resident_kib: u64,
    /// What of that has its accessed bit set, in KiB.
    pub accessed_kib: u64,
    /// What of that stands in huge pages, in KiB. Each of them has one accessed bit.
    pub huge_kib: u64,
}

impl Mapping {
    /// What people call it: `heap`, `stack`, `[anon]` for private and `[shared]` for shared anonymous memory, or a
    /// file's name without its folder.
    pub fn name(&self) -> String {
        let path = self.path.strip_suffix(" (deleted)").unwrap_or(&self.path);
        match path {
            "" => "[anon]".into(),
            "[heap]" => "heap".into(),
            "[stack]" => "stack".into(),
            "/dev/zero" => "[shared]".into(),
            _ if path.starts_with('[') => path.into(),
            _ => {
                let file = path.rsplit('/').next().unwrap_or(path);
                if self.executable { format!("{file} (code)") } else { file.into() }
            }
        }
    }

    /// Whether it has an address in common with `start..end`.
    pub const fn overlaps(&self, start: u64, end: u64) -> bool {
        self.start < end && start < self.end
    }
}

/// The mappings in the text of a `smaps` file, in its order. Lines that are none of it are passed over.
pub fn parse(text: &str) -> Vec<Mapping> {
    let mut mappings: Vec<Mapping> = vec![];
    for line in text.lines() {
        if let Some(mapping) = head(line) {
            mappings.push(mapping);
        } else if let (Some(mapping), Some((key, kib))) = (mappings.last_mut(), figure(line)) {
            match key {
                "Rss" => mapping.resident_kib = kib,
                "Referenced" => mapping.accessed_kib = kib,
                "AnonHugePages" | "ShmemPmdMapped" | "FilePmdMapped" => {
                    mapping.huge_kib = mapping.huge_kib.saturating_add(kib);
                }
                _ => {}
            }
        }
    }
    for mapping in &mut mappings {
        // The two are counted by one walk; a file that says otherwise is no kernel's.
        mapping.accessed_kib = mapping.accessed_kib.min(mapping.resident_kib);
    }
    mappings
}

/// `7f12a000-7f13b000 rw-p 00000000 fd:01 1234    /a/file with spaces`
fn head(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut word = || {
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = after;
        word
    };
    let (start, end) = word().split_once('-')?;
    let address = |digits| u64::from_str_radix(digits, 16).ok();
    let (start, end) = (address(start)?, address(end)?);
    let rights = word();
    // Offset, device and inode.
    let (_, _, inode) = (word(), word(), word());
    if end <= start || inode.is_empty() {
        return None;
    }
    let executable = rights.contains('x');
    Some(Mapping { start, end, path: rest.trim_start().into(), executable, ..Mapping::default() })
}

/// `Rss:                 132 kB`
fn figure(line: &str) -> Option<(&str, u64)> {
    let (key, value) = line.split_once(':')?;
    Some((key, value.trim().strip_suffix(" kB")?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "\
55d0c0a00000-55d0c0a21000 rw-p 00000000 00:00 0                          [heap]
Size:                132 kB
KernelPageSize:        4 kB
Rss:                  96 kB
Referenced:           64 kB
AnonHugePages:         0 kB
VmFlags: rd wr mr mw me ac sd
7f0000000000-7f0000200000 rw-p 00000000 00:00 0 
Rss:                2048 kB
Referenced:         2048 kB
AnonHugePages:      2048 kB
7f0000400000-7f0000500000 r-xp 00001000 fd:01 77   /usr/lib/a library.so (deleted)
Rss:                   8 kB
Referenced:           12 kB
";

    #[test]
    fn mappings_and_their_figures_are_read() {
        let mappings = parse(TEXT);
        assert_eq!(mappings.len(), 3);
        let heap = &mappings[0];
        assert_eq!((heap.start, heap.end), (0x55d0_c0a0_0000, 0x55d0_c0a2_1000));
        assert_eq!((heap.resident_kib, heap.accessed_kib, heap.huge_kib), (96, 64, 0));
        assert_eq!(mappings[1].huge_kib, 2048);
        assert_eq!(mappings[2].accessed_kib, 8, "no more than is resident");
        let names: Vec<String> = mappings.iter().map(Mapping::name).collect();
        assert_eq!(names, ["heap", "[anon]", "a library.so (code)"]);
    }

    #[test]
    fn names_say_what_memory_is() {
        let named = |path: &str| Mapping { path: path.into(), ..Mapping::default() }.name();
        assert_eq!(named("/dev/zero (deleted)"), "[shared]");
        assert_eq!(named("/memfd:cache (deleted)"), "memfd:cache");
        assert_eq!(named("[anon: dict]"), "[anon: dict]");
        assert_eq!(named("[stack]"), "stack");
    }

    #[test]
    fn what_is_no_mapping_is_passed_over() {
        for text in
            ["", "Rss: 4 kB\n", "x-y rw-p 0 0 0\nRss: 4 kB", "2000-1000 rw-p 0 0 0\n", "1-2\n", "1-2 r"]
        {
            assert_eq!(parse(text), [], "{text}");
        }
        let huge = "1-2 r 0 0 0\nShmemPmdMapped: 18446744073709551615 kB\nAnonHugePages: 5 kB\nRss: -1 kB";
        assert_eq!(parse(huge)[0].huge_kib, u64::MAX);
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in "[0-9a-f: \\-\nRskB\\[\\]/é]{0,200}") {
            for mapping in parse(&text) {
                prop_assert!(mapping.start < mapping.end);
                mapping.name();
            }
        }

        #[test]
        fn nor_does_a_file_that_is_cut_or_changed(at in 0..TEXT.len(), put in "\\PC{0,8}") {
            let text = format!("{}{put}{}", &TEXT[..at], &TEXT[at..]);
            for mapping in parse(&text).iter().chain(&parse(&TEXT[..at])) {
                prop_assert!(mapping.accessed_kib <= mapping.resident_kib);
            }
        }
    }
}
