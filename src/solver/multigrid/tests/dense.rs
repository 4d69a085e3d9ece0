//! Transfers and the coarse operator as matrices, element by element, and what a gauge transformation makes of them.

use super::*;
use crate::field::HostLinks;
use crate::lattice::{coordinates, site};

/// Twelve components per site, or nine of a matrix, in order of the sites.
type Plain = Vec<Complex64>;
type Matrix = Vec<Vec<Complex64>>;

fn complex(reals: &[f64]) -> Plain {
    reals.chunks_exact(2).map(|z| Complex64::new(z[0], z[1])).collect()
}

fn reals(plain: &[Complex64]) -> Vec<f64> {
    plain.iter().flat_map(|z| [z.re, z.im]).collect()
}

fn dot(a: &[Complex64], b: &[Complex64]) -> Complex64 {
    a.iter().zip(b).map(|(a, b)| a.conj() * b).sum()
}

/// A hierarchy on these links, with aggregates of half of each extent.
fn halved(links: &HostLinks, params: WilsonParams) -> Made {
    let domain = Domain::local(links.local).unwrap();
    let field = MatrixField::from_host(&domain, links).unwrap();
    made_on(&field, links.local.map(|n| n / 2), params)
}

fn random_links(extents: Extents, seed: u64) -> HostLinks {
    let mut links = MatrixField::new(&Domain::local(extents).unwrap(), 4).unwrap();
    links.set_random(RandomAddress { seed, trajectory: 0, purpose: Purpose::Start }).unwrap();
    links.to_host().unwrap()
}

/// Near one: smoothing with strongly random links would leave nothing of a vector but rounding.
fn warm_links(extents: Extents, seed: u64) -> HostLinks {
    let mut links = random_links(extents, seed);
    links.reals.iter_mut().for_each(|u| *u *= 0.3);
    let diagonals = links.reals.chunks_exact_mut(18).flat_map(|u| u.iter_mut().step_by(8));
    diagonals.for_each(|u| *u += 1.0);
    let mut field = MatrixField::from_host(&Domain::local(extents).unwrap(), &links).unwrap();
    field.unitarity(true).unwrap();
    field.to_host().unwrap()
}

fn plain([even, odd]: [&Spinor; 2]) -> Plain {
    let mut reals = vec![0.0; 24 * volume(even.domain().partition().local())];
    even.write_host(EVEN, &mut reals).unwrap();
    odd.write_host(ODD, &mut reals).unwrap();
    complex(&reals)
}

/// P c
fn prolonged(made: &Made, c: &[Complex64]) -> Plain {
    let [even, odd] = made.prolonged(c);
    plain([&even, &odd])
}

fn unit(n: usize) -> Field {
    let mut c = vec![Complex64::default(); random().len()];
    c[n] = Complex64::from(1.0);
    c
}

/// The largest difference of elements, relative to the largest element of `b`.
fn worst(a: &Matrix, b: &Matrix) -> f64 {
    let largest = b.iter().flatten().map(|b| b.norm()).fold(0.0, f64::max);
    let apart = a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| (a - b).norm());
    apart.fold(0.0, f64::max) / largest
}

/// `P^dag P = 1` and `A = P^dag M P`, where M is applied by whole hops in double precision to every column of P; and solutions
/// of systems with that A.
#[test]
fn the_coarse_operator_is_the_dense_one() {
    for extents in [[4; 4], [8; 4]] {
        let mut made = halved(&random_links(extents, 3), params(0.3, Schur::Asymmetric, 1.2));
        let size = random().len();
        let p: Matrix = (0..size).map(|n| prolonged(&made, &unit(n))).collect();
        let image = |n| {
            let [even, odd] = made.prolonged(&unit(n));
            let [m_even, m_odd] = made.applied([&even, &odd]);
            plain([&m_even, &m_odd])
        };
        let images: Matrix = (0..size).map(image).collect();
        // Transposed: a column of A is a row here.
        let products = |right: &Matrix| -> Matrix {
            right.iter().map(|right| p.iter().map(|left| dot(left, right)).collect()).collect()
        };
        let (one, dense) = ((0..size).map(unit).collect(), products(&images));
        let own = (0..size).map(|n| made.coarse(&unit(n))).collect();
        let (orthonormal, galerkin) = (worst(&products(&p), &one), worst(&own, &dense));
        let b = random();
        let (x, iterations) = made.solve(false, &b, 1e-4);
        let image: Field = (0..size).map(|i| dense.iter().zip(&x).map(|(a, x)| a[i] * x).sum()).collect();
        let residual = apart(&image, &b);
        println!(
            "{extents:?}: P^dag P {orthonormal:.1e}, A {galerkin:.1e}, residual {residual:.1e}, {iterations} iterations"
        );
        assert!(orthonormal < VECTORS_ROUNDING && galerkin < ROUNDING && residual < 3e-4);
    }
}

