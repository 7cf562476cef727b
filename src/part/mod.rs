//! LAYER 2: the on-disk format; `docs/FORMAT.md` mirrors this folder.
