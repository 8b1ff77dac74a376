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

/// A port of a crossbar, as an output and as an input.
pub trait BusyPort {
    /// As an output: inputs that ask for it, busy ones too.
    fn asked_by(&self) -> u64;
    /// As an input: outputs that it asks for, busy ones too. All of the mirror of [`BusyPort::asked_by`], and more if
    /// there are some that it would ask for but which have no room.
    fn asks_for(&self) -> u64;
    /// Whose turn it is.
    fn turns(&self) -> &BusyTurns;
    /// The same, to move it.
    fn turns_mut(&mut self) -> &mut BusyTurns;
}

/// Whose turn it is at a port, as an output and as an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BusyTurns {
    grant: Turn,
    accept: Turn,
}

/// Whose turn it is at one side of a port.
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

/// A round of a crossbar of up to 64 inputs and 64 outputs.
struct Round<'a, P> {
    ports: &'a mut [P; 64],
    /// Inputs and outputs that were free as it began.
    inputs: u64,
    outputs: u64,
}

/// Matches free inputs and outputs of a crossbar in so many iterations. True if more could be matched in another round
/// at once: ports that were granted twice, or not accepted.
// Always: a switch that is compiled more than once, as with a record and without, calls it from as many places.
#[inline(always)]
pub fn match_busy<P: BusyPort>(
    ports: &mut [P; 64],
    (inputs, outputs): (u64, u64),
    iterations: u32,
    matches: &mut Matches,
) -> bool {
    matches.count = 0;
    let mut round = Round { ports, inputs, outputs };
    if outputs & outputs.wrapping_sub(1) == 0 {
        // What one iteration leaves open no other matches.
        if outputs != 0 {
            round.match_one(matches);
        }
        return false;
    }
    round.match_all(iterations, matches)
}

