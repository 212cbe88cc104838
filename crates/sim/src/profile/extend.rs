//! From a name or a file to one table: parsing, and laying a profile over those that it extends.

use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::lines::{Lines, line_of};
use super::{BUILTIN, Profile, ProfileError, did_you_mean, is_path};

/// Longest file that is read; a profile has a few KiB.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Names that profiles had, each with the one it has now. `host` was taken for the machine at hand, which it is not.
const RENAMED: &[(&str, &str)] = &[("host", "kvm-genoa-2c")];

/// Where a profile comes from, and so what its `extends` may name.
#[derive(Clone, PartialEq, Eq)]
enum Origin {
    Builtin(String),
    File(PathBuf),
    /// A text without a place; relative paths mean nothing in it.
    Text(String),
}

impl Origin {
    fn name(&self) -> String {
        match self {
            Self::Builtin(name) | Self::Text(name) => name.clone(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// What `target` means in a profile from here.
    fn resolve(&self, target: &str) -> Result<Self, ProfileError> {
        if !is_path(target) {
            return Ok(Self::Builtin(target.into()));
        }
        match self {
            Self::File(path) => Ok(Self::File(path.parent().unwrap_or(Path::new("")).join(target))),
            _ => Err(ProfileError::new(
                &self.name(),
                format!("extends the file {target}; it can extend a machine that comes with the program"),
            )),
        }
    }

    fn read(&self) -> Result<String, ProfileError> {
        match self {
            Self::Builtin(name) => builtin(name),
            Self::Text(name) => Err(ProfileError::new(name, "is not a file")),
            Self::File(path) => read_file(path),
        }
    }
}

/// A profile laid over those that it extends.
pub(super) struct Laid {
    pub(super) table: Table,
    /// Of the profile itself.
    pub(super) lines: Lines,
}

pub(super) fn from_builtin(name: &str) -> Result<Laid, ProfileError> {
    let origin = Origin::Builtin(name.into());
    let text = origin.read()?;
    extended(origin, &text)
}

pub(super) fn from_file(path: &Path) -> Result<(String, Laid), ProfileError> {
    let origin = Origin::File(path.into());
    let text = origin.read()?;
    let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    Ok((name, extended(origin, &text)?))
}

pub(super) fn from_text(name: &str, text: &str) -> Result<Laid, ProfileError> {
    extended(Origin::Text(name.into()), text)
}

fn builtin(name: &str) -> Result<String, ProfileError> {
    if let Some((_, text)) = BUILTIN.iter().find(|(known, _)| *known == name) {
        return Ok((*text).into());
    }
    if let Some((_, now)) = RENAMED.iter().find(|(old, _)| *old == name) {
        let problem =
            format!("the profile of that name is called {now} now; the machine at hand is `--machine this`");
        return Err(ProfileError::new(name, problem));
    }
    let near = did_you_mean(name, Profile::builtin_names());
    let known: Vec<&str> = Profile::builtin_names().collect();
    let near = if near.is_empty() { format!("; there are {}", known.join(", ")) } else { near };
    Err(ProfileError::new(name, format!("there is no such profile{near}; a file is named by its path")))
}

fn read_file(path: &Path) -> Result<String, ProfileError> {
    let name = path.display().to_string();
    let failed = |error: std::io::Error| ProfileError::new(&name, format!("cannot be read: {error}"));
    let length = fs::metadata(path).map_err(failed)?.len();
    if length > FILE_BYTES_MAX {
        return Err(ProfileError::new(&name, format!("has {length} bytes, more than any profile")));
    }
    fs::read_to_string(path).map_err(failed)
}

/// The table of `text` laid over those that it extends, to the end of the chain.
fn extended(origin: Origin, text: &str) -> Result<Laid, ProfileError> {
    let lines = Lines::of(text);
    let mut chain = vec![origin];
    let mut table = parse(&chain[0].name(), text)?;
    while let Some(target) = table.remove("extends") {
        let here = &chain[chain.len() - 1];
        let Value::String(target) = target else {
            return Err(ProfileError::new(
                &here.name(),
                "extends must be the name of a profile, as a string",
            ));
        };
        let base = here.resolve(&target)?;
        if chain.contains(&base) || chain.len() > 16 {
            let names: Vec<String> = chain.iter().chain([&base]).map(Origin::name).collect();
            return Err(ProfileError::new(&names[0], format!("extends itself: {}", names.join(" extends "))));
        }
        let lower = parse(&base.name(), &base.read()?)?;
        table = overlay(lower, table);
        chain.push(base);
    }
    Ok(Laid { table, lines })
}

fn parse(name: &str, text: &str) -> Result<Table, ProfileError> {
    text.parse::<Table>().map_err(|error| {
        let line = error.span().map(|span| line_of(text, span.start));
        let place = line.map_or_else(String::new, |line| format!("line {line}: "));
        let message: Vec<&str> = error.message().lines().map(str::trim).collect();
        ProfileError::new(name, format!("{place}{}", message.join(", ")))
    })
}

/// `upper` laid over `lower`. A figure is replaced whole, so that a new value never keeps an old source.
fn overlay(mut lower: Table, upper: Table) -> Table {
    for (key, value) in upper {
        let merged = match (lower.remove(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) if !is_figure(&above) && !is_figure(&below) => {
                Value::Table(overlay(below, above))
            }
            (_, value) => value,
        };
        lower.insert(key, merged);
    }
    lower
}

fn is_figure(table: &Table) -> bool {
    table.contains_key("value")
}
