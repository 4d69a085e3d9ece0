//! How halos travel between each two ranks.

use std::sync::Arc;

/// The transport of halos between two ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halo {
    /// Through host memory and MPI.
    Staged,
    /// From GPU to GPU, through memory that ranks open for each other (CUDA IPC).
    Peer,
}

/// The transports between all ranks: the same on all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transports(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    One(Halo),
    Within(Arc<[usize]>),
}

impl From<Halo> for Transports {
    fn from(halo: Halo) -> Self {
        Self(Kind::One(halo))
    }
}

impl Transports {
    /// Ranks of one group open each other's memory; `group_of` has the number of each rank's group.
    pub fn within(group_of: &[usize]) -> Self {
        let mut groups = group_of.to_vec();
        groups.sort_unstable();
        groups.dedup();
        match (groups.len(), group_of.len()) {
            (1, _) => Halo::Peer.into(),
            (groups, ranks) if groups == ranks => Halo::Staged.into(),
            _ => Self(Kind::Within(group_of.into())),
        }
    }

    /// The transport between two ranks.
    pub fn between(&self, a: usize, b: usize) -> Halo {
        match &self.0 {
            Kind::One(halo) => *halo,
            Kind::Within(group_of) if group_of[a] == group_of[b] => Halo::Peer,
            Kind::Within(_) => Halo::Staged,
        }
    }

    /// Whether all ranks open each other's memory.
    pub fn are_peer(&self) -> bool {
        self.0 == Kind::One(Halo::Peer)
    }

    /// Whether any ranks do.
    pub fn have_peer(&self) -> bool {
        self.0 != Kind::One(Halo::Staged)
    }
}

/// For the log.
impl std::fmt::Display for Transports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Kind::One(Halo::Staged) => f.write_str("staged"),
            Kind::One(Halo::Peer) => f.write_str("peer to peer"),
            Kind::Within(group_of) => {
                let first = |rank: usize| group_of[..rank].iter().all(|group| *group != group_of[rank]);
                let of_group = |rank: usize| {
                    let members = (0..group_of.len()).filter(|&other| group_of[other] == group_of[rank]);
                    members.map(|rank| rank.to_string()).collect::<Vec<_>>().join(" ")
                };
                let groups: Vec<String> =
                    (0..group_of.len()).filter(|&rank| first(rank)).map(of_group).collect();
                write!(f, "peer to peer among ranks {}, staged between them", groups.join(" | "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_a_node_are_peers() {
        let mixed = Transports::within(&[0, 0, 2, 2, 4]);
        assert_eq!(mixed.between(0, 1), Halo::Peer);
        assert_eq!(mixed.between(1, 2), Halo::Staged);
        assert!(mixed.have_peer() && !mixed.are_peer());
        assert_eq!(mixed.to_string(), "peer to peer among ranks 0 1 | 2 3 | 4, staged between them");
        assert_eq!(Transports::within(&[3, 3]), Halo::Peer.into());
        assert_eq!(Transports::within(&[1, 0]), Halo::Staged.into());
    }
}
