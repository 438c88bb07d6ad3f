//! Elements that operations combine, and the traits that say which operations each has. Numbers are
//! Rust's own. Three types have what Rust's own lack: every value of their bytes is valid, so that
//! peers may store them in windows.

use core::{fmt, marker::PhantomData};

use bytemuck::{Pod, Zeroable};

use super::operation::arithmetic::Arithmetic;

/// Elements of up to 8 bytes, which accumulates change as a whole: `i8` to `i64`, `u8` to `u64`,
/// `f32`, `f64`, [`Bool`], [`Complex<f32>`](Complex), [`Placed`] of `i32`, `u32`, `f32`.
pub trait Element: Arithmetic {}

/// Numbers: integers, floats, [`Complex`].
pub trait Number: Arithmetic {}

/// Elements in an order: integers, floats, [`Placed`].
pub trait Ordered: Arithmetic {}

/// Elements that are true or false: [`Bool`], and integers, of which 0 is false.
pub trait Logical: Arithmetic {}

/// Elements that have bits, and can be compared without surprises: `i8` to `i64`, `u8` to `u64`.
pub trait Integer: Element + Number + Ordered + Logical {}

/// True or false, in one byte. A `bool` cannot be in a window: only the bytes 0 and 1 are valid
/// ones, and a peer could store another. Here each other byte is true.
///
/// # Example
/// ```
/// # flagpost_guide::simulate(3, |world| {
/// use flagpost::{Rank, Rma as _, rma::{Bool, Operation}};
///
/// let window = world.allocate::<Bool>(1)?; // false
/// let owner = Rank::new(0);
/// let has_found = world.rank() == Rank::new(2);
/// let lock = window.lock_shared(owner)?;
/// lock.accumulate(owner, 0, &[has_found.into()], Operation::LOGICAL_OR)?;
/// lock.unlock()?;
/// world.barrier()?;
/// assert!(bool::from(window.peer(owner)?.get(0)?));
/// # Ok(())
/// # });
/// ```
#[derive(Copy, Clone, Debug, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct Bool(u8);

impl From<bool> for Bool {
    fn from(value: bool) -> Self {
        Self(value.into())
    }
}

impl From<Bool> for bool {
    fn from(Bool(byte): Bool) -> Self {
        byte != 0
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Self) -> bool {
        bool::from(*self) == bool::from(*other)
    }
}

/// A complex number: its real and its imaginary part. Other crates' complex numbers have the same
/// bytes, `num_complex` among them.
///
/// # Example
/// ```
/// # flagpost_guide::simulate(2, |world| {
/// use flagpost::rma::{Complex, Operation};
///
/// let mut product = [Complex([0.0, 1.0_f64])]; // i on both ranks
/// world.allreduce(&mut product, |a, b| Operation::PROD.apply(a, b))?;
/// assert_eq!(product, [Complex([-1.0, 0.0])]);
/// # Ok(())
/// # });
/// ```
#[derive(Copy, Clone, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Complex<T>(pub [T; 2]);

/// A value, and where it is: MPI's pairs for `MINLOC` and `MAXLOC`. [`Operation::MIN`] and
/// [`Operation::MAX`] give the smallest or largest value with its place. Of equal values they give
/// the one with the lower place.
///
/// Values of 4 bytes have a `u32` as their place. Those of 8 bytes have a `u64`: too long for
/// accumulates, they are for [`World::reduce`](crate::World::reduce).
///
/// [`Operation::MIN`]: super::Operation::MIN
/// [`Operation::MAX`]: super::Operation::MAX
///
/// # Example
/// ```
/// # flagpost_guide::simulate(3, |world| {
/// use flagpost::rma::{Operation, Placed};
///
/// let own = world.rank().get();
/// let heights = [0.5, 2.5, 2.5_f64];
/// let mut highest = [Placed::new(heights[usize::from(own)], u64::from(own))];
/// world.allreduce(&mut highest, |a, b| Operation::MAX.apply(a, b))?;
/// assert_eq!((highest[0].value(), highest[0].place()), (2.5, 1));
/// # Ok(())
/// # });
/// ```
#[derive(Copy, Clone, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Placed<T>([T::Bits; 2], PhantomData<T>)
where
    T: Value;

/// Values that can have a place.
pub trait Value: Arithmetic + PartialOrd + fmt::Debug {
    /// An unsigned integer of as many bytes.
    type Bits: Pod + Ord + fmt::Debug;
}

impl<T: Value> Placed<T> {
    /// `value` at `place`.
    pub fn new(value: T, place: T::Bits) -> Self {
        Self([bytemuck::cast(value), place], PhantomData)
    }

    /// The value.
    pub fn value(self) -> T {
        let [bits, _] = self.0;
        bytemuck::cast(bits)
    }

    /// Its place.
    pub fn place(self) -> T::Bits {
        let [_, place] = self.0;
        place
    }
}

impl<T: Value> fmt::Debug for Placed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:?}", self.value(), self.place())
    }
}

/// Marks types.
macro_rules! all {
    ($($of:ident: $($type:ty),*;)*) => {$($(impl $of for $type {})*)*};
}

all! {
    Element: i8, i16, i32, i64, u8, u16, u32, u64, f32, f64;
    Element: Bool, Complex<f32>, Placed<i32>, Placed<u32>, Placed<f32>;
    Number: i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>;
    Ordered: i8, i16, i32, i64, u8, u16, u32, u64, f32, f64;
    Ordered: Placed<i32>, Placed<u32>, Placed<f32>, Placed<i64>, Placed<u64>, Placed<f64>;
    Logical: i8, i16, i32, i64, u8, u16, u32, u64, Bool;
    Integer: i8, i16, i32, i64, u8, u16, u32, u64;
}

/// Values and their bits.
macro_rules! values {
    ($($value:ty: $bits:ty;)*) => {$(
        impl Value for $value {
            type Bits = $bits;
        }
    )*};
}

values! {
    i32: u32;
    u32: u32;
    f32: u32;
    i64: u64;
    u64: u64;
    f64: u64;
}
