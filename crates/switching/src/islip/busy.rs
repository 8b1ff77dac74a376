//! iSLIP where cells have different lengths, so that ports are busy at different times (Aquila, NSDI 2022,
//! §3.1): "ingress and egress ports raise busy", and the arbiter leaves them out of its next round.
//!
//! The textbook's proof that nobody starves needs all ports free in every slot. Here an output may become free
//! again and again while the input that its pointer favours is busy, and pass it over for ever. So a pointer
//! stays at a partner that asks but is busy; others are served meanwhile, in turn by a pointer of their own; and
//! after [`PASSES_MAX`] of them the port is kept free until its partner is, which takes the time of one cell
//! at most (our choice: the paper claims that nobody starves, and not how). The same holds for inputs.

use crate::{first_in_turn, ones};

/// How many others a port serves while the partner whose turn it is asks but is busy.
pub const PASSES_MAX: u8 = 64;

/// Whose turn it is at one port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Turn {
    /// Whom the port favours.
    at: u8,
    /// Whom it favours of those whom it serves meanwhile.
    meanwhile: u8,
    /// How many it has served meanwhile.
    passes: u8,
}

/// What a port does in a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Choice {
    /// It takes this partner, whose turn it is.
    InTurn(u8),
    /// It takes this one while another, whose turn it is, is busy.
    Meanwhile(u8),
    /// It waits for the one whose turn it is.
    Wait,
}

impl Turn {
    /// Of `open`, which is not empty, the partner to take. `busy` are those that ask but are busy.
    #[inline]
    fn choose(self, open: u64, busy: u64) -> Choice {
        let next = first_in_turn(open | busy, self.at.into()) as u8;
        match open >> next & 1 == 1 {
            true => Choice::InTurn(next),
            false if self.passes >= PASSES_MAX => Choice::Wait,
            false => Choice::Meanwhile(first_in_turn(open, self.meanwhile.into()) as u8),
        }
    }

    /// The choice has come true.
    #[inline]
    fn took(&mut self, choice: Choice) {
        match choice {
            Choice::InTurn(partner) => {
                (self.at, self.passes) = ((partner + 1) % 64, 0);
            }
            Choice::Meanwhile(partner) => {
                self.meanwhile = (partner + 1) % 64;
                self.passes += 1;
            }
            Choice::Wait => {}
        }
    }
}

/// Who asks whom in a round, by port, one bit a partner.
#[derive(Clone, Copy, Debug)]
pub struct Requests<'a> {
    /// By output: inputs that ask for it, busy ones too.
    pub of_output: &'a [u64; 64],
    /// By input: outputs that it asks for, busy ones too. All of the mirror of `of_output`, and more if there
    /// are some that it would ask for but which have no room.
    pub of_input: &'a [u64; 64],
    /// Inputs that are free.
    pub free_inputs: u64,
    /// Outputs that are free.
    pub free_outputs: u64,
}

/// The pairs of a round, in the order in which they were made, and what it is worked out with. Belongs to no crossbar:
/// one is enough for all that are matched one after another.
#[derive(Clone, Debug)]
pub struct Matches {
    pairs: [(u8, u8); 64],
    count: usize,
    /// By input: outputs that grant; empty between rounds.
    granted: [u64; 64],
}

impl Default for Matches {
    fn default() -> Self {
        Self { pairs: [(0, 0); 64], count: 0, granted: [0; 64] }
    }
}

impl Matches {
    /// How many pairs there are.
    #[inline]
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Input and output of a pair.
    #[inline]
    #[must_use]
    pub fn pair(&self, at: usize) -> (usize, usize) {
        let (input, output) = self.pairs[at % 64];
        (usize::from(input) % 64, usize::from(output) % 64)
    }

    /// All pairs.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.count).map(|at| self.pair(at))
    }

    #[inline]
    fn push(&mut self, input: usize, output: usize) {
        self.pairs[self.count % 64] = (input as u8, output as u8);
        self.count += 1;
    }
}

/// The scheduler of a crossbar of up to 64 inputs and 64 outputs, in flat words.
#[derive(Clone, Debug)]
pub struct BusyIslip {
    grant: [Turn; 64],
    accept: [Turn; 64],
}

impl Default for BusyIslip {
    fn default() -> Self {
        Self { grant: [Turn::default(); 64], accept: [Turn::default(); 64] }
    }
}

impl BusyIslip {
    /// Matches free ports in so many iterations. True if more could be matched in another round at once: ports that
    /// were granted twice, or not accepted.
    #[inline]
    pub fn schedule(
        &mut self,
        requests: Requests<'_>,
        iterations: u32,
        matches: &mut Matches,
    ) -> bool {
        matches.count = 0;
        let outputs = requests.free_outputs;
        if outputs & outputs.wrapping_sub(1) == 0 && outputs != 0 {
            self.schedule_one(requests, matches);
            return false;
        }
        self.schedule_all(requests, iterations, matches)
    }

