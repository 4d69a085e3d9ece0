//! Ranks that are threads of one test: messages, sums and all else through shared memory.

use hmc::comm::{Comm, Message};
use hmc::field::{HostLinks, LINK_REALS};
use hmc::lattice::{Extents, Partition, coordinates, site, volume};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex};

/// Messages under way, by sender, receiver and tag.
type Mail = HashMap<(usize, usize, i32), VecDeque<Vec<u8>>>;

#[derive(Default)]
struct Post {
    mail: Mutex<Mail>,
    arrived: Condvar,
}

/// One rank of some.
pub struct Thread {
    rank: usize,
    size: usize,
    post: Arc<Post>,
}

/// The tag of collective messages.
const ALL: i32 = -1;

/// Runs `work` on `size` ranks; the results in order of rank. A rank that panics leaves the others waiting for it, so
/// `work` checks nothing itself.
pub fn run<T: Send>(size: usize, work: impl Fn(Arc<dyn Comm>) -> T + Sync) -> Vec<T> {
    let post = Arc::new(Post::default());
    std::thread::scope(|scope| {
        let rank = |rank| -> Arc<dyn Comm> { Arc::new(Thread { rank, size, post: Arc::clone(&post) }) };
        let work = &work;
        let threads: Vec<_> = (0..size).map(rank).map(|comm| scope.spawn(move || work(comm))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Runs `work` on the boxes of a grid; each box with what it found.
pub fn on_grid<T: Send>(
    extents: Extents,
    grid: Extents,
    work: impl Fn(Partition, Arc<dyn Comm>) -> T + Sync,
) -> Vec<(Partition, T)> {
    let partition = |rank| Partition::new(extents, grid, volume(grid), rank).unwrap();
    let found = run(volume(grid), |comm| work(partition(comm.rank()), comm));
    found.into_iter().enumerate().map(|(rank, found)| (partition(rank), found)).collect()
}

/// A rank's part of the links.
pub fn links(whole: &HostLinks, partition: &Partition) -> HostLinks {
    HostLinks { local: partition.local(), reals: part(&whole.reals, partition, 4 * LINK_REALS) }
}

/// A rank's part of a field of the whole lattice, `reals` a site.
pub fn part(whole: &[f64], partition: &Partition, reals: usize) -> Vec<f64> {
    let (local, offset) = (partition.local(), partition.offset());
    let at = |x: usize| {
        let x = coordinates(local, x);
        reals * site(partition.global, std::array::from_fn(|mu| x[mu] + offset[mu]))
    };
    (0..volume(local)).flat_map(|x| &whole[at(x)..at(x) + reals]).copied().collect()
}

impl Thread {
    fn send(&self, to: usize, tag: i32, bytes: &[u8]) {
        let mut mail = self.post.mail.lock().unwrap();
        mail.entry((self.rank, to, tag)).or_default().push_back(bytes.to_vec());
        self.post.arrived.notify_all();
    }

    fn receive(&self, from: usize, tag: i32) -> Vec<u8> {
        let mut mail = self.post.mail.lock().unwrap();
        loop {
            let waiting = mail.get_mut(&(from, self.rank, tag)).and_then(VecDeque::pop_front);
            match waiting {
                Some(bytes) => return bytes,
                None => mail = self.post.arrived.wait(mail).unwrap(),
            }
        }
    }
}

impl Comm for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn exchange_while(
        &self,
        sends: &[Message<&[u8]>],
        receives: &mut [Message<&mut [u8]>],
        meanwhile: &mut dyn FnMut(),
    ) {
        meanwhile();
        for message in sends {
            self.send(message.peer, message.tag, message.bytes);
        }
        for message in receives {
            message.bytes.copy_from_slice(&self.receive(message.peer, message.tag));
        }
    }

    fn sum(&self, values: &mut [i64]) {
        let own: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        values.fill(0);
        for bytes in self.gather(&own) {
            for (sum, v) in values.iter_mut().zip(bytes.chunks_exact(8)) {
                *sum = sum.wrapping_add(i64::from_le_bytes(v.try_into().unwrap()));
            }
        }
    }

    fn max(&self, value: f64) -> f64 {
        let all = self.gather(&value.to_le_bytes());
        let values = all.iter().map(|bytes| f64::from_le_bytes(bytes[..].try_into().unwrap()));
        values.fold(f64::NEG_INFINITY, |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) })
    }

    fn gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        (0..self.size).for_each(|to| self.send(to, ALL, bytes));
        (0..self.size).map(|from| self.receive(from, ALL)).collect()
    }

    fn first(&self, size: usize) -> Option<Arc<dyn Comm>> {
        assert!(size <= self.size);
        let Self { rank, post, .. } = self;
        (*rank < size).then(|| Arc::new(Self { rank: *rank, size, post: Arc::clone(post) }) as Arc<dyn Comm>)
    }

    fn barrier(&self) {
        self.gather(&[]);
    }

    fn abort(&self, code: i32) -> ! {
        std::process::exit(code)
    }
}
