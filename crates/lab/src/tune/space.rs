//! Where is searched: knobs, each with the values that are tried. A setting takes a value of each.

use mm::{KNOBS, Knob};

use super::ladder::ladder;
use crate::measurements::{KnobText, SetAside, TuneAxis, TuneSpace};
use crate::replay::{ParseSettingError, parse_setting};
use crate::subject::{AskError, Side, Subject};

/// No knob has more values than this: each is at least one simulation.
const MOST_VALUES: usize = 256;

/// A knob that is asked for, with its values where they are said: `K`, `K=V,V`, `K=LOW..HIGH`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnobChoice {
    /// The knob.
    pub knob: Knob,
    /// Its values; empty: those of the knob's own range.
    pub values: Vec<u64>,
}

/// A knob and its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Axis {
    pub(super) knob: Knob,
    /// Ascending, each once; the present value is among them.
    pub(super) values: Vec<u64>,
    /// The present value's place.
    pub(super) current: u8,
}

/// A setting: for each knob, the place of its value.
pub(super) type Setting = Vec<u8>;

/// All settings.
#[derive(Clone, Debug)]
pub(super) struct Space {
    pub(super) axes: Vec<Axis>,
    /// What holds where a knob is as it was.
    pub(super) base: Side,
    pub(super) set_aside: Vec<SetAside>,
}

impl KnobChoice {
    /// Reads `K`, `K=V,V,…` or `K=LOW..HIGH`.
    ///
    /// # Errors
    /// Another form, an unknown knob, a value out of its range or given twice.
    pub fn parse(text: &str) -> Result<Self, ParseSettingError> {
        let Some((name, values)) = text.split_once('=') else {
            let knob = Knob::from_name(text.trim()).map_err(ParseSettingError::Knob)?;
            return Ok(Self { knob, values: vec![] });
        };
        let Some((low, high)) = values.split_once("..") else {
            let setting = parse_setting(text)?;
            return Ok(Self { knob: setting.knob, values: setting.values });
        };
        let knob = Knob::from_name(name.trim()).map_err(ParseSettingError::Knob)?;
        let end = |text: &str| knob.parse_one(text.trim()).map_err(ParseSettingError::Knob);
        let (low, high) = (end(low)?, end(high)?);
        let expected = "knob=low..high, the lower end first";
        if low >= high {
            return Err(ParseSettingError::Form { text: text.to_owned(), expected });
        }
        Ok(Self {
            knob,
            values: ladder(low, high).into_iter().filter(|&of| knob.check(of).is_ok()).collect(),
        })
    }
}

impl Axis {
    fn new(knob: Knob, mut values: Vec<u64>, current: u64) -> Self {
        values.push(current);
        values.sort_unstable();
        values.dedup();
        let current = values.iter().position(|value| *value == current).unwrap_or(0) as u8;
        Self { knob, values, current }
    }

    /// Whether values next to each other are alike: they are numbers, and no words.
    pub(super) fn is_numeric(&self) -> bool {
        self.knob.words().is_empty()
    }
}

impl Space {
    /// The knobs that are `asked` for, or else all that a running kernel has, that the subject sets or that can act on it.
    pub(super) fn of(subject: &Subject, base: Side, asked: &[KnobChoice]) -> Result<Self, AskError> {
        let mut space = Self { axes: vec![], base, set_aside: vec![] };
        if asked.is_empty() {
            space.take_usual(subject);
        } else {
            asked.iter().try_for_each(|choice| space.take(subject, choice))?;
        }
        if space.axes.is_empty() {
            return Err(AskError::new(
                "no knob that a running kernel has can act here; name one with --knob",
            ));
        }
        Ok(space)
    }

    fn take(&mut self, subject: &Subject, choice: &KnobChoice) -> Result<(), AskError> {
        let KnobChoice { knob, values } = choice;
        let name = knob.spec().name;
        if self.axes.iter().any(|axis| axis.knob == *knob) {
            return Err(AskError::new(format!("--knob names {name} twice; give it all its values at once")));
        }
        let wanted = if values.is_empty() { usual(*knob) } else { values.clone() };
        if !values.is_empty() {
            let refused = values.iter().find_map(|&value| self.base.policy.check_knob(*knob, value).err());
            refused.map_or(Ok(()), |error| Err(AskError::new(error.to_string())))?;
        }
        let axis = self.axis(subject, *knob, &wanted);
        if axis.values.len() < 2 {
            return Err(AskError::new(format!("{name} has one value here, which leaves nothing to choose")));
        }
        if axis.values.len() > MOST_VALUES {
            let count = axis.values.len();
            return Err(AskError::new(format!("{name} has {count} values; {MOST_VALUES} are the most")));
        }
        if let Some(missing) = self.refusal(subject, &axis) {
            return Err(AskError::new(format!("{name} cannot act here: {missing}")));
        }
        self.axes.push(axis);
        Ok(())
    }

