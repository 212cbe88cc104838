//! What is replayed: the page and slab events of a recording as they came, or the program that made them.

use std::collections::BTreeMap;
use std::io::{Read, Seek};
use std::sync::Arc;

use mm::{Knob, Policy};
use sim::Tlb;
use trace::{ReadError, Reader};

use crate::program::{self, KernelCosts, Program, RecordedOn};
use crate::reach::Brings;
use crate::recorded::{self, HostCosts, Recorded};

/// What is replayed.
#[derive(Clone, Debug)]
pub enum Source {
    /// Events of the page and the slab allocator: recordings of before there were others, and where that is asked for.
    Events(Arc<Recorded>),
    /// What tasks do to their address spaces; pages follow from it.
    Program(Arc<Program>),
    /// Several programs side by side.
    Programs(Vec<Arc<Program>>),
}

impl Source {
    /// Reads a recording, called `name`: as a program where it holds one; what something cost there, and the recording does not
    /// say, is as `on` has it.
    ///
    /// # Errors
    /// An event that is written wrongly. What is damaged or missing is left out, counted and said.
    pub fn read<R: Read + Seek>(
        reader: &mut Reader<R>,
        name: &str,
        on: &RecordedOn,
    ) -> Result<Self, ReadError> {
        if program::has_program(reader) {
            let costs = KernelCosts::of(reader.meta(), on);
            let mut program = program::from_recording(reader, name, costs)?;
            program.tlb = Some(Tlb::new(on.profile()));
            return Ok(Self::Program(Arc::new(program)));
        }
        Self::read_events(reader, name, on)
    }

    /// Reads a recording's page and slab events, whatever else it holds.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_events<R: Read + Seek>(
        reader: &mut Reader<R>,
        name: &str,
        on: &RecordedOn,
    ) -> Result<Self, ReadError> {
        let costs = HostCosts::of(reader.meta(), on.profile());
        Ok(Self::Events(Arc::new(recorded::from_recording(reader, name, costs)?)))
    }

    /// Several recordings, of different names, as programs side by side; one is itself.
    ///
    /// # Errors
    /// None at all, one that is no program, or two of a name; the sentence says which.
    pub fn together(sources: Vec<Self>) -> Result<Self, String> {
        if sources.len() < 2 {
            return sources.into_iter().next().ok_or_else(|| "there is no recording to replay".to_owned());
        }
        let mut programs: Vec<Arc<Program>> = vec![];
        for source in sources {
            let Self::Program(program) = source else {
                return Err(format!(
                    "{} does not say what its program did to its memory; only recordings that do can be replayed side by side",
                    source.name()
                ));
            };
            if programs.iter().any(|other| other.name == program.name) {
                return Err(format!(
                    "two recordings are called {0}; give one of them another name",
                    program.name
                ));
            }
            programs.push(program);
        }
        Ok(Self::Programs(programs))
    }

    /// The programs that it is of.
    pub fn programs(&self) -> &[Arc<Program>] {
        match self {
            Self::Events(_) => &[],
            Self::Program(program) => std::slice::from_ref(program),
            Self::Programs(programs) => programs,
        }
    }

    /// What knobs stand at where nobody sets them, other than a kernel of `policy`'s version as distributions build it: as on the machine
    /// where the first program was recorded, where its kernel was of that version.
    pub fn built_otherwise(&self, policy: &Policy) -> Vec<(Knob, u64)> {
        self.programs().first().map_or_else(Vec::new, |program| program.surroundings.built_otherwise(policy))
    }

    /// What it is called in reports.
    pub fn name(&self) -> String {
        match self {
            Self::Events(recorded) => recorded.name.clone(),
            Self::Program(_) | Self::Programs(_) => {
                let names: Vec<&str> = self.programs().iter().map(|program| program.name.as_str()).collect();
                names.join(" + ")
            }
        }
    }

    /// Whether there is nothing to replay.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Events(recorded) => recorded.operations == 0,
            Self::Program(_) | Self::Programs(_) => self.programs().iter().any(|program| program.is_empty()),
        }
    }

    /// What is wrong with the recording's file.
    pub fn damage(&self) -> Option<&str> {
        match self {
            Self::Events(recorded) => recorded.damage.as_deref(),
            Self::Program(_) | Self::Programs(_) => {
                self.programs().iter().find_map(|program| program.damage.as_deref())
            }
        }
    }

    /// What it brings for knobs to act on.
    pub fn brings(&self) -> Brings {
        match self {
            Self::Events(recorded) => recorded.brings(),
            Self::Program(program) => program.brings(),
            Self::Programs(programs) => {
                let brings = programs.iter().map(|program| program.brings());
                brings.reduce(Brings::and).unwrap_or(Brings::SPACES)
            }
        }
    }

    /// What of the recording could not be carried over, by name.
    pub(super) fn omissions(&self) -> BTreeMap<String, u64> {
        match self {
            Self::Events(recorded) => recorded.omissions.by_name(),
            Self::Program(_) | Self::Programs(_) => {
                let mut all = BTreeMap::new();
                for (name, count) in self.programs().iter().flat_map(|program| &program.omissions) {
                    *all.entry((*name).to_owned()).or_insert(0) += count;
                }
                all
            }
        }
    }
}
