//! What the command does with libraries of Python: the package brings them along, the binary alone has none.

use crate::engine::Failure;
use crate::engine::cluster::Cluster;
use crate::engine::search::{Sampler, Study};
use scenario::{BadInput, Located};

/// What libraries of Python do for the command.
pub trait Extras: Sync {
    /// The Dask cluster whose scheduler has this address.
    ///
    /// # Errors
    /// When Dask is not installed, or no scheduler answers.
    fn cluster(&self, address: &str) -> Result<Box<dyn Cluster>, Failure>;

    /// Optuna's sampler for a search.
    ///
    /// # Errors
    /// When Optuna is not installed.
    fn sampler(&self, study: &Study) -> Result<Box<dyn Sampler>, Failure>;
}

/// What there is for `option`.
///
/// # Errors
/// When there is nothing, since this is the binary without Python.
pub fn needed<'a>(
    extras: Option<&'a dyn Extras>,
    option: &str,
    name: &str,
) -> Result<&'a dyn Extras, BadInput> {
    extras.ok_or_else(|| {
        let message = format!(
            "needs a library of Python, and this binary has none; use the `rackloom` that `pip install \
             'rackloom[{name}]'` puts on the path"
        );
        BadInput::single(Located::whole(option, message))
    })
}
