//! `rackloom scoc`: route allocation, and a switch on a test bench.

use rack::Problem;
use reproductions::scoc::tools::{self, Trial};
use scenario::{BadInput, Located};

use super::DONE;
use crate::args::{RoutesArguments, ScocArguments, ScocCommand, SwitchArguments};
use crate::engine::Failure;
use crate::output::Output;

/// Computes what was asked for.
pub fn scoc(arguments: &ScocArguments, output: &mut Output) -> Result<u8, Failure> {
    let table = match &arguments.what {
        ScocCommand::Routes(arguments) => {
            let RoutesArguments { ports, routes, rounds, permutations, seed } = arguments;
            tools::routes((*ports, *routes), rounds, *permutations, *seed)
        }
        ScocCommand::Bench(arguments) => trial(arguments).run(),
    };
    output.table(&table.map_err(bad_input)?);
    Ok(DONE)
}

fn trial(arguments: &SwitchArguments) -> Trial {
    Trial {
        switch: arguments.switch.clone(),
        ports: arguments.ports,
        pattern: arguments.pattern.clone(),
        connections: arguments.connection.clone(),
        load: arguments.load,
        packet: arguments.packet,
        window: (arguments.packet_times / 10, arguments.packet_times),
        seed: arguments.seed,
    }
}

/// The option that each problem is about.
fn bad_input(problems: Vec<Problem>) -> BadInput {
    let located = |problem: Problem| Located::whole(&format!("--{}", problem.key), problem.message);
    BadInput::new(problems.into_iter().map(located).collect())
}
