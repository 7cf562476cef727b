//! Sorting that stops when the query has to.

use std::cmp::Ordering;

use super::context::ExecContext;
use crate::error::Result;

/// So many entries are sorted, or merged, between two looks at the clock.
const RUN: usize = 4_096;

/// Sorts as `sort_by` does: equal entries stay in their order.
///
/// # Errors
/// Those of [`ExecContext::check`]; the list is of no use then.
pub(crate) fn sort_checked<T: Clone>(
    list: &mut Vec<T>,
    ctx: &ExecContext<'_>,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Result<()> {
    for run in list.chunks_mut(RUN) {
        ctx.check()?;
        run.sort_by(&compare);
    }
    let mut width = RUN;
    let mut merged = Vec::new();
    while width < list.len() {
        merged.reserve(list.len());
        for pair in list.chunks(2 * width) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            merge(left, right, &mut merged, ctx, &compare)?;
        }
        std::mem::swap(list, &mut merged);
        merged.clear();
        width *= 2;
    }
    Ok(())
}

fn merge<T: Clone>(
    mut left: &[T],
    mut right: &[T],
    out: &mut Vec<T>,
    ctx: &ExecContext<'_>,
    compare: &impl Fn(&T, &T) -> Ordering,
) -> Result<()> {
    while let ([a, left_rest @ ..], [b, right_rest @ ..]) = (left, right) {
        if out.len().is_multiple_of(RUN) {
            ctx.check()?;
        }
        if compare(b, a) == Ordering::Less {
            out.push(b.clone());
            right = right_rest;
        } else {
            out.push(a.clone());
            left = left_rest;
        }
    }
    out.extend_from_slice(left);
    out.extend_from_slice(right);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::query::testgen::Rng;
    use crate::query::testing::test_context;

    #[test]
    fn sorts_as_the_standard_library_and_looks_at_the_clock() {
        let mut rng = Rng::new(5);
        for len in [0, 1, RUN - 1, RUN, RUN + 1, 2 * RUN, 5 * RUN + 17] {
            for most in [3, 1_000_000] {
                let list: Vec<(usize, usize)> = (0..len).map(|i| (rng.below(most), i)).collect();
                let mut want = list.clone();
                want.sort_by_key(|(key, _)| *key);
                test_context(|ctx| {
                    let mut have = list.clone();
                    sort_checked(&mut have, ctx, |a, b| a.0.cmp(&b.0)).unwrap();
                    assert_eq!(have, want);
                    let checks = ctx.counters.checks.load(Relaxed);
                    assert!(checks >= (len / RUN) as u64, "{checks} looks for {len} entries");
                    ctx.stop.cancelled.store(true, Relaxed);
                    assert_eq!(
                        sort_checked(&mut have, ctx, |a, b| a.0.cmp(&b.0)).is_err(),
                        len > 0
                    );
                });
            }
        }
    }
}
