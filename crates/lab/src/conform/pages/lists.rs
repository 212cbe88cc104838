//! Indices of a trace's pagesets and of their lists.

use mm::policy::PcpOrders;
use mm::{MigrateType, Order};

/// Lists of a pageset: orders 0 to 3 of three types, huge pages of two.
pub(super) const LISTS: usize = 14;
const HUGE: usize = 12;

/// A CPU's pageset of a zone, numbered zone by zone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct PagesetId(pub(super) u32);

/// A list of a pageset.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ListId(u32);

/// How many pagesets there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) zones: usize,
    pub(super) cpus: usize,
    pub(super) orders: PcpOrders,
}

impl Shape {
    pub(super) fn pagesets(self) -> usize {
        self.zones * self.cpus
    }

    pub(super) fn lists(self) -> usize {
        self.pagesets() * LISTS
    }

    pub(super) fn pageset(self, zone: usize, cpu: u16) -> PagesetId {
        PagesetId((zone * self.cpus + usize::from(cpu)) as u32)
    }

    pub(super) fn zone(self, pageset: PagesetId) -> usize {
        pageset.index() / self.cpus
    }

    pub(super) fn cpu(self, pageset: PagesetId) -> u16 {
        (pageset.index() % self.cpus) as u16
    }

    /// The list for blocks of `order` and `migratetype` (reserved and CMA pages go with the movable ones); `None` if
    /// pagesets do not cache the order.
    pub(super) fn list(self, pageset: PagesetId, order: Order, migratetype: u8) -> Option<ListId> {
        let kind = if usize::from(migratetype) < MigrateType::PCP_COUNT { migratetype } else { 1 };
        let within = match (order.get(), self.orders) {
            (0, _) => usize::from(kind),
            (_, PcpOrders::Zero) => return None,
            (order @ 1..=3, _) => usize::from(order) * MigrateType::PCP_COUNT + usize::from(kind),
            (9, PcpOrders::WithHuge) => HUGE,
            (9, PcpOrders::WithTwoHuge) => HUGE + usize::from(kind == 1),
            _ => return None,
        };
        Some(ListId((pageset.index() * LISTS + within) as u32))
    }
}

impl PagesetId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }

    /// Its list number `within`.
    pub(super) fn list(self, within: usize) -> ListId {
        ListId((self.index() * LISTS + within) as u32)
    }
}

impl ListId {
    pub(super) const fn from_index(index: u32) -> Self {
        Self(index)
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }

    pub(super) fn pageset(self) -> PagesetId {
        PagesetId(self.0 / LISTS as u32)
    }

    /// Its place within the pageset.
    pub(super) fn within(self) -> usize {
        self.index() % LISTS
    }

    pub(super) fn order(self) -> Order {
        list_order(self.within())
    }

    pub(super) fn migratetype(self) -> MigrateType {
        let within = self.within();
        let kind = if within >= HUGE { within - HUGE } else { within % MigrateType::PCP_COUNT };
        MigrateType::from_index(kind as u8).unwrap_or_default()
    }
}

/// The order of a pageset's list number `within`.
pub(super) fn list_order(within: usize) -> Order {
    let order = if within >= HUGE { Order::PAGEBLOCK.get() } else { (within / MigrateType::PCP_COUNT) as u8 };
    Order::new(order).expect("lists are of orders 0 to 3 and 9")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_leads_back_to_what_it_was_made_of() {
        let shape = Shape { zones: 2, cpus: 3, orders: PcpOrders::WithTwoHuge };
        for (order, kind) in [(0, 0), (0, 2), (3, 1), (9, 0), (9, 1)] {
            let order = Order::new(order).unwrap();
            let list = shape.list(shape.pageset(1, 2), order, kind).unwrap();
            assert_eq!((list.order(), list.migratetype() as u8), (order, kind));
            assert_eq!((shape.zone(list.pageset()), shape.cpu(list.pageset())), (1, 2));
        }
        assert_eq!(shape.list(PagesetId(0), Order::new(4).unwrap(), 0), None);
        assert_eq!(shape.list(PagesetId(0), Order::ZERO, 4), shape.list(PagesetId(0), Order::ZERO, 1));
    }
}