    /// The same where one output is free: what one iteration leaves open no other matches.
    #[inline]
    fn schedule_one(&mut self, requests: Requests<'_>, matches: &mut Matches) {
        let output = requests.free_outputs.trailing_zeros() as usize;
        let Some(input) = self.granted_by(requests, requests.free_inputs, output) else { return };
        if self.accept(requests, (0, input), requests.free_outputs).is_some() {
            matches.push(input, output);
        }
    }

    fn schedule_all(
        &mut self,
        requests: Requests<'_>,
        iterations: u32,
        matches: &mut Matches,
    ) -> bool {
        let (mut inputs, mut outputs) = (requests.free_inputs, requests.free_outputs);
        let mut is_open = false;
        for iteration in 0..iterations {
            let offered = self.grant(requests, inputs, outputs, &mut matches.granted);
            if offered == 0 {
                return false;
            }
            is_open = false;
            for input in ones(offered) {
                let by = std::mem::take(&mut matches.granted[input % 64]);
                is_open |= by & (by - 1) != 0;
                let Some(output) = self.accept(requests, (iteration, input), by) else {
                    continue;
                };
                inputs &= !(1 << input);
                outputs &= !(1 << output);
                matches.push(input, output);
            }
        }
        is_open
    }

    /// Outputs grant; gives inputs with a grant.
    #[inline]
    fn grant(
        &self,
        requests: Requests<'_>,
        inputs: u64,
        outputs: u64,
        granted: &mut [u64; 64],
    ) -> u64 {
        let mut offered = 0;
        for output in ones(outputs) {
            if let Some(input) = self.granted_by(requests, inputs, output) {
                granted[input % 64] |= 1 << output;
                offered |= 1 << input;
            }
        }
        offered
    }

    /// The input, of those that are left, to which an output grants.
    #[inline]
    fn granted_by(&self, requests: Requests<'_>, inputs: u64, output: usize) -> Option<usize> {
        let asking = requests.of_output[output % 64];
        let open = asking & inputs;
        if open == 0 {
            return None;
        }
        match self.grant[output % 64].choose(open, asking & !requests.free_inputs) {
            Choice::InTurn(input) | Choice::Meanwhile(input) => Some(usize::from(input)),
            Choice::Wait => None,
        }
    }

    /// An input takes one of the outputs that granted it; pointers move in the first iteration.
    #[inline]
    fn accept(
        &mut self,
        requests: Requests<'_>,
        (iteration, input): (u32, usize),
        by: u64,
    ) -> Option<usize> {
        let input = input % 64;
        let choice =
            self.accept[input].choose(by, requests.of_input[input] & !requests.free_outputs);
        let (Choice::InTurn(output) | Choice::Meanwhile(output)) = choice else { return None };
        let output = usize::from(output) % 64;
        // Turns in which others go meanwhile count whenever they happen.
        let is_first = iteration == 0;
        if is_first || choice != Choice::InTurn(output as u8) {
            self.accept[input].took(choice);
        }
        let busy = requests.of_output[output] & !requests.free_inputs;
        let grant = self.grant[output].choose(1 << input, busy);
        let grant = match grant {
            Choice::InTurn(_) => Choice::InTurn(input as u8),
            _ => Choice::Meanwhile(input as u8),
        };
        if is_first || grant != Choice::InTurn(input as u8) {
            self.grant[output].took(grant);
        }
        Some(output)
    }

    /// Where the pointers stand: those of the outputs, those of the inputs.
    pub fn pointers(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let at = |turn: &Turn| usize::from(turn.at);
        self.grant.iter().zip(&self.accept).map(move |(grant, accept)| (at(grant), at(accept)))
    }
}

#[cfg(test)]
mod tests {
    use kernel::Stream;

    use super::*;
    use crate::islip::{Islip, Ports};
    use crate::{BitRows, iter_ones};

    #[derive(Clone)]
    struct Wants {
        of_output: [u64; 64],
        of_input: [u64; 64],
    }

    impl Wants {
        fn none() -> Self {
            Self { of_output: [0; 64], of_input: [0; 64] }
        }

        fn put(&mut self, input: usize, output: usize, asks: bool) {
            self.of_output[output] &= !(1 << input);
            self.of_input[input] &= !(1 << output);
            self.of_output[output] |= u64::from(asks) << input;
            self.of_input[input] |= u64::from(asks) << output;
        }