impl<P: BusyPort> Round<'_, P> {
    /// Matches the one output that is free.
    #[inline]
    fn match_one(&mut self, matches: &mut Matches) {
        let output = self.outputs.trailing_zeros() as usize;
        let Some(input) = self.granted_by(self.inputs, output) else { return };
        if self.accept((0, input), self.outputs).is_some() {
            matches.push(input, output);
        }
    }

    #[inline(always)]
    fn match_all(&mut self, iterations: u32, matches: &mut Matches) -> bool {
        let (mut inputs, mut outputs) = (self.inputs, self.outputs);
        let mut is_open = false;
        for iteration in 0..iterations {
            let offered = self.grant(inputs, outputs, &mut matches.granted);
            if offered == 0 {
                return false;
            }
            is_open = false;
            for input in ones(offered) {
                let by = std::mem::take(&mut matches.granted[input % 64]);
                is_open |= by & (by - 1) != 0;
                let Some(output) = self.accept((iteration, input), by) else {
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
    fn grant(&self, inputs: u64, outputs: u64, granted: &mut [u64; 64]) -> u64 {
        let mut offered = 0;
        for output in ones(outputs) {
            if let Some(input) = self.granted_by(inputs, output) {
                granted[input % 64] |= 1 << output;
                offered |= 1 << input;
            }
        }
        offered
    }

    /// The input, of those that are left, to which an output grants.
    #[inline]
    fn granted_by(&self, inputs: u64, output: usize) -> Option<usize> {
        let port = &self.ports[output % 64];
        let asking = port.asked_by();
        let open = asking & inputs;
        if open == 0 {
            return None;
        }
        match port.turns().grant.choose(open, asking & !self.inputs) {
            Choice::InTurn(input) | Choice::Meanwhile(input) => Some(usize::from(input)),
            Choice::Wait => None,
        }
    }

    /// An input takes one of the outputs that granted it; pointers move in the first iteration.
    #[inline]
    fn accept(&mut self, (iteration, input): (u32, usize), by: u64) -> Option<usize> {
        let port = &mut self.ports[input % 64];
        let busy = port.asks_for() & !self.outputs;
        let turn = &mut port.turns_mut().accept;
        let choice = turn.choose(by, busy);
        let (Choice::InTurn(output) | Choice::Meanwhile(output)) = choice else { return None };
        // Turns in which others go meanwhile count whenever they happen.
        let is_first = iteration == 0;
        if is_first || choice != Choice::InTurn(output) {
            turn.took(choice);
        }
        let output = usize::from(output) % 64;
        let port = &mut self.ports[output];
        let busy = port.asked_by() & !self.inputs;
        let turn = &mut port.turns_mut().grant;
        let grant = match turn.choose(1 << input, busy) {
            Choice::InTurn(_) => Choice::InTurn(input as u8),
            _ => Choice::Meanwhile(input as u8),
        };
        if is_first || grant != Choice::InTurn(input as u8) {
            turn.took(grant);
        }
        Some(output)
    }
}

#[cfg(test)]
mod tests {
    use kernel::Stream;

    use super::*;
    use crate::islip::{Islip, Ports};
    use crate::{BitRows, iter_ones};

    /// A port that asks for what it is told to.
    #[derive(Clone, Copy, Default)]
    struct Wants {
        asked_by: u64,
        asks_for: u64,
        turns: BusyTurns,
    }

    impl BusyPort for Wants {
        fn asked_by(&self) -> u64 {
            self.asked_by
        }

        fn asks_for(&self) -> u64 {
            self.asks_for
        }

        fn turns(&self) -> &BusyTurns {
            &self.turns
        }

        fn turns_mut(&mut self) -> &mut BusyTurns {
            &mut self.turns
        }
    }

    fn put(ports: &mut [Wants; 64], input: usize, output: usize, asks: bool) {
        ports[output].asked_by &= !(1 << input);
        ports[input].asks_for &= !(1 << output);
        ports[output].asked_by |= u64::from(asks) << input;
        ports[input].asks_for |= u64::from(asks) << output;
    }

    #[test]
    fn with_all_ports_free_it_is_the_textbooks() {
        for iterations in [1, 2, 4] {
            let mut stream = Stream::new(3, "test/busy-islip", iterations);
            let mut ports = [Wants::default(); 64];
            let mut textbook = Islip::new(64, iterations as usize);
            let mut matches = Matches::default();
            let mut all = BitRows::new(1, 64);
            all.fill(0);
            for slot in 0..300 {
                let density = [0.01, 0.2, 0.9][slot % 3];
                let mut rows = BitRows::new(64, 64);
                for (input, output) in (0..64 * 64).map(|pair| (pair / 64, pair % 64)) {
                    let asks = stream.bernoulli(density);
                    put(&mut ports, input, output, asks);
                    rows.put(output, input, asks);
                }
                match_busy(&mut ports, (u64::MAX, u64::MAX), iterations as u32, &mut matches);
                let found: Vec<_> = matches.pairs().collect();
                let free = Ports { inputs: all.row(0), outputs: all.row(0) };
                let expected: Vec<_> = textbook.schedule(&rows, free).pairs().collect();
                assert_eq!(found, expected, "{iterations} iterations, slot {slot}");
                let at = |port: &Wants| (port.turns.grant.at.into(), port.turns.accept.at.into());
                assert!(ports.iter().map(at).eq(textbook.pointers()));
            }
            assert_eq!(iter_ones(all.row(0)).count(), 64);
        }
    }

    /// The short way that one free output takes ends where the long one does.
    #[test]
    fn one_free_output_is_matched_as_many_are() {
        let mut stream = Stream::new(5, "test/busy-islip", 0);
        let (mut ports, mut matches) = ([Wants::default(); 64], Matches::default());
        let mut seen = [0; 2];
        for _ in 0..20_000 {
            let (input, output) = (stream.below(4) as usize, stream.below(4) as usize);
            put(&mut ports, input, output, stream.bernoulli(0.6));
            let (inputs, outputs) = (stream.below(16), 1 << stream.below(4));
            let mut copy = ports;
            matches.count = 0;
            let mut round = Round { ports: &mut copy, inputs, outputs };
            let is_open = round.match_all(3, &mut matches);
            let expected: Vec<_> = matches.pairs().collect();
            assert_eq!(match_busy(&mut ports, (inputs, outputs), 3, &mut matches), is_open);
            assert!(matches.pairs().eq(expected.iter().copied()));
            assert!(ports.iter().map(|port| port.turns).eq(copy.iter().map(|port| port.turns)));
            seen[expected.len()] += 1;
        }
        assert!(seen.iter().all(|&times| times > 1_000), "{seen:?}");
    }

    /// Cells that keep input and output busy for so many cycles.
    struct Bench {
        ports: [Wants; 64],
        cycles: Vec<Vec<u32>>,
        frees: Vec<(u32, usize, usize)>,
        /// Longest that a pair has asked without a cell.
        worst: u32,
        served: Vec<Vec<u64>>,
    }

    /// Ports of `late` are busy for so many cycles at first.
    fn run(pairs: &[(usize, usize, u32)], late: &[(usize, u32)], cycles: u32) -> Bench {
        let mut bench = Bench {
            ports: [Wants::default(); 64],
            cycles: vec![vec![0; 64]; 64],
            frees: Vec::new(),
            worst: 0,
            served: vec![vec![0; 64]; 64],
        };
        for &(input, output, length) in pairs {
            put(&mut bench.ports, input, output, true);
            bench.cycles[input][output] = length;
        }
        let (mut inputs, mut outputs) = (u64::MAX, u64::MAX);
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
            match_busy(&mut bench.ports, (inputs, outputs), 2, &mut matches);
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
