//! Stored inputs of earlier versions, as they would be written now: a chain that began with one goes on.

use std::borrow::Cow;
use toml_edit::{DocumentMut, Item, Table, TableLike};

/// The keys of preconditioners, which stood beside those of the solver, and their names in the tables that they have now.
const GCR_DD: [(&str, &str); 3] = [("k_max", "k_max"), ("n_mr", "n_mr"), ("schwarz_block", "block")];
const MULTIGRID: [(&str, &str); 5] = [
    ("k_max", "k_max"),
    ("n_mr", "n_mr"),
    ("aggregate", "aggregate"),
    ("coarse_aggregate", "coarse_aggregate"),
    ("vectors", "vectors"),
];

/// The text with keys where they stand now.
pub(super) fn as_now(text: &str) -> Cow<'_, str> {
    let mut keys = GCR_DD.iter().chain(&MULTIGRID).map(|(key, _)| key);
    if !keys.any(|key| text.contains(key)) {
        return text.into();
    }
    let Ok(mut document) = text.parse::<DocumentMut>() else { return text.into() };
    let fermions = document.get_mut("fermion").and_then(Item::as_table_like_mut);
    for (_, fermion) in fermions.into_iter().flat_map(TableLike::iter_mut) {
        let Some(fermion) = fermion.as_table_like_mut() else { continue };
        let mut method = String::new();
        if let Some(solver) = fermion.get_mut("solver").and_then(Item::as_table_like_mut) {
            method = divide(solver, "");
        }
        let factors = fermion.get_mut("hasenbusch").and_then(Item::as_array_of_tables_mut);
        for factor in factors.into_iter().flat_map(|all| all.iter_mut()) {
            if let Some(solver) = factor.get_mut("solver").and_then(Item::as_table_like_mut) {
                divide(solver, &method);
            }
        }
    }
    document.to_string().into()
}

/// Moves the keys of a solver, of a factor of a fermion with the method `inherited`; returns its method. Keys of both
/// preconditioners go into both tables, if it has others of them or names the method.
fn divide(solver: &mut dyn TableLike, inherited: &str) -> String {
    let method = solver.get("method").and_then(Item::as_str).unwrap_or(inherited).to_owned();
    let has = |own: &str| solver.contains_key(own);
    let is_multigrid = method == "multigrid" || MULTIGRID[2..].iter().any(|(key, _)| has(key));
    let is_gcr_dd =
        method == "gcr-dd" || has("schwarz_block") || (!is_multigrid && (has("k_max") || has("n_mr")));
    let mut tables = Vec::new();
    for (word, keys, is_there) in
        [("gcr-dd", &GCR_DD[..], is_gcr_dd), ("multigrid", &MULTIGRID[..], is_multigrid)]
    {
        let mut table = Table::new();
        for (old, new) in keys {
            if let Some(value) = solver.get(old).filter(|_| is_there) {
                table.insert(new, value.clone());
            }
        }
        if !table.is_empty() {
            tables.push((word, table));
        }
    }
    for (old, _) in GCR_DD.iter().chain(&MULTIGRID) {
        solver.remove(old);
    }
    for (word, table) in tables {
        solver.insert(word, Item::Value(table.into_inline_table().into()));
    }
    method
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_preconditioners_move_into_their_tables() {
        let old = "[fermion.light]\nkappa = 0.1\n[fermion.light.solver]\nmethod = \"gcr-dd\" # fast\nk_max = 8\n\
                   schwarz_block = [2, 2, 2, 4]\n[[fermion.light.hasenbusch]]\nname = \"l1\"\nsolver = { method = \"multigrid\", vectors = 8, n_mr = 4 }\n";
        let now = as_now(old);
        let table: toml::Table = now.parse().unwrap();
        let solver = &table["fermion"]["light"]["solver"];
        assert_eq!(solver["gcr-dd"].to_string(), "{ block = [2, 2, 2, 4], k_max = 8 }");
        assert!(solver.get("k_max").is_none() && solver.get("multigrid").is_none());
        let factor = &table["fermion"]["light"]["hasenbusch"][0]["solver"];
        assert_eq!(factor["multigrid"].to_string(), "{ n_mr = 4, vectors = 8 }");
        assert!(matches!(as_now("[gauge]\nbeta = 6.0\n"), Cow::Borrowed(_)));
    }
}
