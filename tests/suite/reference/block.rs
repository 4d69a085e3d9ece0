//! 12x12 complex matrices of one site, index 3 spin + colour.

use super::su3::{ONE, ZERO};
use num_complex::Complex64;

/// `[row][column]`.
pub type M12 = [[Complex64; 12]; 12];

/// LU with partial pivoting, done on a copy: returns (det, inverse) by Gauss and Jordan.
pub fn eliminate(a: &M12) -> (Complex64, M12) {
    let (mut a, mut inverse, mut det) = (*a, [[ZERO; 12]; 12], ONE);
    for i in 0..12 {
        inverse[i][i] = ONE;
    }
    for k in 0..12 {
        let pivot = (k..12).max_by(|&i, &j| a[i][k].norm().total_cmp(&a[j][k].norm())).unwrap();
        if pivot != k {
            a.swap(k, pivot);
            inverse.swap(k, pivot);
            det = -det;
        }
        let head = a[k][k];
        det *= head;
        a[k] = a[k].map(|z| z / head);
        inverse[k] = inverse[k].map(|z| z / head);
        for i in (0..12).filter(|&i| i != k) {
            let factor = a[i][k];
            for j in 0..12 {
                let (left, right) = (factor * a[k][j], factor * inverse[k][j]);
                a[i][j] -= left;
                inverse[i][j] -= right;
            }
        }
    }
    (det, inverse)
}