        fn of(&self, free_inputs: u64, free_outputs: u64) -> Requests<'_> {
            let (of_output, of_input) = (&self.of_output, &self.of_input);
            Requests { of_output, of_input, free_inputs, free_outputs }
        }
    }

    #[test]
    fn with_all_ports_free_it_is_the_textbooks() {
        for iterations in [1, 2, 4] {
            let mut stream = Stream::new(3, "test/busy-islip", iterations);
            let (mut busy, mut textbook) =
                (BusyIslip::default(), Islip::new(64, iterations as usize));
            let mut all = BitRows::new(1, 64);
            all.fill(0);
            for slot in 0..300 {
                let density = [0.01, 0.2, 0.9][slot % 3];
                let (mut wants, mut rows) = (Wants::none(), BitRows::new(64, 64));
                for (input, output) in (0..64 * 64).map(|pair| (pair / 64, pair % 64)) {
                    let asks = stream.bernoulli(density);
                    wants.put(input, output, asks);
                    rows.put(output, input, asks);
                }
                let mut matches = Matches::default();
                busy.schedule(wants.of(u64::MAX, u64::MAX), iterations as u32, &mut matches);
                let found: Vec<_> = matches.pairs().collect();
                let free = Ports { inputs: all.row(0), outputs: all.row(0) };
                let expected: Vec<_> = textbook.schedule(&rows, free).pairs().collect();
                assert_eq!(found, expected, "{iterations} iterations, slot {slot}");
                assert!(busy.pointers().eq(textbook.pointers()));
            }
            assert_eq!(iter_ones(all.row(0)).count(), 64);
        }
    }

    /// Cells that keep input and output busy for so many cycles.
    struct Bench {
        wants: Wants,
        cycles: Vec<Vec<u32>>,
        frees: Vec<(u32, usize, usize)>,
        /// Longest that a pair has asked without a cell.
        worst: u32,
        served: Vec<Vec<u64>>,
    }

    /// Ports of `late` are busy for so many cycles at first.
    fn run(pairs: &[(usize, usize, u32)], late: &[(usize, u32)], cycles: u32) -> Bench {
        let mut bench = Bench {
            wants: Wants::none(),
            cycles: vec![vec![0; 64]; 64],
            frees: Vec::new(),
            worst: 0,
            served: vec![vec![0; 64]; 64],
        };
        for &(input, output, length) in pairs {
            bench.wants.put(input, output, true);
            bench.cycles[input][output] = length;
        }
        let (mut islip, mut inputs, mut outputs) = (BusyIslip::default(), u64::MAX, u64::MAX);
        let mut matches = Matches::default();
        let mut last = vec![vec![0; 64]; 64];
        for &(port, until) in late {
            (inputs, outputs) = (inputs & !(1 << port), outputs & !(1 << port));
            bench.frees.push((until, port, port));
        }
        for now in 0..cycles {
            bench.frees.retain(|&(at, input, output)| {
                if at == now {
                    inputs |= 1 << input;
                    outputs |= 1 << output;
                }
                at != now
            });
            islip.schedule(bench.wants.of(inputs, outputs), 2, &mut matches);
            for (input, output) in matches.pairs() {
                let is_free = inputs >> input & 1 == 1 && outputs >> output & 1 == 1;
                assert!(is_free && bench.cycles[input][output] > 0, "{input} to {output} at {now}");
                inputs &= !(1 << input);
                outputs &= !(1 << output);
                bench.frees.push((now + bench.cycles[input][output], input, output));
                bench.served[input][output] += 1;
                bench.worst = bench.worst.max(now - last[input][output]);
                last[input][output] = now;
            }
        }
        for &(input, output, _) in pairs {
            bench.worst = bench.worst.max(cycles - last[input][output]);
        }
        bench
    }

    /// Input 0 has cells of ten cycles for outputs that others keep busy with cells of one: whenever such an
    /// output is free input 0 is busy, with hardly an exception.
    #[test]
    fn nobody_starves_when_cells_have_different_lengths() {
        for others in [1, 2, 7, 40] {
            let long = (0..others).map(|output| (0, output, 10));
            let short = (1..=3).flat_map(|input| (0..others).map(move |output| (input, output, 1)));
            let pairs: Vec<_> = long.chain(short).collect();
            let bench = run(&pairs, &[], 60_000);
            // Turns of 64 passes at each of the outputs, and a cell of ten cycles between.
            let bound = 10 * (u32::from(PASSES_MAX) + 4) * (others as u32 + 1);
            assert!(bench.worst < bound, "{others} outputs: {} cycles, bound {bound}", bench.worst);
            let longs: Vec<_> = (0..others).map(|output| bench.served[0][output]).collect();
            let (least, most) = (longs.iter().min().unwrap(), longs.iter().max().unwrap());
            assert!(*least > 0 && most - least <= 1 + most / 4, "{longs:?}");
        }
    }

    /// Input 0 and output 1 are free in turns, half a cell apart, for ever: with pointers alone they never meet.
    #[test]
    fn ports_that_are_never_free_at_once_meet() {
        let pairs = [(0, 0, 10), (0, 1, 10), (2, 1, 10)];
        let bench = run(&pairs, &[(1, 5)], 60_000);
        let bound = 10 * (u32::from(PASSES_MAX) + 4);
        assert!(
            bench.worst < bound,
            "{} cycles, bound {bound}: {:?}",
            bench.worst,
            bench.served[0]
        );
    }

    /// While one waits for a busy partner the others are served evenly, not the first behind the pointer.
    #[test]
    fn those_who_pass_take_turns() {
        // Input 9 is always busy elsewhere with long cells when output 0 is free.
        let pairs: Vec<_> =
            (1..=4).map(|input| (input, 0, 1)).chain([(9, 0, 30), (9, 1, 30)]).collect();
        let bench = run(&pairs, &[], 40_000);
        let served: Vec<_> = (1..=4).map(|input| bench.served[input][0]).collect();
        let (least, most) = (served.iter().min().unwrap(), served.iter().max().unwrap());
        assert!(most - least < most / 20, "{served:?}");
    }
}
