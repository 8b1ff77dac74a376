//! Text to quantity and back, and every message.

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn what_is_printed_reads_back_the_same(bits in any::<u64>(), shift in 0u32..64) {
        let value = bits >> shift;
        let (time, span) = (Time::from_ps(value), Span::from_ps(value));
        prop_assert_eq!(time.to_string().parse::<Time>().unwrap(), time);
        prop_assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
        let (size, rate) = (Bytes::new(value), Rate::from_bps(value));
        prop_assert_eq!(size.to_string().parse::<Bytes>().unwrap(), size);
        prop_assert_eq!(rate.to_string().parse::<Rate>().unwrap(), rate);
        let json = serde_json::to_string(&rate).unwrap();
        prop_assert_eq!(serde_json::from_str::<Rate>(&json).unwrap(), rate);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,40}", number in "[0-9._]{0,60}", unit in "[a-zA-Z]{0,4}") {
        let _ = text.parse::<Span>();
        let _ = format!("{number} {unit}").parse::<Bytes>();
        let _ = format!("{number}s").parse::<Time>();
    }

    #[test]
    fn a_decimal_reads_as_its_exact_value(whole in 0u64..1000, thousandths in 0u64..1000) {
        let found: Span = format!("{whole}.{thousandths:03} us").parse().unwrap();
        prop_assert_eq!(found.as_ps(), whole * 1_000_000 + thousandths * 1_000);
    }
}

#[test]
fn every_unit_reads_as_its_size() {
    let size = |text: &str| text.parse::<Bytes>().unwrap().get();
    for (name, scale) in BYTE_UNITS.iter().chain(BINARY_UNITS) {
        assert_eq!(size(&format!("3 {name}")), 3 * scale);
    }
    assert_eq!(size("0.5KiB"), 512);
    for (name, scale) in TIME_UNITS {
        assert_eq!(format!("3 {name}").parse::<Span>().unwrap().as_ps(), 3 * scale);
    }
    for (name, scale) in RATE_UNITS {
        assert_eq!(format!("3 {name}").parse::<Rate>().unwrap().as_bps(), 3 * scale);
    }
}

#[test]
fn spaces_and_digit_groups_are_allowed() {
    for text in ["1500 B", " 1500B ", "1_500 B", "1.5 KB", "1.500KB", "0.0015 MB"] {
        assert_eq!(text.parse::<Bytes>().unwrap(), Bytes::new(1500), "{text}");
    }
}

#[test]
fn prints_in_the_largest_unit_that_fits() {
    let cases =
        [(0, "0 ps"), (1, "1 ps"), (1_000, "1 ns"), (2_750, "2.75 ns"), (1_000_001, "1.000001 us")];
    for (ps, text) in cases {
        assert_eq!(Span::from_ps(ps).to_string(), text);
    }
    assert_eq!(Bytes::new(1024).to_string(), "1.024 KB");
    assert_eq!(format!("{:>8}|{:<8}|", Bytes::new(64), Rate::from_gbps(1)), "    64 B|1 Gbps  |");
}

#[track_caller]
fn check_refused(text: &str, message: &str) {
    assert_eq!(text.parse::<Bytes>().unwrap_err().to_string(), message);
}

#[test]
fn each_mistake_has_its_message() {
    let not_a_number =
        |text| format!("\"{text}\" is not a size: expected a number and a unit, such as \"64 B\"");
    for text in ["", "B", "-5 B", ".5 KB", "5. KB", "1.2.3 B", "_ B", "NaN B"] {
        check_refused(text, &not_a_number(text));
    }
    let units = "TB, GB, MB, KB, B, TiB, GiB, MiB, KiB";
    check_refused(
        "64",
        &format!("\"64\" has no unit: a size is written with one of {units}, such as \"64 B\""),
    );
    for (text, unit) in [("64 kb", "kb"), ("1e3 B", "e3 B"), ("5 ns", "ns"), ("1,5 KB", ",5 KB")] {
        check_refused(
            text,
            &format!(
                "\"{text}\" has the unknown unit \"{unit}\": a size is written with one of \
                 {units}, such as \"64 B\""
            ),
        );
    }
    check_refused("1.5 B", "\"1.5 B\" is not a whole number of bytes");
    check_refused("0.0001 KB", "\"0.0001 KB\" is not a whole number of bytes");
    check_refused(
        "0.0000000000000000001 TB",
        "\"0.0000000000000000001 TB\" is not a whole number of bytes",
    );
    let max = u64::MAX;
    for text in ["18446744073709551616 B", "99999999999999 TB", &format!("{} B", "9".repeat(60))] {
        check_refused(text, &format!("\"{text}\" is too large: at most {max} bytes"));
    }
    assert_eq!("18446744073709551615 B".parse::<Bytes>(), Ok(Bytes::new(max)));
    let message = "64 GBps".parse::<Rate>().unwrap_err().to_string();
    assert!(
        message.ends_with("one of Tbps, Gbps, Mbps, Kbps, bps, such as \"100 Gbps\""),
        "{message}"
    );
}

#[test]
fn a_bare_number_in_a_file_is_refused() {
    let message = serde_json::from_str::<Span>("5").unwrap_err().to_string();
    assert!(message.starts_with("invalid type: integer `5`"), "{message}");
    assert!(message.contains("\"2.75 ns\""), "says how to write it: {message}");
}

#[test]
fn the_schema_accepts_what_the_reader_accepts() {
    let schema = serde_json::to_value(schemars::schema_for!(Rate)).unwrap();
    assert_eq!(schema["type"], "string");
    assert_eq!(schema["examples"][0], "100 Gbps");
    assert_eq!(schema["pattern"], r"^\s*[0-9][0-9_]*(\.[0-9_]+)?\s*(Tbps|Gbps|Mbps|Kbps|bps)\s*$");
    // "time" and "duration" are formats of the standard with another meaning.
    assert!(schema.get("format").is_none());
}
