//! Where tiles and memory controllers are.
//!
//! ```text
//!        x 0   1   2   3   4   5
//!   y 0  ◄M0   ·   ·   ·   ·   M1►     tiles row by row, `cores_per_tile` cores each;
//!     1   ·    ·   ·   ·   ·   ·       a controller is attached to the router of a tile
//!     2  ◄M2   ·   ·   ·   ·   M3►
//!     3   ·    ·   ·   ·   ·   ·       the SCC: 6x4x2, controllers on both edges of rows 0 and 2
//! ```
//! A core's `Memory` lies behind the controller that is nearest to it; of several, the lowest
//! number. On the SCC that is the controller of its quadrant.

use flagpost_hal::CoreId;
use flagpost_scc::Position;
use serde::{Deserialize, Serialize};

/// Most controllers that a chip can have.
const CONTROLLERS_MAX: usize = 32;

/// Controllers of a chip that says nothing else, if it has the tiles for them.
const CONTROLLERS: u16 = 4;

/// How large the mesh is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mesh {
    /// Tiles per row.
    pub columns: u16,
    /// Rows of tiles.
    pub rows: u16,
    /// Cores per tile.
    pub cores_per_tile: u16,
}

impl Mesh {
    /// Tiles of two cores, about half as many again in a row as there are rows: 48 cores make the
    /// SCC's 6 x 4 tiles.
    fn of(cores: u16) -> Self {
        let tiles = u32::from(cores.div_ceil(2));
        let columns = (1..).find(|c| c * c * 2 >= tiles * 3);
        let columns = columns.unwrap_or(1).min(tiles);
        Self {
            columns: columns as u16,
            rows: tiles.div_ceil(columns) as u16,
            cores_per_tile: 2,
        }
    }
}

/// How many memory controllers there are, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Controllers {
    /// So many, in pairs on the west and east edge, the pairs' rows evenly spaced from row 0 on: 4
    /// on 6 x 4 tiles are the SCC's. Fewer where tiles would coincide.
    Edges(u16),
    /// One at each of these tiles, columns first.
    At(Vec<(u16, u16)>),
}

/// The chip's floor plan.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Plan {
    mesh: Mesh,
    controllers: [Position; CONTROLLERS_MAX],
    count: u16,
}

impl Plan {
    /// # Panics
    /// If the mesh has no room for the cores, or a controller is outside of it.
    pub(crate) fn new(cores: u16, mesh: Option<Mesh>, controllers: Option<&Controllers>) -> Self {
        let mesh = mesh.unwrap_or_else(|| Mesh::of(cores));
        let tiles = u32::from(mesh.columns) * u32::from(mesh.rows);
        assert!(
            tiles * u32::from(mesh.cores_per_tile) >= u32::from(cores),
            "{cores} cores do not fit {mesh:?}"
        );
        let list = match controllers {
            None => edges(mesh, CONTROLLERS),
            Some(Controllers::Edges(count)) => edges(mesh, *count),
            Some(Controllers::At(list)) => list.iter().map(|&(x, y)| Position { x, y }).collect(),
        };
        assert!(
            (1..=CONTROLLERS_MAX).contains(&list.len()),
            "a chip has 1 to {CONTROLLERS_MAX} memory controllers"
        );
        for at in &list {
            let inside = at.x < mesh.columns && at.y < mesh.rows;
            assert!(inside, "a controller at {}.{} is off the mesh", at.x, at.y);
        }
        let mut controllers = [Position { x: 0, y: 0 }; CONTROLLERS_MAX];
        controllers[..list.len()].copy_from_slice(&list);
        Self {
            mesh,
            controllers,
            count: list.len() as u16,
        }
    }

    /// How large it is.
    pub(crate) fn mesh(&self) -> Mesh {
        self.mesh
    }

    /// Where the tile of `core` is.
    pub(crate) fn position(&self, core: CoreId) -> Position {
        let tile = self.tile(core);
        Position {
            x: tile % self.mesh.columns,
            y: tile / self.mesh.columns,
        }
    }

