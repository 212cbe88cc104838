//! What stands in a line of each operation: the table of them, and how a line is held against it.

use mm::{Knob, Limit};

use super::{Act, Label};
use crate::script::names::{LONGEST_NAME, PAGE};
use crate::script::program::What;
use crate::script::words::{ADVICE, Words, size};

/// What a word may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Name,
    Size,
    Number,
    Advice,
}

/// An operation: what comes first, and what may follow in any order.
struct Form {
    operation: &'static str,
    first: &'static [Kind],
    words: &'static [(&'static str, Option<Kind>)],
    /// As it is shown.
    usage: &'static str,
}

const fn form(
    operation: &'static str,
    first: &'static [Kind],
    words: &'static [(&'static str, Option<Kind>)],
    usage: &'static str,
) -> Form {
    Form { operation, first, words, usage }
}

const SIZE: Option<Kind> = Some(Kind::Size);
const NUMBER: Option<Kind> = Some(Kind::Number);
const PIECES: &[(&str, Option<Kind>)] =
    &[("from", SIZE), ("to", SIZE), ("next", SIZE), ("every", SIZE), ("piece", SIZE)];
const BLOCKS: &[(&str, Option<Kind>)] = &[
    ("from", SIZE),
    ("to", SIZE),
    ("next", SIZE),
    ("block", SIZE),
    ("back", None),
    ("rand", NUMBER),
    ("times", NUMBER),
];

/// Those whose words are the same whatever they say.
const FORMS: &[Form] = &[
    form(
        "map",
        &[Kind::Name, Kind::Size],
        &[("shared", None), ("huge", None), ("nohuge", None)],
        "map NAME SIZE [shared] [huge|nohuge]",
    ),
    form("file", &[Kind::Name, Kind::Size], &[], "file NAME SIZE"),
    form(
        "mapfile",
        &[Kind::Name, Kind::Name],
        &[("exec", None), ("private", None)],
        "mapfile NAME FILE [exec] [private]",
    ),
    form(
        "touch",
        &[Kind::Name],
        &[
            ("from", SIZE),
            ("to", SIZE),
            ("next", SIZE),
            ("stride", SIZE),
            ("read", None),
            ("write", None),
            ("back", None),
            ("rand", NUMBER),
            ("times", NUMBER),
        ],
        "touch NAME [from A] [to B] [next SIZE] [stride S] [read|write] [back|rand SEED] [times N]",
    ),
    form(
        "readfile",
        &[Kind::Name],
        BLOCKS,
        "readfile FILE [from A] [to B] [next SIZE] [block S] [back|rand SEED] [times N]",
    ),
    form(
        "write",
        &[Kind::Name],
        BLOCKS,
        "write FILE [from A] [to B] [next SIZE] [block S] [back|rand SEED] [times N]",
    ),
    form("sync", &[Kind::Name], &[], "sync FILE"),
    form(
        "zipf",
        &[Kind::Name, Kind::Number, Kind::Number, Kind::Number],
        &[("read", None), ("write", None), ("from", SIZE), ("to", SIZE), ("next", SIZE)],
        "zipf NAME COUNT SKEW SEED [read|write] [from A] [to B] [next SIZE]",
    ),
    form(
        "advise",
        &[Kind::Name, Kind::Advice],
        PIECES,
        "advise NAME WORD [from A] [to B] [next SIZE] [every S piece P]",
    ),
    form("unmap", &[Kind::Name], PIECES, "unmap NAME [from A] [to B] [next SIZE] [every S piece P]"),
    form("lock", &[Kind::Name], PIECES, "lock NAME [from A] [to B] [next SIZE] [every S piece P]"),
    form("fork", &[], &[], "fork … end"),
    form("spawn", &[], &[], "spawn … end"),
    form("wait", &[], &[], "wait"),
    form("end", &[], &[], "end"),
    form("repeat", &[Kind::Number], &[], "repeat N … end"),
    form("for", &[Kind::Number], &[], "for MS … end"),
    form("cgroup", &[Kind::Name], &[], "cgroup NAME"),
    form("cpu", &[Kind::Number], &[], "cpu N"),
    form("sleep", &[Kind::Number], &[], "sleep MS"),
    form("compute", &[Kind::Number], &[], "compute NS"),
    form("take", &[Kind::Size], &[], "take SIZE"),
    form("time", &[Kind::Name], &[], "time LABEL … end"),
];
/// The others, as they are shown.
const LIMIT: &str = "limit [in GROUP] max|high|low|min|swap.max|reclaim SIZE|max";
const SET: &str = "set KNOB VALUE";
const POLICY: &str = "policy [NAME] default|bind|interleave|preferred|local [NODES as 0,1]";
const MARK: &str = "mark LABEL [COUNTER …]";

