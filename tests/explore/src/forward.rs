//! Machines that change a part of another one, and pass on the rest.

/// Implements traits of a machine by those of a field: `forward!(Clock, TestAndSet for Mine =>
/// core)`. With `[counts]` after the field, each call begins with `self.counts()`. `Topology` takes
/// what else it has, in braces. `forward!(in Coherence => core: drain(); acquire())` stands in an
/// `impl` beside what is not passed on.
#[macro_export]
macro_rules! forward {
    (in $trait:ident => $field:tt $([$before:ident])?: $($calls:tt)*) => {
        $crate::forward! { @calls $trait $field [$($before)?] $($calls)*; }
    };
    (Topology for $machine:ty => $field:tt { $($more:item)* }) => {
        impl ::flagpost_hal::Topology for $machine {
            const LISTENS: bool = true;

            $crate::forward! {
                @calls Topology $field []
                cores() -> u16;
                core() -> ::flagpost_hal::CoreId;
                memory_size() -> usize;
                called(place: &'static ::core::panic::Location<'static>);
            }

            $($more)*
        }
    };
    ($($trait:ident),+ for $machine:ty => $field:tt) => {
        $crate::forward! { $($trait),+ for $machine => $field [] }
    };
    ($($trait:ident),+ for $machine:ty => $field:tt $before:tt) => {
        $($crate::forward! { @impl $trait $machine, $field $before })+
    };
    (@impl UncachedMemory $machine:ty, $field:tt $before:tt) => {
        impl ::flagpost_hal::UncachedMemory for $machine {
            $crate::forward! {
                @calls UncachedMemory $field $before
                load_u8(at: ::flagpost_hal::Address) -> u8;
                store_u8(at: ::flagpost_hal::Address, value: u8);
                load_u32(at: ::flagpost_hal::Address) -> u32;
                store_u32(at: ::flagpost_hal::Address, value: u32);
                store_bytes(at: ::flagpost_hal::Address, from: &[u8]);
                load_bytes(at: ::flagpost_hal::Address, into: &mut [u8]);
            }
        }
    };
    (@impl CachedMemory $machine:ty, $field:tt $before:tt) => {
        impl ::flagpost_hal::CachedMemory for $machine {
            $crate::forward! {
                @calls CachedMemory $field $before
                read(at: ::flagpost_hal::Address, into: &mut [u8]);
                write(at: ::flagpost_hal::Address, from: &[u8]);
            }
        }
    };
    (@impl TestAndSet $machine:ty, $field:tt $before:tt) => {
        impl ::flagpost_hal::TestAndSet for $machine {
            $crate::forward! {
                @calls TestAndSet $field $before
                test_and_set(of: ::flagpost_hal::CoreId) -> bool;
                clear(of: ::flagpost_hal::CoreId);
            }
        }
    };
    (@impl MessageBuffer $machine:ty, $field:tt $before:tt) => {
        impl ::flagpost_hal::MessageBuffer for $machine {
            $crate::forward! { @calls MessageBuffer $field $before message_buffer_size() -> usize; }
        }
    };
    (@impl Clock $machine:ty, $field:tt $before:tt) => {
        impl ::flagpost_hal::Clock for $machine {
            $crate::forward! { @calls Clock $field $before cycles() -> u64; hertz() -> u64; }
        }
    };
    (@calls $trait:ident $field:tt $before:tt
        $($name:ident($($argument:ident: $type:ty),*) $(-> $out:ty)?;)*
    ) => {
        $(
            #[track_caller]
            #[inline(always)]
            fn $name(&self, $($argument: $type),*) $(-> $out)? {
                $crate::forward!(@before self $before);
                ::flagpost_hal::$trait::$name(&self.$field, $($argument),*)
            }
        )*
    };
    (@before $self:ident []) => {};
    (@before $self:ident [$before:ident]) => {
        $self.$before();
    };
}
