//! From `proto/*.proto` to `src/proto/*.rs`, without the compiler `protoc`.

use std::path::{Path, PathBuf};

/// Path and text of each module.
pub fn modules() -> Vec<(PathBuf, String)> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = std::env::temp_dir().join(format!("rackloom-proto-{}", std::process::id()));
    std::fs::create_dir_all(&out).expect("a folder for what is made");
    let module = |file: &str, package: &str| {
        let set = protox::compile([format!("{file}.proto")], [here.join("proto")])
            .expect("the interface can be read");
        tonic_prost_build::configure()
            .build_server(file == "control")
            .out_dir(&out)
            .compile_fds(set)
            .expect("the module can be made");
        let text = std::fs::read_to_string(out.join(format!("{package}.rs")));
        (here.join(format!("src/proto/{file}.rs")), text.expect("it was made"))
    };
    let modules = vec![module("control", "aquila.control.v1"), module("etcd", "etcdserverpb")];
    std::fs::remove_dir_all(&out).expect("it can be removed");
    modules
}
