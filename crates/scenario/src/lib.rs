//! Experiment files: schema, units, validation, the registry of fabrics and workloads.
