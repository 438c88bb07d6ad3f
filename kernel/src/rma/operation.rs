//! The arithmetic of accumulates: operations on [elements](Element). An operation combines an
//! element with an operand, whatever the link; links do some by themselves. Reductions may use it,
//! too.

use core::marker::PhantomData;

use bytemuck::Pod;
use flagpost_link::Amo;

use self::arithmetic::Arithmetic;
use super::element::{Bool, Complex, Element, Integer, Logical, Number, Ordered, Placed, Value};

/// An operation on elements `T`: what becomes of a former value and an operand. See
/// [`Rma`](super::Rma) for its use, and [`apply`](Self::apply) for reductions.
///
/// | operation | elements | result |
/// |---|---|---|
/// | [`SUM`](Self::SUM), [`PROD`](Self::PROD) | [`Number`] | integers wrap around; floats round |
/// | [`MIN`](Self::MIN), [`MAX`](Self::MAX) | [`Ordered`] | of the type's order; floats see below |
/// | [`AND`](Self::AND), [`OR`](Self::OR), [`XOR`](Self::XOR) | [`Integer`] | bit by bit |
/// | [`LOGICAL_AND`](Self::LOGICAL_AND) and so on | [`Logical`] | 0 or 1, false or true |
/// | [`REPLACE`](Self::REPLACE) | all | the operand |
/// | [`NO_OP`](Self::NO_OP) | all | nothing: to read |
///
/// Concurrent sums and products of floats round in any order.
///
/// `MIN` and `MAX` of floats: a NaN gives way to a number. Of equals, as 0 and -0, the former value
/// stays; of two [`Placed`] that are equal, the one with the lower place.
///
/// Floats have no bits to combine:
/// ```
/// # use flagpost::rma::Operation;
/// let and: Operation<u32> = Operation::AND;
/// let sum: Operation<f32> = Operation::SUM;
/// ```
/// ```compile_fail
/// # use flagpost::rma::Operation;
/// let and: Operation<f32> = Operation::AND;
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Operation<T> {
    kind: Kind,
    element: PhantomData<T>,
}

/// The kinds of operations.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Sum,
    Prod,
    Min,
    Max,
    And,
    Or,
    Xor,
    LogicalAnd,
    LogicalOr,
    LogicalXor,
    Replace,
    NoOp,
}

impl<T> Operation<T> {
    const fn new(kind: Kind) -> Self {
        Self {
            kind,
            element: PhantomData,
        }
    }
}

impl<T: Number> Operation<T> {
    /// Former value + operand.
    pub const SUM: Self = Self::new(Kind::Sum);
    /// Former value * operand.
    pub const PROD: Self = Self::new(Kind::Prod);
}

impl<T: Ordered> Operation<T> {
    /// The smaller one.
    pub const MIN: Self = Self::new(Kind::Min);
    /// The larger one.
    pub const MAX: Self = Self::new(Kind::Max);
}

impl<T: Integer> Operation<T> {
    /// The bits that both have.
    pub const AND: Self = Self::new(Kind::And);
    /// The bits that one of them has.
    pub const OR: Self = Self::new(Kind::Or);
    /// The bits that only one of them has.
    pub const XOR: Self = Self::new(Kind::Xor);
}

impl<T: Logical> Operation<T> {
    /// True if both are.
    pub const LOGICAL_AND: Self = Self::new(Kind::LogicalAnd);
    /// True if one of them is.
    pub const LOGICAL_OR: Self = Self::new(Kind::LogicalOr);
    /// True if only one of them is.
    pub const LOGICAL_XOR: Self = Self::new(Kind::LogicalXor);
}

impl<T: Arithmetic> Operation<T> {
    /// The result of `old` and `operand`, for [`World::reduce`](crate::World::reduce) and the like.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::rma::Operation;
    ///
    /// let mut any = [u32::from(world.rank().get()) * 4];
    /// world.allreduce(&mut any, |a, b| Operation::LOGICAL_OR.apply(a, b))?;
    /// assert_eq!(any, [1]);
    /// # Ok(())
    /// # });
    /// ```
    pub fn apply(self, old: T, operand: T) -> T {
        T::apply(self.kind, old, operand)
    }
}

