//! Changes settings of the private server.

use std::sync::Arc;

use super::server::Mysql;
use crate::error::TargetError;
use crate::request::OpenRequest;
use crate::target::{Settings, Target};

impl Settings for Mysql {
    /// Always restarts it: what SET GLOBAL changes and what it leaves alone differs from setting to setting and version.
    fn switch(&self, request: &OpenRequest, _: bool) -> Result<(Box<dyn Target>, bool), TargetError> {
        let (Some(shared), Some(mut server)) = (&self.server, self.private()) else {
            return Err(TargetError::Unsupported("loadline does not change a user's server".into()));
        };
        server.restart(&request.settings)?;
        let (url, request) = server.address(request);
        drop(server);
        Ok((Box::new(Mysql::open(&url, &request, Some(Arc::clone(shared)))?), true))
    }

    fn setting(&self, name: &str) -> Result<Option<String>, TargetError> {
        // Options are written with - as well; names are compared without case.
        let name = name.replace('-', "_").replace('\\', "\\\\").replace('\'', "''");
        self.first().admin(|c| {
            let found = c.pairs(&format!("SHOW GLOBAL VARIABLES WHERE Variable_name = '{name}'"))?;
            Ok(found.into_iter().next().map(|(_, value)| value))
        })
    }
}
