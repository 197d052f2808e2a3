//! Prefers the candidate where a container had its CPUs, so that one that is restarted finds its caches and its memory where
//! they were.
mod topolet;

use std::ffi::c_void;
use std::mem::size_of;
use std::panic::{catch_unwind, AssertUnwindSafe};
use topolet::{Annotations, Entry, Instance, List, Request, Score, ScoreSink, Str};

/// 20 where it had all of its CPUs, and as much less as it had fewer there. It abstains where nothing was had.
fn score_candidates(request: &Request, sink: &ScoreSink) {
    let had = request.had_cpus.len();
    if had == 0 {
        return;
    }
    for (i, candidate) in request.candidates().enumerate() {
        let here = candidate.cpus.len_of_both(&request.had_cpus);
        sink.score(i, (20 * here / had) as i32, &format!("it had {here} of its {had} CPUs here"));
    }
}

/// No panic may leave the plugin.
unsafe extern "C" fn score(_: *const Instance, request: *const Request, sink: *const ScoreSink) -> i32 {
    let (request, sink) = (&*request, &*sink);
    match catch_unwind(AssertUnwindSafe(|| score_candidates(request, sink))) {
        Ok(()) => topolet::OK,
        Err(_) => {
            sink.error("it panicked");
            topolet::THREW
        }
    }
}

static SCORE: Score = Score { struct_size: size_of::<Score>() as u32, reserved: 0, score };
static ANNOTATIONS: Annotations = Annotations {
    struct_size: size_of::<Annotations>() as u32,
    reserved: 0,
    names: List::empty(),
    taking: List::empty(),
};

unsafe extern "C" fn get_capability(_: *const Instance, id: Str) -> *const c_void {
    if id.bytes() == topolet::SCORE_ID.as_bytes() {
        return (&SCORE as *const Score).cast();
    }
    if id.bytes() == topolet::ANNOTATIONS_ID.as_bytes() {
        return (&ANNOTATIONS as *const Annotations).cast();
    }
    std::ptr::null()
}

/// The policy keeps nothing, so that all instances may be one.
static INSTANCE: Instance = Instance {
    struct_size: size_of::<Instance>() as u32,
    reserved: 0,
    context: std::ptr::null_mut(),
    get_capability,
    destroy,
};

unsafe extern "C" fn destroy(_: *const Instance) {}

unsafe extern "C" fn create(_: *const c_void, _: *const c_void, instance: *mut *const Instance) -> i32 {
    *instance = &INSTANCE;
    topolet::OK
}

#[allow(non_upper_case_globals)]
#[no_mangle]
pub static topolet_plugin_v1: Entry = Entry {
    struct_size: size_of::<Entry>() as u32,
    abi_minor: topolet::ABI_MINOR,
    abi_draft: topolet::ABI_DRAFT,
    default_weight: 0,
    id: Str::new("stay"),
    version: Str::new("1.0"),
    options: std::ptr::null(),
    option_count: 0,
    option_stride: 0,
    create,
    vendor: Str::empty(),
    url: Str::empty(),
    description: Str::new("Prefers the candidate where a container had its CPUs."),
};
