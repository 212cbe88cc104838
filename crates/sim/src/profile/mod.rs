//! Machine profiles: what a simulated machine is made of and what things cost on it, each figure with its source.
//!
//! A profile is a TOML file. Its `[topology]` is a [`Shape`]; the other sections give the figures of [`FIGURES`], each
//! as `{ value, kind, source }`, or what some of them follow from ([`BASES`]). A profile may extend another one and say only what differs. The profiles that come
//! with the program are compiled into it.

mod counts;
mod derive;
mod digest;
mod extend;
mod figure;
mod lines;
mod missing;
mod read;
mod shape;
mod shrink;
mod write;

use core::fmt;
use std::collections::BTreeMap;
use std::path::Path;

pub use derive::BASES;
pub use digest::digest;
pub use figure::{FIGURES, Figure, FigureKind, FigureSpec, FigureSpread, figure_spec};
use mm::{Cpu, Topology};
pub use read::ORDERED;
pub use shape::{Closeness, CpuPosition, LOW_END_MIB, NodeShape, Shape, SmtNumbering};

/// What is wrong with a profile, in one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProfileError {
    profile: String,
    problem: String,
}

impl ProfileError {
    fn new(profile: &str, problem: impl Into<String>) -> Self {
        Self { profile: profile.into(), problem: problem.into() }
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "machine {}: {}", self.profile, self.problem)
    }
}

impl std::error::Error for ProfileError {}

/// A machine profile that is complete and could exist.
#[derive(Clone, PartialEq, Debug)]
pub struct Profile {
    name: String,
    title: String,
    shape: Shape,
    figures: BTreeMap<&'static str, Figure>,
    topology: Topology,
}

/// The profiles of `machines/`, compiled in, by name. Those without a topology are only there to be extended.
const BUILTIN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/machines.rs"));

impl Profile {
    /// The machines that come with the program, in alphabetical order.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name).filter(|name| *name != "common")
    }

    /// The profile called `name_or_path`: one that comes with the program, or a file if it ends in `.toml` or has a
    /// directory in it.
    ///
    /// # Errors
    /// There is no such profile (the nearest names are given), it cannot be read, or it describes no possible machine.
    pub fn load(name_or_path: &str) -> Result<Self, ProfileError> {
        if is_path(name_or_path) {
            let (name, laid) = extend::from_file(Path::new(name_or_path))?;
            return read::profile(&name, laid);
        }
        read::profile(name_or_path, extend::from_builtin(name_or_path)?)
    }

    /// A profile from the text of a file, called `name` where it does not name itself. It may extend built-in ones.
    ///
    /// # Errors
    /// As [`Profile::load`].
    pub fn parse(name: &str, text: &str) -> Result<Self, ProfileError> {
        read::profile(name, extend::from_text(name, text)?)
    }

    /// The profile's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What machine this is, in a line.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Sockets, cores, caches, nodes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The machine as the memory manager sees it.
    pub fn topology(&self) -> Topology {
        self.topology.clone()
    }

    /// The CPUs that tasks use where nothing else is said: all, or those of the profile's cpuset.
    pub fn default_cpus(&self) -> Vec<Cpu> {
        self.shape.default_cpus()
    }

    /// A figure's value.
    ///
    /// # Panics
    /// If `key` is not one of [`FIGURES`].
    pub fn value(&self, key: &str) -> f64 {
        self.figures.get(key).unwrap_or_else(|| panic!("no figure is called {key}")).value
    }

    /// Every figure with its description, in the order of [`FIGURES`].
    pub fn figures(&self) -> impl Iterator<Item = (&'static FigureSpec, &Figure)> {
        FIGURES.iter().filter_map(|spec| Some((spec, self.figures.get(spec.key)?)))
    }

    /// Replaces a figure, as a fit or a probe does.
    ///
    /// # Errors
    /// There is no such figure, or the value is absurd.
    pub fn set(&mut self, key: &str, figure: Figure) -> Result<(), ProfileError> {
        let spec = figure_spec(key).ok_or_else(|| ProfileError::new(&self.name, read::unknown_key(key)))?;
        read::check_range(spec, figure.value).map_err(|problem| ProfileError::new(&self.name, problem))?;
        let mut figures = self.figures.clone();
        figures.insert(spec.key, figure);
        read::check_order(&figures).map_err(|problem| ProfileError::new(&self.name, problem))?;
        self.topology = self
            .shape
            .topology(figures["cache.l3_bytes"].value)
            .map_err(|problem| ProfileError::new(&self.name, problem))?;
        self.figures = figures;
        Ok(())
    }

    /// Another machine, called `name`: of `shape`, with `figures` in place of this one's and the rest as they are here.
    ///
    /// # Errors
    /// A key is not one of [`FIGURES`], a value is absurd or out of order, or the shape is impossible.
    pub fn with(
        &self,
        name: &str,
        title: &str,
        shape: Shape,
        figures: impl IntoIterator<Item = (&'static str, Figure)>,
    ) -> Result<Self, ProfileError> {
        let wrong = |problem| ProfileError::new(name, problem);
        let mut all = self.figures.clone();
        for (key, figure) in figures {
            let spec = figure_spec(key).ok_or_else(|| wrong(read::unknown_key(key)))?;
            read::check_range(spec, figure.value).map_err(wrong)?;
            all.insert(spec.key, figure);
        }
        read::check_order(&all).map_err(wrong)?;
        let topology = shape.topology(all["cache.l3_bytes"].value).map_err(wrong)?;
        Ok(Self { name: name.into(), title: title.into(), shape, figures: all, topology })
    }

    /// Sixteen digits that stand for its shape and the values of its figures.
    pub fn digest(&self) -> String {
        digest::of(self)
    }

    /// The profile as a file that [`Profile::load`] reads to the same profile.
    pub fn to_toml(&self) -> String {
        write::profile(self)
    }
}

fn is_path(name: &str) -> bool {
    name.contains(['/', '\\'])
        || Path::new(name).extension().is_some_and(|ext| ext.eq_ignore_ascii_case("toml"))
}

/// " (did you mean a, b?)" with the names nearest to `wrong`, or nothing if none is near.
fn did_you_mean<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> String {
    let distance = |name: &str| strsim::damerau_levenshtein(wrong, name);
    let near = |name: &&str| distance(name) <= 2.max(name.len() / 3) || name.starts_with(wrong);
    let mut names: Vec<&str> = names.filter(near).collect();
    names.sort_by_key(|name| (distance(name), *name));
    names.truncate(3);
    if names.is_empty() { String::new() } else { format!(" (did you mean {}?)", names.join(", ")) }
}
