//! The terminal that shows a run: its size, its keys, and its state before.

use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use nix::unistd::read;

use crate::screen::escaped;

/// A terminal of our own; dropped, it is as before.
pub(crate) struct Terminal {
    before: Termios,
    colours: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Quit,
    Interrupt,
}

impl Terminal {
    pub(crate) fn new(colours: bool) -> io::Result<Terminal> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        tcsetattr(io::stdin(), SetArg::TCSADRAIN, &raw)?;
        let terminal = Terminal { before: before.clone(), colours };
        // The message of a panic belongs on the screen that stays.
        let hook = std::panic::take_hook();
        let before = nix::libc::termios::from(before);
        std::panic::set_hook(Box::new(move |panicked| {
            restore(&Termios::from(before));
            hook(panicked);
        }));
        // A screen of its own, without cursor.
        print("\x1b[?1049h\x1b[?25l")?;
        Ok(terminal)
    }

    /// Width and height, characters.
    pub(crate) fn size() -> (usize, usize) {
        let size = terminal_size::terminal_size_of(io::stdout());
        size.map_or((0, 0), |(width, height)| (usize::from(width.0), usize::from(height.0)))
    }

    /// Shows `rows` in place of all that was there.
    pub(crate) fn show(&self, rows: &[String]) -> io::Result<()> {
        print(&escaped(rows, self.colours))
    }

    /// The next key that means something, if it comes within `patience`.
    pub(crate) fn key(&self, patience: Duration) -> io::Result<Option<Key>> {
        let stdin = io::stdin();
        let patience = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
        let mut keys = [0; 64];
        let pressed = match poll(&mut [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)], patience) {
            Ok(0) | Err(Errno::EINTR) => return Ok(None),
            Ok(_) => read(stdin.as_fd(), &mut keys)?,
            Err(e) => return Err(e.into()),
        };
        match keys.get(..pressed).unwrap_or_default() {
            [] => Err(io::ErrorKind::UnexpectedEof.into()),
            // Escape alone; others begin with it.
            [0x1b] => Ok(Some(Key::Quit)),
            keys if keys.contains(&0x03) => Ok(Some(Key::Interrupt)),
            keys if keys.contains(&b'q') && !keys.contains(&0x1b) => Ok(Some(Key::Quit)),
            _ => Ok(None),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore(&self.before);
    }
}

/// Best effort: the terminal may be gone.
fn restore(before: &Termios) {
    let _ = print("\x1b[?25h\x1b[?1049l");
    let _ = tcsetattr(io::stdin(), SetArg::TCSADRAIN, before);
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
