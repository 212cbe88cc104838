//! The words of a line of a scene, found as the program that ran scenes found them: by name, anywhere behind the second.

use mm::vm::Touch;

use super::program::{Accesses, Mode, Order, Part, Pieces, What, Zipf};

/// Words and bytes of a line that are read.
const MOST_WORDS: usize = 24;
const MOST_BYTES: usize = 511;

/// Words of `advise`: where several are said, the first of these.
pub(crate) const ADVICE: [&str; 13] = [
    "dontneed",
    "willneed",
    "random",
    "sequential",
    "normal",
    "free",
    "cold",
    "pageout",
    "hugepage",
    "nohugepage",
    "collapse",
    "populate_read",
    "populate_write",
];

/// A size: digits, and K, M or G behind them; 0 where there are none.
pub(crate) fn size(text: &str) -> u64 {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number = if digits == 0 { 0 } else { text[..digits].parse().unwrap_or(u64::MAX) };
    match text.as_bytes().get(digits) {
        Some(b'K') => number << 10,
        Some(b'M') => number << 20,
        Some(b'G') => number << 30,
        _ => number,
    }
}

/// A line's words.
#[derive(Debug)]
pub(crate) struct Words<'a> {
    line: &'a str,
    words: Vec<&'a str>,
}

impl<'a> Words<'a> {
    pub(crate) fn of(line: &'a str) -> Self {
        let end = (0..=line.len().min(MOST_BYTES)).rev().find(|&at| line.is_char_boundary(at)).unwrap_or(0);
        let words = line[..end].split([' ', '\t']).filter(|word| !word.is_empty()).take(MOST_WORDS).collect();
        Self { line, words }
    }

    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<&'a str> {
        self.words.get(at).copied()
    }

    fn word(&self, at: usize) -> &'a str {
        self.get(at).unwrap_or("")
    }

    fn name(&self) -> String {
        self.word(1).into()
    }

    fn find(&self, word: &str) -> Option<usize> {
        (2..self.len()).find(|&at| self.words[at] == word)
    }

    fn has(&self, word: &str) -> bool {
        self.find(word).is_some()
    }

    /// What stands behind `word`.
    fn after(&self, word: &str) -> Option<&'a str> {
        self.get(self.find(word)? + 1)
    }

    /// The size behind `word`.
    fn size(&self, word: &str, otherwise: u64) -> u64 {
        self.after(word).map_or(otherwise, size)
    }

    fn part(&self) -> Part {
        let said = |word: &str| self.has(word).then(|| self.size(word, 0));
        Part { from: self.size("from", 0), to: said("to"), next: said("next") }
    }

    fn pieces(&self) -> Pieces {
        Pieces { every: self.size("every", 0), piece: self.size("piece", 4096) }
    }

    /// What the line says.
    ///
    /// # Errors
    /// Why it cannot be understood.
    pub(crate) fn operation(&self) -> Result<What, String> {
        let name = self.name();
        Ok(match self.word(0) {
            "set" => {
                // All that follows where the value's first word is found first.
                let at = self.line.find(self.word(2)).unwrap_or(self.line.len());
                let value = if self.len() > 2 { &self.line[at..] } else { "" };
                What::Set { file: name, value: value.into() }
            }
            "map" => What::Map {
                name,
                bytes: size(self.word(2)),
                noise: self.size("noise", 0),
                shared: self.has("shared"),
                huge: self.has("huge"),
                nohuge: self.has("nohuge"),
            },
            "touch" => self.accesses(if self.has("read") { Touch::Read } else { Touch::Write }),
            "readfile" => self.accesses(Touch::Read),
            "write" => self.accesses(Touch::Write),
            "file" => What::File { name, bytes: size(self.word(2)) },
            "mapfile" => What::MapFile {
                name,
                file: self.word(2).into(),
                executable: self.has("exec"),
                private: self.has("private"),
            },
            "sync" => What::Sync(name),
            "zipf" => What::Zipf(Zipf {
                name,
                part: self.part(),
                count: size(self.word(2)),
                skew: size(self.word(3)),
                seed: size(self.word(4)),
                touch: if self.has("write") { Touch::Write } else { Touch::Read },
            }),
            "advise" => {
                let word = ADVICE.into_iter().find(|word| self.has(word));
                let word = word.ok_or("unknown advice")?;
                What::Advise { name, word, part: self.part(), pieces: self.pieces() }
            }
            "unmap" => What::Unmap { name, part: self.part(), pieces: self.pieces() },
            "lock" => What::Lock { name, part: self.part(), pieces: self.pieces() },
            "swapon" if self.word(1) == "zram" => What::SwapOnZram(size(self.word(2))),
            "swapon" => What::SwapOnDisk,
            "cgroup" => What::Cgroup(name),
            "limit" => self.limit(),
            "policy" => self.policy()?,
            "cpu" => What::Cpu(name.parse().unwrap_or(0)),
            "sleep" => What::Sleep(size(&name)),
            "mark" => What::Mark(name),
            "wait" => What::Wait,
            _ => return Err("unknown operation".into()),
        })
    }

    fn accesses(&self, touch: Touch) -> What {
        let drawn = self.has("rand");
        let order = match self.after("rand") {
            _ if !drawn && self.has("back") => Order::Down,
            _ if !drawn => Order::Up,
            seed => Order::Drawn(seed.map_or(1, size)),
        };
        What::Accesses(Accesses {
            name: self.name(),
            part: self.part(),
            touch,
            stride: self.size("stride", 4096),
            block: self.size("block", if drawn { 4096 } else { 65536 }),
            order,
            times: self.size("times", 1),
        })
    }

    fn limit(&self) -> What {
        let (group, at) = if self.word(1) == "in" { (Some(self.word(2).into()), 3) } else { (None, 1) };
        let value = self.word(at + 1);
        let bytes = (value != "max").then(|| size(value));
        What::Limit { group, knob: self.word(at).into(), bytes }
    }

    fn policy(&self) -> Result<What, String> {
        let of_task = mode(self.word(1));
        let (name, at) = if of_task.is_some() { (None, 2) } else { (Some(self.name()), 3) };
        let mode = of_task.or_else(|| mode(self.word(2))).ok_or("unknown policy")?;
        let digits = self.word(at).bytes().filter(u8::is_ascii_digit);
        let nodes = digits.fold(0, |nodes, digit| nodes | 1 << (digit - b'0'));
        Ok(What::Policy { name, mode, nodes })
    }
}

