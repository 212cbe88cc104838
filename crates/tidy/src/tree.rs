//! The files of a repository that are text.

use std::path::Path;
use std::{fs, io};

/// A text file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path from the repository's root, with `/` between the parts.
    pub path: String,
    /// Its contents.
    pub text: String,
}

/// A repository's text files, in order of path.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// The files.
    pub files: Vec<File>,
}

/// What was built, or what others wrote.
const LEFT_OUT: [&str; 6] = ["target", ".git", "conformance", "corpus", "artifacts", "node_modules"];
/// Larger files are data.
const LARGEST_BYTES: u64 = 1 << 20;

impl Tree {
    /// Reads every text file under `root`.
    ///
    /// # Errors
    /// A directory or file cannot be read.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.walk(root, "")?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    /// A tree of `(path, text)` pairs.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let file = |&(path, text): &(&str, &str)| File { path: path.to_owned(), text: text.to_owned() };
        Self { files: files.iter().map(file).collect() }
    }

    /// The files whose path ends in `ending`.
    pub fn ending_in<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = &'a File> {
        self.files.iter().filter(move |file| file.path.ends_with(ending))
    }

    fn walk(&mut self, directory: &Path, path: &str) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            // In a git worktree, .git is a file.
            if LEFT_OUT.contains(&name.as_str()) {
                continue;
            }
            let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.walk(&entry.path(), &path)?;
            } else if kind.is_file() && entry.metadata()?.len() <= LARGEST_BYTES {
                // What is not UTF-8 is data.
                if let Ok(text) = String::from_utf8(fs::read(entry.path())?) {
                    self.files.push(File { path, text });
                }
            }
        }
        Ok(())
    }
}
