//! A browser without a window that looks at a page: `checks.js` says what is wrong with it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Light or dark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Theme {
    Light,
    Dark,
}

/// What was seen.
#[derive(Debug)]
pub(crate) struct Seen {
    /// What is wrong, a line each.
    pub(crate) wrong: Vec<String>,
    /// Sizes and times.
    pub(crate) measured: Vec<String>,
    /// What the page said on the console.
    pub(crate) console: Vec<String>,
}

/// The browser; `None` where there is none and nobody asked for one by `FREEHOLD_BROWSER`.
pub(crate) fn browser() -> Option<PathBuf> {
    if let Some(asked) = env::var_os("FREEHOLD_BROWSER") {
        return Some(asked.into());
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    let candidates = ["chromium", "chromium-browser", "google-chrome"];
    let found = env::split_paths(&folders).flat_map(|folder| candidates.map(|name| folder.join(name)));
    let found = found.into_iter().find(|path| path.is_file());
    if found.is_none() {
        eprintln!("no Chromium here, so no browser looked at the page; `make browser` installs one");
    }
    found
}

/// Looks at `page` at three widths.
pub(crate) fn look(browser: &Path, page: &str, theme: Theme) -> Seen {
    let folder = tempfile::tempdir().expect("a folder");
    let axe = env::var_os("FREEHOLD_AXE").map(|path| fs::read_to_string(path).expect("axe-core's source"));
    let file = folder.path().join("page.html");
    fs::write(&file, harness(page, axe.as_deref())).expect("the page is written");
    let scheme = match theme {
        Theme::Dark => 0,
        Theme::Light => 1,
    };
    let mut command = Command::new(browser);
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1300,900", "--dump-dom"])
        .args(["--enable-logging=stderr", "--log-level=0", "--disable-background-networking"])
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()));
    if axe.is_some() {
        // Its rules run one after the other, after the page is loaded.
        command.arg("--virtual-time-budget=60000");
    }
    let output = command.arg(format!("file://{}", file.display())).output().expect("the browser runs");
    let dom = String::from_utf8_lossy(&output.stdout);
    let log = String::from_utf8_lossy(&output.stderr);
    let told = dom.split_once("<pre id=\"result\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let told = told.map_or("", |(told, _)| told);
    assert!(told.ends_with("end"), "the browser did not come to the end: {told:?}\n{log}");
    let (measured, wrong) = told
        .lines()
        .filter(|line| *line != "end")
        .map(str::to_owned)
        .partition(|line: &String| line.starts_with("measured:"));
    let console = log.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    Seen { wrong, measured, console }
}

/// A page that shows `page` in frames and checks it.
fn harness(page: &str, axe: Option<&str>) -> String {
    let literal = |text: &str| serde_json::to_string(text).expect("a string").replace('<', "\\u003c");
    let axe = axe.map_or_else(String::new, |source| format!("const axeSource = {};\n", literal(source)));
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>checks</title><body><pre id=\"result\"></pre>\
         <script>const page = {};\n{axe}{}</script></body></html>",
        literal(page),
        include_str!("checks.js")
    )
}