fn mode(word: &str) -> Option<Mode> {
    Some(match word {
        "default" => Mode::Default,
        "preferred" => Mode::Preferred,
        "bind" => Mode::Bind,
        "interleave" => Mode::Interleave,
        "local" => Mode::Local,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(line: &str) -> What {
        Words::of(line).operation().unwrap()
    }

    #[test]
    fn sizes_are_digits_and_a_letter() {
        let sizes = ["12", "3K", "2M", "1G", "4Kx", "", "x", "-1", "99999999999999999999"].map(size);
        assert_eq!(sizes, [12, 3072, 0x20_0000, 1 << 30, 4096, 0, 0, 0, u64::MAX]);
    }

    #[test]
    fn a_policy_is_a_tasks_or_a_regions() {
        let policy =
            |name: Option<&str>, mode, nodes| What::Policy { name: name.map(Into::into), mode, nodes };
        assert_eq!(what("policy interleave 0,1"), policy(None, Mode::Interleave, 3));
        assert_eq!(what("policy a bind 1"), policy(Some("a"), Mode::Bind, 2));
        assert_eq!(what("policy local"), policy(None, Mode::Local, 0));
        assert_eq!(what("policy a default"), policy(Some("a"), Mode::Default, 0));
    }

    #[test]
    fn a_setting_begins_where_its_first_word_is_found() {
        let value = |line: &str| match what(line) {
            What::Set { value, .. } => value,
            other => panic!("{other:?}"),
        };
        assert_eq!(value("set /proc/sys/vm/x 10 20"), "10 20");
        assert_eq!(value("set /sys/kernel/mm/lru_gen/enabled n"), "nel/mm/lru_gen/enabled n");
    }

    #[test]
    fn limits_are_of_the_own_group_or_of_a_named_one() {
        let limit = |group: Option<&str>, knob: &str, bytes| What::Limit {
            group: group.map(Into::into),
            knob: knob.into(),
            bytes,
        };
        assert_eq!(what("limit swap.max 4K"), limit(None, "swap.max", Some(4096)));
        assert_eq!(what("limit in kept low max"), limit(Some("kept"), "low", None));
    }
}
