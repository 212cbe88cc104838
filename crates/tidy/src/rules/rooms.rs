//! The rooms of crates/mm/src and crates/lab/src, and which of them may import which.

use std::collections::BTreeMap;

use crate::source::lines;
use crate::{File, Finding, Tree};

/// A room, and the rooms that it may import.
type Room = (&'static str, &'static [&'static str]);

/// A crate that has rooms.
struct House {
    /// Where they are.
    sources: &'static str,
    /// From the ground up: a room imports only from those before it in this list, so that there are no circles.
    rooms: &'static [Room],
}

const MM: House = House { sources: "crates/mm/src/", rooms: &ROOMS };

const LAB: House = House { sources: "crates/lab/src/", rooms: &LAB_ROOMS };

/// From the ground up; `mm` is the file that puts them together.
const ROOMS: [Room; 13] = [
    ("ground", &[]),
    ("rules", &["ground"]),
    ("pages", &["ground", "rules"]),
    ("slab", &["ground", "rules", "pages"]),
    ("memcg", &["ground", "rules", "pages"]),
    ("lru", &["ground", "rules", "pages", "memcg"]),
    ("cache", &["ground", "rules", "pages", "memcg", "lru"]),
    ("vm", &["ground", "rules", "pages", "memcg", "lru", "cache"]),
    ("compact", &["ground", "rules", "pages", "lru"]),
    ("reclaim", &["ground", "rules", "pages", "slab", "memcg", "lru", "cache", "vm", "compact"]),
    ("tier", &["ground", "rules"]),
    ("views", &["ground", "rules", "pages", "slab", "memcg", "lru", "cache", "vm", "compact", "reclaim"]),
    (
        "mm",
        &["ground", "rules", "pages", "slab", "memcg", "lru", "cache", "vm", "compact", "reclaim", "views"],
    ),
];

/// Rooms of lab: what it measures with, what a simulation stands on, workloads, runs, and what is made of runs.
const LAB_ROOMS: [Room; 22] = [
    ("measurements", &[]),
    ("findings", &["measurements"]),
    ("reach", &["measurements"]),
    ("recorded", &["reach"]),
    ("program", &["measurements", "reach", "recorded"]),
    ("stage", &["measurements"]),
    ("script", &[]),
    ("promotion", &["stage"]),
    ("daemons", &["stage", "promotion"]),
    ("workloads", &["reach", "stage", "script", "promotion", "daemons"]),
    ("drive", &["measurements", "reach", "stage", "daemons", "workloads"]),
    ("conform", &["script"]),
    ("evidence", &["measurements", "conform"]),
    ("scene", &["measurements", "stage", "workloads", "drive"]),
    (
        "replay",
        &[
            "measurements",
            "reach",
            "recorded",
            "program",
            "stage",
            "promotion",
            "workloads",
            "drive",
            "evidence",
        ],
    ),
    ("experiment", &["measurements", "reach", "stage", "workloads", "evidence", "scene"]),
    ("subject", &["measurements", "reach", "replay", "experiment"]),
    ("why", &["measurements", "replay", "experiment", "subject"]),
    ("tune", &["measurements", "stage", "replay", "experiment", "subject"]),
    ("validate", &["measurements", "program", "workloads", "conform", "evidence", "scene", "replay"]),
    ("apply", &["measurements"]),
    ("this_machine", &["measurements", "reach", "drive", "replay", "scene", "workloads"]),
];

/// How many methods a type of mm may have, over all files: who needs more is two things.
const METHODS: usize = 80;

/// How many `Mm` may have, which only puts rooms together.
const MM_METHODS: usize = 60;

/// `types-are-thin`: no type of mm has so many methods that nobody knows them all, and `Mm` has few.
pub fn types_are_thin(tree: &Tree) -> Vec<Finding> {
    let mut methods: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for file in sources(tree, &MM) {
        for name in methods_in(file) {
            methods.entry(name).or_insert_with(|| (0, file.path.clone())).0 += 1;
        }
    }
    let too_many = methods.into_iter().filter_map(|(name, (count, path))| {
        let most = if name == "Mm" { MM_METHODS } else { METHODS };
        let what = format!("{name} has {count} methods, more than {most}: it is two things");
        (count > most).then_some(Finding { rule: "types-are-thin", path, line: 0, what })
    });
    too_many.collect()
}

/// `rooms`: the rooms of mm and of lab import from those below them only.
pub fn rooms(tree: &Tree) -> Vec<Finding> {
    [MM, LAB].iter().flat_map(|house| held(tree, house)).collect()
}

fn held(tree: &Tree, house: &House) -> Vec<Finding> {
    let mut found = vec![];
    for file in sources(tree, house) {
        let Some(room) = room_of(file, house) else {
            let what = "stands in no room: give it one, or draw a new room's arrows".to_owned();
            found.push(Finding { rule: "rooms", path: file.path.clone(), line: 0, what });
            continue;
        };
        let unknown = |known: &&str| *known != room.0 && !room.1.contains(known);
        for (line, known) in imports(file, house).into_iter().filter(|(_, known)| unknown(known)) {
            let what = format!("{} may not know {known}", room.0);
            found.push(Finding { rule: "rooms", path: file.path.clone(), line, what });
        }
    }
    found
}

/// A crate's own files, its root apart, which only hands names on, and tests.
fn sources<'a>(tree: &'a Tree, house: &House) -> impl Iterator<Item = &'a File> {
    let folder = house.sources;
    let is_test = |path: &str| path.contains("/tests/") || path.ends_with("tests.rs");
    tree.ending_in(".rs").filter(move |file| {
        let rest = file.path.strip_prefix(folder);
        rest.is_some_and(|rest| rest != "lib.rs") && !is_test(&file.path)
    })
}

