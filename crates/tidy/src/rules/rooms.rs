//! The rooms of crates/mm/src, and which of them may import which.

use std::collections::BTreeMap;

use crate::source::lines;
use crate::{File, Finding, Tree};

const SOURCES: &str = "crates/mm/src/";

/// A room, and the rooms that it may import.
type Room = (&'static str, &'static [&'static str]);

/// From the ground up; `mm` is the file that puts them together.
const ROOMS: [Room; 12] = [
    ("ground", &[]),
    ("rules", &["ground"]),
    ("pages", &["ground", "rules"]),
    ("slab", &["ground", "rules", "pages"]),
    ("lru", &["ground", "rules", "pages"]),
    ("cache", &["ground", "rules", "pages", "lru"]),
    ("vm", &["ground", "rules", "pages", "lru", "cache"]),
    ("compact", &["ground", "rules", "pages", "lru"]),
    ("reclaim", &["ground", "rules", "pages", "slab", "lru", "cache", "vm", "compact"]),
    ("tier", &["ground", "rules"]),
    ("views", &["ground", "rules", "pages", "slab", "lru", "cache", "vm", "compact", "reclaim"]),
    ("mm", &["ground", "rules", "pages", "slab", "lru", "cache", "vm", "compact", "reclaim", "views"]),
];

/// How many methods a type of mm may have, over all files: who needs more is two things.
const METHODS: usize = 80;

/// How many `Mm` may have, which only puts rooms together.
const MM_METHODS: usize = 60;

/// `types-are-thin`: no type of mm has so many methods that nobody knows them all, and `Mm` has few.
pub fn types_are_thin(tree: &Tree) -> Vec<Finding> {
    let mut methods: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for file in sources(tree) {
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

/// `rooms`: the rooms of mm import from those below them only.
pub fn rooms(tree: &Tree) -> Vec<Finding> {
    let mut found = vec![];
    for file in sources(tree) {
        let Some(room) = room_of(file) else {
            let what = "stands in no room of mm: give it one, or draw a new room's arrows".to_owned();
            found.push(Finding { rule: "rooms", path: file.path.clone(), line: 0, what });
            continue;
        };
        let unknown = |known: &&str| *known != room.0 && !room.1.contains(known);
        for (line, known) in imports(file).into_iter().filter(|(_, known)| unknown(known)) {
            let what = format!("{} may not know {known}", room.0);
            found.push(Finding { rule: "rooms", path: file.path.clone(), line, what });
        }
    }
    found
}

/// mm's own files, the crate's root apart, which only hands names on, and tests.
fn sources(tree: &Tree) -> impl Iterator<Item = &File> {
    let is_test = |path: &str| path.contains("/tests/") || path.ends_with("tests.rs");
    tree.ending_in(".rs").filter(move |file| {
        file.path.starts_with(SOURCES) && file.path != "crates/mm/src/lib.rs" && !is_test(&file.path)
    })
}

fn room_of(file: &File) -> Option<&'static Room> {
    let rest = file.path.strip_prefix(SOURCES)?;
    let name = rest.split('/').next()?.trim_end_matches(".rs");
    ROOMS.iter().find(|(room, _)| *room == name)
}

/// The code of `file` line by line, without the tests at its end.
fn code(file: &File) -> impl Iterator<Item = (usize, String)> {
    let is_end = |code: &str| code.starts_with("mod ") && code.ends_with('{');
    let code = lines(&file.text).into_iter().map(|line| line.code).enumerate();
    code.map(|(index, code)| (index + 1, code)).take_while(move |(_, code)| !is_end(code))
}

/// The rooms that `file` names by `crate::`, each with its line. `crate::Mm` is `mm`'s; other names of the crate's root stand
/// for some room's own and are not used within the crate but in tests.
fn imports(file: &File) -> Vec<(usize, &'static str)> {
    let mut found = vec![];
    for (number, code) in code(file) {
        for rest in code.split("crate::").skip(1) {
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let name = if name == "Mm" { "mm" } else { name.as_str() };
            if let Some((room, _)) = ROOMS.iter().find(|(room, _)| *room == name) {
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