    /// The tile of `core`.
    pub(crate) fn tile(&self, core: CoreId) -> u16 {
        core.get() / self.mesh.cores_per_tile
    }

    /// Where the controllers are.
    pub(crate) fn controllers(&self) -> &[Position] {
        &self.controllers[..usize::from(self.count)]
    }

    /// The controller that is nearest to `core`.
    pub(crate) fn controller(&self, core: CoreId) -> u16 {
        let here = self.position(core);
        let numbered = (0..).zip(self.controllers());
        let nearest = numbered.min_by_key(|&(number, &at)| (hops(here, at), number));
        nearest.map_or(0, |(number, _)| number)
    }
}

/// Mesh distance.
pub(crate) fn hops(a: Position, b: Position) -> u16 {
    a.x.abs_diff(b.x) + a.y.abs_diff(b.y)
}

/// Places of `count` controllers on the west and east edge.
fn edges(mesh: Mesh, count: u16) -> Vec<Position> {
    let pairs = count.div_ceil(2);
    let mut list = Vec::new();
    for number in 0..count {
        let at = Position {
            x: (number % 2) * (mesh.columns - 1),
            y: (u32::from(number / 2) * u32::from(mesh.rows) / u32::from(pairs)) as u16,
        };
        if !list.contains(&at) {
            list.push(at);
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCC: Mesh = Mesh {
        columns: 6,
        rows: 4,
        cores_per_tile: 2,
    };

    const fn at(x: u16, y: u16) -> Position {
        Position { x, y }
    }

    #[test]
    fn forty_eight_cores_are_the_scc() {
        let plan = Plan::new(48, None, None);
        assert_eq!(plan.mesh, SCC);
        assert_eq!(plan.position(CoreId::new(47)), at(5, 3));
        assert_eq!(plan.controllers(), [at(0, 0), at(5, 0), at(0, 2), at(5, 2)]);
        // docs/hardware.md A2: the quadrant's controller.
        for core in 0..48 {
            let Position { x, y } = plan.position(CoreId::new(core));
            let quadrant = u16::from(x >= 3) + 2 * u16::from(y >= 2);
            assert_eq!(plan.controller(CoreId::new(core)), quadrant, "core {core}");
        }
    }

    #[test]
    fn any_size_has_places_for_all() {
        for cores in (1..200).chain([512, 1023, 1024, 4096]) {
            let plan = Plan::new(cores, None, None);
            let mut last = None;
            for core in (0..cores).map(CoreId::new) {
                let Position { x, y } = plan.position(core);
                assert!(
                    x < plan.mesh.columns && y < plan.mesh.rows,
                    "{cores}: {core}"
                );
                let tile = (y, x, core.get() % 2);
                assert!(last < Some(tile), "{cores}: {core} shares its place");
                last = Some(tile);
                assert!(usize::from(plan.controller(core)) < plan.controllers().len());
            }
        }
        assert_eq!(Plan::new(1, None, None).controllers().len(), 1);
        assert_eq!(Plan::new(4, None, None).controllers().len(), 2);
    }

    #[test]
    fn mesh_and_controllers_are_parameters() {
        let mesh = Some(Mesh {
            columns: 3,
            rows: 5,
            cores_per_tile: 4,
        });
        let controllers = Controllers::At(vec![(1, 4), (2, 0)]);
        let plan = Plan::new(60, mesh, Some(&controllers));
        assert_eq!(plan.position(CoreId::new(59)), at(2, 4));
        assert_eq!(plan.controller(CoreId::new(0)), 1);
        assert_eq!(plan.controller(CoreId::new(59)), 0);
        let six = Plan::new(60, mesh, Some(&Controllers::Edges(6)));
        let rows: Vec<u16> = six.controllers().iter().map(|at| at.y).collect();
        assert_eq!(rows, [0, 0, 1, 1, 3, 3]);
    }

    #[test]
    #[should_panic(expected = "49 cores do not fit")]
    fn too_many_cores_are_refused() {
        Plan::new(49, Some(SCC), None);
    }
}
