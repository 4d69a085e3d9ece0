//! The energy that the devices of all ranks take, where they count it.

use crate::device::Energy;
use crate::field::Domain;

/// A start of counting.
pub(in crate::app) struct Meter {
    before: Energy,
}

impl Meter {
    /// Reads this rank's device.
    pub(in crate::app) fn start(domain: &Domain) -> Self {
        Self { before: domain.device().backend().energy() }
    }

    /// Joules since the start, of all ranks' devices together, those that ranks share once; `None` unless all of them
    /// count. Work that the device has not done yet is missing. Collective.
    pub(in crate::app) fn joules(&self, domain: &Domain) -> Option<f64> {
        let own = difference(&self.before, &domain.device().backend().energy());
        together(&domain.comm().gather(&own))
    }
}

/// Why this rank's device, which should count energy, does not.
pub(in crate::app) fn unread(domain: &Domain) -> Option<String> {
    match domain.device().backend().energy() {
        Energy::Unread(why) => Some(why),
        Energy::Uncounted | Energy::Counted { .. } => None,
    }
}

/// Millijoules between two readings as eight bytes, then the meter's name; empty where nothing is counted.
fn difference(before: &Energy, after: &Energy) -> Vec<u8> {
    match (before, after) {
        (
            Energy::Counted { meter, millijoules: before },
            Energy::Counted { meter: same, millijoules: after },
        ) if meter == same && before <= after => [&(after - before).to_le_bytes(), meter.as_bytes()].concat(),
        _ => Vec::new(),
    }
}

/// Joules of all meters. Ranks that share a meter read it at about the same time: the first one counts.
fn together(differences: &[Vec<u8>]) -> Option<f64> {
    let (mut meters, mut sum) = (Vec::new(), 0);
    for bytes in differences {
        let (millijoules, meter) = bytes.split_first_chunk()?;
        if !meters.contains(&meter) {
            meters.push(meter);
            sum += u64::from_le_bytes(*millijoules);
        }
    }
    Some(sum as f64 * 1e-3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(meter: &str, millijoules: u64) -> Energy {
        Energy::Counted { meter: meter.into(), millijoules }
    }

    #[test]
    fn a_shared_device_counts_once() {
        let of = |meter, from, to| difference(&counted(meter, from), &counted(meter, to));
        let (a, b) = (of("GPU-a", 1000, 3500), of("GPU-b", 70, 570));
        assert_eq!(together(std::slice::from_ref(&a)), Some(2.5));
        assert_eq!(together(&[a.clone(), b.clone(), a.clone(), b]), Some(3.0));
        assert_eq!(together(&[of("GPU-a", 5, 5)]), Some(0.0));
    }

    #[test]
    fn what_is_not_counted_by_all_is_not_told() {
        let a = difference(&counted("GPU-a", 0), &counted("GPU-a", 9));
        let unread = Energy::Unread("why".into());
        for (before, after) in [
            (Energy::Uncounted, Energy::Uncounted),
            (counted("GPU-a", 0), unread),
            (counted("GPU-a", 0), counted("GPU-b", 1)),
            // A driver that was loaded anew counts from zero.
            (counted("GPU-a", 9), counted("GPU-a", 1)),
        ] {
            assert_eq!(together(&[a.clone(), difference(&before, &after)]), None);
        }
    }
}
