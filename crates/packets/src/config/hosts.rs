//! The `host` table: what packets and messages take inside of hosts, before their NICs and behind them.

use kernel::{Span, Stream};
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest time that anything takes in a host (our choice: far longer than any host).
const SPAN_MAX: Span = Span::from_us(1_000_000);

/// What hosts take in time. What is not written is what `preset` says; by default nothing takes any.
///
/// A message that is sent goes through the engine ([`Engine`]) and over the bus to the NIC (`send_latency`); a packet
/// that comes goes over the bus (`latency`) and through the engine to its transport; the application hears of a message
/// when its thread is awake ([`WakeUp`]). All of that counts in a flow's completion time. Of a round trip in the
/// network it is no part: transports that measure delay are told ([`crate::Outbox::since_arrival`]).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Host {
    /// Where the values come from that are not written. Default none.
    pub preset: Preset,
    /// From a packet's arrival at its host to the transport, or to the engine: NIC and bus. Unit: time. Default 0 ns;
    /// pony-express and legacy: 900 ns. Up to 1 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Span>,
    /// The same the other way, from the transport's or the engine's decision to send to the NIC. Packets that wait for a
    /// line that is busy are at the NIC by then. Unit: time. Default 0 ns; pony-express and legacy: 900 ns. Up to 1 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_latency: Option<Span>,
    /// The engine that carries all messages of a host.
    pub engine: Engine,
    /// What it costs to ask a host that was idle.
    pub sleep: Sleep,
    /// What it takes until a thread runs that waits for a message.
    pub wake_up: WakeUp,
}

/// Where values of hosts come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Nothing takes any time.
    #[default]
    None,
    /// An engine in user space that polls, as Pony Express is one (Aquila §5.1; the values are our choice: of the order
    /// of what is published of such engines).
    PonyExpress,
    /// A stack whose applications sleep until a message is there (Aquila §6; the values are our choice).
    Legacy,
}

/// The engine of a host: it does one thing at a time, in the order in which it is given them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Engine {
    /// For each message that its host sends. Its packets are one batch. Unit: time. Default 0 ns; pony-express and
    /// legacy: 800 ns. Up to 1 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<Span>,
    /// For each packet with payload that comes. Unit: time. Default 0 ns; pony-express and legacy: 800 ns. Up to 1 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet: Option<Span>,
    /// For each other packet that comes: acknowledgments, which wait for what is before them all the same. Unit: time.
    /// Default 0 ns: they come with other packets. Up to 1 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<Span>,
    /// Whether these are always as long, "fixed", or that in the mean, "exponential". Default fixed.
    pub law: Law,
}

/// Low power: an engine that had nothing to do for long takes time for the next thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sleep {
    /// How long it must have been idle. Unit: time. Default 20 us (our choice; Aquila §5.2 says that there is such a
    /// thing). Up to 1 s.
    pub after: Span,
    /// What the next access takes then. Unit: time. Default 0 ns: it never sleeps; where Aquila's servers do, 8 us
    /// (our choice). Up to 1 s.
    pub exit: Span,
    /// Whether that is always as long, "fixed", or that in the mean, "exponential". Default fixed.
    pub law: Law,
}

impl Default for Sleep {
    fn default() -> Self {
        Self { after: Span::from_us(20), exit: Span::ZERO, law: Law::Fixed }
    }
}

/// Threads that sleep until a message is there: what they take to wake is drawn for each message, every value
/// between `least` and `most` as likely.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WakeUp {
    /// The least. Unit: time. Default 0 ns; legacy: 20 us. At most `most`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least: Option<Span>,
    /// The most. Unit: time. Default 0 ns: applications poll; legacy: 50 us. Up to 1 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<Span>,
}

/// How long something takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// Always as long.
    #[default]
    Fixed,
    /// As long in the mean, with exponential law.
    Exponential,
}

impl Law {
    /// A time of this mean.
    pub fn draw(self, mean: Span, stream: &mut Stream) -> Span {
        match self {
            Self::Exponential if mean > Span::ZERO => {
                Span::from_ps(stream.exponential(mean.as_ps() as f64) as u64)
            }
            _ => mean,
        }
    }
}

/// The values of a [`Host`], whichever way they were given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Times {
    pub(crate) latency: Span,
    pub(crate) send_latency: Span,
    pub(crate) operation: Span,
    pub(crate) packet: Span,
    pub(crate) control: Span,
    pub(crate) law: Law,
    pub(crate) sleep: Sleep,
    pub(crate) wake_up: [Span; 2],
}

impl Times {
    /// Whether there is an engine that takes time.
    pub(crate) fn has_engine(&self) -> bool {
        [self.operation, self.packet, self.control, self.sleep.exit].iter().any(|&s| s > Span::ZERO)
    }

    /// Whether hosts take any time but on the way to the transport, which the network counts with the last link.
    pub(crate) fn is_on(&self) -> bool {
        self.has_engine() || self.send_latency > Span::ZERO || self.wake_up[1] > Span::ZERO
    }

    /// The least that the engine takes for what takes `span`.
    pub(crate) fn least(&self, span: Span) -> Span {
        if self.law == Law::Fixed { span } else { Span::ZERO }
    }
}

