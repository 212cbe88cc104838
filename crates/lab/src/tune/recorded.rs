//! A recording in the forms that are raced on: whole, and as if it had been stopped earlier.

use std::io::{Read, Seek};

use trace::{ReadError, Reader};

use super::ground::Ground;
use crate::replay::{Plan, RecordedOn, Source};
use crate::subject::Subject;

/// The shortened forms, in thousandths of the whole.
pub(super) const SHORTENED: [u64; 2] = [111, 333];
/// Fewer events are no workload.
const LEAST_EVENTS: u64 = 2000;

/// A recording, read once for every form.
#[derive(Clone, Debug)]
pub struct Recorded {
    shortened: Vec<Form>,
    whole: Form,
    /// Stands for the file's bytes.
    content: String,
}

#[derive(Clone, Debug)]
struct Form {
    permille: u64,
    source: Source,
}

impl Recorded {
    /// Reads all forms from a file whose bytes `content` stands for in a journal; the other parameters are [`Source::read`]'s.
    ///
    /// # Errors
    /// As [`Source::read`].
    pub fn read<R: Read + Seek>(
        reader: &mut Reader<R>,
        name: &str,
        on: &RecordedOn,
        content: String,
    ) -> Result<Self, ReadError> {
        let events = reader.event_count();
        let mut shortened = vec![];
        for permille in SHORTENED {
            let part = (u128::from(events) * u128::from(permille) / 1000) as u64;
            if part >= LEAST_EVENTS {
                reader.stop_after(part);
                shortened.push(Form { permille, source: Source::read(reader, name, on)? });
            }
        }
        shortened.retain(|form: &Form| !form.source.is_empty());
        reader.stop_after(u64::MAX);
        let whole = Form { permille: 1000, source: Source::read(reader, name, on)? };
        Ok(Self { shortened, whole, content })
    }

    /// All of it.
    pub fn whole(&self) -> &Source {
        &self.whole.source
    }

    /// Every form as `plan` has it, the whole last.
    pub(super) fn grounds(&self, plan: &Plan) -> Vec<Ground> {
        self.shortened.iter().chain([&self.whole]).map(|form| self.ground(form, plan)).collect()
    }

    /// All of it as `plan` has it.
    pub(super) fn whole_ground(&self, plan: &Plan) -> Ground {
        self.ground(&self.whole, plan)
    }

    fn ground(&self, Form { permille, source }: &Form, plan: &Plan) -> Ground {
        Ground {
            subject: Subject::Replay(Box::new(source.clone()), Box::new(plan.clone())),
            permille: *permille,
            content: format!("{} {permille}", self.content),
        }
    }
}
