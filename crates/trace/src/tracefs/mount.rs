//! Finding tracefs, and mounting it where it is missing and we may.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::format::Format;
use crate::error::RecordError;

const PLACE: &str = "/sys/kernel/tracing";
const OLD_PLACE: &str = "/sys/kernel/debug/tracing";

/// The directory that tracefs is mounted on. Mounts it on its usual place if it is nowhere and we are root.
///
/// # Errors
/// Says what is missing and the command that helps.
pub fn find() -> Result<PathBuf, RecordError> {
    if let Some(found) = mounted() {
        return Ok(found);
    }
    let (source, target) = (CString::from(c"tracefs"), CString::new(PLACE).unwrap_or_default());
    // SAFETY: all pointers are to strings that end in zero and outlive the call; no data is passed.
    let result = unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), source.as_ptr(), libc::MS_NOSUID, std::ptr::null())
    };
    if result == 0 {
        return Ok(PathBuf::from(PLACE));
    }
    Err(match io::Error::last_os_error().raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => RecordError::Permission(format!(
            "tracefs is not mounted, or not for you to read: run as root, or have root run \
             'mount -t tracefs tracefs {PLACE}' and 'chmod -R a+rX {PLACE}'"
        )),
        _ => RecordError::Missing("this kernel has no tracefs: it was built without tracing".into()),
    })
}

fn mounted() -> Option<PathBuf> {
    [PLACE, OLD_PLACE].iter().map(PathBuf::from).find(|place| place.join("events").is_dir())
}

/// Reads the format of `tracepoint`, such as `kmem:mm_page_alloc`.
///
/// # Errors
/// Says what is missing or may not be read.
pub fn read_format(tracefs: &Path, tracepoint: &str) -> Result<Format, RecordError> {
    let path = tracefs.join("events").join(tracepoint.replace(':', "/")).join("format");
    match fs::read_to_string(&path) {
        Ok(text) => Format::parse(&text).map_err(RecordError::Missing),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(RecordError::Missing(format!("this kernel has no tracepoint {tracepoint}")))
        }
        Err(error) => Err(RecordError::Permission(format!(
            "the format of {tracepoint} in {} cannot be read ({error}): run as root",
            tracefs.display()
        ))),
    }
}