/// What a line is.
pub(super) enum Taken {
    Act(Act),
    End,
}

/// What the words of a line say; there is at least one.
///
/// # Errors
/// Which word is wrong, and what the line may be.
pub(super) fn take(words: &[&str]) -> Result<Taken, String> {
    let line = words.join(" ");
    let operation = words[0];
    let says = || Words::of(&line).operation();
    let count = |at: usize| size(words[at]);
    if let Some(form) = FORMS.iter().find(|form| form.operation == operation) {
        check(form, words)?;
        let (end, label) = (0, || Label(words[1].to_owned()));
        return Ok(Taken::Act(match operation {
            "end" => return Ok(Taken::End),
            "fork" | "spawn" => Act::Fork { end, waits: operation == "fork" },
            "repeat" => Act::Repeat { end, times: count(1) },
            "for" => Act::For { end, ms: count(1) },
            "compute" => Act::Compute(count(1)),
            "take" => Act::Take(count(1).div_ceil(PAGE)),
            "time" => Act::Time { end, label: label() },
            _ => Act::Does(says()?),
        }));
    }
    Ok(Taken::Act(match operation {
        "mark" => mark(words)?,
        "limit" => Act::Does(limit(words).and_then(|()| says())?),
        "policy" => Act::Does(policy(words).and_then(|()| says())?),
        "set" => Act::Does(set(words)?),
        "machine" => return Err("the machine is the experiment's: `machine` above [workload]".into()),
        "swapon" => {
            return Err(
                "swap is there from the start: knobs = { \"zram.disksize\" = \"1G\" } or swap.disk".into()
            );
        }
        other => return Err(unknown(other)),
    }))
}

fn unknown(word: &str) -> String {
    let all = FORMS.iter().map(|form| form.operation).chain(["mark", "limit", "policy", "set"]);
    format!("`{word}` is no operation; there are {}", all.collect::<Vec<_>>().join(", "))
}

/// Holds `words` against `form`.
fn check(form: &Form, words: &[&str]) -> Result<(), String> {
    let usage = form.usage;
    for (at, kind) in form.first.iter().enumerate() {
        let word = words.get(at + 1).ok_or_else(|| format!("there is something missing in `{usage}`"))?;
        is_of(*kind, word, usage)?;
    }
    let mut rest = words.iter().skip(1 + form.first.len());
    let mut seen: Vec<&str> = vec![];
    while let Some(&word) = rest.next() {
        let Some((name, value)) = form.words.iter().find(|(name, _)| *name == word) else {
            return Err(format!("`{word}` means nothing in `{usage}`"));
        };
        if seen.contains(name) {
            return Err(format!("`{word}` is said twice"));
        }
        seen.push(name);
        if let Some(kind) = value {
            let value = rest.next().ok_or_else(|| format!("nothing stands behind `{word}` in `{usage}`"))?;
            is_of(*kind, value, usage)?;
        }
    }
    let contradicts =
        [["huge", "nohuge"], ["read", "write"], ["back", "rand"], ["next", "from"], ["next", "to"]];
    match contradicts.iter().find(|both| both.iter().all(|word| seen.contains(word))) {
        Some([one, other]) => Err(format!("`{one}` and `{other}` contradict each other in `{usage}`")),
        None if seen.contains(&"piece") != seen.contains(&"every") => {
            Err(format!("`every S` and `piece P` go together in `{usage}`"))
        }
        None => Ok(()),
    }
}

