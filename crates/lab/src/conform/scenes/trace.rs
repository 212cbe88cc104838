//! Batches of reclaim as a scene is played, a line each, to be held beside a kernel's own trace (`scripts/trace-scene`): where both first
//! differ says which rule is wrong, which counts at marks do not.

use std::cell::RefCell;

use mm::{Node, Traced};

/// The lines, if anybody wants them.
#[derive(Debug, Default)]
pub(super) struct Trace(RefCell<Option<Vec<String>>>);

impl Trace {
    /// From now on lines are kept.
    pub(super) fn begin(&self) {
        *self.0.borrow_mut() = Some(vec![]);
    }

    /// A batch, by the kswapd of a node or by a program.
    pub(super) fn hear(&self, kswapd: Option<Node>, what: Traced) {
        let Traced { event, lru, scanned, taken, gone, active, priority } = what;
        self.push(|| {
            let who = kswapd.map_or("program".into(), |node| format!("kswapd{}", node.0));
            let (event, lru) = (event.trim_start_matches("mm_vmscan_lru_"), lru.trim_start_matches("nr_"));
            format!("{who} {event} {lru} scanned={scanned} taken={taken} gone={gone} active={active} priority={priority}")
        });
    }

    /// The program said a mark.
    pub(super) fn mark(&self, label: &str) {
        self.push(|| format!("mark {label}"));
    }

    /// All lines since it began.
    pub(super) fn take(&self) -> Vec<String> {
        self.0.take().unwrap_or_default()
    }

    fn push(&self, line: impl FnOnce() -> String) {
        if let Some(lines) = self.0.borrow_mut().as_mut() {
            lines.push(line());
        }
    }
}
