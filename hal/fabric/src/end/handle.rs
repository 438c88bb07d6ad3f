//! Objects of libfabric's, and the calls that make them.

use std::cell::Cell;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr::{NonNull, null_mut};

use crate::bindings::*;
use crate::library::{Info, Library};
use crate::random::random;

/// An object of libfabric's, closed when this is dropped. Each begins with a `fid`.
pub(super) struct Handle<T>(Option<NonNull<T>>);

impl<T> std::fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl<T> Handle<T> {
    /// The object that a call has made: the call's result, and what it has stored.
    fn made(library: &Library, what: &str, result: c_int, object: *mut T) -> Result<Self, String> {
        match (result, NonNull::new(object)) {
            (0, Some(object)) => Ok(Self(Some(object))),
            (error, _) => Err(format!("{what}: {}", library.error(error.into()))),
        }
    }

    pub(super) fn as_ptr(&self) -> *mut T {
        self.0.map_or(null_mut(), NonNull::as_ptr)
    }

    pub(super) fn fid(&self) -> *mut fid {
        self.as_ptr().cast()
    }

    /// Closes the object; false if that fails.
    pub(super) fn close(&mut self) -> bool {
        let Some(object) = self.0.take() else {
            return true;
        };
        let fid = object.as_ptr().cast::<fid>();
        // SAFETY: the object is open (E1) and begins with a `fid`, whose table has `close`.
        unsafe { ((*(*fid).ops).close)(fid) == 0 }
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        self.close();
    }
}

/// An endpoint and the completion queue that is its own.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) endpoint: Handle<fid_ep>,
    pub(super) queue: Handle<fid_cq>,
}

impl Port {
    /// Closes the endpoint; false if that fails.
    pub(super) fn close(&mut self) -> bool {
        self.endpoint.close()
    }
}

/// A domain: what the objects of one rank are made from.
#[derive(Debug)]
pub(super) struct Domain {
    domain: Handle<fid_domain>,
    _fabric: Handle<fid_fabric>,
    /// What registrations are like: `FI_MR_…`.
    pub(super) mode: u32,
    /// The key that the next registration asks for, where it may; and the bits that keys have.
    next_key: Cell<u64>,
    key_bits: u64,
    library: &'static Library,
}

impl Domain {
    pub(super) fn open(library: &'static Library, info: &Info) -> Result<Self, String> {
        // A stranger that reaches an endpoint has to guess the key of the memory behind.
        let random = random().map_err(|why| format!("no random numbers: {why}"))?;
        let mut fabric = null_mut();
        // SAFETY: the attributes are the library's own; it stores the object's address.
        let result =
            unsafe { (library.fabric)((*info.as_ptr()).fabric_attr, &mut fabric, null_mut()) };
        let fabric = Handle::made(library, "fi_fabric", result, fabric)?;
        let mut domain = null_mut();
        // SAFETY: as above; the fabric is open, and its table has `domain`.
        let result = unsafe {
            let fabric = fabric.as_ptr();
            ((*(*fabric).ops).domain)(fabric, info.as_ptr(), &mut domain, null_mut())
        };
        Ok(Self {
            domain: Handle::made(library, "fi_domain", result, domain)?,
            _fabric: fabric,
            mode: info.domain().mr_mode as u32,
            next_key: Cell::new(u64::from_ne_bytes(random)),
            key_bits: match info.domain().mr_key_size {
                size @ 0..8 => (1 << (8 * size)) - 1,
                _ => u64::MAX,
            },
            library,
        })
    }

    /// A table of addresses for that many endpoints.
    pub(super) fn addresses(&self, endpoints: usize) -> Result<Handle<fid_av>, String> {
        // SAFETY: numbers and bare pointers, for which zeros are values.
        let mut attributes = unsafe { MaybeUninit::<fi_av_attr>::zeroed().assume_init() };
        attributes.r#type = FI_AV_TABLE;
        attributes.count = endpoints;
        let (domain, mut addresses) = (self.domain.as_ptr(), null_mut());
        // SAFETY: the domain is open and its table has the function; it stores the object's
        // address.
        let result = unsafe {
            ((*(*domain).ops).av_open)(domain, &mut attributes, &mut addresses, null_mut())
        };
        Handle::made(self.library, "fi_av_open", result, addresses)
    }

