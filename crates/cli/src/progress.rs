//! Progress on a terminal, once work takes over a second.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use trace::{Progress, Status};

use crate::args::Global;

const PATIENCE: Duration = Duration::from_secs(1);

/// A bar that shows itself after a second, if stderr is a terminal.
pub(crate) struct Bar {
    shown: ProgressBar,
    began: Instant,
    wanted: bool,
}

impl Bar {
    /// For `total` steps; 0 if nobody knows how many.
    pub(crate) fn new(global: &Global, total: u64) -> Self {
        let bar = if total == 0 { ProgressBar::no_length() } else { ProgressBar::new(total) };
        bar.set_draw_target(ProgressDrawTarget::hidden());
        let template = if total == 0 { "{spinner} {msg}" } else { "{bar:32} {pos}/{len} {msg}" };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let wanted = !global.quiet && std::io::stderr().is_terminal();
        Self { shown: bar, began: Instant::now(), wanted }
    }

    /// For work of about `total`, with the time that is left.
    pub(crate) fn with_time(global: &Global, total: u64) -> Self {
        let bar = Self::new(global, total);
        if let Ok(style) = ProgressStyle::with_template("{bar:32} {percent} %, about {eta} left; {wide_msg}")
        {
            bar.shown.set_style(style);
        }
        bar
    }

    /// One that never shows itself: what it says would stand among the lines of a command that runs.
    pub(crate) fn hidden() -> Self {
        Self { shown: ProgressBar::hidden(), began: Instant::now(), wanted: false }
    }

    /// Shows the bar, if it is time.
    fn show(&self) {
        if self.wanted && self.shown.is_hidden() && self.began.elapsed() >= PATIENCE {
            self.shown.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// One step more.
    pub(crate) fn step(&self, message: String) {
        self.show();
        self.shown.set_message(message);
        self.shown.inc(1);
    }

    /// So much more.
    pub(crate) fn advance(&self, by: u64, message: String) {
        self.show();
        self.shown.set_message(message);
        self.shown.inc(by);
    }

    /// Takes the bar away.
    pub(crate) fn done(&self) {
        self.shown.finish_and_clear();
    }
}

impl Progress for Bar {
    fn tick(&mut self, status: Status) {
        self.show();
        let seconds = status.elapsed_ns as f64 / 1e9;
        let mib = status.bytes as f64 / f64::from(1 << 20);
        let lost = if status.lost > 0 { format!(", {} LOST", status.lost) } else { String::new() };
        self.shown.set_message(format!("{} events, {mib:.1} MiB, {seconds:.1} s{lost}", status.events));
        self.shown.tick();
    }
}