impl<T: Element> Operation<T> {
    /// The operand.
    pub const REPLACE: Self = Self::new(Kind::Replace);
    /// The former value: a read that no other accumulate cuts in two.
    pub const NO_OP: Self = Self::new(Kind::NoOp);

    /// The same on bytes.
    pub(crate) fn combine(self) -> Combine {
        Combine {
            kind: self.kind,
            size: size_of::<T>(),
            integer: T::INTEGER,
            apply: T::combine,
        }
    }
}

/// An operation on elements in bytes, whatever their type.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Combine {
    kind: Kind,
    /// Bytes of an element.
    size: usize,
    integer: bool,
    apply: fn(Kind, &mut [u8], &[u8]),
}

impl Combine {
    /// Bytes of an element.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// True if operands do not matter.
    pub(super) fn only_reads(&self) -> bool {
        self.kind == Kind::NoOp
    }

    /// Combines `cells` with `values`, element by element.
    pub(super) fn apply(&self, cells: &mut [u8], values: &[u8]) {
        (self.apply)(self.kind, cells, values);
    }

    /// The same as an operation of a link on a cell that is one element, if there is one.
    pub(super) fn as_amo(&self, operand: &[u8]) -> Option<Amo> {
        let operand = cell(operand).filter(|_| self.size == CELL)?;
        match self.kind {
            Kind::Sum if self.integer => Some(Amo::Add(operand)),
            Kind::And => Some(Amo::And(operand)),
            Kind::Or => Some(Amo::Or(operand)),
            Kind::Xor => Some(Amo::Xor(operand)),
            Kind::Replace => Some(Amo::Swap(operand)),
            Kind::NoOp => Some(Amo::Read),
            _ => None,
        }
    }

    /// The same as an operation of a link on a word that is one element, if there is one.
    #[inline]
    pub(crate) fn as_word<T: Pod>(&self, operand: T) -> Option<Amo> {
        let operand = word(operand)?;
        match self.kind {
            Kind::Sum if self.integer => Some(Amo::Add(operand)),
            Kind::Or => Some(Amo::Or(operand)),
            Kind::Replace => Some(Amo::Swap(operand)),
            Kind::NoOp => Some(Amo::Read),
            _ => None,
        }
    }
}

/// An element of 4 or 8 bytes as a number.
#[inline]
pub(crate) fn word<T: Pod>(element: T) -> Option<u64> {
    if let Ok(word) = bytemuck::try_cast::<T, u32>(element) {
        return Some(word.into());
    }
    bytemuck::try_cast::<T, u64>(element).ok()
}

/// Bytes of a link's cell.
pub(super) const CELL: usize = 8;

/// The value of a cell that holds an element: machines and networks of today have the low byte
/// first.
pub(super) fn cell(element: &[u8]) -> Option<u64> {
    let bytes = element.try_into().ok()?;
    cfg!(target_endian = "little").then(|| u64::from_le_bytes(bytes))
}

/// Closed to other types.
pub(super) mod arithmetic {
    use bytemuck::Pod;

    use super::Kind;

    /// Elements by themselves, and in bytes.
    pub trait Arithmetic: Pod {
        /// True if sums are those of machine words.
        const INTEGER: bool;

        /// Combines one element. Traits say which kinds there are; others leave the old value.
        fn apply(kind: Kind, old: Self, operand: Self) -> Self;

        /// Combines `cells` with `values`, element by element; what is left over stays.
        fn combine(kind: Kind, cells: &mut [u8], values: &[u8]);
    }
}

