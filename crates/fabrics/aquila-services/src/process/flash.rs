//! The flash of TiNs in files, as it outlives their power: a file a TiN, DIR/flash/tin-N, with each sector at its place.
//!
//! Erased flash holds ones, and a hole in a file zeros; so files hold the complement, and take what is written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use aquila_control::flash::{BLOCK_BYTES, Flash};
use kernel::Span;

const SIZE: usize = BLOCK_BYTES as usize;

/// A TiN's flash and its file.
pub struct Kept {
    path: PathBuf,
    file: Option<File>,
}

impl Kept {
    /// What a TiN's flash held last; as it leaves the factory, if there is no file of it.
    pub fn open(folder: &Path, tin: u16, block_time: Span) -> (Self, Flash) {
        let path = folder.join("flash").join(format!("tin-{tin}"));
        let flash = match read(&path) {
            Ok(flash) => flash,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!(tin, %error, "its flash cannot be read; it is taken for a new one");
                }
                Flash::default()
            }
        };
        (Self { path, file: None }, flash.taking(block_time))
    }

    /// Writes what has changed.
    pub fn keep(&mut self, flash: &mut Flash) {
        let changed = flash.changed();
        if changed.is_empty() {
            return;
        }
        let written = self.file(flash).and_then(|file| {
            changed.iter().try_for_each(|(number, sector)| put(file, *number, sector))
        });
        if let Err(error) = written {
            tracing::error!(path = %self.path.display(), %error, "flash is not kept");
        }
    }

    /// The file; one that was not there gets all that the flash holds.
    fn file(&mut self, flash: &Flash) -> io::Result<&File> {
        if self.file.is_none() {
            let folder = self.path.parent().unwrap_or(&self.path);
            fs::create_dir_all(folder)?;
            let is_new = !self.path.exists();
            let new = self.path.with_extension("new");
            let path = if is_new { &new } else { &self.path };
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
            if is_new {
                for (number, sector) in flash.sectors() {
                    put(&file, number, sector)?;
                }
                fs::rename(&new, &self.path)?;
            }
            self.file = Some(file);
        }
        self.file.as_ref().ok_or_else(|| io::Error::other("it was just opened"))
    }
}

fn put(mut file: &File, number: u16, sector: &[u8; SIZE]) -> io::Result<()> {
    file.seek(SeekFrom::Start(u64::from(number) * u64::from(BLOCK_BYTES)))?;
    file.write_all(&sector.map(|byte| !byte))
}

fn read(path: &Path) -> io::Result<Flash> {
    let bytes = fs::read(path)?;
    let sector = |(number, bytes): (u16, &[u8])| {
        let mut sector = [0xFF; SIZE];
        sector.iter_mut().zip(bytes).for_each(|(byte, kept)| *byte = !kept);
        (number, sector)
    };
    let sectors = (0..).zip(bytes.chunks(SIZE)).map(sector);
    Ok(Flash::from_sectors(sectors.filter(|(_, sector)| sector.iter().any(|&byte| byte != 0xFF))))
}

#[cfg(test)]
mod tests {
    use aquila_control::flash::{GENERATION, Image};
    use kernel::Time;

    use super::*;

    /// M617: what was staged when the process ended is there in its next life, and the rest is as it was.
    #[test]
    fn m617_a_flash_outlives_its_process() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let block_time = Span::from_us(1);
        let image = Image::new(3, GENERATION);
        for block in 0..5 {
            let (mut kept, mut flash) = Kept::open(folder, 4, block_time);
            let staged = flash.staged();
            if block == 0 {
                assert_eq!(staged.header, None);
                flash.stage(Time::ZERO, GENERATION, &image.header).unwrap();
            } else {
                assert_eq!((staged.header, staged.blocks), (Some(image.header), block));
            }
            flash.store(Time::ZERO, block * BLOCK_BYTES, image.block(block)).unwrap();
            // It is marked by whatever comes next.
            let _ = flash.verify(Time::ZERO + block_time);
            kept.keep(&mut flash);
        }
        let (_, mut flash) = Kept::open(folder, 4, block_time);
        assert_eq!(flash.start(GENERATION), Flash::default().running());
        let (_, other) = Kept::open(folder, 5, block_time);
        assert_eq!(other.staged().header, None);
    }
}
