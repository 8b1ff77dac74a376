//! What the page is told instead of an answer.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use report::FileError;

/// Why there is no answer, in words for people.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Which kind of reason it is.
    pub status: StatusCode,
    /// What was found, what was expected, what to do.
    pub message: String,
}

impl Refusal {
    /// There is no such thing.
    pub fn missing(message: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, message: message.into() }
    }

    /// It is not to be had.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self { status: StatusCode::FORBIDDEN, message: message.into() }
    }
}

impl From<FileError> for Refusal {
    fn from(error: FileError) -> Self {
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, message: error.to_string() }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, self.message).into_response()
    }
}
