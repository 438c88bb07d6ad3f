//! libfabric itself: found when the program runs, never unloaded.
//!
//! The library has several versions of some functions, one for each layout of its structures. This
//! module asks for those with the layouts of [`bindings`](crate::bindings), whatever is newer:
//! version 2.5 has them, too.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::net::IpAddr;
use std::ptr::{NonNull, null, null_mut};
use std::sync::OnceLock;

use crate::bindings::*;

/// What to do where there is no libfabric.
pub(crate) const INSTALL: &str =
    "install libfabric 1.17 or later (Debian: apt-get install libfabric1)";

/// The library's functions that are not in tables.
#[derive(Debug)]
pub(crate) struct Library {
    getinfo: unsafe extern "C" fn(
        u32,
        *const c_char,
        *const c_char,
        u64,
        *const fi_info,
        *mut *mut fi_info,
    ) -> c_int,
    freeinfo: unsafe extern "C" fn(*mut fi_info),
    dupinfo: unsafe extern "C" fn(*const fi_info) -> *mut fi_info,
    pub(crate) fabric:
        unsafe extern "C" fn(*mut fi_fabric_attr, *mut *mut fid_fabric, *mut c_void) -> c_int,
    strerror: unsafe extern "C" fn(c_int) -> *const c_char,
    version: unsafe extern "C" fn() -> u32,
}

/// Where the C library knows no versions of symbols, libfabric's cannot be told apart.
#[cfg(not(target_env = "gnu"))]
fn symbol(_: NonNull<c_void>, name: &CStr, version: &CStr) -> Result<NonNull<c_void>, String> {
    Err(format!(
        "{name:?} {version:?} of libfabric takes a program for glibc"
    ))
}

/// A symbol of a library that was opened.
#[cfg(target_env = "gnu")]
fn symbol(
    library: NonNull<c_void>,
    name: &CStr,
    version: &CStr,
) -> Result<NonNull<c_void>, String> {
    // SAFETY: the handle is that of a library that is open; both names are C strings.
    let found = unsafe { libc::dlvsym(library.as_ptr(), name.as_ptr(), version.as_ptr()) };
    let lacks = || format!("libfabric lacks {name:?} {version:?}: {INSTALL}");
    NonNull::new(found).ok_or_else(lacks)
}

/// A function of a library that was opened.
///
/// # Safety
/// `F` is a pointer to a function, of the type that the symbol has. The library is never closed.
unsafe fn function<F: Copy>(
    library: NonNull<c_void>,
    name: &CStr,
    version: &CStr,
) -> Result<F, String> {
    const { assert!(size_of::<F>() == size_of::<NonNull<c_void>>()) }
    let found = symbol(library, name, version)?;
    // SAFETY: as the caller promises; both are pointers.
    Ok(unsafe { std::mem::transmute_copy(&found) })
}

