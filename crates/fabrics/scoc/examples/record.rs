//! Writes a recording of a chip with 16 ports under random traffic: `vectors/chip.json`.

use std::io::Write;

use kernel::Stream;
use scoc::ChipConfig;
use scoc::vectors::{Entering, Recorder};

fn main() {
    let chip = ChipConfig { ports: 16, ..ChipConfig::default() };
    let mut recorder = Recorder::new(&chip, 1).expect("a chip of 16 ports");
    let (mut draw, mut tag) = (Stream::new(1, "example/record", 0), 0);
    for cycle in 0..260 {
        let input = draw.below(16) as u16;
        if cycle < 160 && draw.below(3) > 0 && recorder.has_room(input) {
            let (output, bytes) = (draw.below(16) as u16, 40 + draw.below(281) as u16);
            let at = cycle * recorder.recording().cycle_ticks;
            recorder.enter(Entering { input, output, bytes, tag, at }).expect("there is room");
            tag += 1;
        }
        recorder.step();
    }
    let json = serde_json::to_string(recorder.recording()).expect("plain numbers");
    let text = json.replace("{\"cycle\"", "\n{\"cycle\"");
    writeln!(std::io::stdout(), "{text}").expect("the output can be written");
}
