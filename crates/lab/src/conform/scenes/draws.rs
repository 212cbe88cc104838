//! Random draws of scenes, and the popularity of pages.

use super::program::Skew;

/// xorshift64*: the next draw, of 48 bits.
pub(super) fn draw(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(2_685_821_657_736_338_717) >> 16
}

/// Cumulative weights of pages, the first the most popular.
#[derive(Debug)]
pub(super) struct Popularity(Vec<u64>);

impl Popularity {
    pub(super) fn new(pages: u32, skew: Skew) -> Self {
        let weight = |page: u32| {
            let power = (0..skew.0).fold(256u64, |power, _| power.saturating_mul(u64::from(page) + 1));
            (1u64 << 44) / power.isqrt()
        };
        let mut sum = 0;
        let add = |page| {
            sum += weight(page);
            sum
        };
        Self((0..pages).map(add).collect())
    }

    /// The page of the next draw.
    pub(super) fn page(&self, state: &mut u64) -> u32 {
        let total = self.0.last().copied().unwrap_or(1);
        let at = draw(state) % total;
        self.0.partition_point(|&sum| sum <= at) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_page_is_the_most_popular() {
        let (pages, mut state) = (Popularity::new(64, Skew(2)), 7);
        let mut counts = [0; 64];
        (0..10_000).for_each(|_| counts[pages.page(&mut state) as usize] += 1);
        assert!(counts[0] > 1800 && counts[0] < 2500, "{counts:?}");
        assert!(counts[1] * 3 / 2 < counts[0] && counts[63] > 0, "{counts:?}");
    }
}