impl Host {
    /// The same with nothing left open.
    #[must_use]
    pub fn resolve(&self) -> Self {
        let Times { latency, send_latency, operation, packet, control, wake_up, .. } = self.times();
        let [least, most] = wake_up;
        Self {
            latency: Some(latency),
            send_latency: Some(send_latency),
            engine: Engine {
                operation: Some(operation),
                packet: Some(packet),
                control: Some(control),
                ..self.engine
            },
            wake_up: WakeUp { least: Some(least), most: Some(most) },
            ..self.clone()
        }
    }

    /// The values.
    pub(crate) fn times(&self) -> Times {
        let preset = self.preset.times();
        let Engine { operation, packet, control, law } = self.engine;
        let [least, most] = preset.wake_up;
        Times {
            latency: self.latency.unwrap_or(preset.latency),
            send_latency: self.send_latency.unwrap_or(preset.send_latency),
            operation: operation.unwrap_or(preset.operation),
            packet: packet.unwrap_or(preset.packet),
            control: control.unwrap_or(preset.control),
            law,
            sleep: self.sleep,
            wake_up: [self.wake_up.least.unwrap_or(least), self.wake_up.most.unwrap_or(most)],
        }
    }

    /// Whether hosts take any time at all.
    #[must_use]
    pub fn takes_time(&self) -> bool {
        let times = self.times();
        times.is_on() || times.latency > Span::ZERO
    }

    /// The least that a flow of so many packets of data takes in hosts, beyond the `network`'s time, in which the first
    /// packet takes `first`. Both have `latency` in them.
    #[must_use]
    pub fn least(&self, packets: u64, network: Span, first: Span) -> Span {
        let times = self.times();
        let each = times.least(times.packet);
        let before = times.least(times.operation) + times.send_latency;
        // The engine takes the packets one after the other as they come, or falls behind.
        let behind = first + each * packets;
        let there = behind.max(network + each);
        before + (there - network) + times.wake_up[0]
    }

    /// The least that hosts add to a round trip of a packet and its answer.
    #[must_use]
    pub fn round_trip(&self) -> Span {
        let times = self.times();
        times.send_latency * 2 + times.packet + times.control
    }

    /// Every mistake in the table.
    #[must_use]
    pub fn check(&self) -> Vec<Problem> {
        let times = self.times();
        let [least, most] = times.wake_up;
        let spans = [
            ("latency", times.latency),
            ("send_latency", times.send_latency),
            ("engine.operation", times.operation),
            ("engine.packet", times.packet),
            ("engine.control", times.control),
            ("sleep.after", times.sleep.after),
            ("sleep.exit", times.sleep.exit),
            ("wake_up.most", most),
        ];
        let long = spans.into_iter().filter(|(_, span)| *span > SPAN_MAX);
        let mut problems: Vec<_> = long
            .map(|(key, span)| Problem::new(key, format!("{span}; expected at most {SPAN_MAX}")))
            .collect();
        if least > most {
            let message = format!("{least} is above most = \"{most}\"; lower it, or raise that");
            problems.push(Problem::new("wake_up.least", message));
        }
        problems
    }
}

impl Preset {
    fn times(self) -> Times {
        if self == Self::None {
            return Times::default();
        }
        let (bus, engine) = (Span::from_ns(900), Span::from_ns(800));
        let polls = Times {
            latency: bus,
            send_latency: bus,
            operation: engine,
            packet: engine,
            ..Times::default()
        };
        match self {
            Self::Legacy => Times { wake_up: [20, 50].map(Span::from_us), ..polls },
            _ => polls,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_goes_before_the_preset() {
        let host = Host { preset: Preset::Legacy, ..Host::default() };
        assert!(!Host::default().takes_time() && host.takes_time());
        let times = host.times();
        assert_eq!((times.latency, times.packet), (Span::from_ns(900), Span::from_ns(800)));
        assert_eq!(times.wake_up, [20, 50].map(Span::from_us));
        let own = Host {
            latency: Some(Span::ZERO),
            wake_up: WakeUp { least: None, most: Some(Span::from_us(30)) },
            ..host
        };
        assert_eq!(own.times().latency, Span::ZERO);
        assert_eq!(own.times().wake_up, [20, 30].map(Span::from_us));
        assert_eq!(own.resolve().times(), own.times());
        let plain = Host { preset: Preset::None, ..own.resolve() };
        assert_eq!(plain.times(), own.times(), "nothing is left to the preset");
        let text = serde_json::to_string(&own).unwrap();
        assert_eq!(serde_json::from_str::<Host>(&text).unwrap(), own);
    }

    #[test]
    fn mistakes_have_their_keys() {
        let host = Host {
            latency: Some(Span::from_us(2_000_000)),
            wake_up: WakeUp { least: Some(Span::from_us(60)), most: None },
            preset: Preset::Legacy,
            ..Host::default()
        };
        let found: Vec<_> = host.check().iter().map(ToString::to_string).collect();
        let least = "wake_up.least: 60 us is above most = \"50 us\"; lower it, or raise that";
        assert_eq!(found, ["latency: 2 s; expected at most 1 s", least]);
        assert_eq!(Host::default().check(), []);
    }
}
