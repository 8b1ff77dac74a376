//! Internal errors end the work that they concern and nothing else.
//!
//! An invariant that does not hold is a panic with its numbers, wherever it is: while a scenario is
//! checked, a network is built, a run is under way or a report is drawn. Work that others must survive
//! is done under [`guarded`], which makes of a panic a [`Failure`] that says where it was.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

use super::Failure;

thread_local! {
    /// How many calls of [`guarded`] this thread is in.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Where the last panic of this thread was, while guarded.
    static WHERE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What a panic said, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Panic {
    /// Its message.
    pub message: String,
    /// File and line; empty if they are not known.
    pub place: String,
}

/// Does `work`; a panic in it, in this thread, is a failure like any other and prints nothing.
///
/// # Errors
/// Those of `work`, and [`Failure::Internal`].
pub fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    caught(work).unwrap_or_else(|panic| Err(Failure::Internal(panic)))
}

/// Does `work`, which may panic in this thread without a word on the terminal.
///
/// # Errors
/// What the panic said.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Panic> {
    quieten();
    DEPTH.set(DEPTH.get() + 1);
    // What `work` leaves half done belongs to it alone: it is dropped, not used.
    let outcome = catch_unwind(AssertUnwindSafe(work));
    DEPTH.set(DEPTH.get() - 1);
    outcome.map_err(|panic| Panic {
        message: words(panic.as_ref()),
        place: WHERE.take().unwrap_or_default(),
    })
}

/// Has panics of guarded threads noted instead of printed; others are told as before.
fn quieten() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            if DEPTH.get() == 0 {
                return before(info);
            }
            let place = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
            WHERE.replace(place);
        }));
    });
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_failure_that_says_what_and_where_and_asks_to_be_reported() {
        let number = 3;
        let failure = guarded::<()>(|| panic!("a queue holds {number} cells of 2")).unwrap_err();
        let Failure::Internal(panic) = &failure else { panic!("{failure}") };
        assert_eq!(panic.message, "a queue holds 3 cells of 2");
        assert!(panic.place.contains("guard.rs:"), "{panic:?}");
        assert_eq!(failure.exit_code(), 1);
        let text = failure.to_string();
        for part in ["internal error", "a queue holds 3 cells of 2", crate::VERSION, "report"] {
            assert!(text.contains(part), "{text} lacks {part:?}");
        }
    }

    #[test]
    fn what_works_passes_and_guards_may_lie_in_each_other() {
        assert_eq!(guarded(|| Ok(3)).unwrap(), 3);
        let inner = || guarded::<()>(|| panic!("inner"));
        let outer = guarded(|| Ok(inner().is_err()));
        assert!(outer.unwrap());
        let lost = guarded::<()>(|| {
            let _ = inner();
            panic!("outer")
        });
        assert!(lost.unwrap_err().to_string().contains("outer"));
    }
}
