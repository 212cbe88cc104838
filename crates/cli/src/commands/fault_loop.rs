//! `freehold fault-loop`: the page-fault workload that `freehold validate` runs for real, a process for each task. With
//! several tasks the command starts itself once for each and gathers their lines.

use std::process::{Command, Stdio};
use std::time::Duration;

use host::fault_loop::{FaultLoop, FaultRounds};

use crate::args::FaultLoopOptions;
use crate::common::{CommandVerdict, Failure, print};

pub(crate) fn run(options: &FaultLoopOptions) -> Result<CommandVerdict, Failure> {
    let memory = options.memory.into();
    match options.task {
        Some(task) => {
            let lasts = Duration::from_millis(options.ms);
            let rounds = FaultLoop { memory, mib: options.mib, lasts }.run(task);
            let rounds = rounds.map_err(|error| Failure(format!("the page-fault loop: {error}")))?;
            print(&line(&rounds))?;
        }
        None => gather(options)?.iter().try_for_each(|rounds| print(&line(rounds)))?,
    }
    Ok(CommandVerdict::Fine)
}

/// The words after `freehold` that run `options`.
pub(crate) fn words(options: &FaultLoopOptions) -> Vec<String> {
    let mut words = vec!["fault-loop".to_owned(), "--memory".to_owned(), options.memory.name().to_owned()];
    for (name, value) in
        [("--mib", u64::from(options.mib)), ("--ms", options.ms), ("--tasks", u64::from(options.tasks))]
    {
        words.extend([name.to_owned(), value.to_string()]);
    }
    if let Some(task) = options.task {
        words.extend(["--task".to_owned(), task.to_string()]);
    }
    words
}

/// Runs all tasks at once, each as a process, and gives what each did.
pub(crate) fn gather(options: &FaultLoopOptions) -> Result<Vec<FaultRounds>, Failure> {
    let program =
        std::env::current_exe().map_err(|error| Failure(format!("finding this program: {error}")))?;
    let start = |task: u32| {
        let one = FaultLoopOptions { task: Some(task as usize), ..options.clone() };
        Command::new(&program).args(words(&one)).stdout(Stdio::piped()).spawn()
    };
    let failed =
        |error: std::io::Error| Failure(format!("a task of the page-fault loop cannot be started: {error}"));
    // All are started before any is waited for.
    let children: Vec<_> = (0..options.tasks).map(start).collect();
    let mut rounds = vec![];
    for child in children {
        let output = child.and_then(std::process::Child::wait_with_output).map_err(failed)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let read = read(text.trim()).filter(|_| output.status.success());
        rounds.push(read.ok_or_else(|| {
            Failure("a task of the page-fault loop failed; is there enough memory?".into())
        })?);
    }
    Ok(rounds)
}

fn line(rounds: &FaultRounds) -> String {
    let json = serde_json::json!({
        "pages": rounds.pages,
        "elapsed_ns": rounds.elapsed_ns,
        "cpu_ns": rounds.cpu_ns,
    });
    format!("{json}\n")
}

fn read(line: &str) -> Option<FaultRounds> {
    let json: serde_json::Value = serde_json::from_str(line).ok()?;
    let cpu_ns = json["cpu_ns"].as_array()?.iter().map(serde_json::Value::as_u64);
    Some(FaultRounds {
        pages: json["pages"].as_u64()?,
        elapsed_ns: json["elapsed_ns"].as_u64()?,
        cpu_ns: cpu_ns.collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_task_prints_is_read_back() {
        let rounds = FaultRounds { pages: 512, cpu_ns: vec![5, 7], elapsed_ns: 20 };
        assert_eq!(read(line(&rounds).trim()), Some(rounds));
        assert_eq!(read("{\"pages\":1}"), None);
        assert_eq!(read("no JSON"), None);
    }
}
