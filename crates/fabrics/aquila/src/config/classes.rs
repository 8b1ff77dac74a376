//! The `[fabric.classes]` table.

use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::link::classes::{CLASSES, Class, DEFAULT, LEVELS, Mode};

/// How each of the ten traffic classes is routed and served. Three of them carry what asks (requests), what
/// answers it (solicitations) and what comes then (data); the paper gives their number alone (Aquila §3.2),
/// and that about half are for messages that are to be fast (§3.4), so this is our choice (U19, U57).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Classes {
    /// Class 0, fast: requests to send packets. Default: deterministic on shortest ways (U18), level 3.
    #[serde(skip_serializing_if = "ClassKeys::is_default")]
    pub requests: ClassKeys,
    /// Class 1, fast: clearances, and requests for memory. Default: fully adaptive, level 3.
    #[serde(skip_serializing_if = "ClassKeys::is_default")]
    pub solicitations: ClassKeys,
    /// Class 2, fast: data. Default: fully adaptive, level 2.
    #[serde(skip_serializing_if = "ClassKeys::is_default")]
    pub data: ClassKeys,
    /// Class 3, fast: requests for writes. Default: fully adaptive, level 2.
    #[serde(skip_serializing_if = "ClassKeys::is_default")]
    pub writes: ClassKeys,
    /// Class 4, fast: between control processors. Default: deterministic on shortest ways, level 3.
    #[serde(skip_serializing_if = "ClassKeys::is_default")]
    pub control: ClassKeys,
    /// Class 5, bulk: requests to send packets. Default: deterministic on shortest ways (U18), level 1.
    #[serde(skip_serializing_if = "ClassKeys::is_default")]
    pub bulk_requests: ClassKeys,
    /// Class 6, bulk: clearances, and requests for memory. Default: fully adaptive, level 1.
    #[serde(skip_serializing_if = "ClassKeys::is_default")]
    pub bulk_solicitations: ClassKeys,
    /// Class 7, bulk: data. Default: fully adaptive, level 0 with a weight of 8.
    #[serde(skip_serializing_if = "ClassKeys::is_default")]
    pub bulk_data: ClassKeys,
    /// Class 8, bulk: data of the lowest class of service. Default: fully adaptive, level 0.
    #[serde(skip_serializing_if = "ClassKeys::is_default")]
    pub scavenger: ClassKeys,
    /// Class 9, bulk: requests for writes. Default: deterministic, level 0.
    #[serde(skip_serializing_if = "ClassKeys::is_default")]
    pub bulk_writes: ClassKeys,
}

/// What is to be other than the class has it by default.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClassKeys {
    /// How its cells are routed (Aquila §3.2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Its strict level at output ports; higher ones go first (Aquila §3.1). From 0 to 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 3))]
    pub level: Option<u8>,
    /// Its share among classes of that level, by bytes (Aquila §3.1). From 1 to 255. Default 1, but 8 for
    /// `bulk_data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub weight: Option<u8>,
}

impl ClassKeys {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }

    fn over(self, class: Class) -> Class {
        let mut class = class;
        class.mode = self.mode.unwrap_or(class.mode);
        class.service.level = self.level.unwrap_or(class.service.level);
        class.service.weight = self.weight.unwrap_or(class.service.weight);
        class
    }
}

impl Classes {
    /// Keys with their names, by class.
    fn keys(&self) -> [(&'static str, ClassKeys); CLASSES as usize] {
        [
            ("requests", self.requests),
            ("solicitations", self.solicitations),
            ("data", self.data),
            ("writes", self.writes),
            ("control", self.control),
            ("bulk_requests", self.bulk_requests),
            ("bulk_solicitations", self.bulk_solicitations),
            ("bulk_data", self.bulk_data),
            ("scavenger", self.scavenger),
            ("bulk_writes", self.bulk_writes),
        ]
    }

    /// The classes.
    #[must_use]
    pub fn table(&self) -> [Class; CLASSES as usize] {
        let keys = self.keys();
        std::array::from_fn(|class| keys[class].1.over(DEFAULT[class]))
    }

    /// Every mistake in it.
    #[must_use]
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (name, keys) in self.keys() {
            if let Some(level) = keys.level.filter(|&level| level >= LEVELS) {
                let message = format!("{level}; expected 0 to {}", LEVELS - 1);
                problems.push(Problem::new(format!("{name}.level"), message));
            }
            if keys.weight == Some(0) {
                let message = "0; expected 1 to 255: a class without a share would never be served";
                problems.push(Problem::new(format!("{name}.weight"), message));
            }
        }
        for name in ["requests", "bulk_requests"] {
            let keys = self.keys().into_iter().find(|(key, _)| *key == name);
            let mode = keys.and_then(|(_, keys)| keys.mode);
            if let Some(Mode::FullyAdaptive | Mode::MinimalAdaptive) = mode {
                let message = "adaptive, but requests of a flow must arrive in order (Aquila §3.3); expected \
                               \"minimal-deterministic\" or \"deterministic\"";
                problems.push(Problem::new(format!("{name}.mode"), message));
            }
        }
        problems
    }
}
