//! Many blocking sessions on one thread.
//!
//! A [`Loop`] runs fibers: functions with a stack of their own that run until they wait, for a socket ([`Ready`]), for a
//! time ([`sleep_until`]) or for somebody ([`Waker`]); meanwhile others run. So the code of a session is the same on a
//! thread of its own and on one that it shares. Outside a fiber all of this does nothing or blocks.
//!
//! What came for a fiber while others ran had to wait: [`take_late`].

mod event_loop;
mod fiber;
mod inbox;
mod poller;
mod stacks;
mod state;
mod warm;

pub use event_loop::Loop;
pub use fiber::{Ready, active, give_way, park, sleep_until, take_late, waker};
pub use inbox::Waker;
pub use state::Late;
