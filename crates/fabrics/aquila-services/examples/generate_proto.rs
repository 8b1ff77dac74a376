//! Makes the modules that stand for the interfaces in `proto/`; a test does the same and compares.
//!
//!     cargo run -p rackloom-aquila-services --example generate_proto

#[path = "../tests/interfaces/generate.rs"]
mod generate;

fn main() {
    for (path, text) in generate::modules() {
        std::fs::write(&path, text).expect("the sources can be written");
    }
}
