//! `rackloom view`.

use std::time::Duration;

use scenario::{BadInput, Located};
use view::{Address, Folder};

use super::DONE;
use crate::args::ViewArguments;
use crate::engine::{Busy, EXIT_BROKEN, Failure};
use crate::interrupt;
use crate::output::Output;

/// How often it is asked whether to stop.
const PERIOD: Duration = Duration::from_millis(20);

/// Serves the page over a results directory, until Ctrl-C.
pub fn view(arguments: &ViewArguments, output: &mut Output) -> Result<u8, Failure> {
    let folder = Folder::open(&arguments.directory).map_err(|refusal| {
        let place = arguments.directory.display().to_string();
        BadInput::single(Located::whole(&place, refusal.message))
    })?;
    let busy = Busy::begin();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("the system has threads");
    let stop = async {
        while !interrupt::is_asked() {
            tokio::time::sleep(PERIOD).await;
        }
        busy.stopping();
    };
    let shown = folder.shown().to_string();
    let ready = |address: &Address| {
        let url = address.to_string();
        output.result(|_| format!("{url}\n"), || serde_json::json!({ "url": url }));
        output.note(&format!("shows {shown} to this machine alone; Ctrl-C ends it"));
        if arguments.open && open::that_detached(&url).is_err() {
            output.note("no browser was found to open; give one the address above");
        }
    };
    let served = runtime.block_on(view::serve(folder, arguments.port, ready, stop));
    runtime.shutdown_background();
    match served {
        Ok(()) => Ok(DONE),
        Err(error) => {
            let port = arguments.port;
            output.error(&format!("--port {port}: {error}; without it a free port is taken"));
            Ok(EXIT_BROKEN)
        }
    }
}
