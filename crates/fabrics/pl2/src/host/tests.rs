//! The shim alone: what it asks of the network, call by call.
