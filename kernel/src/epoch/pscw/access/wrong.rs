//! Wrong copies of this module's protocols, for their mutation points.

use flagpost_link::Link;

use super::{Completing, Strategy};
use crate::Error;

impl<'w, L: Link, S: Strategy<'w, L>> Completing<'_, 'w, L, S> {
    /// Tells the targets, and retires their posts after that.
    pub(super) fn told_before_retired(&mut self) -> Result<(), Error> {
        let (world, sync) = (self.side.core.world, self.side.sync);
        let link = world.link();
        for &target in self.targets.ranks() {
            self.side.await_post(target)?;
        }
        for &target in self.targets.rest(self.told) {
            world.wait().retry(|| sync.complete(link, target))?;
            self.told = self.told.saturating_add(1);
        }
        for &target in self.targets.rest(self.retired) {
            world.wait().retry(|| sync.retire(link, target))?;
            self.retired = self.retired.saturating_add(1);
        }
        Ok(())
    }
}
