//! Logs: a line an event, on standard error, for people or as JSON.

/// Begins to write logs. Later calls change nothing.
pub fn begin(json: bool) {
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false);
    let lines = lines.with_max_level(tracing::Level::INFO).with_target(false);
    let _ = match json {
        true => lines.json().flatten_event(true).try_init(),
        false => lines.try_init(),
    };
}
