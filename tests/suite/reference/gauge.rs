//! Links, closed paths, gauge actions and their forces.
//!
//! U_mu(x) carries a vector from x+mu to x. A path is a list of steps (mu, +1 or -1); its product at x
//! is the ordered product of U_mu(y) for a step forward from y and of U_mu(y-mu)^dag for one back.
//!
//! S_g = beta sum_x { c0 sum_{mu<nu} [1 - Re tr P/3] + c1 sum_{mu!=nu} [1 - Re tr R/3] + c2 sum_{16} [1 - Re tr B/3] },
//! R_{mu nu} two steps in mu by one in nu, B the bent loops (mu, nu, rho, -mu, -nu, -rho).
//! MILC's c_pl, c_rt, c_pg are c0, c1, c2; openQCD's gauge action is this one.

use super::su3::{self, I, M3, Rng};
use hmc::field::HostLinks;
use hmc::lattice::{Extents, coordinates, site, volume};
use num_complex::Complex64;

/// A gauge field: `links[site][mu]`, sites in natural order.
#[derive(Clone)]
pub struct Gauge {
    /// Extents of the lattice.
    pub extents: Extents,
    /// The links.
    pub links: Vec<[M3; 4]>,
}

/// One matrix a link: momenta, forces.
pub type LinkField = Vec<[M3; 4]>;

/// A step: direction and +1 or -1.
pub type Step = (usize, i32);

/// Coefficients of S_g.
#[derive(Clone, Copy)]
pub struct GaugeAction {
    /// beta.
    pub beta: f64,
    /// c0.
    pub plaquette: f64,
    /// c1.
    pub rectangle: f64,
    /// c2.
    pub parallelogram: f64,
}

/// The site one step from `x`, periodic.
pub fn neighbour(extents: Extents, x: usize, (mu, sign): Step) -> usize {
    let mut y = coordinates(extents, x);
    y[mu] = (y[mu] + if sign > 0 { 1 } else { extents[mu] - 1 }) % extents[mu];
    site(extents, y)
}

/// (x + y + z + t) mod 2.
pub fn parity(extents: Extents, x: usize) -> usize {
    coordinates(extents, x).iter().sum::<usize>() % 2
}

impl Gauge {
    /// Every link the unit matrix.
    pub fn unit(extents: Extents) -> Self {
        Self { extents, links: vec![[su3::one(); 4]; volume(extents)] }
    }

    /// Every link Haar distributed.
    pub fn random(extents: Extents, seed: u64) -> Self {
        let mut rng = Rng(seed);
        let links = (0..volume(extents)).map(|_| std::array::from_fn(|_| rng.su3())).collect();
        Self { extents, links }
    }

    /// Links exp(i epsilon h) with Gaussian h: near the unit field.
    pub fn warm(extents: Extents, epsilon: f64, seed: u64) -> Self {
        shifted(&Self::unit(extents), epsilon, &random_momenta(extents, seed))
    }

    /// From the links of a file.
    pub fn from_host(host: &HostLinks) -> Self {
        let link = |x, mu| {
            let reals = host.link(x, mu);
            std::array::from_fn(|i| {
                std::array::from_fn(|j| Complex64::new(reals[2 * (3 * i + j)], reals[2 * (3 * i + j) + 1]))
            })
        };
        let links = (0..volume(host.local)).map(|x| std::array::from_fn(|mu| link(x, mu))).collect();
        Self { extents: host.local, links }
    }

    /// To the links of a file.
    pub fn to_host(&self) -> HostLinks {
        let entries = self.links.iter().flatten().flatten().flatten();
        HostLinks { local: self.extents, reals: entries.flat_map(|z| [z.re, z.im]).collect() }
    }

    /// The product along `path` from `x`.
    pub fn product(&self, x: usize, path: &[Step]) -> M3 {
        let (mut y, mut w) = (x, su3::one());
        for &(mu, sign) in path {
            let next = neighbour(self.extents, y, (mu, sign));
            w = if sign > 0 {
                su3::mul(&w, &self.links[y][mu])
            } else {
                su3::mul(&w, &su3::adjoint(&self.links[next][mu]))
            };
            y = next;
        }
        w
    }

