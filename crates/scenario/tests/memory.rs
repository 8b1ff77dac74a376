//! Racks that would take more memory than there is are refused before any of it is taken.

use kernel::Bytes;
use scenario::{Document, Format, Registry, Scenario};

fn read(fabric: &str, registry: &Registry) -> Result<Scenario, String> {
    read_with("", fabric, registry)
}

fn read_with(fault: &str, fabric: &str, registry: &Registry) -> Result<Scenario, String> {
    let text = format!(
        "run.flows = 10\nworkload = {{ kind = \"poisson\", load = 0.1 }}\n{fault}[fabric]\n{fabric}\n"
    );
    let document = Document::parse("a.toml", &text, Format::Toml).map_err(|bad| bad.to_string())?;
    Scenario::read(document, &[], registry).map_err(|bad| bad.to_string())
}

#[track_caller]
fn check_refused(fabric: &str) {
    let problem = read(fabric, &Registry::standard()).map(|_| ()).expect_err("it is refused");
    let says = |part| assert!(problem.contains(part), "{fabric}\n{problem}");
    says("of memory, and the limit is 16.0 GiB; take fewer nodes");
}

#[test]
fn racks_that_are_too_large_are_refused_with_what_they_would_take() {
    check_refused("kind = \"pl2\"\nnodes = 1000000000");
    check_refused(
        "kind = \"packet-switched\"\nnodes = 1000000000\ntopology.kind = \"single-switch\"",
    );
    check_refused(
        "kind = \"packet-switched\"\n[fabric.topology]\nkind = \"leaf-spine\"\nhosts = 1000000\n\
         radix = 2000",
    );
    check_refused(
        "kind = \"packet-switched\"\n[fabric.topology]\nkind = \"torus\"\n\
         dimensions = [256, 256, 256, 256]",
    );
}

#[test]
fn the_limit_is_the_registrys_and_the_estimate_is_told() {
    let fabric = "kind = \"packet-switched\"\nnodes = 64";
    let usual = read(fabric, &Registry::standard()).unwrap();
    let estimate = usual.fabrics[0].plan.memory();
    assert!(estimate > Bytes::ZERO);
    let just_enough = Registry::standard().with_memory(estimate);
    assert!(read(fabric, &just_enough).is_ok());
    let too_little = Registry::standard().with_memory(estimate - Bytes::new(1));
    let problem = read(fabric, &too_little).map(|_| ()).expect_err("it is refused");
    assert!(problem.contains("fabric.nodes: a rack of this size takes some"), "{problem}");
}

#[test]
fn what_faults_take_is_part_of_the_estimate_and_of_the_limit() {
    let torus = "kind = \"r2c2\"\ntopology = { kind = \"torus\", dimensions = [8, 8, 8] }";
    let fault = "[[fault]]\nat = \"1 us\"\nnode = 1\n";
    let whole = read(torus, &Registry::standard()).unwrap().memory(0);
    let failing = read_with(fault, torus, &Registry::standard()).unwrap().memory(0);
    assert!(failing > whole, "{failing} with a fault, {whole} without");
    let limit = Registry::standard().with_memory(failing - Bytes::new(1));
    assert!(read(torus, &limit).is_ok());
    let problem = read_with(fault, torus, &limit).map(|_| ()).expect_err("it is refused");
    let words = "a run of a rack of this size in which something fails takes some";
    assert!(problem.contains(words) && problem.contains("the limit is"), "{problem}");
}
