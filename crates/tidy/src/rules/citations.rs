//! Whether what is cited is in the repository: pages, headings of pages, and no collection that only its writers have.

use crate::{File, Finding, Tree};

/// What follows the beginning of a word that cites.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Anything,
    /// For `seed 1` is a simulation's.
    Digit,
}

/// Collections that were cited and are in no repository, as words begin. Split, so that this file is clean itself.
const LOST: [(&str, Then); 5] = [
    (concat!("fac", "ts/"), Then::Anything),
    (concat!("RESULTS", " case"), Then::Anything),
    (concat!("MACHINES", " "), Then::Digit),
    (concat!("seed", " 00"), Then::Digit),
    (concat!("Seed", " 00"), Then::Digit),
];
/// What is made from other files' texts, which are checked themselves, or tells of the past in its words.
const NOT_OURS: [&str; 2] = ["docs/results", "CHANGELOG.md"];
/// Kinds of files that cite.
const KINDS: [&str; 3] = [".rs", ".md", ".toml"];
/// Not in the tree (captures of kernels), or full of names that lead nowhere on purpose (tests of these rules).
const UNSEEN: [&str; 2] = ["conformance/", "crates/tidy/"];

/// `citations-lead-somewhere`: a page that is named exists and has the heading that is named with it, and nothing is cited
/// that is not here.
pub fn citations_lead_somewhere(tree: &Tree) -> Vec<Finding> {
    let mut found = vec![];
    let cites = |file: &&File| {
        KINDS.iter().any(|kind| file.path.ends_with(kind))
            && !NOT_OURS.iter().chain(&UNSEEN).any(|path| file.path.starts_with(path))
    };
    for file in tree.files.iter().filter(cites) {
        for (index, line) in file.text.lines().enumerate() {
            let lost = LOST.iter().filter(|(word, then)| is_cited(line, word, *then));
            let lost = lost.map(|(word, _)| format!("cites \"{}\", which is not here", word.trim()));
            let broken = cited_in(line).filter_map(|cited| broken(tree, file, &cited));
            found.extend(lost.chain(broken).map(|what| Finding {
                rule: "citations-lead-somewhere",
                path: file.path.clone(),
                line: index + 1,
                what,
            }));
        }
    }
    found
}

/// Whether a word of `line` begins with `lost`.
fn is_cited(line: &str, lost: &str, then: Then) -> bool {
    line.match_indices(lost).any(|(at, _)| {
        let begins = !line[..at].ends_with(|c: char| c.is_alphanumeric());
        let follows = line[at + lost.len()..].starts_with(|c: char| c.is_ascii_digit());
        begins && (follows || then == Then::Anything)
    })
}

/// A page, as a line names it: `docs/a.md`, `docs/a.md#heading`.
struct Cited<'a> {
    /// Empty for the page that the line is in.
    page: &'a str,
    heading: Option<&'a str>,
    /// A link is followed from its page; in running text a name is enough.
    is_link: bool,
}

/// How a page is cited: in running text a name is enough, a link is followed from its page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Name,
    Link,
}

/// The pages that `line` names, and the headings of its own page that it links to. Not those of other sites, nor patterns
/// and examples.
fn cited_in(line: &str) -> impl Iterator<Item = Cited<'_>> {
    let words = line.split(|c: char| !(c.is_alphanumeric() || "/._-*{}<>$#:".contains(c)));
    let named = words.filter_map(|word| {
        let is_pattern = word.contains("://") || word.contains(['*', '{', '<', '$']);
        let word = word.trim_start_matches(':').trim_end_matches([':', '.']);
        (!is_pattern).then(|| cited(word, By::Name)).flatten()
    });
    let targets = line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    let links = targets.filter(|target| !target.contains("://")).filter_map(|target| cited(target, By::Link));
    named.chain(links)
}

fn cited(word: &str, by: By) -> Option<Cited<'_>> {
    let is_link = by == By::Link;
    let (page, heading) = match word.split_once('#') {
        Some((page, heading)) => (page, Some(heading)),
        None => (word, None),
    };
    let is_example = page.starts_with('/') || matches!(page, "FILE.md" | "NAME.md");
    let is_page = page.strip_suffix(".md").is_some_and(|name| !name.is_empty()) && !is_example;
    (is_page || (page.is_empty() && is_link)).then_some(Cited { page, heading, is_link })
}

