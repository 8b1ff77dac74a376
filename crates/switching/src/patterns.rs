//! Who sends to whom through a switch: the patterns with which switches are compared.
//!
//! Each is a matrix of shares with a way to draw from a row of it. Sources: SCOC §4.C to §4.E;
//! uniform, diagonal and log-diagonal as in Giaccone, Prabhakar and Shah (INFOCOM 2002);
//! unbalanced from Rojas-Cessa et al. (HPSR 2001); permutations of address bits from Dally and
//! Towles, §3.2.

use kernel::Stream;

/// A pattern of traffic through a switch.
#[derive(Clone, PartialEq, Debug)]
pub enum Pattern {
    /// Every output is as likely.
    Uniform,
    /// Uniform inside groups of this many consecutive ports, a port's own output included.
    Partitioned(usize),
    /// Two thirds to the next output, one third to the own.
    Diagonal,
    /// Half to the own output, a quarter to the next, and so on.
    LogDiagonal,
    /// This share to one output for each input, the rest uniform over all.
    Unbalanced {
        /// The preferred output of each input: a permutation.
        sink: Vec<usize>,
        /// The share beyond uniform, from 0 to 1.
        share: f64,
    },
    /// All of an input to one output.
    Permutation(Vec<usize>),
    /// This share of every input to one output, the rest uniform over all.
    HotSpot {
        /// The hot output.
        output: usize,
        /// The share beyond uniform, from 0 to 1.
        share: f64,
    },
    /// For each input its outputs, each with a share of the line rate.
    Connections(Vec<Vec<(usize, f64)>>),
    /// For each input its outputs, each of them once, one after the other.
    InTurn(Vec<Vec<usize>>),
}

impl Pattern {
    /// Explicit connections `(input, output, share of the line rate)` of a switch of `ports`.
    ///
    /// # Errors
    /// In words: a port that does not exist, a share that is none, a row beyond the line rate.
    pub fn connections(ports: usize, list: &[(usize, usize, f64)]) -> Result<Self, String> {
        let mut rows = vec![Vec::new(); ports];
        for &(input, output, share) in list {
            if input >= ports || output >= ports {
                return Err(format!(
                    "connection {input} to {output}: a switch of {ports} ports has ports 0 to {}",
                    ports - 1
                ));
            }
            if !(share > 0.0 && share <= 1.0) {
                return Err(format!(
                    "connection {input} to {output}: {share} is no share of the line rate, which \
                     is above 0 and at most 1"
                ));
            }
            rows[input].push((output, share));
        }
        for (input, row) in rows.iter().enumerate() {
            let sum: f64 = row.iter().map(|&(_, share)| share).sum();
            // A third three times may exceed 1 by a rounding.
            if sum > 1.0 + 1e-9 {
                return Err(format!(
                    "input {input}: its connections ask for {sum:.3} times the line rate; reduce \
                     them to at most 1"
                ));
            }
        }
        Ok(Self::Connections(rows))
    }

    /// Checks it against a switch of `ports`.
    ///
    /// # Errors
    /// In words.
    pub fn check(&self, ports: usize) -> Result<(), String> {
        let is_share = |share: f64| match (0.0..=1.0).contains(&share) {
            true => Ok(()),
            false => Err(format!("{share} is no share: give one from 0 to 1")),
        };
        let permutes = |of: &[usize]| {
            let mut seen = vec![false; ports];
            of.iter().for_each(|&to| *seen.get_mut(to).unwrap_or(&mut false) = true);
            match of.len() == ports && seen.iter().all(|&seen| seen) {
                true => Ok(()),
                false => Err(format!("not a permutation of {ports} ports")),
            }
        };
        match self {
            Self::Uniform | Self::Diagonal | Self::LogDiagonal => Ok(()),
            Self::Partitioned(size) if *size > 0 && ports.is_multiple_of(*size) => Ok(()),
            Self::Partitioned(size) => {
                Err(format!("parts of {size} ports do not divide {ports} ports"))
            }
            Self::Unbalanced { sink, share } => is_share(*share).and_then(|()| permutes(sink)),
            Self::Permutation(to) => permutes(to),
            Self::HotSpot { output, share } if *output < ports => is_share(*share),
            Self::HotSpot { output, .. } => {
                Err(format!("output {output} of a switch of {ports} ports"))
            }
            Self::InTurn(rows) if rows.len() != ports => {
                Err(format!("outputs of {} inputs of a switch of {ports}", rows.len()))
            }
            Self::InTurn(rows) => rows.iter().try_for_each(|row| {
                let mut seen = vec![false; ports];
                row.iter().try_for_each(|&output| match seen.get_mut(output) {
                    None => Err(format!("output {output} of a switch of {ports} ports")),
                    Some(seen) if *seen => Err(format!("output {output} twice in a turn")),
                    Some(seen) => {
                        *seen = true;
                        Ok(())
                    }
                })
            }),
            Self::Connections(rows) => {
                let list: Vec<_> = (0..)
                    .zip(rows)
                    .flat_map(|(input, row)| {
                        row.iter().map(move |&(output, share)| (input, output, share))
                    })
                    .collect();
                Self::connections(ports.max(rows.len()), &list).map(drop)
            }
        }
    }

    /// The part of the line rate that `input` sends when all send as much as they may.
    #[must_use]
    pub fn weight(&self, input: usize) -> f64 {
        match self {
            Self::Connections(rows) => {
                rows[input].iter().map(|&(_, share)| share).sum::<f64>().min(1.0)
            }
            Self::InTurn(rows) => f64::from(u8::from(!rows[input].is_empty())),
            _ => 1.0,
        }
    }