    /// An endpoint as `info` says, which knows `addresses`, and its queue of `size` entries.
    pub(super) fn port(
        &self,
        info: &Info,
        addresses: &Handle<fid_av>,
        size: usize,
    ) -> Result<Port, String> {
        // SAFETY: numbers and bare pointers, for which zeros are values.
        let mut attributes = unsafe { MaybeUninit::<fi_cq_attr>::zeroed().assume_init() };
        attributes.size = size;
        attributes.format = FI_CQ_FORMAT_DATA;
        let (domain, mut queue, mut endpoint) = (self.domain.as_ptr(), null_mut(), null_mut());
        // SAFETY: as for addresses.
        let result =
            unsafe { ((*(*domain).ops).cq_open)(domain, &mut attributes, &mut queue, null_mut()) };
        let queue = Handle::made(self.library, "fi_cq_open", result, queue)?;
        // SAFETY: as for addresses; the description is whole.
        let result = unsafe {
            ((*(*domain).ops).endpoint)(domain, info.as_ptr(), &mut endpoint, null_mut())
        };
        let endpoint = Handle::made(self.library, "fi_endpoint", result, endpoint)?;
        self.bind(endpoint.fid(), queue.fid(), FI_TRANSMIT | FI_RECV)?;
        self.bind(endpoint.fid(), addresses.fid(), 0)?;
        self.enable(endpoint.fid())?;
        Ok(Port { endpoint, queue })
    }

    /// Registers memory, for `endpoint` where registrations are bound to one. Its key is the
    /// provider's choice, or else one that was not used before; that of the first one is random.
    ///
    /// # Safety
    /// The `len` bytes at `start` stay until the registration is closed. They bear changes at any
    /// time, if `access` lets the network write to them.
    pub(super) unsafe fn register(
        &self,
        endpoint: &Handle<fid_ep>,
        start: NonNull<u8>,
        len: usize,
        access: u64,
    ) -> Result<Handle<fid_mr>, String> {
        let key = self.next_key.get() & self.key_bits;
        self.next_key.set(key.wrapping_add(1));
        let (domain, mut region) = (self.domain.as_ptr(), null_mut());
        // SAFETY: the domain is open and its table has the function; it stores the object's
        // address. The memory is as the caller promises.
        let result = unsafe {
            let (fid, start) = (domain.cast(), start.as_ptr().cast());
            let register = (*(*domain).mr).reg;
            register(fid, start, len, access, 0, key, 0, &mut region, null_mut())
        };
        let region = Handle::made(self.library, "fi_mr_reg", result, region)?;
        if self.mode & FI_MR_ENDPOINT != 0 {
            self.bind(region.fid(), endpoint.fid(), 0)?;
            self.enable(region.fid())?;
        }
        Ok(region)
    }

    fn bind(&self, object: *mut fid, to: *mut fid, flags: u64) -> Result<(), String> {
        // SAFETY: both objects are open: the callers hold their handles.
        let result = unsafe { ((*(*object).ops).bind)(object, to, flags) };
        self.worked("fi_bind", result)
    }

    fn enable(&self, object: *mut fid) -> Result<(), String> {
        // SAFETY: as for `bind`; the command takes no argument.
        let result = unsafe { ((*(*object).ops).control)(object, FI_ENABLE as c_int, null_mut()) };
        self.worked("fi_enable", result)
    }

    fn worked(&self, what: &str, result: c_int) -> Result<(), String> {
        match result {
            0 => Ok(()),
            error => Err(format!("{what}: {}", self.library.error(error.into()))),
        }
    }
}

impl Handle<fid_mr> {
    /// What local accesses to the registered memory name it by.
    pub(super) fn desc(&self) -> *mut std::ffi::c_void {
        // SAFETY: the registration is open (E1).
        unsafe { (*self.as_ptr()).mem_desc }
    }

    /// What peers name the registered memory by.
    pub(super) fn key(&self) -> u64 {
        // SAFETY: as in `desc`.
        unsafe { (*self.as_ptr()).key }
    }
}
