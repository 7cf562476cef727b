//! Which columns get a token filter, and how large it may be.

use super::writer::Profile;
use crate::codec::EncodedPage;
use crate::record::TextVec;

/// Makes the filters of a part's columns.
#[derive(Debug)]
pub(super) struct FilterMaker {
    enabled: bool,
}

impl FilterMaker {
    pub(super) fn new(profile: Profile) -> FilterMaker {
        FilterMaker { enabled: profile != Profile::Buffer }
    }

    /// The filter of a page, if it pays.
    pub(super) fn make(&mut self, _page: &EncodedPage, _values: &TextVec) -> Option<Vec<u8>> {
        None
    }
}
