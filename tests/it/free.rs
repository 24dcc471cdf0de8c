//! What costs nothing: the documents, and how the service treats requests that are no purchase.

mod documents;
mod prices;
mod protocol;
