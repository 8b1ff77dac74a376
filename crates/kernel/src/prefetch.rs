//! Prefetching: memory is asked for ahead of its use, so that the core overlaps cache misses with work.

/// Asks for the cache line that holds the start of `slice[index]`. Does nothing if there is no such
/// element, or on a processor for which there is no way to ask.
#[inline]
#[allow(unsafe_code)]
pub fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = slice.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is a hint; it reads and changes nothing that a program can see,
        // and every x86-64 processor has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}

/// Asks for all cache lines of `slice[range]`, as far as there is such a part.
#[inline]
pub fn prefetch_range<T>(slice: &[T], range: std::ops::Range<usize>) {
    let per_line = (LINE / size_of::<T>().max(1)).max(1);
    range.step_by(per_line).for_each(|index| prefetch(slice, index));
}

/// Bytes of a cache line on the processors that we know.
const LINE: usize = 64;
