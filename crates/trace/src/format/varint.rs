//! Integers of one to ten bytes, seven bits a byte, the lowest first.

/// Appends `value`.
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a string: its length in bytes, then itself.
pub(crate) fn put_str(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Folds small numbers of either sign into small unsigned ones: 0, -1, 1, -2 …
#[inline]
pub(crate) const fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// Undoes [`zigzag`].
#[inline]
pub(crate) const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Reads a column of integers. Past its end come zeros; [`Cursor::is_overrun`] tells.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    at: usize,
    end: usize,
    overrun: bool,
}

impl Cursor {
    /// Reads `bytes[start..end]` of the buffer that is handed to each call.
    pub(crate) const fn new(start: usize, end: usize) -> Self {
        Self { at: start, end, overrun: false }
    }

    /// The next integer.
    #[inline]
    pub(crate) fn next(&mut self, bytes: &[u8]) -> u64 {
        if self.at < self.end {
            let byte = bytes[self.at];
            if byte < 0x80 {
                self.at += 1;
                return u64::from(byte);
            }
        }
        self.next_long(bytes)
    }

    /// The next integer as a signed one.
    #[inline]
    pub(crate) fn next_signed(&mut self, bytes: &[u8]) -> i64 {
        unzigzag(self.next(bytes))
    }

    #[inline]
    fn next_long(&mut self, bytes: &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            if self.at >= self.end {
                self.overrun = true;
                return 0;
            }
            let byte = bytes[self.at];
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return value;
            }
        }
        self.overrun = true;
        0
    }

    /// The next string, if it is all there and UTF-8.
    pub(crate) fn next_str<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a str> {
        let len = usize::try_from(self.next(bytes)).ok()?;
        let end = self.at.checked_add(len).filter(|&end| end <= self.end && !self.overrun)?;
        let text = std::str::from_utf8(&bytes[self.at..end]).ok()?;
        self.at = end;
        Some(text)
    }

    /// Where it stands.
    pub(crate) const fn position(&self) -> usize {
        self.at
    }

    /// Where it ends.
    pub(crate) const fn end(&self) -> usize {
        self.end
    }

    /// Whether all was read.
    pub(crate) const fn is_at_end(&self) -> bool {
        self.at >= self.end
    }

    /// Whether more was asked for than there was.
    #[inline]
    pub(crate) const fn is_overrun(&self) -> bool {
        self.overrun
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_survive() {
        let values = [0, 1, 127, 128, 16383, 16384, u64::from(u32::MAX), u64::MAX];
        let mut bytes = vec![];
        for value in values {
            put(&mut bytes, value);
        }
        let mut cursor = Cursor::new(0, bytes.len());
        for value in values {
            assert_eq!(cursor.next(&bytes), value);
        }
        assert!(cursor.is_at_end() && !cursor.is_overrun());
        assert_eq!(cursor.next(&bytes), 0);
        assert!(cursor.is_overrun());
    }

    #[test]
    fn zigzag_is_undone() {
        for value in [0, -1, 1, i64::MIN, i64::MAX] {
            assert_eq!(unzigzag(zigzag(value)), value);
        }
        assert_eq!([zigzag(0), zigzag(-1), zigzag(1)], [0, 1, 2]);
    }

    #[test]
    fn eleven_bytes_are_too_many() {
        let bytes = [0xff; 12];
        let mut cursor = Cursor::new(0, bytes.len());
        cursor.next(&bytes);
        assert!(cursor.is_overrun());
    }
}
