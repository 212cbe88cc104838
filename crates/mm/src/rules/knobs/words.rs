//! Values that have words, as the kernel's files have them.

use super::Word;

const fn word(value: u64, word: &'static str) -> Word {
    Word { value, word, in_file: true }
}

pub(super) const ZONELIST_ORDER: &[Word] = &[word(0, "default"), word(1, "node"), word(2, "zone")];
pub(super) const HUGE_ENABLED: &[Word] = &[word(0, "never"), word(1, "always"), word(2, "madvise")];
pub(super) const HUGE_SIZE_ENABLED: &[Word] =
    &[word(0, "never"), word(1, "always"), word(2, "madvise"), word(3, "inherit")];
pub(super) const HUGE_SHARED: &[Word] = &[
    word(0, "never"),
    word(1, "always"),
    word(2, "within_size"),
    word(3, "advise"),
    word(4, "deny"),
    word(5, "force"),
];
pub(super) const SHARED_SIZE_ENABLED: &[Word] =
    &[word(0, "never"), word(1, "always"), word(2, "within_size"), word(3, "advise"), word(4, "inherit")];
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
/// The same of zswap, where lzo costs as much as lzo-rle.
pub(super) const COMPRESSORS: &[Word] =
    &[word(0, "lzo"), word(0, "lzo-rle"), word(1, "lz4"), word(2, "zstd")];
pub(super) const SWITCH: &[Word] = &[word(0, "N"), word(1, "Y")];

/// The file takes these and says the latter ones.
pub(super) const GENERATIONS: &[Word] = &[
    word(0, "n"),
    word(7, "y"),
    word(0, "0x0000"),
    word(1, "0x0001"),
    word(2, "0x0002"),
    word(3, "0x0003"),
    word(4, "0x0004"),
    word(5, "0x0005"),
    word(6, "0x0006"),
    word(7, "0x0007"),
];
