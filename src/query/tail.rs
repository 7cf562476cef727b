//! What follows the first pipe that collects rows: stages that run one after the other.

use super::batch::Batch;
use super::context::{ExecContext, Flow};
use super::pipe::{Sink, Stage};
use crate::error::Result;

/// The serial stages.
pub(crate) struct Tail {
    stages: Vec<Option<Stage>>,
}

impl Tail {
    /// Stages that have seen nothing yet.
    pub(crate) fn new(stages: Vec<Stage>) -> Tail {
        Tail { stages: stages.into_iter().map(Some).collect() }
    }

    /// Sends rows through all stages.
    pub(crate) fn push(
        &mut self,
        ctx: &ExecContext<'_>,
        batch: Batch,
        out: &mut Sink<'_>,
    ) -> Result<Flow> {
        push(&mut self.stages, ctx, batch, out)
    }

    /// Lets every stage hand out what it still has, the first one first.
    pub(crate) fn finish(&mut self, ctx: &ExecContext<'_>, out: &mut Sink<'_>) -> Result<()> {
        let mut rest = self.stages.as_mut_slice();
        while let Some((first, later)) = rest.split_first_mut() {
            match first.take() {
                Some(Stage::Collect(collector)) => {
                    collector.finish(ctx, &mut |batch| push(later, ctx, batch, out))?;
                }
                Some(Stage::Append(appendix)) => {
                    appendix.append(ctx, &mut |batch| push(later, ctx, batch, out))?;
                }
                Some(Stage::Row(_)) | None => {}
            }
            rest = later;
        }
        Ok(())
    }
}

fn push(
    stages: &mut [Option<Stage>],
    ctx: &ExecContext<'_>,
    batch: Batch,
    out: &mut Sink<'_>,
) -> Result<Flow> {
    ctx.check()?;
    match stages.split_first_mut() {
        None => out(batch),
        Some((Some(Stage::Row(pipe)), rest)) => {
            pipe.apply(ctx, batch, &mut |batch| push(rest, ctx, batch, out))
        }
        Some((Some(Stage::Collect(collector)), _)) => collector.push(ctx, batch),
        Some((_, rest)) => push(rest, ctx, batch, out),
    }
}
