//! What all fuzz targets share: a cap on memory, and the call of the function that is tried.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most bytes that all allocations of a target hold at once, and that one may ask for.
pub const MEMORY_MAX: usize = 768 << 20;

/// Ends the process when a target asks for more memory than any input is worth.
struct Capped {
    held: AtomicUsize,
}

#[global_allocator]
static ALLOCATOR: Capped = Capped { held: AtomicUsize::new(0) };

// SAFETY: every call is handed to the system's allocator as it is.
unsafe impl GlobalAlloc for Capped {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = self.held.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        if held > MEMORY_MAX {
            // Nothing may be allocated for a message here.
            std::process::abort();
        }
        // SAFETY: the layout is the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        self.held.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the pointer came from this allocator, which is the system's.
        unsafe { System.dealloc(at, layout) }
    }
}

#[doc(hidden)]
pub use libfuzzer_sys;

/// A target: the function of that name in `loglith::fuzzing`.
#[macro_export]
macro_rules! target {
    ($name:literal) => {
        $crate::libfuzzer_sys::fuzz_target!(|input: &[u8]| $crate::run($name, input));
    };
}

/// Runs one input of the target `name`.
pub fn run(name: &str, input: &[u8]) {
    loglith::fuzzing::run(name, input);
}
