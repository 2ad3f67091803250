//! Server-sent events: the changing part of a run's page, once a second while it changes.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use super::Served;
use super::pages::{PageError, changing};
use super::shell::problem;
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
    _permit: OwnedSemaphorePermit,
}

pub(super) async fn events(State(served): State<Arc<Served>>, Path(id): Path<String>) -> Response {
    let path = match served.runs.path(&id) {
        Ok(path) => path,
        Err(e) => return PageError::Run(e).into_response(),
    };
    let Ok(permit) = Arc::clone(&served.following).try_acquire_owned() else {
        return problem(StatusCode::SERVICE_UNAVAILABLE, "Too many browsers follow runs: close some pages.");
    };
    let follower = Follower::new(&path);
    let following = Following { served, id, follower, sent: String::new(), over: false, _permit: permit };
    let next = |mut following: Following| async move {
        if following.over {
            return None;
        }
        if !following.sent.is_empty() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let looked = tokio::task::spawn_blocking(move || {
            let text = following.look();
            (text, following)
        });
        // A panic ends the stream; the browser asks again.
        let (text, following) = looked.await.ok()?;
        let event =
            text.map_or_else(|| Event::default().comment("same"), |text| Event::default().event("now").data(text));
        Some((Ok::<_, Infallible>(event), following))
    };
    Sse::new(stream::unfold(following, next)).keep_alive(KeepAlive::default()).into_response()
}

impl Following {
    /// What is new, in JSON; `None` if nothing is.
    fn look(&mut self) -> Option<String> {
        // It may have been replaced by something else meanwhile.
        let (html, said, over) = match self.served.runs.path(&self.id) {
            Ok(_) => changing(self.follower.look()),
            Err(e) => (format!("<p>{}</p>", loadline_report::Text(&e.to_string())), e.to_string(), true),
        };
        self.over = over;
        let text = json!({ "html": html, "said": said, "over": over }).to_string();
        (text != self.sent).then(|| {
            self.sent.clone_from(&text);
            text
        })
    }
}