/// Arithmetic of types, given what two elements become.
macro_rules! elements {
    ($($element:ty: $integer:literal, $apply:expr;)*) => {$(
        impl Arithmetic for $element {
            const INTEGER: bool = $integer;

            fn apply(kind: Kind, old: Self, operand: Self) -> Self {
                match kind {
                    Kind::Replace => operand,
                    Kind::NoOp => old,
                    _ => $apply(kind, old, operand),
                }
            }

            fn combine(kind: Kind, cells: &mut [u8], values: &[u8]) {
                let (cells, _) = cells.as_chunks_mut::<{ size_of::<$element>() }>();
                let (values, _) = values.as_chunks::<{ size_of::<$element>() }>();
                for (cell, value) in cells.iter_mut().zip(values) {
                    let (old, operand) = (bytemuck::cast(*cell), bytemuck::cast(*value));
                    *cell = bytemuck::cast(Self::apply(kind, old, operand));
                }
            }
        }
    )*};
}

macro_rules! integer {
    () => {
        |kind, old: Self, operand: Self| match kind {
            Kind::Sum => old.wrapping_add(operand),
            Kind::Prod => old.wrapping_mul(operand),
            Kind::Min => old.min(operand),
            Kind::Max => old.max(operand),
            Kind::And => old & operand,
            Kind::Or => old | operand,
            Kind::Xor => old ^ operand,
            _ => logical(kind, old != 0, operand != 0).into(),
        }
    };
}

macro_rules! float {
    () => {
        |kind, old: Self, operand: Self| match kind {
            Kind::Sum => old + operand,
            Kind::Prod => old * operand,
            _ if wins(kind, operand, old) => operand,
            _ => old,
        }
    };
}

macro_rules! complex {
    () => {
        |kind, old: Self, operand: Self| {
            let (Complex([a, b]), Complex([c, d])) = (old, operand);
            match kind {
                Kind::Sum => Complex([a + c, b + d]),
                Kind::Prod => Complex([a * c - b * d, a * d + b * c]),
                _ => old,
            }
        }
    };
}

/// True if `new` is smaller, or larger, than `old`, or `old` is no number.
fn wins<T: PartialOrd>(kind: Kind, new: T, old: T) -> bool {
    match kind {
        Kind::Min => new < old || old.partial_cmp(&old).is_none(),
        Kind::Max => new > old || old.partial_cmp(&old).is_none(),
        _ => false,
    }
}

fn placed<T: Value>(kind: Kind, old: Placed<T>, operand: Placed<T>) -> Placed<T> {
    let (was, is) = (old.value(), operand.value());
    let is_better = match (wins(kind, is, was), wins(kind, was, is)) {
        (better, worse) if better != worse => better,
        _ => operand.place() < old.place(),
    };
    if is_better { operand } else { old }
}

fn logical(kind: Kind, old: bool, operand: bool) -> bool {
    match kind {
        Kind::LogicalAnd => old & operand,
        Kind::LogicalOr => old | operand,
        Kind::LogicalXor => old ^ operand,
        _ => old,
    }
}

