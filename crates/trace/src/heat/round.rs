//! A round: accessed bits are cleared once and looked at after each of the windows.
//!
//! A look clears nothing, so one clearing serves all three looks. Accesses within a shorter window count within the longer
//! ones, too.

use std::io;
use std::time::Duration;

use super::WINDOWS;
use super::smaps::{Mapping, parse};

/// A process whose accessed bits can be cleared and seen: a real one, or a test's.
pub trait Watched {
    /// Clears all accessed bits.
    ///
    /// # Errors
    /// The process has ended, or the system would not let us.
    fn clear(&mut self) -> io::Result<()>;

    /// Waits until so long after the start of the last clearing.
    fn wait(&mut self, since_clearing: Duration) -> Waited;

    /// The text of its `smaps`; an empty one means that it has ended.
    ///
    /// # Errors
    /// The process has ended, or the system would not let us.
    fn look(&mut self) -> io::Result<String>;
}

/// How waiting ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waited {
    /// It is time.
    Due,
    /// The process has ended.
    Gone,
    /// No more is to be looked at.
    Stopped,
}

/// The mappings at one look.
pub type Look = Vec<Mapping>;

/// A look after each of [`WINDOWS`].
pub type LooksOfRound = [Look; WINDOWS.len()];

/// How a round ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RoundEnd {
    /// It is whole.
    Whole(LooksOfRound),
    /// The process ended within it.
    Gone,
    /// No more is to be looked at.
    Stopped,
}

/// One round.
///
/// # Errors
/// What the system would not let us do; not that the process has ended, which is an [`RoundEnd`].
pub fn round(watched: &mut impl Watched) -> io::Result<RoundEnd> {
    let mut looks = LooksOfRound::default();
    match watched.clear() {
        Err(error) if is_gone(&error) => return Ok(RoundEnd::Gone),
        result => result?,
    }
    for (window, look) in WINDOWS.into_iter().zip(&mut looks) {
        match watched.wait(window) {
            Waited::Due => {}
            Waited::Gone => return Ok(RoundEnd::Gone),
            Waited::Stopped => return Ok(RoundEnd::Stopped),
        }
        match watched.look() {
            Err(error) if is_gone(&error) => return Ok(RoundEnd::Gone),
            result => *look = parse(&result?),
        }
        // A process that is about to end has given its memory back.
        if look.is_empty() {
            return Ok(RoundEnd::Gone);
        }
    }
    Ok(RoundEnd::Whole(looks))
}

/// Whether an error only says that the process has ended. That there never was a file is for whoever opens it.
fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accesses one page more in each second, of 100, and ends after `life`.
    struct Program {
        now: Duration,
        life: Duration,
        cleared: u32,
    }

    impl Watched for Program {
        fn clear(&mut self) -> io::Result<()> {
            self.cleared += 1;
            Ok(())
        }

        fn wait(&mut self, since_clearing: Duration) -> Waited {
            self.now = since_clearing;
            if self.now > self.life { Waited::Gone } else { Waited::Due }
        }

        fn look(&mut self) -> io::Result<String> {
            let accessed = self.now.as_secs() * 4;
            Ok(format!("1000-65000 rw-p 0 0:0 0 \nRss: 400 kB\nReferenced: {accessed} kB\n"))
        }
    }

    #[test]
    fn a_round_clears_once_and_looks_after_each_window() {
        let mut program = Program { now: Duration::ZERO, life: Duration::MAX, cleared: 0 };
        let RoundEnd::Whole(looks) = round(&mut program).unwrap() else { panic!("it does not end") };
        let accessed: Vec<u64> = looks.iter().map(|look| look[0].accessed_kib).collect();
        assert_eq!(accessed, [0, 4, 20]);
        assert_eq!(program.cleared, 1);
    }

    #[test]
    fn a_program_that_ends_has_no_whole_round() {
        let mut program = Program { now: Duration::ZERO, life: Duration::from_secs(3), cleared: 0 };
        assert_eq!(round(&mut program).unwrap(), RoundEnd::Gone);
    }

    /// Fails, or has no memory any more.
    struct Broken(Option<i32>);

    impl Watched for Broken {
        fn clear(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn wait(&mut self, _: Duration) -> Waited {
            Waited::Due
        }

        fn look(&mut self) -> io::Result<String> {
            self.0.map_or(Ok(String::new()), |number| Err(io::Error::from_raw_os_error(number)))
        }
    }

    #[test]
    fn an_end_is_told_from_a_refusal() {
        assert_eq!(round(&mut Broken(None)).unwrap(), RoundEnd::Gone);
        assert_eq!(round(&mut Broken(Some(libc::ESRCH))).unwrap(), RoundEnd::Gone);
        assert_eq!(
            round(&mut Broken(Some(libc::EACCES))).unwrap_err().kind(),
            io::ErrorKind::PermissionDenied
        );
    }
}
