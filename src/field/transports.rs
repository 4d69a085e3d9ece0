//! How halos travel between each two ranks.

use std::sync::Arc;

/// The transport of halos between two ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halo {
    /// Through host memory and MPI.
    Staged,
    /// From GPU to GPU, through memory that ranks open for each other (CUDA IPC).
    Peer,
    /// From GPU to GPU, by NCCL; on emulated GPUs, MPI carries it.
    Nccl,
}

/// For the log.
impl std::fmt::Display for Halo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Staged => "staged",
            Self::Peer => "peer to peer",
            Self::Nccl => "by NCCL",
        })
    }
}

/// The transports between all ranks: the same on all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transports(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    One(Halo),
    /// Peers within groups; between them, messages.
    Within {
        group_of: Arc<[usize]>,
        between: Halo,
    },
}

impl From<Halo> for Transports {
    fn from(halo: Halo) -> Self {
        Self(Kind::One(halo))
    }
}

impl Transports {
    /// Ranks of one group open each other's memory; `group_of` has the number of each rank's group.
    pub fn within(group_of: &[usize], between: Halo) -> Self {
        let mut groups = group_of.to_vec();
        groups.sort_unstable();
        groups.dedup();
        match (groups.len(), group_of.len()) {
            (1, _) => Halo::Peer.into(),
            (groups, ranks) if groups == ranks => between.into(),
            _ => Self(Kind::Within { group_of: group_of.into(), between }),
        }
    }

    /// The transport between two ranks.
    pub fn between(&self, a: usize, b: usize) -> Halo {
        match &self.0 {
            Kind::One(halo) => *halo,
            Kind::Within { group_of, .. } if group_of[a] == group_of[b] => Halo::Peer,
            Kind::Within { between, .. } => *between,
        }
    }

    /// Whether all ranks open each other's memory.
    pub fn are_peer(&self) -> bool {
        self.0 == Kind::One(Halo::Peer)
    }

    /// Whether any ranks do.
    pub fn have_peer(&self) -> bool {
        self.are_peer() || matches!(self.0, Kind::Within { .. })
    }

    /// The transport of halos that are messages.
    pub fn messages(&self) -> Halo {
        match self.0 {
            Kind::One(halo) => halo,
            Kind::Within { between, .. } => between,
        }
    }
}

/// For the log.
impl std::fmt::Display for Transports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Kind::One(halo) => halo.fmt(f),
            Kind::Within { group_of, between } => {
                let first = |rank: usize| group_of[..rank].iter().all(|group| *group != group_of[rank]);
                let of_group = |rank: usize| {
                    let members = (0..group_of.len()).filter(|&other| group_of[other] == group_of[rank]);
                    members.map(|rank| rank.to_string()).collect::<Vec<_>>().join(" ")
                };
                let groups: Vec<String> =
                    (0..group_of.len()).filter(|&rank| first(rank)).map(of_group).collect();
                write!(f, "{} among ranks {}, {between} between them", Halo::Peer, groups.join(" | "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_a_node_are_peers() {
        let mixed = Transports::within(&[0, 0, 2, 2, 4], Halo::Staged);
        assert_eq!(mixed.between(0, 1), Halo::Peer);
        assert_eq!(mixed.between(1, 2), Halo::Staged);
        assert!(mixed.have_peer() && !mixed.are_peer());
        assert_eq!(mixed.to_string(), "peer to peer among ranks 0 1 | 2 3 | 4, staged between them");
        let of_nodes = Transports::within(&[0, 0, 2], Halo::Nccl);
        assert_eq!((of_nodes.between(1, 2), of_nodes.messages()), (Halo::Nccl, Halo::Nccl));
        assert_eq!(of_nodes.to_string(), "peer to peer among ranks 0 1 | 2, by NCCL between them");
        assert_eq!(Transports::within(&[3, 3], Halo::Staged), Halo::Peer.into());
        assert_eq!(Transports::within(&[1, 0], Halo::Nccl), Halo::Nccl.into());
    }
}
