//! Server-sent events: the changing part of a run's page, once a second while it changes.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::http::{Answer, Body};
use super::pages::{PageError, changing};
use super::shell::problem;
use super::{MOST_FOLLOWED, Served};
use crate::now::Follower;

/// Time between two looks at the folder.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A browser that follows a run.
struct Following {
    served: Arc<Served>,
    id: String,
    follower: Follower,
    /// What it was sent last.
    sent: String,
    over: bool,
    _followed: Arc<()>,
}

pub(super) fn events(served: &Arc<Served>, id: &str) -> Result<Answer, PageError> {
    let path = served.runs.path(id)?;
    if Arc::strong_count(&served.following) > MOST_FOLLOWED {
        return Ok(problem(503, "Too many browsers follow runs: close some pages."));
    }
    let following = Following {
        served: Arc::clone(served),
        id: id.to_owned(),
        follower: Follower::new(&path),
        sent: String::new(),
        over: false,
        _followed: Arc::clone(&served.following),
    };
    Ok(Answer::new("text/event-stream", Body::Parts(Box::new(following))))
}

impl Iterator for Following {
    type Item = String;

    /// The next event; a comment if nothing changed, which finds out whether the browser is still there.
    fn next(&mut self) -> Option<String> {
        if self.over {
            return None;
        }
        if !self.sent.is_empty() {
            std::thread::sleep(LOOK_EVERY);
        }
        // It may have been replaced by something else meanwhile.
        let (html, said, over) = match self.served.runs.path(&self.id) {
            Ok(_) => changing(self.follower.look()),
            Err(e) => (format!("<p>{}</p>", loadline_report::Text(&e.to_string())), e.to_string(), true),
        };
        self.over = over;
        // JSON has no line ends.
        let text = json!({ "html": html, "said": said, "over": over }).to_string();
        if text == self.sent {
            return Some(":same\n\n".to_owned());
        }
        self.sent.clone_from(&text);
        Some(format!("event: now\ndata: {text}\n\n"))
    }
}