    /// The share of what `input` sends that goes to `output`: the closed form of [`Pattern::draw`].
    #[must_use]
    pub fn share(&self, ports: usize, input: usize, output: usize) -> f64 {
        let even = 1.0 / ports as f64;
        let ahead = (output + ports - input) % ports;
        let mixed =
            |share: f64, favoured: bool| (1.0 - share) * even + if favoured { share } else { 0.0 };
        match self {
            Self::Uniform => even,
            Self::Partitioned(size) if input / size == output / size => 1.0 / *size as f64,
            Self::Partitioned(_) => 0.0,
            Self::Diagonal if ports == 1 => 1.0,
            Self::Diagonal => [1.0 / 3.0, 2.0 / 3.0].get(ahead).copied().unwrap_or(0.0),
            // 2^(N-1-d) / (2^N - 1), written so that a thousand ports do not overflow.
            Self::LogDiagonal => 0.5f64.powi(ahead as i32 + 1) / (1.0 - 0.5f64.powi(ports as i32)),
            Self::Unbalanced { sink, share } => mixed(*share, sink[input] == output),
            Self::Permutation(to) => f64::from(u8::from(to[input] == output)),
            Self::HotSpot { output: hot, share } => mixed(*share, *hot == output),
            Self::Connections(rows) => {
                let to = rows[input].iter().filter(|&&(to, _)| to == output);
                let whole: f64 = rows[input].iter().map(|&(_, share)| share).sum();
                to.map(|&(_, share)| share).sum::<f64>() / whole
            }
            Self::InTurn(rows) => {
                let to = rows[input].iter().filter(|&&to| to == output);
                to.count() as f64 / rows[input].len() as f64
            }
        }
    }

    /// The output of the next packet of `input`, which sends something. `last` is that of the packet before, and of no
    /// meaning for the first.
    pub fn draw(&self, ports: usize, input: usize, last: usize, stream: &mut Stream) -> usize {
        let any = |stream: &mut Stream| stream.below(ports as u64) as usize;
        match self {
            Self::Uniform => any(stream),
            Self::Partitioned(size) => input / size * size + stream.below(*size as u64) as usize,
            Self::Diagonal => (input + usize::from(stream.below(3) != 0)) % ports,
            Self::LogDiagonal => {
                // Leading zeros of random bits; what would go round the switch is drawn again.
                let ahead = std::iter::repeat_with(|| {
                    (0..).take_while(|_| stream.bernoulli(0.5)).take(ports).count()
                });
                let ahead = ahead.into_iter().find(|&ahead| ahead < ports);
                (input + ahead.expect("the draws do not end")) % ports
            }
            Self::Unbalanced { sink, share } => match stream.bernoulli(*share) {
                true => sink[input],
                false => any(stream),
            },
            Self::Permutation(to) => to[input],
            Self::HotSpot { output, share } => match stream.bernoulli(*share) {
                true => *output,
                false => any(stream),
            },
            Self::Connections(rows) => draw_from(&rows[input], stream),
            Self::InTurn(rows) => {
                let row = &rows[input];
                row[row.iter().position(|&to| to == last).map_or(0, |at| (at + 1) % row.len())]
            }
        }
    }
}

/// One of a few outputs by their shares.
fn draw_from(row: &[(usize, f64)], stream: &mut Stream) -> usize {
    let whole: f64 = row.iter().map(|&(_, share)| share).sum();
    let mut left = stream.unit() * whole;
    for &(output, share) in row {
        left -= share;
        if left < 0.0 {
            return output;
        }
    }
    row.last().expect("an input that sends has a connection").0
}

/// The bits of a port number of a switch of `ports`.
///
/// # Panics
/// If the number of ports is not a power of two.
fn bits(ports: usize) -> u32 {
    assert!(ports.is_power_of_two(), "{ports} ports have no whole number of address bits");
    ports.trailing_zeros()
}

/// The bits of the address reversed.
#[must_use]
pub fn bit_reverse(ports: usize) -> Vec<usize> {
    let bits = bits(ports);
    let reversed = |port: usize| {
        if bits == 0 { port } else { port.reverse_bits() >> (usize::BITS - bits) }
    };
    (0..ports).map(reversed).collect()
}

/// The bits of the address inverted.
#[must_use]
pub fn bit_complement(ports: usize) -> Vec<usize> {
    bits(ports);
    (0..ports).map(|port| ports - 1 - port).collect()
}

/// The address rotated by `by` bits to the left.
fn rotated(ports: usize, by: u32) -> Vec<usize> {
    let bits = bits(ports);
    let rotate = |port: usize| (port << by | port >> (bits - by)) & (ports - 1);
    (0..ports).map(rotate).collect()
}

/// The address rotated by one bit: a perfect shuffle of two halves.
#[must_use]
pub fn shuffle(ports: usize) -> Vec<usize> {
    rotated(ports, 1.min(bits(ports)))
}

/// The halves of the address exchanged. An odd number of bits rotates by the smaller half: our
/// choice, so that it is a permutation for any power of two.
#[must_use]
pub fn transpose(ports: usize) -> Vec<usize> {
    rotated(ports, bits(ports) / 2)
}

/// Every permutation as likely.
#[must_use]
pub fn random_permutation(ports: usize, stream: &mut Stream) -> Vec<usize> {
    let mut to: Vec<_> = (0..ports).collect();
    stream.shuffle(&mut to);
    to
}
