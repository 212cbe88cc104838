//! The rooms of crates/mm/src, and which of them may import which.

use std::collections::BTreeSet;

use crate::source::lines;
use crate::{File, Finding, Tree};

const SOURCES: &str = "crates/mm/src/";
const HERE: &str = "crates/tidy/src/rules/rooms.rs";

/// A room, and the rooms that it may import.
type Room = (&'static str, &'static [&'static str]);

/// From the ground up; `mm` is the file that puts them together.
const ROOMS: [Room; 11] = [
    ("ground", &[]),
    ("rules", &["ground"]),
    ("pages", &["ground", "rules"]),
    ("slab", &["ground", "rules", "pages"]),
    ("lru", &["ground", "rules", "pages"]),
    ("vm", &["ground", "rules", "pages", "lru"]),
    ("compact", &["ground", "rules", "pages", "lru", "vm"]),
    ("reclaim", &["ground", "rules", "pages", "slab", "lru", "vm", "compact"]),
    ("tier", &["ground", "rules"]),
    ("views", &["ground", "rules", "pages", "slab", "lru", "vm", "compact", "reclaim"]),
    ("mm", &["ground", "rules", "pages", "slab", "lru", "vm", "compact", "reclaim", "views"]),
];

/// Arrows that run back up, and are to go. This list only ever gets shorter.
const STILL: [(&str, &str); 5] =
    [("lru", "mm"), ("vm", "mm"), ("compact", "mm"), ("reclaim", "mm"), ("views", "mm")];

/// How many methods `Mm` may have, in whatever file. This figure only ever gets smaller.
const MM_METHODS: usize = 395;

/// `rooms`: the rooms of mm import from those below them only; what still does not is in a list, and so is in use.
pub fn rooms(tree: &Tree) -> Vec<Finding> {
    held(tree, &STILL)
}

/// `mm-is-thin`: `Mm` has so many methods, and no more; where it has fewer, the figure goes down with it.
pub fn mm_is_thin(tree: &Tree) -> Vec<Finding> {
    thin(tree, MM_METHODS)
}

fn held(tree: &Tree, still: &[(&str, &str)]) -> Vec<Finding> {
    let mut found = vec![];
    let mut used = BTreeSet::new();
    for file in sources(tree) {
        let Some(room) = room_of(file) else {
            let what = "stands in no room of mm: give it one, or draw a new room's arrows".to_owned();
            found.push(Finding { rule: "rooms", path: file.path.clone(), line: 0, what });
            continue;
        };
        for (line, known) in imports(file) {
            if known == room.0 || room.1.contains(&known) {
                continue;
            }
            if still.contains(&(room.0, known)) {
                used.insert((room.0, known));
                continue;
            }
            let what = format!("{} may not know {known}", room.0);
            found.push(Finding { rule: "rooms", path: file.path.clone(), line, what });
        }
    }
    if sources(tree).next().is_some() {
        for (room, known) in still.iter().filter(|arrow| !used.contains(*arrow)) {
            let what = format!("{room} does not know {known} any more: take the arrow off the list");
            found.push(Finding { rule: "rooms", path: HERE.to_owned(), line: 0, what });
        }
    }
    found
}

fn thin(tree: &Tree, most: usize) -> Vec<Finding> {
    let Some(home) = sources(tree).find(|file| file.path.ends_with("/mm.rs")) else { return vec![] };
    let methods: usize = sources(tree).map(methods_of_mm).sum();
    let what = match methods {
        _ if methods > most => format!("Mm has {methods} methods, more than {most}: a room is their place"),
        _ if methods < most => format!("Mm has {methods} methods: MM_METHODS is to be that"),
        _ => return vec![],
    };
    vec![Finding { rule: "mm-is-thin", path: home.path.clone(), line: 0, what }]
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

/// Functions in blocks `impl … Mm<M> {`, those of traits apart.
fn methods_of_mm(file: &File) -> usize {
    let mut within = false;
    let mut methods = 0;
    for (_, code) in code(file) {
        if code.starts_with("impl") {
            within = code.ends_with(" Mm<M> {") && !code.contains(" for ");
        } else if code == "}" {
            within = false;
        }
        let item = code.strip_prefix("    ").filter(|item| !item.starts_with(' '));
        let is_method = item.is_some_and(|item| item.starts_with("fn ") || item.contains(" fn "));
        methods += usize::from(within && is_method);
    }
    methods
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
        let found = held(&tree, &[]);
        assert_eq!(what(&found), ["pages may not know vm", "pages may not know mm"]);
        assert_eq!([found[0].line, found[1].line], [3, 4]);
    }

    #[test]
    fn an_arrow_on_the_list_is_let_be_as_long_as_it_is_there() {
        let still = [("vm", "mm")];
        let tree = Tree::of(&[("crates/mm/src/vm/fault.rs", "use crate::mm::Mm;\n")]);
        assert_eq!(held(&tree, &still), []);
        let tree = Tree::of(&[("crates/mm/src/vm/fault.rs", "use crate::pages::zone::Zone;\n")]);
        assert_eq!(what(&held(&tree, &still)), ["vm does not know mm any more: take the arrow off the list"]);
    }

    #[test]
    fn a_file_without_a_room_is_found() {
        let tree = Tree::of(&[("crates/mm/src/attic.rs", ""), ("crates/mm/src/mm.rs", "")]);
        let found = held(&tree, &[]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "crates/mm/src/attic.rs");
    }

    #[test]
    fn methods_are_counted_in_every_room_and_those_of_traits_are_not() {
        let mm = "impl<M: Machine> Mm<M> {\n    pub fn a(&self) {\n        fn inner() {}\n    }\n    fn b() {}\n}\n\
            impl<M: Machine> Above<M> for Mm<M> {\n    fn c() {}\n}\n";
        let vm = "impl<M: Machine> Mm<M> {\n    pub(crate) fn d(&self) {}\n}\nimpl Vm {\n    fn e() {}\n}\n";
        let tree = Tree::of(&[("crates/mm/src/mm.rs", mm), ("crates/mm/src/vm/space.rs", vm)]);
        assert_eq!(thin(&tree, 3), []);
        assert_eq!(what(&thin(&tree, 4)), ["Mm has 3 methods: MM_METHODS is to be that"]);
        assert_eq!(what(&thin(&tree, 2)), ["Mm has 3 methods, more than 2: a room is their place"]);
    }
}
