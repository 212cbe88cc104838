//! The kernel's numbering of gfp flags, from the table that its tracepoints print them with.
//!
//! The table pairs constant C expressions with names: `{( unsigned long)(( gfp_t)((((1UL))) << (8))), "__GFP_ZERO"}`.
//! Kernels 6.10 to 6.13 left names in the expressions (`___GFP_ZERO_BIT`); those are filled in.

use crate::gfp::Gfp;

/// Expressions nested deeper than this are not the kernel's.
const DEPTH_MAX: u32 = 64;

/// From the kernel's bits to ours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GfpTable {
    bits: [Gfp; 64],
}

impl GfpTable {
    /// Reads the table in the `print fmt` of an event that has gfp flags. Bits that it does not name become
    /// [`Gfp::UNNAMED`].
    pub fn parse(print: &str) -> Self {
        let mut bits = [Gfp::UNNAMED; 64];
        for entry in print.split('{').skip(1) {
            let Some((expression, name)) = entry
                .split_once('"')
                .and_then(|(value, rest)| Some((value.trim().strip_suffix(',')?, rest.split_once('"')?.0)))
            else {
                continue;
            };
            let value = Expression::evaluate(expression);
            let (Some(value), Some(flag)) = (value, Gfp::from_name(name)) else { continue };
            if value.is_power_of_two() && flag.0.is_power_of_two() {
                bits[value.trailing_zeros() as usize] = flag;
            }
        }
        Self { bits }
    }

    /// Whether the table names the flags that an allocation cannot do without.
    pub fn is_plausible(&self) -> bool {
        [Gfp::IO, Gfp::FS, Gfp::DIRECT_RECLAIM].iter().all(|flag| self.bits.contains(flag))
    }

    /// A mask of the kernel's as one of ours.
    #[inline]
    pub fn decode(&self, mut mask: u64) -> Gfp {
        let mut flags = Gfp::NONE;
        while mask != 0 {
            flags |= self.bits[mask.trailing_zeros() as usize];
            mask &= mask - 1;
        }
        flags
    }
}

/// Evaluates constant C expressions of `| & ~ << ( )`, numbers, casts and bit names.
struct Expression<'a> {
    rest: &'a str,
    depth: u32,
}

impl<'a> Expression<'a> {
    fn evaluate(text: &'a str) -> Option<u64> {
        let mut expression = Self { rest: text, depth: 0 };
        let value = expression.or()?;
        expression.rest.trim().is_empty().then_some(value)
    }

    fn or(&mut self) -> Option<u64> {
        let mut value = self.and()?;
        while self.takes("|") {
            value |= self.and()?;
        }
        Some(value)
    }

    fn and(&mut self) -> Option<u64> {
        let mut value = self.shift()?;
        while self.takes("&") {
            value &= self.shift()?;
        }
        Some(value)
    }

    fn shift(&mut self) -> Option<u64> {
        let mut value = self.unary()?;
        while self.takes("<<") {
            value = value.checked_shl(u32::try_from(self.unary()?).ok()?)?;
        }
        Some(value)
    }

    fn unary(&mut self) -> Option<u64> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let value = if self.takes("~") {
            !self.unary()?
        } else if self.takes("(") {
            self.parenthesis()?
        } else {
            self.atom()?
        };
        self.depth -= 1;
        Some(value)
    }

    /// What follows an opening parenthesis: a cast and its operand, or an expression.
    fn parenthesis(&mut self) -> Option<u64> {
        if let Some((inner, rest)) = self.rest.split_once(')') {
            if is_type(inner.trim()) {
                self.rest = rest;
                return self.unary();
            }
        }
        let value = self.or()?;
        self.takes(")").then_some(value)
    }

    fn atom(&mut self) -> Option<u64> {
        let text = self.rest.trim_start();
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
            return match digits.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).ok(),
                None => digits.parse().ok(),
            };
        }
        bit_of(word)
    }

    fn takes(&mut self, token: &str) -> bool {
        match self.rest.trim_start().strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}

fn is_type(text: &str) -> bool {
    !text.is_empty()
        && text.split_ascii_whitespace().all(|word| {
            matches!(word, "unsigned" | "signed" | "long" | "int" | "gfp_t" | "u64" | "u32" | "__force")
        })
}

/// Bits that some kernels leave as names: the order in which Linux 6.10 and later number the flags that all
/// configurations have.
fn bit_of(name: &str) -> Option<u64> {
    const ORDER: [&str; 23] = [
        "DMA",
        "HIGHMEM",
        "DMA32",
        "MOVABLE",
        "RECLAIMABLE",
        "HIGH",
        "IO",
        "FS",
        "ZERO",
        "UNUSED",
        "DIRECT_RECLAIM",
        "KSWAPD_RECLAIM",
        "WRITE",
        "NOWARN",
        "RETRY_MAYFAIL",
        "NOFAIL",
        "NORETRY",
        "MEMALLOC",
        "COMP",
        "NOMEMALLOC",
        "HARDWALL",
        "THISNODE",
        "ACCOUNT",
    ];
    let name = name.strip_prefix("___GFP_")?.strip_suffix("_BIT")?;
    ORDER.iter().position(|known| *known == name).map(|bit| bit as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_evaluated() {
        let cases = [
            ("( unsigned long)(( gfp_t)((((1UL))) << (8)))", Some(256)),
            ("(unsigned long)((( gfp_t)(0x400u|0x800u)) | (( gfp_t)0x40u))", Some(0xc40)),
            ("((1 << 3) | 6) & ~(2)", Some(12)),
            ("( gfp_t)((((1UL))) << (___GFP_COMP_BIT))", Some(1 << 18)),
            ("1 << 64", None),
            ("(1", None),
            ("sizeof(int)", None),
            ("", None),
        ];
        for (text, value) in cases {
            assert_eq!(Expression::evaluate(text), value, "{text}");
        }
        assert_eq!(Expression::evaluate(&"(".repeat(100_000)), None);
        assert_eq!(Expression::evaluate(&"~".repeat(100_000)), None);
    }

    #[test]
    fn masks_are_translated() {
        let table = GfpTable::parse(
            "\"x\", __print_flags(REC->gfp_flags, \"|\", {( unsigned long)((1UL << 6)|(1UL << 7)), \"GFP_X\"}, \
             {(unsigned long)0x40u, \"__GFP_IO\"}, {(unsigned long)0x8000u, \"__GFP_ZERO\"}, { 0, ((void *)0) } )",
        );
        assert_eq!(table.decode(0x8040), Gfp::IO | Gfp::ZERO);
        assert_eq!(table.decode(0x80), Gfp::UNNAMED);
        assert!(!table.is_plausible());
    }
}
