//! The same scene on the same kernel twice, pages kept by generations and on the classic lists: which of the two costs less, by the
//! kernel and by the play. Whoever asks a simulator whether to turn MGLRU on asks for nothing but this.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use super::outcome::{Counted, Shortage};

/// Where the kernel counted less than this both times, the count says nothing.
const LEAST: u64 = 1000;

/// Counts that are nearer to each other than this, as a part of the greater, are taken for the same: booted a little differently, a kernel
/// differs from itself by some percent.
const SAME: f64 = 0.05;

/// How pages were kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// By generations: `lru_gen/enabled` y.
    Generations,
    /// On active and inactive lists: `lru_gen/enabled` n.
    Lists,
}

impl Kept {
    const fn name(self) -> &'static str {
        match self {
            Self::Generations => "MGLRU",
            Self::Lists => "classic",
        }
    }
}

/// A count under generations, and on the classic lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Both {
    /// By generations.
    pub generations: u64,
    /// On the lists.
    pub lists: u64,
}

impl Both {
    /// Where less was counted; `None` where the two are equal.
    pub fn better(self) -> Option<Kept> {
        match self.generations.cmp(&self.lists) {
            std::cmp::Ordering::Less => Some(Kept::Generations),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(Kept::Lists),
        }
    }

    /// How far the two are apart, as a part of the greater.
    pub fn apart(self) -> f64 {
        let most = self.generations.max(self.lists);
        self.generations.abs_diff(self.lists) as f64 / most.max(1) as f64
    }
}

/// A count of a pair of scenes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PairRow {
    /// The scene's name, without how pages are kept: `file-loop`, `file-loop-6.18`.
    pub scene: String,
    /// What is counted.
    pub counter: &'static str,
    /// The kernel's.
    pub kernel: Both,
    /// mm's.
    pub freehold: Both,
}

impl PairRow {
    /// Whether the kernel's two counts are far enough apart to call one the better.
    pub fn tells(&self) -> bool {
        self.kernel.apart() >= SAME
    }

    /// Whether mm calls the same one the better.
    pub fn agrees(&self) -> bool {
        self.kernel.better() == self.freehold.better()
    }
}

/// The rows of a pair: what the kernel counted at least 1,000 of in one of the two.
pub fn pair_rows(scene: &str, generations: Shortage, lists: Shortage) -> Vec<PairRow> {
    let row = |counter, count: fn(Shortage) -> Counted| {
        let (generations, lists) = (count(generations), count(lists));
        PairRow {
            scene: scene.to_owned(),
            counter,
            kernel: Both { generations: generations.kernel, lists: lists.kernel },
            freehold: Both { generations: generations.freehold, lists: lists.freehold },
        }
    };
    let rows = [
        row("refaults", |short| short.refaults),
        row("pswpin", |short| short.swapped_in),
        row("pages scanned", |short| short.scanned),
    ];
    rows.into_iter().filter(|row| row.kernel.generations.max(row.kernel.lists) >= LEAST).collect()
}

/// The pairs among the captures in `folder`: the pair's name, and those of its two scenes, by generations and on the lists.
pub fn pairs_in(folder: &Path) -> Vec<(String, [String; 2])> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let scenes: BTreeSet<String> =
        names.filter_map(|name| Some(name.strip_suffix(".txt.xz")?.to_owned())).collect();
    let pair = |scene: &String| {
        let (name, version) = scene.split_once("-mglru")?;
        let lists = format!("{name}-classic{version}");
        scenes.contains(&lists).then(|| (format!("{name}{version}"), [scene.clone(), lists]))
    };
    scenes.iter().filter_map(pair).collect()
}

/// The rows as a page has them; the name of a scene stands before its first.
pub fn table(rows: &[PairRow]) -> String {
    let mut out = String::from(
        "| scene | counter | MGLRU | classic | MGLRU, predicted | classic, predicted | better | predicted | agrees |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    let mut last = "";
    for row in rows {
        let scene = if row.scene == last { "" } else { &row.scene };
        last = &row.scene;
        let better = |both: Both| both.better().map_or("neither", Kept::name);
        let agrees = match (row.tells(), row.agrees()) {
            (false, _) => "under 5 %",
            (true, true) => "yes",
            (true, false) => "**no**",
        };
        let _ = writeln!(
            out,
            "| {scene} | {} | {} | {} | {} | {} | {} | {} | {agrees} |",
            row.counter,
            row.kernel.generations,
            row.kernel.lists,
            row.freehold.generations,
            row.freehold.lists,
            if row.tells() { better(row.kernel) } else { "neither" },
            better(row.freehold),
        );
    }
    out
}
