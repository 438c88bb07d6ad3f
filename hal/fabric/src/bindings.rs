//! What this crate uses of libfabric's C interface: structures, tables of functions, constants.
//!
//! The names are libfabric's own. The layouts are those of its version 1.17, interface
//! `FABRIC_1.3`, which later versions keep. Tables of functions end here after the last function
//! that is used; functions before it that are not used are bare pointers.
//!
//! A test compares every offset, size and constant with those that a C compiler finds in the
//! installed headers: `cargo xtask fabric --headers`.
#![allow(
    non_camel_case_types,
    dead_code,
    reason = "C's names, and fields that only the layout needs"
)]

use std::ffi::{c_char, c_int, c_void};

/// A C enum.
pub(crate) type Enum = u32;
/// A function that is not used.
type Unused = *const c_void;
/// A function that opens an object of another one, with attributes.
type Opens<From, With, Object> =
    unsafe extern "C" fn(*mut From, *mut With, *mut *mut Object, *mut c_void) -> c_int;
/// A function that says if an operation is there.
type Valid = unsafe extern "C" fn(*mut fid_ep, Enum, Enum, *mut usize) -> c_int;

/// Version 1.17, as libfabric writes it.
pub(crate) const VERSION: u32 = 1 << 16 | 17;

/// Declares structures as C has them, and what the test compares: `whole` ones have all fields of
/// C's, the others end earlier.
macro_rules! structures {
    ($($kind:ident $name:ident { $($field:ident: $type:ty,)* })*) => {
        $(
            #[repr(C)]
            pub(crate) struct $name {
                $(pub(crate) $field: $type,)*
            }
        )*

        /// Structure, field and offset; structure, nothing and size.
        #[cfg(test)]
        fn layouts() -> Vec<(&'static str, &'static str, u64)> {
            let mut all = Vec::new();
            $(
                $(
                    let offset = std::mem::offset_of!($name, $field);
                    all.push((stringify!($name), stringify!($field), offset as u64));
                )*
                if stringify!($kind) == "whole" {
                    all.push((stringify!($name), "", size_of::<$name>() as u64));
                }
            )*
            all
        }
    };
}

