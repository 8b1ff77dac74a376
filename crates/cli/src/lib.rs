//! The rackloom command.