fn is_of(kind: Kind, word: &str, usage: &str) -> Result<(), String> {
    let is_name = |letter: char| letter.is_alphanumeric() || "-_.+#".contains(letter);
    let (is_it, what) = match kind {
        Kind::Name => (
            word.chars().all(is_name) && word.len() <= LONGEST_NAME,
            "a name of up to 23 letters, digits and -_.+",
        ),
        Kind::Size => (is_size(word), "a size such as 4096, 64K, 2M or 1G"),
        Kind::Number => (is_size(word), "a number such as 100 or 2K"),
        Kind::Advice => return advice(word),
    };
    if is_it { Ok(()) } else { Err(format!("`{word}` is not {what}, in `{usage}`")) }
}

fn advice(word: &str) -> Result<(), String> {
    if ADVICE.contains(&word) {
        return Ok(());
    }
    Err(format!("`{word}` is no advice; there are {}", ADVICE.join(", ")))
}

/// Digits that come to less than 2^48, and K, M or G behind them.
fn is_size(word: &str) -> bool {
    let digits = word.strip_suffix(['K', 'M', 'G']).unwrap_or(word);
    let few = !digits.is_empty() && digits.len() <= 15 && digits.bytes().all(|digit| digit.is_ascii_digit());
    few && digits.parse::<u64>().is_ok_and(|number| number < 1 << 48 >> if digits == word { 0 } else { 30 })
}

fn mark(words: &[&str]) -> Result<Act, String> {
    let label = words.get(1).ok_or_else(|| format!("there is something missing in `{MARK}`"))?;
    is_of(Kind::Name, label, MARK)?;
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let is_name = |part: &str| !part.is_empty() && part.chars().all(is_letter);
    let is_counter = |word: &str| word.split('/').count() <= 2 && word.split('/').all(is_name);
    if let Some(odd) = words[2..].iter().find(|counter| !is_counter(counter)) {
        return Err(format!("`{odd}` is no counter's name, nor two with a `/` between them, in `{MARK}`"));
    }
    let counters = words[2..].iter().map(|&counter| counter.to_owned()).collect();
    Ok(Act::Mark { label: Label((*label).to_owned()), counters })
}

fn limit(words: &[&str]) -> Result<(), String> {
    let rest = if words.get(1) == Some(&"in") { words.get(3..) } else { words.get(1..) };
    let Some([knob, value]) = rest else { return Err(format!("it is not of the form `{LIMIT}`")) };
    let is_limit = Limit::ALL.iter().any(|limit| limit.name() == *knob) || *knob == "reclaim";
    if !is_limit {
        return Err(format!("`{knob}` is no limit, in `{LIMIT}`"));
    }
    if *value == "max" { Ok(()) } else { is_of(Kind::Size, value, LIMIT) }
}

fn policy(words: &[&str]) -> Result<(), String> {
    const MODES: [&str; 5] = ["default", "bind", "interleave", "preferred", "local"];
    let at = words.iter().take(3).skip(1).position(|word| MODES.contains(word));
    let Some(at) = at else { return Err(format!("it is not of the form `{POLICY}`")) };
    let nodes = &words[at + 2..];
    let is_list = |word: &&str| word.bytes().all(|letter| letter.is_ascii_digit() || letter == b',');
    if nodes.len() > 1 || !nodes.iter().all(is_list) {
        return Err(format!("it is not of the form `{POLICY}`"));
    }
    Ok(())
}

/// What can be done by writing to a file, beside settings.
pub(crate) const DEEDS: [&str; 2] = ["vm.drop_caches", "vm.compact_memory"];

fn set(words: &[&str]) -> Result<What, String> {
    let [_, name, value] = words else { return Err(format!("it is not of the form `{SET}`")) };
    if !DEEDS.contains(name) {
        let knob = Knob::from_name(name).map_err(|error| error.to_string())?;
        if Limit::of(knob).is_some() {
            return Err(format!("`{name}` is a limit of a group: `{LIMIT}`"));
        }
        knob.parse_one(value).map_err(|error| error.to_string())?;
    }
    Ok(What::Set { file: (*name).to_owned(), value: (*value).to_owned() })
}
