//! Completions and man pages: every command that `--help` lists is in them.

mod common;

use common::stdout;

/// The commands that `--help` lists.
fn commands() -> Vec<String> {
    let help = stdout(&["--help"]);
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| line.split_ascii_whitespace().next()).filter(|name| *name != "help");
    names.map(str::to_owned).collect()
}

#[test]
fn completions_know_every_command() {
    assert!(commands().len() > 12);
    for shell in ["bash", "zsh", "fish"] {
        let text = stdout(&["completions", shell]);
        let missing: Vec<String> =
            commands().into_iter().filter(|command| !text.contains(command.as_str())).collect();
        assert!(missing.is_empty(), "{shell}: {missing:?}");
        assert!(text.contains("machine") && !text.contains("fault-loop-"), "{shell}");
    }
}

#[test]
fn each_command_has_a_man_page() {
    let folder = tempfile::tempdir().unwrap();
    stdout(&["man", folder.path().to_str().unwrap()]);
    let page = |name: &str| std::fs::read_to_string(folder.path().join(format!("{name}.1"))).unwrap();
    for command in commands() {
        let page = page(&format!("freehold-{command}"));
        assert!(page.contains(".SH SYNOPSIS") && page.contains(".SH OPTIONS"), "{command}");
        assert!(page.contains("quiet"), "{command}: options that may stand anywhere");
    }
    assert!(page("freehold").contains("freehold\\-replay") || page("freehold").contains("replay"));
}
