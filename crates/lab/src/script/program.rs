//! A scene's program: its lines, as the program that ran them read them (`../shared/testbed/scenes`). What it could not understand
//! ended the process that came to it, there and not before; so a line that cannot be read is kept with the reason.

use mm::vm::Touch;

use super::words::{Words, size};

/// Lines of a scene that its program read.
const MOST_LINES: usize = 400;

/// A line of a program.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Line {
    /// Its number in the file.
    pub(crate) number: usize,
    pub(crate) code: Code,
}

/// What a line says.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Code {
    /// A comment, or nothing.
    Nothing,
    /// The lines up to `end` are a child's; its parent waits, or goes on.
    Fork { end: usize, waits: bool },
    /// The lines up to `end`, so often.
    Repeat { end: usize, times: u64 },
    /// A line alone.
    Operation(What),
    /// The process that comes to it ends there.
    Broken(String),
}

/// Part of a region or file, in bytes: all of it where nothing is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Part {
    pub(crate) from: u64,
    pub(crate) to: Option<u64>,
    /// The bytes after those that were last named so.
    pub(crate) next: Option<u64>,
}

/// Of every so many bytes the first of these; all together where `every` is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pieces {
    pub(crate) every: u64,
    pub(crate) piece: u64,
}

/// In which order strides are touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    Up,
    Down,
    /// As many as there are, drawn by the generator of this seed.
    Drawn(u64),
}

/// One access at each stride, or block by block where it is a file.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Accesses {
    pub(crate) name: String,
    pub(crate) part: Part,
    pub(crate) touch: Touch,
    /// Bytes of a region, and of a file.
    pub(crate) stride: u64,
    pub(crate) block: u64,
    pub(crate) order: Order,
    pub(crate) times: u64,
}

/// Accesses of which the first pages have most.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Zipf {
    pub(crate) name: String,
    pub(crate) part: Part,
    pub(crate) count: u64,
    pub(crate) skew: u64,
    pub(crate) seed: u64,
    pub(crate) touch: Touch,
}

/// A word of `policy`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Default,
    Preferred,
    Bind,
    Interleave,
    Local,
}

/// An operation.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum What {
    Set {
        file: String,
        value: String,
    },
    Map {
        name: String,
        bytes: u64,
        noise: u64,
        shared: bool,
        huge: bool,
        nohuge: bool,
    },
    Accesses(Accesses),
    /// A file, written and dropped from memory.
    File {
        name: String,
        bytes: u64,
    },
    MapFile {
        name: String,
        file: String,
        executable: bool,
        private: bool,
    },
    Zipf(Zipf),
    Sync(String),
    Advise {
        name: String,
        word: &'static str,
        part: Part,
        pieces: Pieces,
    },
    Unmap {
        name: String,
        part: Part,
        pieces: Pieces,
    },
    Lock {
        name: String,
        part: Part,
        pieces: Pieces,
    },
    SwapOnDisk,
    /// Of so many bytes of compressed memory.
    SwapOnZram(u64),
    Cgroup(String),
    /// `None`: its own group; and `max`.
    Limit {
        group: Option<String>,
        knob: String,
        bytes: Option<u64>,
    },
    /// `None`: of the task. Nodes as bits.
    Policy {
        name: Option<String>,
        mode: Mode,
        nodes: u64,
    },
    Cpu(i64),
    /// ms.
    Sleep(u64),
    Mark(String),
    Wait,
}

/// Reads the lines of a scene, each with its number in the file.
pub(crate) fn parse(lines: &[(usize, &str)]) -> Vec<Line> {
    let texts = lines.iter().take(MOST_LINES);
    let texts: Vec<&str> = texts.map(|(_, text)| text.trim_start_matches(' ')).collect();
    let line = |(at, &(number, _)): (usize, &(usize, &str))| Line { number, code: code(&texts, at) };
    lines.iter().take(MOST_LINES).enumerate().map(line).collect()
}

fn code(texts: &[&str], at: usize) -> Code {
    let words = Words::of(texts[at]);
    let Some(operation) = words.get(0) else { return Code::Nothing };
    if operation.starts_with('#') || operation == "machine" {
        return Code::Nothing;
    }
    if words.len() < 2 && !["fork", "spawn", "wait"].contains(&operation) {
        return Code::Broken(if operation == "end" { "`end` of nothing".into() } else { "too short".into() });
    }
    if ["fork", "spawn", "repeat"].contains(&operation) {
        let Some(end) = matching_end(texts, at) else { return Code::Broken("no `end`".into()) };
        return match operation {
            "repeat" => Code::Repeat { end, times: size(words.get(1).unwrap_or("")) },
            operation => Code::Fork { end, waits: operation == "fork" },
        };
    }
    words.operation().map_or_else(Code::Broken, Code::Operation)
}

/// The line that ends the block which begins at `at`.
fn matching_end(texts: &[&str], at: usize) -> Option<usize> {
    let mut depth = 0u32;
    for (line, text) in texts.iter().enumerate().skip(at) {
        depth += u32::from(["fork", "spawn", "repeat"].iter().any(|begins| text.starts_with(begins)));
        if *text == "end" {
            depth -= 1;
            if depth == 0 {
                return Some(line);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<Code> {
        let lines: Vec<_> = text.lines().enumerate().map(|(index, line)| (index + 1, line)).collect();
        parse(&lines).into_iter().map(|line| line.code).collect()
    }

    #[test]
    fn blocks_and_sizes_are_read() {
        let text = "machine memory 512M\n# said\nmap a 2M huge\n spawn\nrepeat 2K\ntouch a to 64K rand 9\nend\nend\nwait";
        let program = parsed(text);
        assert_eq!(program[..2], [Code::Nothing, Code::Nothing]);
        assert!(matches!(program[2], Code::Operation(What::Map { bytes: 0x20_0000, huge: true, .. })));
        assert_eq!(program[3], Code::Fork { end: 7, waits: false });
        assert_eq!(program[4], Code::Repeat { end: 6, times: 2048 });
        let Code::Operation(What::Accesses(touch)) = &program[5] else { panic!("{program:?}") };
        assert_eq!((touch.part.to, touch.order, touch.stride), (Some(65536), Order::Drawn(9), 4096));
        assert_eq!(program[8], Code::Operation(What::Wait));
    }

    /// Where the program that ran scenes would have ended, not before.
    #[test]
    fn what_cannot_be_read_is_kept_with_the_reason() {
        for (text, why) in [
            ("fork\ntouch a", "no `end`"),
            ("end", "`end` of nothing"),
            ("map", "too short"),
            ("advise a sideways", "unknown advice"),
            ("policy a", "unknown policy"),
            ("dance a", "unknown operation"),
        ] {
            assert_eq!(parsed(text)[0], Code::Broken(why.into()), "{text}");
        }
        // Words that mean nothing are passed over, and what begins with no digit is 0.
        let Code::Operation(What::Accesses(touch)) = &parsed("touch a upwards 4K stride long")[0] else {
            panic!()
        };
        assert_eq!(touch.stride, 0);
        let deep = "fork\n".repeat(100_000);
        assert_eq!(parsed(&deep).len(), MOST_LINES);
    }
}
