//! What is replayed: the page and slab events of a recording as they came, or the program that made them.

use std::collections::BTreeMap;
use std::io::{Read, Seek};
use std::sync::Arc;

use sim::Profile;
use trace::{ReadError, Reader};

use crate::program::{self, KernelCosts, Program};
use crate::reach::Brings;
use crate::recorded::{self, HostCosts, Recorded};

/// What is replayed.
#[derive(Clone, Debug)]
pub enum Source {
    /// Events of the page and the slab allocator: recordings of before there were others, and where that is asked for.
    Events(Arc<Recorded>),
    /// What tasks do to their address spaces; pages follow from it.
    Program(Arc<Program>),
}

impl Source {
    /// Reads a recording, called `name`: as a program where it holds one. `host` stands for the machine that was recorded where the
    /// recording does not say what something cost there.
    ///
    /// # Errors
    /// An event that is written wrongly. What is damaged or missing is left out, counted and said.
    pub fn read<R: Read + Seek>(
        reader: &mut Reader<R>,
        name: &str,
        host: &Profile,
    ) -> Result<Self, ReadError> {
        if program::has_program(reader) {
            let costs = KernelCosts::of(reader.meta(), host);
            return Ok(Self::Program(Arc::new(program::from_recording(reader, name, costs)?)));
        }
        Self::read_events(reader, name, host)
    }

    /// Reads a recording's page and slab events, whatever else it holds.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_events<R: Read + Seek>(
        reader: &mut Reader<R>,
        name: &str,
        host: &Profile,
    ) -> Result<Self, ReadError> {
        let costs = HostCosts::of(reader.meta(), host);
        Ok(Self::Events(Arc::new(recorded::from_recording(reader, name, costs)?)))
    }

    /// What it is called in reports.
    pub fn name(&self) -> &str {
        match self {
            Self::Events(recorded) => &recorded.name,
            Self::Program(program) => &program.name,
        }
    }

    /// Whether there is nothing to replay.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Events(recorded) => recorded.operations == 0,
            Self::Program(program) => program.is_empty(),
        }
    }

    /// What is wrong with the recording's file.
    pub fn damage(&self) -> Option<&str> {
        match self {
            Self::Events(recorded) => recorded.damage.as_deref(),
            Self::Program(program) => program.damage.as_deref(),
        }
    }

    /// What it brings for knobs to act on.
    pub fn brings(&self) -> Brings {
        match self {
            Self::Events(recorded) => recorded.brings(),
            Self::Program(program) => program.brings(),
        }
    }

    /// What of the recording could not be carried over, by name.
    pub(super) fn omissions(&self) -> BTreeMap<String, u64> {
        match self {
            Self::Events(recorded) => recorded.omissions.by_name(),
            Self::Program(program) => {
                program.omissions.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
            }
        }
    }
}