structures! {
    whole fi_info {
        next: *mut fi_info,
        caps: u64,
        mode: u64,
        addr_format: u32,
        src_addrlen: usize,
        dest_addrlen: usize,
        src_addr: *mut c_void,
        dest_addr: *mut c_void,
        handle: *mut fid,
        tx_attr: *mut fi_tx_attr,
        rx_attr: *mut fi_rx_attr,
        ep_attr: *mut fi_ep_attr,
        domain_attr: *mut fi_domain_attr,
        fabric_attr: *mut fi_fabric_attr,
        nic: *mut c_void,
    }

    whole fi_tx_attr {
        caps: u64,
        mode: u64,
        op_flags: u64,
        msg_order: u64,
        comp_order: u64,
        inject_size: usize,
        size: usize,
        iov_limit: usize,
        rma_iov_limit: usize,
        tclass: u32,
    }

    whole fi_rx_attr {
        caps: u64,
        mode: u64,
        op_flags: u64,
        msg_order: u64,
        comp_order: u64,
        total_buffered_recv: usize,
        size: usize,
        iov_limit: usize,
    }

    prefix fi_ep_attr {
        r#type: Enum,
        protocol: u32,
        protocol_version: u32,
        max_msg_size: usize,
        msg_prefix_size: usize,
        max_order_raw_size: usize,
        max_order_war_size: usize,
        max_order_waw_size: usize,
    }

    prefix fi_domain_attr {
        domain: *mut fid_domain,
        name: *mut c_char,
        threading: Enum,
        control_progress: Enum,
        data_progress: Enum,
        resource_mgmt: Enum,
        av_type: Enum,
        mr_mode: c_int,
        mr_key_size: usize,
        cq_data_size: usize,
        cq_cnt: usize,
        ep_cnt: usize,
        tx_ctx_cnt: usize,
        rx_ctx_cnt: usize,
        max_ep_tx_ctx: usize,
        max_ep_rx_ctx: usize,
        max_ep_stx_ctx: usize,
        max_ep_srx_ctx: usize,
        cntr_cnt: usize,
        mr_iov_limit: usize,
        caps: u64,
    }

    whole fi_fabric_attr {
        fabric: *mut fid_fabric,
        name: *mut c_char,
        prov_name: *mut c_char,
        prov_version: u32,
        api_version: u32,
    }

    whole fid {
        fclass: usize,
        context: *mut c_void,
        ops: *mut fi_ops,
    }

    prefix fi_ops {
        size: usize,
        close: unsafe extern "C" fn(*mut fid) -> c_int,
        bind: unsafe extern "C" fn(*mut fid, *mut fid, u64) -> c_int,
        control: unsafe extern "C" fn(*mut fid, c_int, *mut c_void) -> c_int,
    }

    prefix fid_fabric {
        fid: fid,
        ops: *mut fi_ops_fabric,
    }

    prefix fi_ops_fabric {
        size: usize,
        domain: Opens<fid_fabric, fi_info, fid_domain>,
    }

    prefix fid_domain {
        fid: fid,
        ops: *mut fi_ops_domain,
        mr: *mut fi_ops_mr,
    }

    prefix fi_ops_domain {
        size: usize,
        av_open: Opens<fid_domain, fi_av_attr, fid_av>,
        cq_open: Opens<fid_domain, fi_cq_attr, fid_cq>,
        endpoint: Opens<fid_domain, fi_info, fid_ep>,
    }

    prefix fi_ops_mr {
        size: usize,
        reg: unsafe extern "C" fn(
            *mut fid,
            *const c_void,
            usize,
            u64,
            u64,
            u64,
            u64,
            *mut *mut fid_mr,
            *mut c_void,
        ) -> c_int,
    }

    whole fid_mr {
        fid: fid,
        mem_desc: *mut c_void,
        key: u64,
    }

    whole fi_av_attr {
        r#type: Enum,
        rx_ctx_bits: c_int,
        count: usize,
        ep_per_node: usize,
        name: *const c_char,
        map_addr: *mut c_void,
        flags: u64,
    }

    prefix fid_av {
        fid: fid,
        ops: *mut fi_ops_av,
    }

    prefix fi_ops_av {
        size: usize,
        insert: unsafe extern "C" fn(
            *mut fid_av,
            *const c_void,
            usize,
            *mut u64,
            u64,
            *mut c_void,
        ) -> c_int,
    }

    whole fi_cq_attr {
        size: usize,
        flags: u64,
        format: Enum,
        wait_obj: Enum,
        signaling_vector: c_int,
        wait_cond: Enum,
        wait_set: *mut c_void,
    }

    prefix fid_cq {
        fid: fid,
        ops: *mut fi_ops_cq,
    }

    prefix fi_ops_cq {
        size: usize,
        read: unsafe extern "C" fn(*mut fid_cq, *mut c_void, usize) -> isize,
        readfrom: Unused,
        readerr: unsafe extern "C" fn(*mut fid_cq, *mut fi_cq_err_entry, u64) -> isize,
    }

    whole fi_cq_data_entry {
        op_context: *mut c_void,
        flags: u64,
        len: usize,
        buf: *mut c_void,
        data: u64,
    }

    whole fi_cq_err_entry {
        op_context: *mut c_void,
        flags: u64,
        len: usize,
        buf: *mut c_void,
        data: u64,
        tag: u64,
        olen: usize,
        err: c_int,
        prov_errno: c_int,
        err_data: *mut c_void,
        err_data_size: usize,
    }

    prefix fid_ep {
        fid: fid,
        ops: *mut c_void,
        cm: *mut fi_ops_cm,
        msg: *mut c_void,
        rma: *mut fi_ops_rma,
        tagged: *mut c_void,
        atomic: *mut fi_ops_atomic,
    }

    prefix fi_ops_cm {
        size: usize,
        setname: Unused,
        getname: unsafe extern "C" fn(*mut fid, *mut c_void, *mut usize) -> c_int,
    }

    prefix fi_ops_rma {
        size: usize,
        read: unsafe extern "C" fn(
            *mut fid_ep,
            *mut c_void,
            usize,
            *mut c_void,
            u64,
            u64,
            u64,
            *mut c_void,
        ) -> isize,
        readv: Unused,
        readmsg: Unused,
        write: Unused,
        writev: Unused,
        writemsg: unsafe extern "C" fn(*mut fid_ep, *const fi_msg_rma, u64) -> isize,
        inject: unsafe extern "C" fn(*mut fid_ep, *const c_void, usize, u64, u64, u64) -> isize,
        writedata: Unused,
        injectdata: unsafe extern "C" fn(
            *mut fid_ep,
            *const c_void,
            usize,
            u64,
            u64,
            u64,
            u64,
        ) -> isize,
    }

    whole iovec {
        iov_base: *mut c_void,
        iov_len: usize,
    }

    whole fi_rma_iov {
        addr: u64,
        len: usize,
        key: u64,
    }

    whole fi_msg_rma {
        msg_iov: *const iovec,
        desc: *mut *mut c_void,
        iov_count: usize,
        addr: u64,
        rma_iov: *const fi_rma_iov,
        rma_iov_count: usize,
        context: *mut c_void,
        data: u64,
    }

    whole fi_ioc {
        addr: *mut c_void,
        count: usize,
    }

    whole fi_rma_ioc {
        addr: u64,
        count: usize,
        key: u64,
    }

    whole fi_msg_atomic {
        msg_iov: *const fi_ioc,
        desc: *mut *mut c_void,
        iov_count: usize,
        addr: u64,
        rma_iov: *const fi_rma_ioc,
        rma_iov_count: usize,
        datatype: Enum,
        op: Enum,
        context: *mut c_void,
        data: u64,
    }

    prefix fi_ops_atomic {
        size: usize,
        write: Unused,
        writev: Unused,
        writemsg: Unused,
        inject: Unused,
        readwrite: Unused,
        readwritev: Unused,
        readwritemsg: unsafe extern "C" fn(
            *mut fid_ep,
            *const fi_msg_atomic,
            *mut fi_ioc,
            *mut *mut c_void,
            usize,
            u64,
        ) -> isize,
        compwrite: Unused,
        compwritev: Unused,
        compwritemsg: unsafe extern "C" fn(
            *mut fid_ep,
            *const fi_msg_atomic,
            *const fi_ioc,
            *mut *mut c_void,
            usize,
            *mut fi_ioc,
            *mut *mut c_void,
            usize,
            u64,
        ) -> isize,
        writevalid: Unused,
        readwritevalid: Valid,
        compwritevalid: Valid,
    }

    whole fi_context2 {
        internal: [*mut c_void; 8],
    }
}

