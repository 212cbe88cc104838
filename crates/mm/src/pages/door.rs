//! Doors: how the rooms above pages are entered. A room keeps its state in a type of its own; what can be done with it are
//! methods of a door, which is a reference to the ground that the room stands on. The ground is a trait with a few methods:
//! the states of this room and of those below it, and what the room asks of those above. So a room can use what it stands
//! on and nothing else, and [`crate::Mm`], which is every room's ground, keeps all states in private fields.

use super::{Above, Pages};
use crate::ground::Machine;

/// What all rooms above pages stand on.
pub trait PagesGround<M: Machine>: Above<M> {
    /// The page allocator.
    fn pages(&self) -> &Pages<M>;
}

/// Makes a door: its name, the trait of its ground, the room's state and by which method of the ground it is had, and the
/// doors that it leads on to. As large as a reference, and copied as one.
macro_rules! door {
    (
        $(#[$doc:meta])*
        $door:ident on $ground:ident, $own:ty: $state:ident, to { $($to:ident: $other:ident),* }
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $door<'a, M, G> {
            ground: &'a G,
            machine: ::core::marker::PhantomData<&'a M>,
        }

        impl<M, G> Clone for $door<'_, M, G> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<M, G> Copy for $door<'_, M, G> {}

        #[allow(dead_code, reason = "no room needs all of them")]
        impl<'a, M: $crate::Machine, G: $ground<M>> $door<'a, M, G> {
            /// This room of `ground`.
            #[inline]
            pub(crate) fn on(ground: &'a G) -> Self {
                Self { ground, machine: ::core::marker::PhantomData }
            }

            #[inline]
            fn own(self) -> &'a $own {
                self.ground.$state()
            }

            $(
                #[inline]
                fn $to(self) -> $other<'a, M, G> {
                    $other::on(self.ground)
                }
            )*

            #[inline]
            fn pages(self) -> &'a $crate::pages::Pages<M> {
                self.ground.pages()
            }

            /// A block from the page allocator.
            #[inline]
            fn alloc(
                self,
                request: $crate::pages::request::Request,
            ) -> Result<$crate::Pfn, $crate::pages::request::AllocError> {
                self.pages().alloc(self.ground, request)
            }

            #[inline]
            fn machine(self) -> &'a M {
                self.pages().machine()
            }

            #[inline]
            fn map(self) -> &'a $crate::pages::frame::MemMap {
                self.pages().map()
            }

            #[inline]
            fn blocks(self) -> &'a $crate::pages::pageblock::Pageblocks {
                self.pages().blocks()
            }

            #[inline]
            fn zones(self) -> &'a [$crate::pages::zone::Zone<M>] {
                self.pages().zones()
            }

            #[inline]
            fn topology(self) -> &'a $crate::ground::topology::Topology {
                self.pages().topology()
            }

            #[inline]
            fn knobs(self) -> &'a $crate::rules::knobs::Knobs {
                self.pages().knobs()
            }

            #[inline]
            fn rules(self) -> &'a $crate::rules::policy::Rules {
                self.pages().policy().rules()
            }
        }
    };
}

pub(crate) use door;
