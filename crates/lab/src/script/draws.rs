//! Random draws of scenes, and the popularity of pages.

/// xorshift64*: the next draw, of 48 bits.
pub(crate) fn draw(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(2_685_821_657_736_338_717) >> 16
}

/// Cumulative weights of pages, the first the most popular.
#[derive(Debug)]
pub(crate) struct Popularity(Vec<u64>);

impl Popularity {
    /// Page i weighs the inverse of the root of i to a power that grows by 1 with each 50 of `skew`, from 1. `None`: that
    /// power is too large for 64 bits.
    pub(crate) fn new(pages: u32, skew: u64) -> Option<Self> {
        let powers = u32::try_from(skew.div_ceil(50).max(1)).unwrap_or(u32::MAX);
        let mut sum = 0u64;
        let mut all = Vec::with_capacity(pages as usize);
        for page in 1..=u64::from(pages) {
            let root = page.wrapping_pow(powers).wrapping_shl(8).isqrt();
            sum = sum.wrapping_add((1u64 << 44).checked_div(root)?);
            all.push(sum);
        }
        Some(Self(all))
    }

    /// The page of the next draw.
    pub(crate) fn page(&self, state: &mut u64) -> u32 {
        let total = self.0.last().copied().unwrap_or(1).max(1);
        let at = draw(state) % total;
        self.0.partition_point(|&sum| sum <= at).min(self.0.len().saturating_sub(1)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_page_is_the_most_popular() {
        let (pages, mut state) = (Popularity::new(64, 100).unwrap(), 7);
        let mut counts = [0; 64];
        (0..10_000).for_each(|_| counts[pages.page(&mut state) as usize] += 1);
        assert!(counts[0] > 1800 && counts[0] < 2500, "{counts:?}");
        assert!(Popularity::new(64, u64::MAX).is_none());
        assert!(counts[1] * 3 / 2 < counts[0] && counts[63] > 0, "{counts:?}");
    }
}
