//! To be filled by its chapter.