    /// Mean of Re tr / 3 over the sites and the loops given.
    pub fn mean_loop(&self, loops: &[Vec<Step>]) -> f64 {
        let sites = 0..self.links.len();
        let sum: f64 =
            sites.flat_map(|x| loops.iter().map(move |p| su3::trace(&self.product(x, p)).re / 3.0)).sum();
        sum / (self.links.len() * loops.len()) as f64
    }

    /// Mean plaquette, 1 on a unit field.
    pub fn plaquette(&self) -> f64 {
        self.mean_loop(&plaquettes())
    }

    /// Mean plaquette of the planes xt, yt, zt.
    pub fn plaquette_time(&self) -> f64 {
        self.mean_loop(&[plaquette(0, 3), plaquette(1, 3), plaquette(2, 3)])
    }

    /// Mean 2x1 rectangle.
    pub fn rectangle(&self) -> f64 {
        self.mean_loop(&rectangles())
    }

    /// Polyakov loop: mean over space of tr prod_t U_t / 3.
    pub fn polyakov(&self) -> Complex64 {
        let path = vec![(3, 1); self.extents[3]];
        let space = self.links.len() / self.extents[3];
        (0..space).map(|x| su3::trace(&self.product(x, &path)) / 3.0).sum::<Complex64>() / space as f64
    }

    /// U_mu(x) -> g(x) U_mu(x) g(x+mu)^dag.
    pub fn transformed(&self, g: &[M3]) -> Self {
        let link = |x: usize, mu| {
            let end = su3::adjoint(&g[neighbour(self.extents, x, (mu, 1))]);
            su3::mul(&su3::mul(&g[x], &self.links[x][mu]), &end)
        };
        let links = (0..self.links.len()).map(|x| std::array::from_fn(|mu| link(x, mu))).collect();
        Self { extents: self.extents, links }
    }

    /// Every link re-unitarised as MILC does after reading single precision.
    pub fn reunitarised(&self) -> Self {
        let links = self.links.iter().map(|u| u.map(|u| su3::reunitarise(&u))).collect();
        Self { extents: self.extents, links }
    }
}

/// A Haar-distributed g(x) at each site.
pub fn random_transformation(extents: Extents, seed: u64) -> Vec<M3> {
    let mut rng = Rng(seed);
    (0..volume(extents)).map(|_| rng.su3()).collect()
}

/// P_mu(x) = sum_a p_a T_a with unit Gaussians p_a.
pub fn random_momenta(extents: Extents, seed: u64) -> LinkField {
    let mut rng = Rng(seed);
    (0..volume(extents)).map(|_| std::array::from_fn(|_| rng.algebra())).collect()
}

/// exp(i epsilon P) U.
pub fn shifted(gauge: &Gauge, epsilon: f64, momenta: &[[M3; 4]]) -> Gauge {
    let link = |x: usize, mu: usize| {
        su3::mul(&su3::exp_i(&su3::scale(epsilon, &momenta[x][mu])), &gauge.links[x][mu])
    };
    let links = (0..gauge.links.len()).map(|x| std::array::from_fn(|mu| link(x, mu))).collect();
    Gauge { extents: gauge.extents, links }
}

/// d S(exp(i eps P) U) / d eps at 0, by the four-point difference of error eps^4:
/// to be compared with `inner(P, F)`.
pub fn derivative(gauge: &Gauge, momenta: &[[M3; 4]], eps: f64, action: impl Fn(&Gauge) -> f64) -> f64 {
    let at = |k: f64| action(&shifted(gauge, k * eps, momenta));
    (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * eps)
}

/// sum_{x, mu, a} a_a b_a = 2 sum tr A B of hermitian link fields; `inner(P, P)/2` is the kinetic energy.
pub fn inner(a: &[[M3; 4]], b: &[[M3; 4]]) -> f64 {
    a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| 2.0 * su3::trace(&su3::mul(a, b)).re).sum()
}

/// The path (mu, nu, -mu, -nu).
pub fn plaquette(mu: usize, nu: usize) -> Vec<Step> {
    vec![(mu, 1), (nu, 1), (mu, -1), (nu, -1)]
}

