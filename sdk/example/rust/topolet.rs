//! The part of topolet's C interface that stay.rs uses, by hand: the structs of <topolet/abi.h> and <topolet/score.h>, whose
//! comments count here, too. Structs of which only the beginning is read end there; they are only used by reference.
#![allow(dead_code)]

use std::ffi::c_void;

pub const ABI_MINOR: u32 = 0;
pub const ABI_DRAFT: u32 = 3;
pub const OK: i32 = 0;
pub const THREW: i32 = 7;
pub const VERDICT_SCORE: i32 = 2;
pub const SCORE_ID: &str = "topolet.score/1";
pub const ANNOTATIONS_ID: &str = "topolet.annotations/1";

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Str {
    ptr: *const u8,
    len: usize,
}

impl Str {
    pub const fn new(text: &str) -> Str {
        Str { ptr: text.as_ptr(), len: text.len() }
    }
    pub const fn empty() -> Str {
        Str { ptr: std::ptr::null(), len: 0 }
    }
    pub fn bytes(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }
}

/// topolet_strs, topolet_kvs: what they point to is not looked at.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct List {
    items: *const c_void,
    count: usize,
}

impl List {
    pub const fn empty() -> List {
        List { items: std::ptr::null(), count: 0 }
    }
}

/// Bit i % 64 of word i / 64 says whether i is in the set.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Set {
    words: *const u64,
    count: usize,
}

impl Set {
    pub fn words(&self) -> &[u64] {
        if self.count == 0 {
            return &[];
        }
        unsafe { std::slice::from_raw_parts(self.words, self.count) }
    }
    pub fn len(&self) -> u32 {
        self.words().iter().map(|word| word.count_ones()).sum()
    }
    pub fn len_of_both(&self, other: &Set) -> u32 {
        self.words().iter().zip(other.words()).map(|(a, b)| (a & b).count_ones()).sum()
    }
}

#[repr(C)]
pub struct Candidate {
    pub kind: i32,
    pub is_domain: u32,
    pub nodes: Set,
    pub cpus: Set,
    pub pool: Set,
    pub usable: Set,
}

#[repr(C)]
pub struct Request {
    pub struct_size: u32,
    pub exclusive: u32,
    pub exclusive_cpus: u32,
    candidate_count: u32,
    candidates: *const u8,
    candidate_stride: u32,
    pub occasion: i32,
    pub workload: *const c_void,
    pub topology: *const c_void,
    pub ledger: *const c_void,
    pub mode: i32,
    pub flags: u32,
    pub cpu_source: i32,
    pub why_shared: i32,
    pub had_cpus: Set,
}

impl Request {
    /// They lie a stride apart, as the host's may be larger.
    pub fn candidates(&self) -> impl Iterator<Item = &Candidate> {
        (0..self.candidate_count as usize)
            .map(|i| unsafe { &*self.candidates.add(i * self.candidate_stride as usize).cast::<Candidate>() })
    }
}

#[repr(C)]
pub struct ScoreSink {
    struct_size: u32,
    reserved: u32,
    context: *mut c_void,
    set: unsafe extern "C" fn(*const ScoreSink, u32, i32, i32, Str) -> i32,
    error: unsafe extern "C" fn(*const ScoreSink, Str) -> i32,
}

impl ScoreSink {
    pub fn score(&self, candidate: usize, score: i32, reason: &str) {
        unsafe { (self.set)(self, candidate as u32, VERDICT_SCORE, score, Str::new(reason)) };
    }
    pub fn error(&self, message: &str) {
        unsafe { (self.error)(self, Str::new(message)) };
    }
}

#[repr(C)]
pub struct Score {
    pub struct_size: u32,
    pub reserved: u32,
    pub score: unsafe extern "C" fn(*const Instance, *const Request, *const ScoreSink) -> i32,
}

/// The topolet.io annotations that the plugin reads.
#[repr(C)]
pub struct Annotations {
    pub struct_size: u32,
    pub reserved: u32,
    pub names: List,
    pub taking: List,
}

#[repr(C)]
pub struct Instance {
    pub struct_size: u32,
    pub reserved: u32,
    pub context: *mut c_void,
    pub get_capability: unsafe extern "C" fn(*const Instance, Str) -> *const c_void,
    pub destroy: unsafe extern "C" fn(*const Instance),
}

pub type Create = unsafe extern "C" fn(*const c_void, *const c_void, *mut *const Instance) -> i32;

#[repr(C)]
pub struct Entry {
    pub struct_size: u32,
    pub abi_minor: u32,
    pub abi_draft: u32,
    pub default_weight: u32,
    pub id: Str,
    pub version: Str,
    pub options: *const c_void,
    pub option_count: u32,
    pub option_stride: u32,
    pub create: Create,
    pub vendor: Str,
    pub url: Str,
    pub description: Str,
}

// The pointers in them lead to constants.
unsafe impl Sync for Annotations {}
unsafe impl Sync for Instance {}
unsafe impl Sync for Entry {}