/// What is wrong with a citation in `file`.
fn broken(tree: &Tree, file: &File, cited: &Cited<'_>) -> Option<String> {
    // A program that writes a page has links in strings, which lead from that page.
    let is_program = !file.path.ends_with(KINDS[1]);
    let leads_elsewhere = cited.is_link || (cited.page.contains('/') && !cited.page.starts_with("docs/"));
    if cited.page.contains(UNSEEN[0]) || (is_program && leads_elsewhere) {
        return None;
    }
    let Some(page) = (if cited.page.is_empty() { Some(file) } else { find(tree, file, cited) }) else {
        return Some(format!("names {}, which does not exist", cited.page));
    };
    let heading = cited.heading?;
    let exists = headings(&page.text).any(|found| found == heading);
    (!exists).then(|| format!("leads to #{heading}, which {} does not have", page.path))
}

/// The page that `file` means: beside itself, as links of pages are; in text also from the root, or by a bare name.
fn find<'a>(tree: &'a Tree, file: &File, cited: &Cited<'_>) -> Option<&'a File> {
    let mut folder: Vec<&str> = file.path.split('/').collect();
    folder.pop();
    for part in cited.page.split('/') {
        match part {
            ".." => {
                folder.pop();
            }
            "." => {}
            part => folder.push(part),
        }
    }
    let beside = folder.join("/");
    let is_bare = !cited.page.contains('/');
    tree.files.iter().find(|file| file.path == beside).or_else(|| {
        let named = |file: &&File| {
            let before = file.path.strip_suffix(cited.page);
            before.is_some_and(|before| before.is_empty() || (is_bare && before.ends_with('/')))
        };
        tree.files.iter().find(named).filter(|_| !cited.is_link)
    })
}

/// The headings of a page, as links to them are written.
fn headings(text: &str) -> impl Iterator<Item = String> {
    let titles = text.lines().filter_map(|line| line.strip_prefix('#'));
    titles.filter_map(|title| title.trim_start_matches('#').strip_prefix(' ')).map(|title| {
        let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        let page = "# Of rules\ntext\n## The 2nd: `a_b`\n";
        let tree = Tree::of(&[(path, text), ("docs/rules/a.md", page), ("docs/b.md", "[a](rules/a.md)")]);
        citations_lead_somewhere(&tree).into_iter().map(|found| (found.line, found.what)).collect()
    }

    #[test]
    fn what_only_its_writers_have_is_found() {
        let text =
            [LOST[0].0, "A.md\n// ", LOST[4].0, "3\n// seed 1, arti", LOST[0].0, "\n", LOST[2].0, "of"];
        let lines: Vec<usize> = found("a.rs", &text.concat()).into_iter().map(|found| found.0).collect();
        assert_eq!(lines, [1, 2]);
        assert_eq!(found("CHANGELOG.md", &text.concat()), []);
    }

    #[test]
    fn a_page_is_found_from_the_root_from_beside_and_by_name() {
        let text = "// docs/rules/a.md, b.md, docs/b.md. -o FILE.md\nwrite(\"[a](../a.md)\")";
        assert_eq!(found("crates/a/src/b.rs", text), []);
        assert_eq!(found("docs/c.md", "[a](rules/a.md) and [b](../docs/b.md): https://x.org/gone.md"), []);
        let gone = found("docs/rules/c.md", "[a](a.md)\n`docs/gone.md`, NAME*.md, gone.md");
        let of = |page| (2, format!("names {page}, which does not exist"));
        assert_eq!(gone, [of("docs/gone.md"), of("gone.md")]);
    }

    #[test]
    fn a_link_is_followed_from_its_page() {
        assert_eq!(found("docs/rules/c.md", "[b.md](../b.md)"), []);
        let gone = (1, "names b.md, which does not exist".to_owned());
        assert_eq!(found("docs/rules/c.md", "[b.md](b.md)"), [gone]);
    }

    #[test]
    fn a_heading_is_held_against_the_page() {
        assert_eq!(found("a.toml", "docs/rules/a.md#the-2nd-a_b: 3, docs/rules/a.md#of-rules"), []);
        let gone = found("a.rs", "// (docs/rules/a.md#the-3rd)");
        assert_eq!(gone, [(1, "leads to #the-3rd, which docs/rules/a.md does not have".to_owned())]);
        assert_eq!(found("docs/c.md", "# One\n[up](#one) [down](#two)").len(), 1);
    }
}
