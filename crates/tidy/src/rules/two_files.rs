//! How many files must be touched to add something: those that name one that is there.

use crate::{File, Finding, Tree, lines};

/// Files at most, tests and pages aside.
const MOST: usize = 2;

/// A kind of thing that people add, with some that are there. Those that act in several places, or that something else is
/// built on, are named in more.
struct Kind {
    name: &'static str,
    there: &'static [&'static str],
    /// What names one: the text to look for, and in what.
    named: fn(&str) -> (String, In),
    /// The file that declares one, which may name it in another way.
    declared: fn(&str) -> String,
}

/// Where a name is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum In {
    Code,
    /// Text in quotes.
    Literals,
}

const KINDS: [Kind; 5] = [
    Kind {
        name: "knob",
        there: &[
            "Highpte",
            "OvercommitRatio",
            "DirtyRatio",
            "Swappiness",
            "ExtfragThreshold",
            "HugeDefrag",
            "CompactBudget",
            "KhugepagedPagesToScan",
            "PromoteRateLimit",
            "KmmscandPeriodMin",
        ],
        named: |knob| (format!("Knob::{knob}"), In::Code),
        declared: |_| "crates/mm/src/rules/knobs/table.rs".to_owned(),
    },
    // A part is named by the rule that it changes, which no kernel has in another form.
    Kind {
        name: "part",
        there: &[
            "BudgetRule",
            "DeferRule",
            "FailedPageRule",
            "GraceRule",
            "NodePartialRule",
            "SlabScopeRule",
            "StockRule",
            "SuitableRule",
            "TouchRule",
            "ZonePriceRule",
        ],
        named: |rule| (rule.to_owned(), In::Code),
        declared: |rule| {
            let file = match rule {
                "BudgetRule" | "DeferRule" | "FailedPageRule" | "SuitableRule" => "compact",
                "TouchRule" => "lists",
                "ZonePriceRule" => "zone",
                _ => "slab",
            };
            format!("crates/mm/src/rules/policy/{file}.rs")
        },
    },
    Kind {
        name: "machine",
        there: &[
            "coffee-lake",
            "comet-lake",
            "epyc-2s-4n",
            "epyc-7763",
            "numa-32bit",
            "skylake-1s",
            "xeon-icx",
            "xeon-spr",
        ],
        named: |machine| (machine.to_owned(), In::Literals),
        declared: |machine| format!("machines/{machine}.toml"),
    },
    Kind {
        name: "experiment",
        there: &[
            "pcp-autotune",
            "pcp-batch",
            "pcp-hold",
            "slub-sheaves",
            "slub-small",
            "thp-movable",
            "zonelist-32bit",
            "zonelist-start",
        ],
        named: |experiment| (experiment.to_owned(), In::Literals),
        declared: |experiment| format!("experiments/{experiment}.toml"),
    },
    Kind {
        name: "event",
        there: &["PageAllocFailed", "ContentionBegin", "ContentionEnd"],
        named: |event| (format!("EventKind::{event}"), In::Code),
        declared: |_| "crates/trace/src/event/kinds.rs".to_owned(),
    },
];

/// `two-files`: to add a knob, a part of a policy, a machine, an experiment or an event takes two files at most, its test and
/// its page aside: no more name one that is there.
pub fn two_files(tree: &Tree) -> Vec<Finding> {
    let sources: Vec<Source<'_>> =
        tree.ending_in(".rs").filter(|file| !is_test(file)).map(Source::of).collect();
    KINDS
        .iter()
        .flat_map(|kind| kind.there.iter().filter_map(|one| too_many(tree, &sources, kind, one)))
        .collect()
}

fn too_many(tree: &Tree, sources: &[Source<'_>], kind: &Kind, one: &str) -> Option<Finding> {
    let ((needle, place), declared) = ((kind.named)(one), (kind.declared)(one));
    let finding = |what: String| Some(Finding { rule: "two-files", path: declared.clone(), line: 0, what });
    let Some(file) = tree.files.iter().find(|file| file.path == declared) else {
        return finding(format!("the {} {one} is said to be declared here, and is not", kind.name));
    };
    if place == In::Code && !has_word(&file.text, one) {
        return finding(format!("the {} {one} is said to be declared here, and is not", kind.name));
    }
    let names = |source: &&Source<'_>| {
        let text = if place == In::Code { &source.code } else { &source.literals };
        source.path != declared && has_word(text, &needle)
    };
    let others: Vec<&str> = sources.iter().filter(names).map(|source| source.path).collect();
    let count = others.len() + 1;
    (count > MOST)
        .then(|| finding(format!("{count} files name the {} {one}: {}", kind.name, others.join(", "))))?
}

/// A source file without its comments and without the tests at its end.
struct Source<'a> {
    path: &'a str,
    code: String,
    literals: String,
}

impl<'a> Source<'a> {
    fn of(file: &'a File) -> Self {
        let (mut code, mut literals) = (String::new(), String::new());
        for line in lines(&file.text).iter().take_while(|line| line.code != "mod tests {") {
            code = code + &line.code + "\n";
            literals = literals + &line.literals + "\n";
        }
        Self { path: &file.path, code, literals }
    }
}

fn is_test(file: &File) -> bool {
    let path = &file.path;
    // This house's rules name what they look for.
    path.contains("/tests/")
        || path.contains("/benches/")
        || path.ends_with("tests.rs")
        || path.starts_with("crates/tidy/")
}

/// Whether `text` has `word` with nothing about it that would make it part of a longer name.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Kind = Kind {
        name: "machine",
        there: &["epyc"],
        named: |machine| (machine.to_owned(), In::Literals),
        declared: |machine| format!("machines/{machine}.toml"),
    };

    fn found(files: &[(&str, &str)]) -> Option<String> {
        let tree = Tree::of(files);
        let sources: Vec<Source<'_>> =
            tree.ending_in(".rs").filter(|file| !is_test(file)).map(Source::of).collect();
        Some(too_many(&tree, &sources, &KIND, "epyc")?.to_string())
    }

    #[test]
    fn a_third_file_is_found() {
        let own = ("machines/epyc.toml", "");
        let two = [own, ("crates/a/src/b.rs", "f(\"epyc\")"), ("crates/a/tests/b.rs", "f(\"epyc\")")];
        assert_eq!(found(&two), None);
        let three = [&two[..], &[("crates/a/src/c.rs", "[\"other\", \"epyc\"]")]].concat();
        let message = "machines/epyc.toml: 3 files name the machine epyc: crates/a/src/b.rs, crates/a/src/c.rs [two-files]";
        assert_eq!(found(&three).as_deref(), Some(message));
    }

    #[test]
    fn comments_tests_and_longer_names_do_not_count() {
        let own = ("machines/epyc.toml", "");
        let b = ("crates/a/src/b.rs", "// \"epyc\"\nf(\"epyc-2s\", epyc);\nmod tests {\nf(\"epyc\")");
        let c = ("crates/a/src/c.rs", "f(\"epyc\")");
        assert_eq!(found(&[own, b, c]), None);
        assert!(found(&[b, c]).is_some_and(|message| message.contains("declared here, and is not")));
    }
}