/// Vectors that turn with the links, `v -> g v`, give `P -> g P` and the same A.
#[test]
fn a_gauge_transformation_leaves_the_coarse_operator() {
    let (links, g) = (warm_links(EXTENTS, 5), random_links(EXTENTS, 6));
    // g(x) is the other field's link along x; its first nine numbers per site.
    let g: Vec<Plain> = complex(&g.reals).chunks_exact(36).map(|site| site[..9].to_vec()).collect();
    let turned_links = {
        let u = complex(&links.reals);
        let turned = |n: usize| {
            let (x, mu) = (n / 4, n % 4);
            let mut end = coordinates(EXTENTS, x);
            end[mu] = (end[mu] + 1) % EXTENTS[mu];
            let (g, u, end) = (&g[x], &u[9 * n..9 * n + 9], &g[site(EXTENTS, end)]);
            let element = |i: usize, j: usize| -> Complex64 {
                let terms = (0..9).map(|n| g[3 * i + n / 3] * u[n] * end[3 * j + n % 3].conj());
                terms.sum()
            };
            (0..9).map(|n| element(n / 3, n % 3)).collect::<Plain>()
        };
        let all: Plain = (0..4 * volume(EXTENTS)).flat_map(turned).collect();
        HostLinks { local: EXTENTS, reals: reals(&all) }
    };
    let turned = |psi: &[Complex64]| -> Plain {
        let colours = |(n, c): (usize, &[Complex64])| -> Plain {
            (0..3).map(|i| (0..3).map(|j| g[n / 4][3 * i + j] * c[j]).sum()).collect()
        };
        psi.chunks_exact(3).enumerate().flat_map(colours).collect()
    };
    // Light: what smoothing takes from a vector adds to its rounding.
    let light = WilsonParams { kappa: 0.128, ..params(0.0, Schur::Asymmetric, 1.2) };
    let [mut before, mut after] = [links, turned_links].map(|links| halved(&links, light));
    let c = random();
    assert!(apart(&after.coarse(&c), &before.coarse(&c)) > 0.1, "spaces of the same random numbers differ");
    for n in 0..VECTORS {
        let mut vector = before.spinor(Precision::Single);
        before.hierarchy().smooth.field(n, &mut vector).unwrap();
        let mut content = vec![0.0; 24 * volume(EXTENTS)];
        vector.write_host(ODD, &mut content).unwrap();
        let mut vector = after.spinor(Precision::Single);
        vector.read_host(ODD, &reals(&turned(&complex(&content)))).unwrap();
        after.hierarchy().smooth.set_field(n, &vector).unwrap();
    }
    for made in [&mut before, &mut after] {
        let hierarchy = Arc::clone(made.multigrid.hierarchy.as_ref().expect("a hierarchy"));
        hierarchy.lock().unwrap().make(&mut operators(&mut made.all), false).unwrap();
    }
    let (old, new) = (prolonged(&before, &c), prolonged(&after, &c));
    assert!(apart(&new, &old) > 0.1, "the transformation does something");
    let space = apart(&new, &turned(&old));
    let (old, new) = (before.coarse(&c), after.coarse(&c));
    let coarse = norm(&new.iter().zip(&old).map(|(new, old)| new - old).collect::<Field>()) / norm(&c);
    println!("P {space:.1e}, A {coarse:.1e} of {:.1e}", norm(&old) / norm(&c));
    // Sixteen bits round components, which the transformation mixes. M multiplies that by 8 at most.
    assert!(space < VECTORS_ROUNDING && coarse < 8.0 * VECTORS_ROUNDING);
}