/// Declares constants, and what the test compares.
macro_rules! constants {
    ($($name:ident: $type:ty = $value:expr;)*) => {
        $(pub(crate) const $name: $type = $value;)*

        #[cfg(test)]
        fn constants() -> Vec<(&'static str, u64)> {
            vec![$((stringify!($name), u64::from($name))),*]
        }
    };
}

constants! {
    FI_MSG: u64 = 1 << 1;
    FI_RMA: u64 = 1 << 2;
    FI_ATOMIC: u64 = 1 << 4;
    FI_READ: u64 = 1 << 8;
    FI_WRITE: u64 = 1 << 9;
    FI_RECV: u64 = 1 << 10;
    FI_TRANSMIT: u64 = 1 << 11;
    FI_REMOTE_READ: u64 = 1 << 12;
    FI_REMOTE_WRITE: u64 = 1 << 13;
    FI_REMOTE_CQ_DATA: u64 = 1 << 17;
    FI_COMPLETION: u64 = 1 << 24;
    FI_DELIVERY_COMPLETE: u64 = 1 << 28;
    FI_REMOTE_COMM: u64 = 1 << 52;
    FI_CONTEXT2: u64 = 1 << 52;
    FI_SOURCE: u64 = 1 << 57;
    FI_CONTEXT: u64 = 1 << 59;
    FI_ORDER_WAW: u64 = 1 << 4;
    FI_ORDER_RMA_WAW: u64 = 1 << 35;
    FI_MR_LOCAL: u32 = 1 << 2;
    FI_MR_VIRT_ADDR: u32 = 1 << 4;
    FI_MR_ALLOCATED: u32 = 1 << 5;
    FI_MR_PROV_KEY: u32 = 1 << 6;
    FI_MR_ENDPOINT: u32 = 1 << 9;
    FI_SOCKADDR: u32 = 1;
    FI_SOCKADDR_IN: u32 = 2;
    FI_SOCKADDR_IN6: u32 = 3;
    FI_ADDR_STR: u32 = 9;
    FI_AV_TABLE: Enum = 2;
    FI_THREAD_SAFE: Enum = 1;
    FI_THREAD_DOMAIN: Enum = 3;
    FI_RM_ENABLED: Enum = 2;
    FI_EP_RDM: Enum = 3;
    FI_CQ_FORMAT_DATA: Enum = 3;
    FI_ENABLE: u32 = 6;
    FI_UINT64: Enum = 7;
    FI_SUM: Enum = 2;
    FI_BOR: Enum = 6;
    FI_BAND: Enum = 7;
    FI_BXOR: Enum = 9;
    FI_ATOMIC_READ: Enum = 10;
    FI_ATOMIC_WRITE: Enum = 11;
    FI_CSWAP: Enum = 12;
    FI_EAGAIN: u32 = 11;
    FI_EAVAIL: u32 = 259;
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::process::Command;

    use super::*;

    /// A C program that prints the same numbers, one per line.
    fn program() -> String {
        const HEADERS: &str = "fabric fi_domain fi_endpoint fi_cm fi_rma fi_atomic";
        let mut text = String::from("#include <stddef.h>\n#include <stdio.h>\n");
        text += "#include <sys/uio.h>\n#include <rdma/fi_errno.h>\n";
        for header in HEADERS.split(' ') {
            writeln!(text, "#include <rdma/{header}.h>").unwrap();
        }
        text += "static void say(unsigned long long n) { printf(\"%llu\\n\", n); }\n";
        text += "int main(void) {\n";
        for (structure, field, _) in layouts() {
            let field = field.trim_start_matches("r#");
            if field.is_empty() {
                writeln!(text, "say(sizeof(struct {structure}));").unwrap();
            } else {
                writeln!(text, "say(offsetof(struct {structure}, {field}));").unwrap();
            }
        }
        for (name, _) in constants() {
            writeln!(text, "say({name});").unwrap();
        }
        text + "say(FI_VERSION(1, 17));\nreturn 0; }\n"
    }

    #[test]
    #[ignore = "needs a C compiler and libfabric's headers: cargo xtask fabric --headers"]
    fn layouts_and_constants_are_those_of_the_headers() {
        let name = format!("flagpost-headers-{}", std::process::id());
        let [source, binary] = ["c", "out"].map(|end| {
            let path = std::env::temp_dir().join(&name);
            path.with_extension(end)
        });
        std::fs::write(&source, program()).unwrap();
        let compiled = Command::new("cc")
            .arg(&source)
            .arg("-o")
            .arg(&binary)
            .status();
        let output = Command::new(&binary).output();
        for file in [source, binary] {
            let _ = std::fs::remove_file(file);
        }
        let compiled = compiled.expect("no C compiler: apt-get install gcc");
        assert!(
            compiled.success(),
            "no headers: apt-get install libfabric-dev"
        );
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        let theirs: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
        let layouts = layouts().into_iter();
        let layouts = layouts.map(|(name, field, ours)| (format!("{name}.{field}"), ours));
        let constants = { constants().into_iter() }.map(|(name, ours)| (name.to_owned(), ours));
        let version = [("FI_VERSION".to_owned(), u64::from(VERSION))];
        let ours: Vec<_> = layouts.chain(constants).chain(version).collect();
        assert_eq!(theirs.len(), ours.len());
        let pairs = ours.iter().zip(&theirs);
        let differ: Vec<_> = pairs
            .filter(|((_, ours), theirs)| ours != *theirs)
            .collect();
        assert!(differ.is_empty(), "{differ:?}");
        println!("{} numbers are the same", ours.len());
    }
}
