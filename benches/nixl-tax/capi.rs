//! NIXL's C functions, as far as two agents in one process need them: our own declarations, bound when the program
//! runs. Nothing of NIXL is needed to build this.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

type Error = Box<dyn std::error::Error>;
/// What NIXL hands out: only it knows what is behind.
type Handle = *mut c_void;

/// Done.
pub(crate) const SUCCESS: c_int = 0;
/// Under way: ask again.
pub(crate) const IN_PROGRESS: c_int = 1;
const DRAM: c_int = 0;
const WRITE: c_int = 1;

/// Declares the functions that are looked up by name, and the one place that looks them up.
macro_rules! functions {
    ($($name:ident($($type:ty),*)),* $(,)?) => {
        struct Functions { $($name: unsafe extern "C" fn($($type),*) -> c_int,)* }

        impl Functions {
            fn find(library: &Library) -> Result<Functions, Error> {
                // SAFETY: the types are those of NIXL's C API, which has kept them since 0.5. The addresses stay
                // good, since the library is never unloaded.
                Ok(unsafe { Functions { $($name: *library.get(concat!("nixl_capi_", stringify!($name)))?,)* } })
            }
        }
    };
}

functions! {
    create_agent(*const c_char, *mut Handle),
    get_plugin_params(Handle, *const c_char, *mut Handle, *mut Handle),
    create_backend(Handle, *const c_char, Handle, *mut Handle),
    create_opt_args(*mut Handle),
    opt_args_add_backend(Handle, Handle),
    create_reg_dlist(c_int, *mut Handle, bool),
    reg_dlist_add_desc(Handle, usize, usize, u64, *const c_void, usize),
    register_mem(Handle, Handle, Handle),
    get_local_md(Handle, *mut *mut c_void, *mut usize),
    load_remote_md(Handle, *const c_void, usize, *mut *mut c_char),
    create_xfer_dlist(c_int, *mut Handle, bool),
    xfer_dlist_add_desc(Handle, usize, usize, u64),
    create_xfer_req(Handle, c_int, Handle, Handle, *const c_char, *mut Handle, Handle),
    post_xfer_req(Handle, Handle, Handle),
    get_xfer_status(Handle, Handle),
}

/// Two agents in this process and one request that writes from the first one's memory into the second one's. Lives
/// as long as the process: nothing of it is ever given back.
pub(crate) struct Pair {
    post: unsafe extern "C" fn(Handle, Handle, Handle) -> c_int,
    status: unsafe extern "C" fn(Handle, Handle) -> c_int,
    agent: Handle,
    request: Handle,
    options: Handle,
    from: &'static mut [u8],
    to: *const u8,
}

struct Agent {
    handle: Handle,
    options: Handle,
    memory: &'static mut [u8],
}

fn check(what: &str, status: c_int) -> Result<(), Error> {
    if status == SUCCESS { Ok(()) } else { Err(format!("NIXL: {what} returned {status}").into()) }
}

impl Pair {
    /// Loads `library` and connects two agents over UCX; their transfers have `bytes` bytes.
    pub(crate) fn connect(library: &Path, bytes: usize) -> Result<Pair, Error> {
        // SAFETY: loading runs the library's initialisers. It is the one that the caller names.
        let library = unsafe { Library::open(Some(library), RTLD_NOW | RTLD_LOCAL)? };
        let functions = Functions::find(&library)?;
        // Its threads run until the process ends.
        std::mem::forget(library);
        let (target_name, backend) = (c"target", c"UCX");
        let initiator = Agent::new(&functions, c"initiator", backend, bytes)?;
        let target = Agent::new(&functions, target_name, backend, bytes)?;

        let (mut blob, mut size, mut name) = (null_mut(), 0, null_mut());
        let (mut from, mut to, mut request) = (null_mut(), null_mut(), null_mut());
        // SAFETY: every handle comes from the calls above or from the line before, and outlives its use; the lists
        // describe memory that is never freed; the strings end with a zero.
        unsafe {
            check("get_local_md", (functions.get_local_md)(target.handle, &raw mut blob, &raw mut size))?;
            check("load_remote_md", (functions.load_remote_md)(initiator.handle, blob, size, &raw mut name))?;
            for (list, memory) in [(&raw mut from, &*initiator.memory), (&raw mut to, &*target.memory)] {
                check("create_xfer_dlist", (functions.create_xfer_dlist)(DRAM, list, false))?;
                let address = memory.as_ptr().expose_provenance();
                check("xfer_dlist_add_desc", (functions.xfer_dlist_add_desc)(*list, address, bytes, 0))?;
            }
            let status = (functions.create_xfer_req)(
                initiator.handle,
                WRITE,
                from,
                to,
                target_name.as_ptr(),
                &raw mut request,
                initiator.options,
            );
            check("create_xfer_req", status)?;
        }
        Ok(Pair {
            post: functions.post_xfer_req,
            status: functions.get_xfer_status,
            agent: initiator.handle,
            request,
            options: initiator.options,
            from: initiator.memory,
            to: target.memory.as_ptr(),
        })
    }

    /// Starts the transfer: `SUCCESS`, `IN_PROGRESS` or an error.
    #[inline(always)]
    pub(crate) fn post(&self) -> c_int {
        // SAFETY: the handles live as long as the process, and only this thread uses them.
        unsafe { (self.post)(self.agent, self.request, self.options) }
    }

    /// How far the transfer is.
    #[inline(always)]
    pub(crate) fn status(&self) -> c_int {
        // SAFETY: as for `post`.
        unsafe { (self.status)(self.agent, self.request) }
    }

    /// Writes `value` over what the next transfer moves.
    pub(crate) fn fill(&mut self, value: u8) {
        self.from.fill(value);
    }

    /// Whether `value` has arrived in all the target's memory.
    pub(crate) fn arrived(&self, value: u8) -> bool {
        // SAFETY: the target's memory has as many bytes and is never freed. Read as volatile: it was written behind
        // the compiler's back, by a transfer that has completed.
        (0..self.from.len()).all(|place| unsafe { self.to.add(place).read_volatile() } == value)
    }
}

impl Agent {
    fn new(functions: &Functions, name: &CStr, backend: &CStr, bytes: usize) -> Result<Agent, Error> {
        let memory: &'static mut [u8] = Box::leak(vec![0; bytes].into_boxed_slice());
        let (mut handle, mut kinds, mut parameters) = (null_mut(), null_mut(), null_mut());
        let (mut made, mut options, mut list) = (null_mut(), null_mut(), null_mut());
        let own = CString::from(name);
        // SAFETY: the names end with a zero, each handle comes from a call before, and the memory is never freed.
        unsafe {
            check("create_agent", (functions.create_agent)(own.as_ptr(), &raw mut handle))?;
            let status = (functions.get_plugin_params)(handle, backend.as_ptr(), &raw mut kinds, &raw mut parameters);
            check("get_plugin_params", status)?;
            let status = (functions.create_backend)(handle, backend.as_ptr(), parameters, &raw mut made);
            check("create_backend", status)?;
            check("create_opt_args", (functions.create_opt_args)(&raw mut options))?;
            check("opt_args_add_backend", (functions.opt_args_add_backend)(options, made))?;
            check("create_reg_dlist", (functions.create_reg_dlist)(DRAM, &raw mut list, false))?;
            let address = memory.as_mut_ptr().expose_provenance();
            check("reg_dlist_add_desc", (functions.reg_dlist_add_desc)(list, address, bytes, 0, null(), 0))?;
            check("register_mem", (functions.register_mem)(handle, list, options))?;
        }
        Ok(Agent { handle, options, memory })
    }
}
