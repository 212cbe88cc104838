//! What fuzzing starts from, and what it found: nothing of it may panic.

use std::path::Path;

use freehold_lab::conform::{Capture, conform_trace, params};

fn seeds(target: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let files = std::fs::read_dir(folder).expect("the seeds come with the project");
    files
        .map(|file| String::from_utf8_lossy(&std::fs::read(file.unwrap().path()).unwrap()).into_owned())
        .collect()
}

#[test]
fn traces_of_any_kind_end_in_an_outcome_or_an_error() {
    let seeds = seeds("page_trace");
    assert!(seeds.len() >= 3);
    for text in seeds {
        let (beside, trace) = text.split_once("====\n").unwrap_or(("", &text));
        let whole = conform_trace(trace, beside);
        // Cut anywhere, it is still one or the other.
        let cut = |text: &str| text.char_indices().nth(text.len() / 2).map_or(0, |(at, _)| at);
        let halves = conform_trace(&trace[..cut(trace)], &beside[..cut(beside)]);
        assert!(whole.is_ok() || whole.is_err_and(|error| !error.to_string().contains('\n')));
        assert!(halves.is_ok() || halves.is_err_and(|error| !error.to_string().contains('\n')));
    }
}

#[test]
fn captures_of_any_kind_end_in_an_outcome_or_an_error() {
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/linux-6.18-c1-512M.txt");
    let text = std::fs::read_to_string(capture).expect("the captures come with the project");
    for cut in (0..text.len()).step_by(997).filter(|&at| text.is_char_boundary(at)) {
        if let Ok(capture) = Capture::parse(&text[..cut]) {
            let _ = params::compare(&capture);
        }
    }
}
