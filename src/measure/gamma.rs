//! Products of gamma matrices in the DeGrand-Rossi basis, Comput. Phys. Commun. 60 (1990) 211.
//!
//! Each row of such a product has one nonzero entry, a power of i: `Gamma_{a, column[a]} = i^phase[a]`. So
//! `gamma_mu = ((0, e_mu), (e_mu^dag, 0))` with `e = (i sigma_1, -i sigma_2, i sigma_3, 1)` for x, y, z, t, and
//! `gamma_5 = gamma_x gamma_y gamma_z gamma_t = diag(1, 1, -1, -1)`. All gamma matrices are hermitian.

/// A product of gamma matrices, times a power of i.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gamma {
    /// For each row, the column of its entry.
    pub column: [usize; 4],
    /// For each row, the power of i of its entry, 0 to 3.
    pub phase: [usize; 4],
}

impl Gamma {
    /// The unit matrix.
    pub const ONE: Self = Self { column: [0, 1, 2, 3], phase: [0; 4] };
    /// `gamma_5`
    pub const FIVE: Self = Self { column: [0, 1, 2, 3], phase: [0, 0, 2, 2] };
    /// `gamma_t`
    pub const T: Self = Self { column: [2, 3, 0, 1], phase: [0; 4] };
    /// `gamma_mu` for x, y, z, t.
    pub const MU: [Self; 4] = [
        Self { column: [3, 2, 1, 0], phase: [1, 1, 3, 3] },
        Self { column: [3, 2, 1, 0], phase: [2, 0, 0, 2] },
        Self { column: [2, 3, 0, 1], phase: [1, 3, 3, 1] },
        Self::T,
    ];

    /// `self other`
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self {
            column: self.column.map(|b| other.column[b]),
            phase: std::array::from_fn(|a| (self.phase[a] + other.phase[self.column[a]]) % 4),
        }
    }

    /// The hermitian adjoint.
    #[must_use]
    pub fn adjoint(self) -> Self {
        let mut adjoint = Self::ONE;
        for a in 0..4 {
            adjoint.column[self.column[a]] = a;
            adjoint.phase[self.column[a]] = (4 - self.phase[a]) % 4;
        }
        adjoint
    }

    /// `gamma_t Gamma^dag gamma_t`, so that `(psibar Gamma chi)^dag = chibar (..) psi`.
    #[must_use]
    pub fn bar(self) -> Self {
        Self::T.times(self.adjoint()).times(Self::T)
    }

    /// `-self`
    #[must_use]
    pub fn negative(self) -> Self {
        Self { phase: self.phase.map(|k| (k + 2) % 4), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gammas_anticommute_and_make_gamma_5() {
        for (mu, a) in Gamma::MU.into_iter().enumerate() {
            assert_eq!(a.adjoint(), a);
            assert_eq!(Gamma::FIVE.times(a), a.times(Gamma::FIVE).negative());
            for (nu, b) in Gamma::MU.into_iter().enumerate() {
                let expected = if mu == nu { Gamma::ONE } else { b.times(a).negative() };
                assert_eq!(a.times(b), expected, "{mu} {nu}");
            }
        }
        let [x, y, z, t] = Gamma::MU;
        assert_eq!(x.times(y).times(z).times(t), Gamma::FIVE);
        assert_eq!(Gamma::FIVE.bar(), Gamma::FIVE.negative());
    }
}
