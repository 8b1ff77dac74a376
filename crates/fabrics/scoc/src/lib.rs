//! SCOC: a high-radix switch chip made of a bufferless Clos network, clock by clock.
