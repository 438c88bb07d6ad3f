//! The elements of programs, as the library knows them.

use flagpost::{
    Link, Rank, Rma,
    rma::{self, Bool, Complex, Placed},
};

use super::wrong::Wrong;
use super::{Operation, Scalar};

/// What elements are.
pub(super) trait Element: rma::Element {
    const SCALAR: Scalar;

    fn of(value: u64) -> Self;
    fn value(self) -> u64;
    fn operation(operation: Operation) -> rma::Operation<Self>;

    /// Swaps an integer.
    fn swap<'w, L: Link + 'w>(
        epoch: &impl Rma<'w, Self, L>,
        place: (Rank, usize),
        expected: Self,
        new: Self,
    ) -> Result<Self, Wrong>;
}

macro_rules! elements {
    ($($of:ty: $scalar:ident, $bits:ty, $kind:ident;)*) => {
        $(impl Element for $of {
            const SCALAR: Scalar = Scalar::$scalar;

            $kind!($bits);
        })*
    };
}

/// The operations of some elements.
macro_rules! operations {
    ($($of:ident: $constant:ident),*) => {
        fn operation(operation: Operation) -> rma::Operation<Self> {
            match operation {
                $(Operation::$of => rma::Operation::$constant,)*
                Operation::Replace => rma::Operation::REPLACE,
                Operation::NoOp => rma::Operation::NO_OP,
                #[allow(unreachable_patterns, reason = "some have all")]
                other => unreachable!("{other:?}"),
            }
        }
    };
}

/// Elements that are not compared.
macro_rules! not_swapped {
    () => {
        fn swap<'w, L: Link + 'w>(
            _: &impl Rma<'w, Self, L>,
            _: (Rank, usize),
            _: Self,
            _: Self,
        ) -> Result<Self, Wrong> {
            unreachable!("only integers are swapped")
        }
    };
}

macro_rules! integer {
    ($bits:ty) => {
        fn of(value: u64) -> Self {
            value as Self
        }

        fn value(self) -> u64 {
            u64::from(self as $bits)
        }

        operations! {
            Sum: SUM, Prod: PROD, Min: MIN, Max: MAX, And: AND, Or: OR, Xor: XOR,
            LogicalAnd: LOGICAL_AND, LogicalOr: LOGICAL_OR, LogicalXor: LOGICAL_XOR
        }

        fn swap<'w, L: Link + 'w>(
            epoch: &impl Rma<'w, Self, L>,
            (target, index): (Rank, usize),
            expected: Self,
            new: Self,
        ) -> Result<Self, Wrong> {
            Ok(epoch.compare_and_swap(target, index, expected, new)?)
        }
    };
}

macro_rules! float {
    ($bits:ty) => {
        fn of(value: u64) -> Self {
            Self::from_bits(value as $bits)
        }

        fn value(self) -> u64 {
            u64::from(self.to_bits())
        }

        operations! { Sum: SUM, Prod: PROD, Min: MIN, Max: MAX }

        not_swapped! {}
    };
}

macro_rules! boolean {
    ($bits:ty) => {
        fn of(value: u64) -> Self {
            Self::from(value != 0)
        }

        fn value(self) -> u64 {
            bool::from(self).into()
        }

        operations! { LogicalAnd: LOGICAL_AND, LogicalOr: LOGICAL_OR, LogicalXor: LOGICAL_XOR }

        not_swapped! {}
    };
}

macro_rules! complex {
    ($bits:ty) => {
        fn of(value: u64) -> Self {
            Self([value as u32, (value >> 32) as u32].map(f32::from_bits))
        }

        fn value(self) -> u64 {
            let [re, im] = self.0.map(|part| u64::from(part.to_bits()));
            im << 32 | re
        }

        operations! { Sum: SUM, Prod: PROD }

        not_swapped! {}
    };
}

macro_rules! placed {
    ($bits:ty) => {
        fn of(value: u64) -> Self {
            Self::new(value as i32, (value >> 32) as u32)
        }

        fn value(self) -> u64 {
            u64::from(self.place()) << 32 | u64::from(Self::value(self) as u32)
        }

        operations! { Min: MIN, Max: MAX }

        not_swapped! {}
    };
}

elements! {
    u8: U8, u8, integer;
    u16: U16, u16, integer;
    u32: U32, u32, integer;
    u64: U64, u64, integer;
    i8: I8, u8, integer;
    i16: I16, u16, integer;
    i32: I32, u32, integer;
    i64: I64, u64, integer;
    f32: F32, u32, float;
    f64: F64, u64, float;
    Bool: Bool, u8, boolean;
    Complex<f32>: Complex, u64, complex;
    Placed<i32>: Placed, u64, placed;
}

/// Elements of `values`.
pub(super) fn elements<T: Element>(values: &[u64]) -> Vec<T> {
    values.iter().map(|&value| T::of(value)).collect()
}

/// And back.
pub(super) fn values_of<T: Element>(elements: &[T]) -> Vec<u64> {
    elements.iter().map(|element| element.value()).collect()
}
