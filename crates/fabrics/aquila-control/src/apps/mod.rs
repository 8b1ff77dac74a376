//! The controller's applications (Aquila §4.1, Figure 5).

pub mod session;
