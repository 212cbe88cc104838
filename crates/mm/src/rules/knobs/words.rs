//! Values that have words, as the kernel's files have them.

use super::Word;

const fn word(value: u64, word: &'static str) -> Word {
    Word { value, word, in_file: true }
}

pub(super) const ZONELIST_ORDER: &[Word] = &[word(0, "default"), word(1, "node"), word(2, "zone")];
pub(super) const HUGE_ENABLED: &[Word] = &[word(0, "never"), word(1, "always"), word(2, "madvise")];
pub(super) const HUGE_DEFRAG: &[Word] = &[
    Word { value: 0, word: "default", in_file: false },
    word(1, "always"),
    word(2, "defer"),
    word(3, "defer+madvise"),
    word(4, "madvise"),
    word(5, "never"),
];
pub(super) const TRUTH: &[Word] = &[word(0, "false"), word(1, "true")];

/// The most that a file of a cgroup takes and tells (`PAGE_COUNTER_MAX` pages): there is no limit.
pub(super) const UNLIMITED: u64 = i64::MAX as u64 & !0xfff;
pub(super) const UP_TO_MAX: &[Word] = &[word(UNLIMITED, "max")];
pub(super) const ALGORITHMS: &[Word] = &[word(0, "lzo-rle"), word(1, "lz4"), word(2, "zstd")];