    fn take_usual(&mut self, subject: &Subject) {
        for spec in &KNOBS {
            let is_set = self.base.value(spec.knob).is_some();
            let is_there =
                spec.kernels.is_some() && self.base.policy.check_knob(spec.knob, spec.default).is_ok();
            if !is_there && !is_set {
                continue;
            }
            let axis = self.axis(subject, spec.knob, &usual(spec.knob));
            let why = match self.refusal(subject, &axis) {
                Some(missing) => missing,
                None if spec.unit_is_memory() && subject.shrink() > 1 => format!(
                    "a size: the model is 1/{} of the machine, where it would mean another",
                    subject.shrink()
                ),
                None if axis.values.len() < 2 => "it has one value here".to_owned(),
                None => {
                    self.axes.push(axis);
                    continue;
                }
            };
            self.set_aside.push(SetAside { knob: spec.name.to_owned(), why });
        }
    }

    fn axis(&self, subject: &Subject, knob: Knob, values: &[u64]) -> Axis {
        let can_be = |value: &u64| self.base.policy.check_knob(knob, *value).is_ok();
        let current = subject.value(&self.base, knob);
        Axis::new(knob, values.iter().copied().filter(can_be).collect(), current)
    }

    /// What is missing for the knob to act, whatever its value.
    fn refusal(&self, subject: &Subject, axis: &Axis) -> Option<String> {
        let missing = |&value: &u64| {
            let side = laid_over(&self.base, &[(axis.knob, value)]);
            let refused = subject.refusals(&side);
            refused.into_iter().find(|refusal| refusal.knob == axis.knob).map(|refusal| refusal.missing)
        };
        let all: Option<Vec<String>> = axis.values.iter().map(missing).collect();
        all?.into_iter().next()
    }

    /// How many settings there are; at most `u64::MAX`.
    pub(super) fn size(&self) -> u64 {
        self.axes.iter().fold(1, |size: u64, axis| size.saturating_mul(axis.values.len() as u64))
    }

    /// The setting as it is.
    pub(super) fn current(&self) -> Setting {
        self.axes.iter().map(|axis| axis.current).collect()
    }

    /// Knobs that a setting has otherwise than the present one, with their values.
    pub(super) fn moved(&self, setting: &Setting) -> Vec<(Knob, u64)> {
        let pairs = self.axes.iter().zip(setting).filter(|(axis, at)| axis.current != **at);
        pairs.map(|(axis, &at)| (axis.knob, axis.values[usize::from(at)])).collect()
    }

    /// What is simulated with a setting.
    pub(super) fn side(&self, setting: &Setting) -> Side {
        laid_over(&self.base, &self.moved(setting))
    }

    /// What a setting is called.
    pub(super) fn name(&self, setting: &Setting) -> String {
        let words: Vec<String> =
            self.texts(setting).into_iter().map(|of| format!("{}={}", of.knob, of.value)).collect();
        if words.is_empty() { "the current setting".to_owned() } else { words.join(" ") }
    }

    /// Its knobs as they are written.
    pub(super) fn texts(&self, setting: &Setting) -> Vec<KnobText> {
        let text = |(knob, value): (Knob, u64)| KnobText {
            knob: knob.spec().name.to_owned(),
            value: knob.written(value).to_string(),
        };
        self.moved(setting).into_iter().map(text).collect()
    }

    /// For documents.
    pub(super) fn described(&self) -> TuneSpace {
        let written = |axis: &Axis, at: usize| axis.knob.written(axis.values[at]).to_string();
        let axis = |axis: &Axis| TuneAxis {
            knob: axis.knob.spec().name.to_owned(),
            values: (0..axis.values.len()).map(|at| written(axis, at)).collect(),
            current: written(axis, usize::from(axis.current)),
        };
        TuneSpace {
            axes: self.axes.iter().map(axis).collect(),
            set_aside: self.set_aside.clone(),
            settings: self.size(),
        }
    }
}

/// `base` with `knobs` laid over it, in the order of knobs: one setting has one name.
pub(super) fn laid_over(base: &Side, knobs: &[(Knob, u64)]) -> Side {
    let mut all = base.knobs.clone();
    for &(knob, value) in knobs {
        match all.iter_mut().find(|(other, _)| *other == knob) {
            Some(entry) => entry.1 = value,
            None => all.push((knob, value)),
        }
    }
    all.sort_unstable();
    Side { policy: base.policy.clone(), knobs: all }
}

/// The values of a knob that are worth trying: its words, or its range in a few steps.
fn usual(knob: Knob) -> Vec<u64> {
    let spec = knob.spec();
    if !knob.words().is_empty() {
        return knob.words().iter().map(|word| word.value).collect();
    }
    let (low, high) = spec.searched.unwrap_or((spec.min, spec.max));
    ladder(low, high).into_iter().filter(|&value| knob.check(value).is_ok()).collect()
}
