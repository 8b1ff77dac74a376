//! What was made of the interfaces is what would be made of them now.

mod generate;

#[test]
fn generated_modules_are_current() {
    for (path, text) in generate::modules() {
        let found = std::fs::read_to_string(&path).expect("it is there");
        assert!(
            found == text,
            "{}: run `cargo run -p rackloom-aquila-services --example generate_proto`",
            path.display()
        );
    }
}
