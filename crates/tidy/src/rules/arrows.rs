//! Which crate may know which, and who may do what.

use toml::{Table, Value};

use crate::source::lines;
use crate::{File, Finding, Tree};

/// The crates of ours that a crate may depend on. The arrows point one way.
const MAY_KNOW: [(&str, &[&str]); 10] = [
    ("mm", &[]),
    ("sim", &["mm"]),
    ("host", &["mm"]),
    ("trace", &["mm"]),
    ("measurements", &["mm"]),
    ("lab", &["mm", "sim", "host", "trace", "measurements"]),
    ("report", &["mm", "sim", "host", "trace", "measurements", "lab"]),
    ("cli", &["mm", "sim", "host", "trace", "measurements", "lab", "report"]),
    ("tidy", &[]),
    ("python", &["mm", "sim", "trace", "lab", "report"]),
];

/// `arrows`: {cli, python} → report → lab → {trace, sim, host, measurements} → mm, and none the other way.
pub fn arrows(tree: &Tree) -> Vec<Finding> {
    let mut found = vec![];
    for (name, file) in manifests(tree) {
        let Some((_, may)) = MAY_KNOW.iter().find(|(of, _)| *of == name) else {
            found.push(finding("arrows", &file.path, 0, format!("no arrow is drawn for the crate `{name}`")));
            continue;
        };
        for known in dependencies(file) {
            let is_ours = MAY_KNOW.iter().any(|(of, _)| *of == known);
            if is_ours && !may.contains(&known.as_str()) {
                found.push(finding("arrows", &file.path, 0, format!("{name} may not know {known}")));
            }
        }
    }
    found
}

/// `core-alone`: mm depends on nothing and is no_std.
pub fn core_alone(tree: &Tree) -> Vec<Finding> {
    let mut found = vec![];
    for (_, file) in manifests(tree).into_iter().filter(|(name, _)| name == "mm") {
        for known in plain_dependencies(file) {
            found.push(finding("core-alone", &file.path, 0, format!("mm depends on {known}")));
        }
    }
    for file in tree.files.iter().filter(|file| file.path == "crates/mm/src/lib.rs") {
        if !file.text.contains("no_std") {
            found.push(finding("core-alone", &file.path, 0, "is not no_std".into()));
        }
    }
    found
}

/// `who-parses`: nothing but cli parses arguments.
pub fn who_parses(tree: &Tree) -> Vec<Finding> {
    let others = manifests(tree).into_iter().filter(|(name, _)| name != "cli");
    others
        .filter(|(_, file)| dependencies(file).iter().any(|known| known == "clap"))
        .map(|(name, file)| finding("who-parses", &file.path, 0, format!("{name} depends on clap")))
        .collect()
}

/// `who-prints`: libraries give back what they have to say; report sets it and cli prints it. Tests may print.
pub fn who_prints(tree: &Tree) -> Vec<Finding> {
    let may = |path: &str| ["crates/cli/", "crates/report/"].iter().any(|of| path.starts_with(of));
    let library =
        |path: &str| path.starts_with("crates/") && path.contains("/src/") && !path.contains("/bin/");
    let mut found = vec![];
    for file in tree.ending_in(".rs").filter(|file| library(&file.path) && !may(&file.path)) {
        let lines = lines(&file.text);
        // By custom tests come last in a file.
        let code = lines.iter().take_while(|line| !line.code.contains("#[cfg(test)]"));
        for (index, line) in code.enumerate() {
            if ["print!(", "println!("].iter().any(|call| line.code.contains(call)) {
                found.push(finding("who-prints", &file.path, index + 1, "prints".into()));
            }
        }
    }
    found
}

fn finding(rule: &'static str, path: &str, line: usize, what: String) -> Finding {
    Finding { rule, path: path.to_owned(), line, what }
}

/// The crates' manifests, each with the crate's directory.
fn manifests(tree: &Tree) -> Vec<(String, &File)> {
    let crate_of = |path: &str| {
        let name = path.strip_suffix("/Cargo.toml")?;
        let name = name.strip_prefix("crates/").or((name == "python").then_some(name))?;
        (!name.contains('/')).then(|| name.to_owned())
    };
    tree.files.iter().filter_map(|file| Some((crate_of(&file.path)?, file))).collect()
}

/// What a crate depends on in any build, tests included.
fn dependencies(file: &File) -> Vec<String> {
    names(file, &["dependencies", "dev-dependencies", "build-dependencies"])
}

/// What a crate depends on in an ordinary build for any target.
fn plain_dependencies(file: &File) -> Vec<String> {
    let Ok(manifest) = file.text.parse::<Table>() else { return vec![] };
    keys(manifest.get("dependencies"))
}

fn names(file: &File, sections: &[&str]) -> Vec<String> {
    let Ok(manifest) = file.text.parse::<Table>() else { return vec![] };
    let mut names = vec![];
    for section in sections {
        names.extend(keys(manifest.get(*section)));
        for of in
            manifest.get("target").and_then(Value::as_table).into_iter().flat_map(|table| table.values())
        {
            names.extend(keys(of.get(*section)));
        }
    }
    names
}

fn keys(table: Option<&Value>) -> Vec<String> {
    table.and_then(Value::as_table).map(|table| table.keys().cloned().collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrow_that_points_back_is_found() {
        let backwards =
            "[dependencies]\nlab.workspace = true\nserde = \"1\"\n[dev-dependencies]\nmm.workspace = true\n";
        let found = arrows(&Tree::of(&[("crates/sim/Cargo.toml", backwards)]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].what, "sim may not know lab");
        assert_eq!(
            arrows(&Tree::of(&[("crates/lab/Cargo.toml", "[dependencies]\nsim.workspace = true\n")])),
            []
        );
    }

    #[test]
    fn a_crate_without_an_arrow_is_found() {
        assert_eq!(arrows(&Tree::of(&[("crates/attic/Cargo.toml", "")])).len(), 1);
    }

    #[test]
    fn targets_count_too() {
        let manifest = "[target.'cfg(shuttle)'.dependencies]\nclap = \"4\"\nlab = \"1\"\n";
        let tree = Tree::of(&[("crates/host/Cargo.toml", manifest)]);
        assert_eq!((arrows(&tree).len(), who_parses(&tree).len()), (1, 1));
    }

    #[test]
    fn the_core_stands_alone() {
        let tree = Tree::of(&[
            ("crates/mm/Cargo.toml", "[dependencies]\nlog = \"1\"\n[dev-dependencies]\nproptest = \"1\"\n"),
            ("crates/mm/src/lib.rs", "//! mm\n"),
        ]);
        let what: Vec<String> = core_alone(&tree).into_iter().map(|found| found.what).collect();
        assert_eq!(what, ["mm depends on log", "is not no_std"]);
    }

    #[test]
    fn a_library_that_prints_is_found_and_its_tests_are_not() {
        let text = "fn f() { println!(\"a\"); }\n#[cfg(test)]\nmod tests { fn g() { println!(\"b\"); } }\n";
        let tree = Tree::of(&[("crates/sim/src/a.rs", text), ("crates/cli/src/main.rs", text)]);
        let lines: Vec<usize> = who_prints(&tree).into_iter().map(|found| found.line).collect();
        assert_eq!(lines, [1]);
    }
}
