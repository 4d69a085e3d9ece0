//! Threads that share the work of a launch. A launch takes microseconds, and the next one follows at once: the threads
//! therefore wait for it in a loop, and only sleep after a while without work.

use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Work for all threads, each with its number.
type Work<'a> = &'a (dyn Fn(usize) + Sync);

/// The caller's thread, and others.
pub(super) struct Team {
    shared: Arc<Shared>,
    members: Vec<Member>,
    /// Held during a call: the members work for one caller at a time.
    busy: Mutex<()>,
}

/// What the threads of a team share.
struct Shared {
    /// Counts calls; odd in the last one, which ends the team.
    call: AtomicU64,
    work: UnsafeCell<Option<Work<'static>>>,
    /// Members that have not finished.
    left: AtomicUsize,
    failed: AtomicBool,
}

// SAFETY: `work` is written by the caller while no member works, and read by members between the count of the call and
// their sign-off in `left`.
unsafe impl Sync for Shared {}
// SAFETY: the work is `Sync`, so it may be called from any thread.
unsafe impl Send for Shared {}

struct Member {
    thread: Option<JoinHandle<()>>,
    asleep: Arc<AtomicBool>,
}

/// Looks for work this many times, about 30 us; then gives way to other processes this many times; then sleeps.
const SPINS: u32 = 2000;
const YIELDS: u32 = 200;
/// What is added to the count with each call.
const CALL: u64 = 2;
const END: u64 = 1;

/// Waits until `done`, with `sleep` when it takes long.
fn wait(done: impl Fn() -> bool, mut sleep: impl FnMut()) {
    for turn in 0..SPINS + YIELDS {
        if done() {
            return;
        }
        if turn < SPINS { spin_loop() } else { thread::yield_now() }
    }
    while !done() {
        sleep();
    }
}

impl Team {
    /// A team of `count` threads, the caller's included.
    ///
    /// # Errors
    /// The system does not start a thread.
    pub(super) fn new(count: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            call: AtomicU64::new(0),
            work: UnsafeCell::new(None),
            left: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
        });
        let mut team = Self { shared, members: Vec::new(), busy: Mutex::new(()) };
        for number in 1..count {
            let (shared, asleep) = (Arc::clone(&team.shared), Arc::new(AtomicBool::new(false)));
            let own = Arc::clone(&asleep);
            let thread = thread::Builder::new().name(format!("kernels {number}"));
            let thread = thread.spawn(move || serve(&shared, &own, number))?;
            team.members.push(Member { thread: Some(thread), asleep });
        }
        Ok(team)
    }

    /// Threads, the caller's included.
    pub(super) fn count(&self) -> usize {
        self.members.len() + 1
    }

    /// Calls `work` once on each thread, with numbers from 0 on; the caller's is 0. Where the team is busy with
    /// another call, the caller does all by itself.
    ///
    /// # Panics
    /// `work` panics.
    pub(super) fn run(&self, work: impl Fn(usize) + Sync) {
        let Ok(busy) = self.busy.try_lock() else {
            (0..self.count()).for_each(work);
            return;
        };
        let shared = &*self.shared;
        let short: Work<'_> = &work;
        // SAFETY: the reference is dropped below, before `work` is.
        let long = unsafe { std::mem::transmute::<Work<'_>, Work<'static>>(short) };
        // SAFETY: no member works, and this thread alone holds `busy`.
        unsafe { *shared.work.get() = Some(long) };
        shared.left.store(self.members.len(), Ordering::Relaxed);
        self.call(CALL);
        let own = catch_unwind(AssertUnwindSafe(|| work(0)));
        wait(|| shared.left.load(Ordering::Acquire) == 0, thread::yield_now);
        // SAFETY: all members have finished.
        unsafe { *shared.work.get() = None };
        let failed = shared.failed.swap(false, Ordering::Relaxed);
        // Before a panic goes on, which would make the lock useless.
        drop(busy);
        if let Err(panic) = own {
            std::panic::resume_unwind(panic);
        }
        assert!(!failed, "a thread of the team panicked");
    }

    /// Counts a call and wakes who sleeps.
    fn call(&self, step: u64) {
        self.shared.call.fetch_add(step, Ordering::SeqCst);
        for member in &self.members {
            if member.asleep.load(Ordering::SeqCst) {
                member.thread.iter().for_each(|thread| thread.thread().unpark());
            }
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        // Nobody calls any more, so the lock is free; a panic of a caller does not matter.
        drop(self.busy.lock().unwrap_or_else(PoisonError::into_inner));
        self.call(END);
        for thread in self.members.iter_mut().filter_map(|member| member.thread.take()) {
            // Panics of the work were caught.
            let _ = thread.join();
        }
    }
}

/// The life of a member.
fn serve(shared: &Shared, asleep: &AtomicBool, number: usize) {
    let mut last = 0;
    loop {
        let news = || shared.call.load(Ordering::SeqCst) != last;
        wait(news, || {
            // The caller counts first and then looks who sleeps; so either it sees this or the count is seen here.
            asleep.store(true, Ordering::SeqCst);
            if !news() {
                thread::park();
            }
            asleep.store(false, Ordering::SeqCst);
        });
        last = shared.call.load(Ordering::SeqCst);
        if last % CALL == END {
            return;
        }
        // SAFETY: the call was counted after the work was written, and the caller waits for `left`.
        let work = unsafe { *shared.work.get() }.expect("work for the team");
        if catch_unwind(AssertUnwindSafe(|| work(number))).is_err() {
            shared.failed.store(true, Ordering::Relaxed);
        }
        shared.left.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_works_once_a_call() {
        let team = Team::new(4).unwrap();
        let counts: [AtomicUsize; 4] = Default::default();
        for call in 1..=2000 {
            team.run(|number| _ = counts[number].fetch_add(1, Ordering::Relaxed));
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == call));
            if call % 500 == 0 {
                // Long enough for all to sleep.
                thread::sleep(std::time::Duration::from_millis(20));
            }
        }
    }

    #[test]
    fn a_call_within_a_call_is_done_by_its_thread() {
        let team = Team::new(3).unwrap();
        let count = AtomicUsize::new(0);
        team.run(|_| team.run(|_| _ = count.fetch_add(1, Ordering::Relaxed)));
        assert_eq!(count.load(Ordering::Relaxed), 9);
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let team = Team::new(2).unwrap();
        for bad in [0, 1] {
            let call = || team.run(|number| assert_ne!(number, bad, "this one fails"));
            assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
        }
        let count = AtomicUsize::new(0);
        team.run(|_| _ = count.fetch_add(1, Ordering::Relaxed));
        assert_eq!(count.load(Ordering::Relaxed), 2);
    }
}
