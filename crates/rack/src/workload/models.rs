//! Neural networks by the size of their layers: what training sends over a network.

/// Parameters of each layer of VGG16, weights and biases, from the input to the output: thirteen
/// convolutions of 3 x 3 and three fully connected layers (Simonyan and Zisserman, "Very deep
/// convolutional networks for large-scale image recognition", 2015, Table 1, configuration D; 224 x 224
/// inputs, 1000 classes).
#[must_use]
pub fn vgg16() -> Vec<u64> {
    const CHANNELS: [u64; 14] = [3, 64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512];
    // Five poolings leave 7 x 7 of 224 x 224.
    const DENSE: [u64; 4] = [512 * 7 * 7, 4096, 4096, 1000];
    let convolution = |pair: &[u64]| 9 * pair[0] * pair[1] + pair[1];
    let dense = |pair: &[u64]| pair[0] * pair[1] + pair[1];
    let convolutions = CHANNELS.windows(2).map(convolution);
    convolutions.chain(DENSE.windows(2).map(dense)).collect()
}

/// Sizes in proportion to `parts` that add up to `total` exactly: each boundary between parts is rounded
/// down.
///
/// # Panics
/// If the parts add up to nothing.
#[must_use]
pub fn scaled(parts: &[u64], total: u64) -> Vec<u64> {
    let sum: u128 = parts.iter().map(|&part| u128::from(part)).sum();
    assert!(sum > 0, "parts of nothing");
    let mut before = 0u128;
    let mut edge = 0u64;
    let part = |&part: &u64| {
        before += u128::from(part);
        let next = (u128::from(total) * before / sum) as u64;
        let size = next - edge;
        edge = next;
        size
    };
    parts.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn vgg16_has_the_published_number_of_parameters() {
        let layers = vgg16();
        assert_eq!(layers.len(), 16);
        // Table 2 of the paper says 138 million; counted by many since: 138,357,544.
        assert_eq!(layers.iter().sum::<u64>(), 138_357_544);
        assert_eq!((layers[0], layers[13]), (1_792, 102_764_544));
    }

    proptest! {
        #[test]
        fn parts_add_up_and_are_in_proportion(
            parts in prop::collection::vec(0u64..1_000_000, 1..40),
            total in 0u64..1_000_000_000,
        ) {
            prop_assume!(parts.iter().sum::<u64>() > 0);
            let sum = parts.iter().sum::<u64>() as f64;
            let sizes = scaled(&parts, total);
            prop_assert_eq!(sizes.iter().sum::<u64>(), total);
            for (part, size) in parts.iter().zip(sizes) {
                let exact = *part as f64 / sum * total as f64;
                prop_assert!((size as f64 - exact).abs() <= 1.001, "{} for {}", size, exact);
            }
        }
    }
}