impl Library {
    /// The library of this process.
    ///
    /// # Errors
    /// One line: what is missing, and what to install.
    pub(crate) fn get() -> Result<&'static Self, String> {
        static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
        LIBRARY
            .get_or_init(Self::load)
            .as_ref()
            .map_err(String::clone)
    }

    fn load() -> Result<Self, String> {
        const NAME: &CStr = c"libfabric.so.1";
        // SAFETY: the name is a C string. The library's constructors run: it is made to be loaded
        // at any time.
        let opened = unsafe { libc::dlopen(NAME.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        let library = NonNull::new(opened).ok_or_else(|| {
            // SAFETY: it returns null, or a C string that lives until the next call of this
            // thread to the loader.
            let why = unsafe { text(libc::dlerror()) };
            format!("no libfabric.so.1: {INSTALL}: {why}")
        })?;
        // SAFETY: symbols of these names and versions are functions of the fields' types
        // (`fabric.h`, and the map of versions beside it). The library is never closed.
        unsafe {
            Ok(Self {
                getinfo: function(library, c"fi_getinfo", c"FABRIC_1.3")?,
                freeinfo: function(library, c"fi_freeinfo", c"FABRIC_1.3")?,
                dupinfo: function(library, c"fi_dupinfo", c"FABRIC_1.3")?,
                fabric: function(library, c"fi_fabric", c"FABRIC_1.1")?,
                strerror: function(library, c"fi_strerror", c"FABRIC_1.0")?,
                version: function(library, c"fi_version", c"FABRIC_1.0")?,
            })
        }
    }

    /// Major and minor version.
    pub(crate) fn version(&self) -> (u32, u32) {
        // SAFETY: it takes nothing and returns a constant.
        let version = unsafe { (self.version)() };
        (version >> 16, version & 0xffff)
    }

    /// What an error number means; the sign does not matter.
    pub(crate) fn error(&self, number: i64) -> String {
        let number = c_int::try_from(number.unsigned_abs()).unwrap_or(0);
        // SAFETY: it takes any number, and returns a C string that is never freed.
        unsafe { text((self.strerror)(number)) }
    }

    /// The ways to a provider's network that offer what a [`Fabric`] needs.
    ///
    /// [`Fabric`]: flagpost_hal::fabric::Fabric
    ///
    /// # Errors
    /// One line.
    pub(crate) fn ways(&'static self, asked: &Asked<'_>) -> Result<Ways, String> {
        let (major, minor) = self.version();
        if (major, minor) < (1, 17) {
            return Err(format!("libfabric {major}.{minor} is too old: {INSTALL}"));
        }
        // Some have no endpoint with an order, some none with atomics that has one.
        let way = |caps, ordered| self.way(asked, caps, ordered, 0);
        let all = way(FI_ATOMIC, true).or_else(|_| way(FI_ATOMIC, false))?;
        // Memory that is bound to an endpoint is the memory of one.
        let is_bound = all.domain().mr_mode as u32 & FI_MR_ENDPOINT != 0;
        let puts = if all.orders_puts(asked.memory) || is_bound {
            None
        } else {
            let puts = way(0, true).ok();
            puts.filter(|puts| puts.orders_puts(asked.memory) && puts.is_beside(&all))
        };
        // Whatever the reason: a peer shows that its memory can be reached before it is.
        let local = self.way(asked, 0, false, FI_REMOTE_COMM).is_err();
        Ok(Ways { all, puts, local })
    }

    /// The first way with these capabilities, besides messages and remote memory access, whose
    /// domain reaches so far.
    fn way(
        &'static self,
        asked: &Asked<'_>,
        caps: u64,
        ordered: bool,
        reach: u64,
    ) -> Result<Info, String> {
        let hints = self.hints(asked, caps, ordered, reach)?;
        let found = self.ask(&hints, asked, None)?;
        let by_address = [FI_SOCKADDR, FI_SOCKADDR_IN, FI_SOCKADDR_IN6];
        match asked.source {
            // The network listens where the job's ranks can reach it.
            Some(source) if by_address.contains(&found.get().addr_format) => {
                let node = CString::new(source.to_string()).unwrap_or_default();
                self.ask(&hints, asked, Some(&node))
            }
            // Else it would be called by the number of this process, which another container's may
            // have, too.
            _ if found.get().addr_format == FI_ADDR_STR => {
                let name = CString::new(asked.name).unwrap_or_default();
                self.ask(&hints, asked, Some(&name))
            }
            _ => Ok(found),
        }
    }

    fn hints(
        &'static self,
        asked: &Asked<'_>,
        caps: u64,
        ordered: bool,
        reach: u64,
    ) -> Result<Info, String> {
        let name = CString::new(asked.provider)
            .map_err(|_| "a provider's name has no zeros".to_owned())?;
        // SAFETY: null asks for a structure of which all parts are there, and zero.
        let hints = unsafe { (self.dupinfo)(null()) };
        let hints = NonNull::new(hints).ok_or("no memory for libfabric's hints")?;
        let hints = Info {
            library: self,
            info: hints,
        };
        let order = if ordered { FI_ORDER_RMA_WAW } else { 0 };
        // SAFETY: all parts that are stored to were made by the library, which frees what
        // `prov_name` points to by `free`: `strdup`'s.
        unsafe {
            let info = &mut *hints.info.as_ptr();
            info.caps = FI_MSG | FI_RMA | caps;
            info.mode = FI_CONTEXT | FI_CONTEXT2;
            (*info.ep_attr).r#type = FI_EP_RDM;
            (*info.tx_attr).op_flags = FI_DELIVERY_COMPLETE;
            (*info.tx_attr).msg_order = order;
            (*info.rx_attr).msg_order = order;
            (*info.fabric_attr).prov_name = libc::strdup(name.as_ptr());
            let domain = &mut *info.domain_attr;
            domain.caps = reach;
            domain.mr_mode =
                (FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT)
                    as c_int;
            domain.threading = if asked.threads {
                FI_THREAD_SAFE
            } else {
                FI_THREAD_DOMAIN
            };
            domain.resource_mgmt = FI_RM_ENABLED;
            domain.av_type = FI_AV_TABLE;
        }
        Ok(hints)
    }

    fn ask(
        &'static self,
        hints: &Info,
        asked: &Asked<'_>,
        node: Option<&CStr>,
    ) -> Result<Info, String> {
        let (node, flags) = node.map_or((null(), 0), |node| (node.as_ptr(), FI_SOURCE));
        let (service, mut found) = (null(), null_mut());
        // SAFETY: the node is null or a C string; the hints are whole; `found` is a place for the
        // answer, which is this function's to free.
        let result = unsafe {
            let hints = hints.info.as_ptr();
            (self.getinfo)(VERSION, node, service, flags, hints, &mut found)
        };
        let info = NonNull::new(found).filter(|_| result == 0);
        let info = info.ok_or_else(|| {
            let (major, minor) = self.version();
            format!(
                "libfabric {major}.{minor} has no provider {:?} with remote memory access, \
                 atomics and delivery-complete here ({}){}",
                asked.provider,
                self.error(result.into()),
                short_of_room(asked.provider).unwrap_or_default()
            )
        })?;
        // SAFETY: the library has made the answer and its parts; nobody else knows them yet.
        // Delivery-complete is there, and asked for where it is wanted.
        unsafe { (*(*info.as_ptr()).tx_attr).op_flags = 0 };
        Ok(Info {
            library: self,
            info,
        })
    }
}

/// A possible cause where libfabric has no `shm`: it asks for room in `/dev/shm` for as many ranks
/// as the host has processors. Without that room it only says that there is no such provider, as a
/// library does that was built without `shm`.
fn short_of_room(provider: &str) -> Option<String> {
    /// What libfabric 1.17 asks for each of them, and a little more.
    const EACH: u64 = 16 << 20;
    // SAFETY: it takes any name, and stores nothing.
    let processors = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    let room = rustix::fs::statvfs("/dev/shm").ok()?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    let asked = EACH.saturating_mul(u64::try_from(processors).unwrap_or(1));
    (provider == "shm" && free < asked).then(|| {
        format!(
            ": with shm it takes about {} MiB in /dev/shm, 16 for each processor of the host, and \
             {} are free: make /dev/shm larger (docker run --shm-size), or take --provider tcp",
            asked >> 20,
            free >> 20
        )
    })
}

/// What a way to a network is asked for.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) provider: &'a str,
    pub(crate) source: Option<IpAddr>,
    /// What the end is called, where ends have names.
    pub(crate) name: &'a str,
    /// Bytes of a rank's memory.
    pub(crate) memory: usize,
    /// Two threads call libfabric.
    pub(crate) threads: bool,
}

