//! Sites of a box in natural order: x fastest, then y, z, t.

/// Extents or coordinates in the directions x, y, z, t.
pub type Extents = [usize; 4];

/// Number of sites of a box.
pub fn volume(extents: Extents) -> usize {
    extents.iter().product()
}

/// Natural index of the site at `x`.
pub fn site(extents: Extents, x: Extents) -> usize {
    ((x[3] * extents[2] + x[2]) * extents[1] + x[1]) * extents[0] + x[0]
}

/// Coordinates of the site with natural index `site`.
pub fn coordinates(extents: Extents, mut site: usize) -> Extents {
    extents.map(|extent| {
        let x = site % extent;
        site /= extent;
        x
    })
}

/// `8x8x8x16`, as extents are written in messages.
pub fn shape(extents: Extents) -> String {
    extents.map(|extent| extent.to_string()).join("x")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn site_inverts_coordinates() {
        let extents = [2, 4, 6, 8];
        for s in 0..volume(extents) {
            assert_eq!(site(extents, coordinates(extents, s)), s);
        }
        assert_eq!(site(extents, [1, 0, 0, 0]), 1);
        assert_eq!(site(extents, [0, 0, 0, 1]), 48);
    }
}
