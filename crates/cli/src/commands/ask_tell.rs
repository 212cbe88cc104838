//! `freehold tune --ask-tell`: JSON lines on stdin and stdout, so that another program searches and Freehold simulates, or Freehold
//! searches and another program measures (docs/tune.md has the protocol).

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::io::{BufRead, Write};
use std::sync::mpsc::{Receiver, Sender, channel};

use lab::measurements::KnobText;
use lab::subject::AskError;
use lab::tune::{Answer, Asked, Journal, Prepared, Told};
use mm::Knob;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::common::Failure;
use crate::output::Channel;

/// A line of the other program.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Line {
    /// Simulate a setting.
    Evaluate(Evaluate),
    /// What is to be measured next?
    Ask {},
    /// What a measurement came to.
    Tell(Tell),
    /// No more.
    End {},
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Evaluate {
    /// Knobs that differ from the current setting.
    #[serde(default)]
    knobs: BTreeMap<String, Value>,
    seed: u64,
    /// What part of the workload, of those that the first line lists.
    #[serde(default = "whole")]
    share: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tell {
    id: u64,
    #[serde(default)]
    values: BTreeMap<String, Option<f64>>,
    /// Why there are no values.
    failed: Option<String>,
}

const fn whole() -> f64 {
    1.0
}

/// The search, as far as the other program has come with it.
struct Search {
    batches: Receiver<Vec<Asked>>,
    /// Where it leaves its answer when there are no more batches.
    answer: Receiver<Result<Answer, AskError>>,
    told: Sender<Vec<Told>>,
    /// What is still to be handed out, by place in the batch.
    left: VecDeque<(usize, Asked)>,
    /// What came of the batch so far.
    batch: Vec<Option<Told>>,
    /// Number of the batch's first measurement.
    first: u64,
}

/// Talks until the other program ends.
pub(crate) fn talk(prepared: &Prepared, journal: &Journal) -> Result<(), Failure> {
    let (ask, batches) = channel();
    let (told, hear) = channel();
    let (done, answer) = channel();
    std::thread::scope(|scope| {
        // It ends with its answer, or when nobody asks or tells any more: the other ends of its channels are `search`'s.
        scope.spawn(move || {
            let answer = prepared.answer_outside(ask, hear);
            // Who does not listen any more does not want it.
            let _ = done.send(answer);
        });
        let mut search = Search { batches, answer, told, left: VecDeque::new(), batch: vec![], first: 1 };
        converse(prepared, journal, &mut search)
    })
}

fn converse(prepared: &Prepared, journal: &Journal, search: &mut Search) -> Result<(), Failure> {
    say(&hello(prepared))?;
    for text in std::io::stdin().lock().lines() {
        let text = text.map_err(Failure::of)?;
        if text.trim().is_empty() {
            continue;
        }
        let answer = match serde_json::from_str::<Line>(&text) {
            Ok(Line::End {}) => break,
            Ok(Line::Evaluate(what)) => evaluate(prepared, journal, &what),
            Ok(Line::Ask {}) => search.next(),
            Ok(Line::Tell(what)) => search.tell(prepared, &what),
            Err(error) => Err(format!("not a line of the protocol: {error}")),
        };
        say(&answer.unwrap_or_else(|problem| json!({ "error": problem })))?;
    }
    Ok(())
}

/// A line, at once: the other program waits for it.
fn say(value: &Value) -> Result<(), Failure> {
    Channel::Stdout.print(&format!("{value}\n"))?;
    std::io::stdout().flush().map_err(|error| Channel::Stdout.unprinted(&error))
}

fn hello(prepared: &Prepared) -> Value {
    let shares: Vec<f64> = prepared.parts().into_iter().map(|permille| permille as f64 / 1000.0).collect();
    json!({
        "freehold": env!("CARGO_PKG_VERSION"),
        "protocol": 1,
        "space": prepared.space().axes,
        "figures": prepared.measured(),
        "shares": shares,
    })
}

fn evaluate(prepared: &Prepared, journal: &Journal, what: &Evaluate) -> Result<Value, String> {
    let knobs: Vec<(Knob, u64)> =
        what.knobs.iter().map(|(name, value)| knob(name, value)).collect::<Result<_, _>>()?;
    let permille = (what.share * 1000.0).round() as u64;
    let values =
        prepared.evaluate(&knobs, what.seed, permille, journal).map_err(|error| error.to_string())?;
    Ok(
        json!({ "evaluated": { "knobs": what.knobs, "seed": what.seed, "share": what.share, "values": values } }),
    )
}

fn knob(name: &str, value: &Value) -> Result<(Knob, u64), String> {
    let knob = Knob::from_name(name).map_err(|error| error.to_string())?;
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Ok((knob, knob.parse_one(&text).map_err(|error| error.to_string())?))
}

impl Search {
    /// The next measurement, or what is waited for, or the answer.
    fn next(&mut self) -> Result<Value, String> {
        if self.left.is_empty() && self.batch.is_empty() {
            match self.batches.recv() {
                Ok(batch) => {
                    self.batch = batch.iter().map(|_| None).collect();
                    self.left = batch.into_iter().enumerate().collect();
                }
                Err(_) => return self.ended(),
            }
        }
        let Some((place, asked)) = self.left.pop_front() else {
            let missing = self.batch.iter().enumerate().filter(|(_, told)| told.is_none());
            let ids: Vec<u64> = missing.map(|(place, _)| self.first + place as u64).collect();
            return Ok(json!({ "wait": { "for": ids } }));
        };
        let knobs: BTreeMap<&str, &str> =
            asked.knobs.iter().map(|KnobText { knob, value }| (knob.as_str(), value.as_str())).collect();
        Ok(json!({ "asked": { "id": self.first + place as u64, "knobs": knobs, "seed": asked.seed } }))
    }

    /// The answer, once.
    fn ended(&self) -> Result<Value, String> {
        match self.answer.recv() {
            Ok(Ok(answer)) => Ok(json!({ "answer": answer.tune })),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the answer was given".to_owned()),
        }
    }

    /// Takes a measurement.
    fn tell(&mut self, prepared: &Prepared, what: &Tell) -> Result<Value, String> {
        let handed_out = self.batch.len() - self.left.len();
        let place =
            what.id.checked_sub(self.first).map(|place| place as usize).filter(|place| *place < handed_out);
        let place = place.ok_or_else(|| format!("{} was not asked for, or was told before", what.id))?;
        let value = |name: String| {
            let value = what.values.get(&name).copied();
            value.ok_or_else(|| format!("{} lacks a value of {name}; null says that there is none", what.id))
        };
        let told: Told = if let Some(why) = what.failed.clone() {
            Err(why)
        } else {
            Ok(prepared.measured().into_iter().map(value).collect::<Result<Vec<_>, _>>()?)
        };
        if self.batch[place].replace(told).is_some() {
            return Err(format!("{} was told before", what.id));
        }
        if self.batch.iter().all(Option::is_some) {
            self.first += self.batch.len() as u64;
            let batch = std::mem::take(&mut self.batch).into_iter().flatten().collect();
            self.told.send(batch).map_err(|_| "the search has ended".to_owned())?;
        }
        Ok(json!({ "told": what.id }))
    }
}
