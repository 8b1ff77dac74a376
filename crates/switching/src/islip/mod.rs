//! iSLIP: a matching of inputs and outputs by rotating pointers.
//!
//! Models: McKeown, "The iSLIP Scheduling Algorithm for Input-Queued Switches", IEEE/ACM ToN 1999,
//! §III: an iteration is request, grant, accept. Pointers move one beyond the partner on an accept
//! of the first iteration and never otherwise, which is what keeps every queue from starving.
//! Ports that are engaged elsewhere stand out: the caller hands in who is free. Leaves out
//! priorities and multicast.

mod busy;

pub use busy::{BusyPort, BusyTurns, Matches, PASSES_MAX, match_busy};

use crate::arbiters::RoundRobin;
use crate::{BitRows, iter_ones};

/// Which ports may be matched, one bit each.
#[derive(Clone, Copy, Debug)]
pub struct Ports<'a> {
    /// Inputs that are free.
    pub inputs: &'a [u64],
    /// Outputs that are free.
    pub outputs: &'a [u64],
}

/// Who sends to whom: for each input its output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Matching {
    output_of: Vec<Option<u16>>,
    pairs: Vec<(u16, u16)>,
}

impl Matching {
    fn new(ports: usize) -> Self {
        Self { output_of: vec![None; ports], pairs: Vec::with_capacity(ports) }
    }

    fn clear(&mut self) {
        for (input, _) in self.pairs.drain(..) {
            self.output_of[usize::from(input)] = None;
        }
    }

    fn join(&mut self, input: usize, output: usize) {
        self.output_of[input] = Some(output as u16);
        self.pairs.push((input as u16, output as u16));
    }

    /// The pairs of input and output, in the order in which they were made.
    pub fn pairs(&self) -> impl ExactSizeIterator<Item = (usize, usize)> + '_ {
        self.pairs.iter().map(|&(input, output)| (usize::from(input), usize::from(output)))
    }

    /// The output matched to `input`.
    #[must_use]
    pub fn output_of(&self, input: usize) -> Option<usize> {
        self.output_of[input].map(usize::from)
    }
}

/// The scheduler of a crossbar with as many inputs as outputs.
#[derive(Clone, Debug)]
pub struct Islip {
    ports: usize,
    iterations: usize,
    grant: Vec<RoundRobin>,
    accept: Vec<RoundRobin>,
    matching: Matching,
    /// Ports not matched yet: row 0 inputs, row 1 outputs.
    open: BitRows,
    /// Row `i`: outputs that grant input `i` in this iteration.
    granted: BitRows,
    /// Requests of open inputs to the output at work.
    asking: Vec<u64>,
    /// Inputs with a grant: row 0.
    offered: BitRows,
}

impl Islip {
    /// A scheduler of `ports`, all pointers at 0.
    ///
    /// # Panics
    /// Without ports or iterations.
    #[must_use]
    pub fn new(ports: usize, iterations: usize) -> Self {
        assert!(ports > 0 && iterations > 0, "iSLIP of {ports} ports, {iterations} iterations");
        let open = BitRows::new(2, ports);
        Self {
            ports,
            iterations,
            grant: vec![RoundRobin::default(); ports],
            accept: vec![RoundRobin::default(); ports],
            matching: Matching::new(ports),
            asking: vec![0; open.stride()],
            open,
            granted: BitRows::new(ports, ports),
            offered: BitRows::new(1, ports),
        }
    }

    /// Where the pointers stand: those of the outputs, those of the inputs.
    pub fn pointers(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.grant
            .iter()
            .zip(&self.accept)
            .map(|(grant, accept)| (grant.pointer(), accept.pointer()))
    }

    /// Matches ports that are free. Row `o` of `requests`: inputs with something for output `o`.
    pub fn schedule(&mut self, requests: &BitRows, free: Ports<'_>) -> &Matching {
        self.matching.clear();
        for (row, ports) in [free.inputs, free.outputs].into_iter().enumerate() {
            self.open.clear_row(row);
            iter_ones(ports).for_each(|port| self.open.set(row, port));
        }
        for iteration in 0..self.iterations {
            self.issue_grants(requests);
            if !self.accept_grants(iteration) {
                break;
            }
        }
        &self.matching
    }

    fn issue_grants(&mut self, requests: &BitRows) {
        for output in iter_ones(self.open.row(1)) {
            let open = requests.row(output).iter().zip(self.open.row(0));
            self.asking.iter_mut().zip(open).for_each(|(asks, (all, open))| *asks = all & open);
            if let Some(input) = self.grant[output].choose(&self.asking) {
                self.granted.set(input, output);
                self.offered.set(0, input);
            }
        }
    }

    /// Whether anything was granted.
    fn accept_grants(&mut self, iteration: usize) -> bool {
        let mut any = false;
        for input in iter_ones(self.offered.row(0)) {
            any = true;
            let output = self.accept[input].choose(self.granted.row(input));
            let output = output.expect("an input is noted only with a grant");
            self.granted.clear_row(input);
            self.open.clear(0, input);
            self.open.clear(1, output);
            self.matching.join(input, output);
            if iteration == 0 {
                self.grant[output].point_beyond(input, self.ports);
                self.accept[input].point_beyond(output, self.ports);
            }
        }
        self.offered.clear_row(0);
        any
    }
}
