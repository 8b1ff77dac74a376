//! `SHA256SUMS`: what the files of a results directory held when they were written, in the form that
//! `sha256sum --check` reads. Results that were edited, cut or lost since are known by it.
//!
//! It is a file of its own, not a part of the summary: reports tell how fast the engine was, and the
//! summary of the same scenario, seed and version is otherwise the same.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use report::{FileError, ResultsDir};
use sha2::{Digest, Sha256};

/// The file's name, as is customary.
pub const NAME: &str = "SHA256SUMS";
/// Bytes that are read at a time.
const PART: usize = 1 << 16;

/// Notes the checksums of `files` of a directory, and of `last`, a file of these bytes that is yet to
/// be written.
///
/// # Errors
/// When a file cannot be read, or the checksums not be written.
pub fn write(directory: &ResultsDir, files: &[&str], last: (&str, &[u8])) -> Result<(), FileError> {
    let mut text = String::new();
    for name in files {
        let path = directory.file(name);
        let sum = of_file(&path).map_err(|source| FileError::new(&path, source))?;
        text.push_str(&line(&sum, name));
    }
    let (name, bytes) = last;
    text.push_str(&line(&hexadecimal(&Sha256::digest(bytes)), name));
    directory.write(NAME, &text)
}

/// Whether exactly `names` are noted in a directory, and all of them are as they were noted.
#[must_use]
pub fn hold(directory: &Path, names: &[&str]) -> bool {
    let Ok(text) = std::fs::read_to_string(directory.join(NAME)) else { return false };
    let lines: Vec<_> = text.lines().collect();
    let is_as_noted = |(noted, name): (&&str, &&str)| {
        let sum = of_file(&directory.join(name));
        sum.is_ok_and(|sum| line(&sum, name).trim_end() == *noted)
    };
    lines.len() == names.len() && lines.iter().zip(names).all(is_as_noted)
}

/// Two spaces: read as text, as everywhere but on systems long gone.
fn line(sum: &str, name: &str) -> String {
    format!("{sum}  {name}\n")
}

fn of_file(path: &Path) -> io::Result<String> {
    let (mut file, mut digest) = (File::open(path)?, Sha256::new());
    let mut part = vec![0; PART];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(hexadecimal(&digest.finalize())),
            count => digest.update(&part[..count]),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_a_missing_and_an_added_file_are_noticed() {
        let place = tempfile::tempdir().unwrap();
        let directory = ResultsDir::create(place.path()).unwrap();
        directory.write("a", "abc").unwrap();
        write(&directory, &["a"], ("b", b"")).unwrap();
        directory.write("b", "").unwrap();
        // The two examples of FIPS 180 that everybody knows by sight.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n\
                        e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b\n";
        assert_eq!(std::fs::read_to_string(directory.file(NAME)).unwrap(), expected);
        assert!(hold(place.path(), &["a", "b"]));
        assert!(!hold(place.path(), &["a"]) && !hold(place.path(), &["b", "a"]));
        directory.write("a", "abd").unwrap();
        assert!(!hold(place.path(), &["a", "b"]));
        directory.write("a", "abc").unwrap();
        assert!(hold(place.path(), &["a", "b"]));
        std::fs::remove_file(directory.file("b")).unwrap();
        assert!(!hold(place.path(), &["a", "b"]));
        assert!(!hold(&place.path().join("none"), &["a", "b"]));
    }
}