/// How to reach a provider's network.
#[derive(Debug)]
pub(crate) struct Ways {
    /// With all that is needed.
    pub(crate) all: Info,
    /// For puts in order, without atomics: where `all` does not order puts, and the provider does
    /// without atomics.
    pub(crate) puts: Option<Info>,
    /// All that can be reached is on this host.
    pub(crate) local: bool,
}

impl Ways {
    /// What puts go by.
    pub(crate) fn puts(&self) -> &Info {
        self.puts.as_ref().unwrap_or(&self.all)
    }
}

/// The text of a C string.
///
/// # Safety
/// It is null, or a C string that nobody changes meanwhile.
unsafe fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: as the caller promises.
    let string = unsafe { CStr::from_ptr(string) };
    string.to_string_lossy().into_owned()
}

/// A description of a way to a network: the first of a list of the library's.
#[derive(Debug)]
pub(crate) struct Info {
    library: &'static Library,
    info: NonNull<fi_info>,
}

impl Info {
    pub(crate) fn as_ptr(&self) -> *mut fi_info {
        self.info.as_ptr()
    }

    pub(crate) fn get(&self) -> &fi_info {
        // SAFETY: the library has made it, nobody stores to it after `Library::info`, and it is
        // freed in `drop`.
        unsafe { self.info.as_ref() }
    }

    pub(crate) fn sending(&self) -> &fi_tx_attr {
        // SAFETY: as in `get`; each part is there in what the library makes.
        unsafe { &*self.get().tx_attr }
    }

    fn receiving(&self) -> &fi_rx_attr {
        // SAFETY: as in `sending`.
        unsafe { &*self.get().rx_attr }
    }

    pub(crate) fn endpoint(&self) -> &fi_ep_attr {
        // SAFETY: as in `sending`.
        unsafe { &*self.get().ep_attr }
    }

    pub(crate) fn domain(&self) -> &fi_domain_attr {
        // SAFETY: as in `sending`.
        unsafe { &*self.get().domain_attr }
    }

    /// Whether writes of up to `memory` bytes to one target take effect in order.
    pub(crate) fn orders_puts(&self, memory: usize) -> bool {
        let orders = |order| order & (FI_ORDER_WAW | FI_ORDER_RMA_WAW) != 0;
        orders(self.sending().msg_order)
            && orders(self.receiving().msg_order)
            && self.endpoint().max_order_waw_size >= memory
    }

    /// Whether endpoints of both descriptions can share a domain, its registrations and addresses.
    fn is_beside(&self, other: &Self) -> bool {
        let (one, two) = (self.domain(), other.domain());
        self.provider() == other.provider()
            && self.get().addr_format == other.get().addr_format
            && (one.mr_mode, one.cq_data_size) == (two.mr_mode, two.cq_data_size)
    }

    /// The provider's name.
    pub(crate) fn provider(&self) -> String {
        // SAFETY: as in `sending`; the name is a C string.
        unsafe { text((*self.get().fabric_attr).prov_name) }
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: the library's own, freed once.
        unsafe { (self.library.freeinfo)(self.info.as_ptr()) }
    }
}
