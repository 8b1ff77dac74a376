//! A page over a results directory: its runs to pick, plots that show the same flows, where a flow's time went, and
//! runs under way. Served to this machine alone, and read-only.
//!
//! **Invariant:** knows results by their files, through `report`, and no fabric by name. It listens on the loopback
//! address only, answers requests that name it by that address only, and opens nothing outside its directory.

mod assets;
mod curves;
mod flows;
mod folder;
mod groups;
mod live;
mod rack_picture;
mod refusal;
mod run;
mod server;

pub use folder::Folder;
pub use refusal::Refusal;
pub use server::{Address, router, serve};