elements! {
    i8: true, integer!();
    i16: true, integer!();
    i32: true, integer!();
    i64: true, integer!();
    u8: true, integer!();
    u16: true, integer!();
    u32: true, integer!();
    u64: true, integer!();
    f32: false, float!();
    f64: false, float!();
    Bool: false, |kind, old: Bool, operand: Bool| logical(kind, old.into(), operand.into()).into();
    Complex<f32>: false, complex!();
    Complex<f64>: false, complex!();
    Placed<i32>: false, placed;
    Placed<u32>: false, placed;
    Placed<f32>: false, placed;
    Placed<i64>: false, placed;
    Placed<u64>: false, placed;
    Placed<f64>: false, placed;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<T: Element>(operation: Operation<T>, old: T, operand: T) -> T {
        let mut cells = [old];
        operation.combine().apply(
            bytemuck::cast_slice_mut(&mut cells),
            bytemuck::cast_slice(&[operand]),
        );
        cells[0]
    }

    #[test]
    fn integers_wrap_and_keep_their_sign() {
        assert_eq!(of(Operation::SUM, i8::MAX, 1), i8::MIN);
        assert_eq!(of(Operation::PROD, u16::MAX, 2), u16::MAX - 1);
        assert_eq!(of(Operation::MIN, -1_i32, 1), -1);
        assert_eq!(of(Operation::MIN, u32::MAX, 1), 1);
        assert_eq!(of(Operation::MAX, -1_i64, 1), 1);
        assert_eq!(of(Operation::AND, 0b1100_u8, 0b1010), 0b1000);
        assert_eq!(of(Operation::OR, 0b1100_i16, 0b1010), 0b1110);
        assert_eq!(of(Operation::XOR, 0b1100_u64, 0b1010), 0b0110);
        assert_eq!(of(Operation::LOGICAL_AND, 0b1100_u64, 0b0011), 1);
        assert_eq!(of(Operation::LOGICAL_OR, 0_i8, -1), 1);
        assert_eq!(of(Operation::LOGICAL_XOR, 2_u16, 1), 0);
        assert_eq!(of(Operation::REPLACE, 1_u8, 2), 2);
        assert_eq!(of(Operation::NO_OP, 1_u8, 2), 1);
    }

    #[test]
    fn a_nan_gives_way_to_a_number_and_equals_stay() {
        for order in [Operation::MIN, Operation::MAX] {
            assert_eq!(of(order, f32::NAN, 2.0), 2.0);
            assert_eq!(of(order, 2.0, f32::NAN), 2.0);
            assert!(of(order, f32::NAN, f32::NAN).is_nan());
            assert!(of(order, -0.0, 0.0).is_sign_negative());
        }
        assert_eq!(of(Operation::MIN, 2.0, -f64::INFINITY), -f64::INFINITY);
        assert_eq!(of(Operation::MAX, 2.0, 3.0_f64), 3.0);
        assert_eq!(of(Operation::SUM, 0.5_f64, 0.25), 0.75);
        assert_eq!(of(Operation::PROD, 0.5_f32, 0.5), 0.25);
    }

    /// Equal values, and two that are no numbers, leave the lower place; from either side.
    #[test]
    fn of_equals_the_lower_place_is_taken() {
        for order in [Operation::MIN, Operation::MAX] {
            for (low, high) in [(2.0_f32, 2.0), (-0.0, 0.0), (f32::NAN, f32::NAN)] {
                let (low, high) = (Placed::new(low, 1), Placed::new(high, 2));
                assert_eq!(of(order, low, high), low);
                assert_eq!(of(order, high, low), low);
            }
            let number = Placed::new(2.0_f32, 7);
            assert_eq!(of(order, Placed::new(f32::NAN, 1), number), number);
        }
        let (small, large) = (Placed::new(-1_i32, 9), Placed::new(1_i32, 8));
        assert_eq!(of(Operation::MIN, large, small), small);
        assert_eq!(of(Operation::MAX, large, small), large);
    }

    /// A link does the same to a cell as an accumulate does to an element.
    #[test]
    fn operations_of_links_are_the_same() {
        let all = [
            Operation::SUM,
            Operation::PROD,
            Operation::MIN,
            Operation::MAX,
            Operation::AND,
            Operation::OR,
            Operation::XOR,
            Operation::LOGICAL_AND,
            Operation::LOGICAL_OR,
            Operation::LOGICAL_XOR,
            Operation::REPLACE,
            Operation::NO_OP,
        ];
        let (old, operand) = (u64::MAX - 5, 0xF0F0_u64);
        let mut known = 0;
        for operation in all {
            if let Some(amo) = operation.combine().as_amo(&operand.to_le_bytes()) {
                assert_eq!(amo.apply(old), of(operation, old, operand), "{operation:?}");
                known += 1;
            }
        }
        assert_eq!(known, 6);
        let of_floats = |operation: Operation<f64>| operation.combine().as_amo(&[7; CELL]);
        assert_eq!(of_floats(Operation::SUM), None);
        let sevens = u64::from_le_bytes([7; CELL]);
        assert_eq!(of_floats(Operation::REPLACE), Some(Amo::Swap(sevens)));
        let two_words = Operation::<u32>::SUM.combine();
        assert_eq!(two_words.as_amo(&[7; CELL]), None);
    }
}