/// The 6 plaquettes of a site.
pub fn plaquettes() -> Vec<Vec<Step>> {
    (0..4).flat_map(|mu| (mu + 1..4).map(move |nu| plaquette(mu, nu))).collect()
}

/// The 12 rectangles of a site.
pub fn rectangles() -> Vec<Vec<Step>> {
    let pairs = (0..4).flat_map(|mu| (0..4).filter(move |&nu| nu != mu).map(move |nu| (mu, nu)));
    pairs.map(|(mu, nu)| vec![(mu, 1), (mu, 1), (nu, 1), (mu, -1), (mu, -1), (nu, -1)]).collect()
}

/// The 16 bent loops of a site, mu < nu < rho: each unoriented loop has one orientation that passes its
/// edge +mu before the one in nu.
pub fn parallelograms() -> Vec<Vec<Step>> {
    let mut loops = Vec::new();
    for (mu, nu, rho) in [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)] {
        for (s, r) in [(1, 1), (1, -1), (-1, 1), (-1, -1)] {
            loops.push(vec![(mu, 1), (nu, s), (rho, r), (mu, -1), (nu, -s), (rho, -r)]);
        }
    }
    loops
}

impl GaugeAction {
    /// Wilson's action.
    pub fn wilson(beta: f64) -> Self {
        Self { beta, plaquette: 1.0, rectangle: 0.0, parallelogram: 0.0 }
    }

    /// Normalised by c0 + 8 c1 = 1: -1/12 is Symanzik at tree level, -0.331 Iwasaki, -1.4088 DBW2.
    pub fn rectangle(beta: f64, c1: f64) -> Self {
        Self { beta, plaquette: 1.0 - 8.0 * c1, rectangle: c1, parallelogram: 0.0 }
    }

    /// The loops with their coefficients.
    pub fn terms(&self) -> [(f64, Vec<Vec<Step>>); 3] {
        [
            (self.plaquette, plaquettes()),
            (self.rectangle, rectangles()),
            (self.parallelogram, parallelograms()),
        ]
    }

    /// S_g.
    pub fn value(&self, gauge: &Gauge) -> f64 {
        let sites = gauge.links.len() as f64;
        let terms = self.terms();
        let used = terms.iter().filter(|(c, _)| *c != 0.0);
        used.map(|(c, loops)| self.beta * c * sites * loops.len() as f64 * (1.0 - gauge.mean_loop(loops)))
            .sum()
    }

    /// F = T_a dS/d eps. A loop U_mu(x) V contributes -(beta c/3) Re tr(U V), whose force is
    /// (beta c / 6) (-i) {U V}, {} the traceless antihermitian part.
    pub fn force(&self, gauge: &Gauge) -> LinkField {
        let mut force = vec![[su3::zero(); 4]; gauge.links.len()];
        for (c, loops) in self.terms().iter().filter(|(c, _)| *c != 0.0) {
            let factor = -I * (self.beta * c / 6.0);
            for (sum, term) in force.iter_mut().zip(loops_through_links(gauge, loops)) {
                for mu in 0..4 {
                    let f = su3::scale(factor, &su3::traceless_antihermitian(&term[mu]));
                    sum[mu] = su3::add(&sum[mu], &f);
                }
            }
        }
        force
    }
}

/// For each link the sum over all loops through it, each written as a product that starts with that link.
pub fn loops_through_links(gauge: &Gauge, loops: &[Vec<Step>]) -> LinkField {
    let mut sums = vec![[su3::zero(); 4]; gauge.links.len()];
    for path in loops {
        for x in 0..gauge.links.len() {
            let mut y = x;
            for k in 0..path.len() {
                let (mu, sign) = path[k];
                let next = neighbour(gauge.extents, y, path[k]);
                let mut turned = path.clone();
                if sign > 0 {
                    turned.rotate_left(k);
                    sums[y][mu] = su3::add(&sums[y][mu], &gauge.product(y, &turned));
                } else {
                    // Last step U_mu(next)^dag: the adjoint starts with U_mu(next).
                    turned.rotate_left(k + 1);
                    sums[next][mu] = su3::add(&sums[next][mu], &su3::adjoint(&gauge.product(next, &turned)));
                }
                y = next;
            }
        }
    }
    sums
}
