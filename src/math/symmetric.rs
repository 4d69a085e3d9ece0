//! Eigenvalues and eigenvectors of small symmetric matrices, by Jacobi's rotations (Golub, Van Loan, Matrix Computations, 8.5).

/// Pairs of an eigenvalue and its eigenvector, the greatest |eigenvalue| first.
///
/// # Panics
/// The matrix is not square.
pub(crate) fn eigenpairs(mut matrix: Vec<Vec<f64>>) -> Vec<(f64, Vec<f64>)> {
    let n = matrix.len();
    assert!(matrix.iter().all(|row| row.len() == n), "a square matrix");
    // Row k is an eigenvector.
    let mut vectors: Vec<Vec<f64>> =
        (0..n).map(|i| (0..n).map(|j| if i == j { 1.0 } else { 0.0 }).collect()).collect();
    let size = matrix.iter().flatten().map(|x| x * x).sum::<f64>().sqrt();
    // Convergence is quadratic; numbers that are not finite never converge.
    for _ in 0..60 {
        let mut largest = 0.0_f64;
        for p in 0..n {
            for q in p + 1..n {
                largest = largest.max(matrix[p][q].abs());
                if matrix[p][q] == 0.0 {
                    continue;
                }
                let theta = 0.5 * (matrix[q][q] - matrix[p][p]) / matrix[p][q];
                let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
                let c = t.hypot(1.0).recip();
                let s = t * c;
                let rotate = |a: &mut f64, b: &mut f64| (*a, *b) = (c * *a - s * *b, s * *a + c * *b);
                for row in &mut matrix {
                    let (left, right) = row.split_at_mut(q);
                    rotate(&mut left[p], &mut right[0]);
                }
                for rows in [&mut matrix, &mut vectors] {
                    let (above, below) = rows.split_at_mut(q);
                    above[p].iter_mut().zip(&mut below[0]).for_each(|(a, b)| rotate(a, b));
                }
            }
        }
        if largest <= 1e-16 * size {
            break;
        }
    }
    let mut pairs: Vec<_> = vectors.into_iter().enumerate().map(|(k, v)| (matrix[k][k], v)).collect();
    pairs.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
    pairs
}

#[cfg(test)]
mod tests {
    use super::eigenpairs;

    /// 2 on the diagonal and 1 beside it: 2 + 2 cos(pi j / (n + 1)), with components of sin(pi j k / (n + 1)).
    #[test]
    fn pairs_of_a_known_matrix() {
        let n = 9;
        let entry = |i: usize, j: usize| [2.0, 1.0].get(i.abs_diff(j)).copied().unwrap_or(0.0);
        let matrix: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect();
        for (j, (value, vector)) in eigenpairs(matrix).into_iter().enumerate() {
            let angle = std::f64::consts::PI * (j + 1) as f64 / (n + 1) as f64;
            assert!((value - (2.0 + 2.0 * angle.cos())).abs() < 1e-14, "{value}");
            let expected = (2.0 / (n + 1) as f64).sqrt() * (angle * n as f64).sin();
            assert!((vector[n - 1].abs() - expected.abs()).abs() < 1e-14, "{vector:?}");
        }
        assert_eq!(eigenpairs(vec![vec![-3.0]]), [(-3.0, vec![1.0])]);
    }
}
