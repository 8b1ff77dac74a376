//! What the compiler leaves out of the hot loop where a rack has no use for it.

/// The mechanisms that a rack may need, known when the loop is compiled.
pub(crate) trait Mode {
    /// Cells can be lost: faults, bit errors, tail drops.
    const LOSSY: bool;
    /// Several classes may be in use (Appendix C), and feedback may take more than an epoch.
    const GENERAL: bool;
    /// All nodes of the rack are here.
    const WHOLE: bool;
}

/// Nothing is lost, one class, and feedback within the epoch that the schedule leaves for it: the
/// rack of the paper's simulations.
pub(crate) enum Lean {}

/// The same for a part of the rack.
pub(crate) enum LeanPart {}

/// Nothing is lost.
pub(crate) enum Lossless {}

/// Everything.
pub(crate) enum Lossy {}

impl Mode for Lean {
    const LOSSY: bool = false;
    const GENERAL: bool = false;
    const WHOLE: bool = true;
}

impl Mode for LeanPart {
    const LOSSY: bool = false;
    const GENERAL: bool = false;
    const WHOLE: bool = false;
}

impl Mode for Lossless {
    const LOSSY: bool = false;
    const GENERAL: bool = true;
    const WHOLE: bool = false;
}

impl Mode for Lossy {
    const LOSSY: bool = true;
    const GENERAL: bool = true;
    const WHOLE: bool = false;
}