fn room_of(file: &File, house: &House) -> Option<&'static Room> {
    let rest = file.path.strip_prefix(house.sources)?;
    let name = rest.split('/').next()?.trim_end_matches(".rs");
    house.rooms.iter().find(|(room, _)| *room == name)
}

/// The code of `file` line by line, without the tests at its end.
fn code(file: &File) -> impl Iterator<Item = (usize, String)> {
    let is_end = |code: &str| code.starts_with("mod ") && code.ends_with('{');
    let code = lines(&file.text).into_iter().map(|line| line.code).enumerate();
    code.map(|(index, code)| (index + 1, code)).take_while(move |(_, code)| !is_end(code))
}

/// The rooms that `file` names by `crate::`, each with its line. `crate::Mm` is `mm`'s; other names of the crate's root stand
/// for some room's own and are not used within the crate but in tests.
fn imports(file: &File, house: &House) -> Vec<(usize, &'static str)> {
    let mut found = vec![];
    for (number, code) in code(file) {
        for rest in code.split("crate::").skip(1) {
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let name = if name == "Mm" { "mm" } else { name.as_str() };
            if let Some((room, _)) = house.rooms.iter().find(|(room, _)| *room == name) {
                found.push((number, *room));
            }
        }
    }
    found
}

/// For each function in a block `impl … Type<…> {` of `file`, those of traits apart, the type's name.
fn methods_in(file: &File) -> Vec<String> {
    let mut within = None;
    let mut methods = vec![];
    for (_, code) in code(file) {
        if code.starts_with("impl") && code.ends_with('{') {
            within = if code.contains(" for ") { None } else { type_of(&code) };
        } else if code == "}" {
            within = None;
        }
        let item = code.strip_prefix("    ").filter(|item| !item.starts_with(' '));
        let is_method = item.is_some_and(|item| item.starts_with("fn ") || item.contains(" fn "));
        methods.extend(within.clone().filter(|_| is_method));
    }
    methods
}

/// `Type` of `impl<…> Type<…> {`.
fn type_of(code: &str) -> Option<String> {
    let mut depth = 0;
    let head = code.strip_prefix("impl")?.trim_end_matches('{').trim();
    let generics = head.find(|c| {
        depth += i32::from(c == '<') - i32::from(c == '>');
        depth == 0
    });
    let name = if head.starts_with('<') { &head[generics? + 1..] } else { head };
    Some(name.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(found: &[Finding]) -> Vec<&str> {
        found.iter().map(|found| found.what.as_str()).collect()
    }

    #[test]
    fn an_import_from_above_is_found_and_one_from_below_is_not() {
        let text = "//! a\nuse crate::ground::ids::Pfn;\nuse crate::vm::{Vpn};\nfn f(mm: crate::Mm<M>) {}\n\
            // crate::reclaim::Reclaim\nmod tests {\n    use crate::slab::Slab;\n}\n";
        let tree = Tree::of(&[("crates/mm/src/pages/zone.rs", text)]);
        let found = rooms(&tree);
        assert_eq!(what(&found), ["pages may not know vm", "pages may not know mm"]);
        assert_eq!([found[0].line, found[1].line], [3, 4]);
    }

    #[test]
    fn lab_has_rooms_too() {
        let text = "use crate::scene::Scene;\nuse crate::stage::Stage;\n";
        let tree = Tree::of(&[("crates/lab/src/workloads/stream.rs", text), ("crates/lab/src/lib.rs", text)]);
        assert_eq!(what(&rooms(&tree)), ["workloads may not know scene"]);
    }

    #[test]
    fn a_room_may_know_only_rooms_before_it_so_there_are_no_circles() {
        for house in [MM, LAB] {
            for (at, (room, knows)) in house.rooms.iter().enumerate() {
                let before: Vec<&str> = house.rooms[..at].iter().map(|(room, _)| *room).collect();
                assert!(knows.iter().all(|known| before.contains(known)), "{room} of {}", house.sources);
            }
        }
    }

    #[test]
    fn a_file_without_a_room_is_found() {
        let tree = Tree::of(&[("crates/mm/src/attic.rs", ""), ("crates/mm/src/mm.rs", "")]);
        let found = rooms(&tree);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "crates/mm/src/attic.rs");
    }

    #[test]
    fn methods_of_a_type_are_counted_over_files_and_those_of_traits_are_not() {
        let methods =
            "    pub fn a(self) {\n        fn inner() {}\n    }\n    fn b() {}\n".repeat(METHODS / 4);
        let head = "impl<'a, M: Machine, G: Ground<M>> Door<'a, M, G> {\n";
        let block = format!("{head}{methods}}}\nimpl Clone for Door {{\n    fn c() {{}}\n}}\n");
        let more = format!("{block}impl Door {{\n    fn d() {{}}\n}}\n");
        let tree = |second: &str| {
            Tree::of(&[("crates/mm/src/vm/space.rs", block.as_str()), ("crates/mm/src/vm/fault.rs", second)])
        };
        assert_eq!(types_are_thin(&tree(&block)), []);
        let expected = format!("Door has {} methods, more than {METHODS}: it is two things", METHODS + 1);
        assert_eq!(what(&types_are_thin(&tree(&more))), [expected.as_str()]);
    }

    #[test]
    fn mm_has_fewer() {
        let text = format!("impl<M: Machine> Mm<M> {{\n{}}}\n", "    fn a() {}\n".repeat(MM_METHODS + 1));
        let tree = Tree::of(&[("crates/mm/src/mm.rs", text.as_str())]);
        assert_eq!(what(&types_are_thin(&tree)), ["Mm has 61 methods, more than 60: it is two things"]);
    }
}
