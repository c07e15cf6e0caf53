//! Downloads that go on where they stopped: an unfinished file stays, and the next try asks for the rest
//! of it (`Range`). A server that sends everything again is taken at its word.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use ureq::Agent;
use ureq::http::{HeaderMap, Response, header};

use super::super::error::DataError;
use super::Progress;

/// Tries per file; each goes on where the one before stopped.
const TRIES: u32 = 4;

/// A client that keeps its connections.
pub(super) struct Client {
    agent: Agent,
}

/// Why a try failed, and whether another may help.
enum Failure {
    Again(String),
    Final(DataError),
}

impl Client {
    pub fn new() -> Self {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(10)))
            .timeout_recv_response(Some(Duration::from_secs(30)))
            .timeout_recv_body(Some(Duration::from_secs(1800)))
            .build()
            .into();
        Self { agent }
    }

    /// Downloads to `part`, which has the whole file afterwards.
    pub fn get(
        &self,
        address: &str,
        part: &Path,
        progress: &dyn Progress,
    ) -> Result<(), DataError> {
        let mut reason = String::new();
        for attempt in 0..TRIES {
            if attempt > 0 {
                progress.note(&format!("{reason}; trying again"));
                std::thread::sleep(Duration::from_millis(50 << (2 * attempt)));
            }
            match self.attempt(address, part, progress) {
                Ok(()) => return Ok(()),
                Err(Failure::Again(text)) => reason = text,
                Err(Failure::Final(error)) => return Err(error),
            }
        }
        Err(DataError::Http {
            address: address.to_owned(),
            reason: format!(
                "{reason}; gave up after {TRIES} tries, run the command again to go on"
            ),
        })
    }

    fn attempt(&self, address: &str, part: &Path, progress: &dyn Progress) -> Result<(), Failure> {
        let have = fs::metadata(part).map_or(0, |metadata| metadata.len());
        let mut request = self.agent.get(address);
        if have > 0 {
            request = request.header(header::RANGE, format!("bytes={have}-"));
        }
        let refused = |reason: String| {
            Failure::Final(DataError::Http {
                address: address.to_owned(),
                reason,
            })
        };
        let response = request.call().map_err(|error| match error {
            ureq::Error::HostNotFound | ureq::Error::ConnectionFailed | ureq::Error::Tls(_) => {
                refused(format!("cannot connect: {error}"))
            }
            ureq::Error::BadUri(_) => refused(error.to_string()),
            ureq::Error::Timeout(ureq::Timeout::Connect) => {
                refused("cannot connect in 10 s".into())
            }
            // No host, refused, unreachable: another try in a second does not help.
            ureq::Error::Io(error)
                if error.kind() != std::io::ErrorKind::ConnectionReset
                    && error.kind() != std::io::ErrorKind::UnexpectedEof =>
            {
                refused(format!("cannot connect: {error}"))
            }
            error => Failure::Again(error.to_string()),
        })?;
        let start = match response.status().as_u16() {
            200 => 0,
            206 if range_start(response.headers()) == Some(have) => have,
            416 if range_total(response.headers()) == Some(have) => return Ok(()),
            206 | 416 => {
                fs::remove_file(part)
                    .map_err(|e| Failure::Final(DataError::io("remove", part)(e)))?;
                return Err(Failure::Again(
                    "the server cannot go on where it stopped".to_owned(),
                ));
            }
            500.. => {
                return Err(Failure::Again(format!(
                    "the server answered {}",
                    response.status()
                )));
            }
            _ => {
                return Err(refused(format!(
                    "the server answered {}",
                    response.status()
                )));
            }
        };
        receive(response, part, start, address, progress)
    }
}

fn receive(
    response: Response<ureq::Body>,
    part: &Path,
    start: u64,
    address: &str,
    progress: &dyn Progress,
) -> Result<(), Failure> {
    let disk = |error| Failure::Final(DataError::io("write", part)(error));
    let length = number(response.headers(), header::CONTENT_LENGTH);
    let total = length.map(|length| start + length);
    let mut file = open(part, start).map_err(disk)?;
    let what = address.rsplit('/').next().unwrap_or(address);
    progress.start(what, start, total);
    let mut reader = response.into_body().into_reader();
    let mut buffer = vec![0; 1 << 16];
    let mut done = start;
    let end = loop {
        match reader.read(&mut buffer) {
            Ok(0) => break Ok(()),
            Ok(bytes) => {
                file.write_all(&buffer[..bytes]).map_err(disk)?;
                done += bytes as u64;
                progress.advance(bytes as u64);
            }
            Err(error) => break Err(error.to_string()),
        }
    };
    progress.finish();
    file.sync_all().map_err(disk)?;
    match (end, total) {
        (Ok(()), None) => Ok(()),
        (Ok(()), Some(total)) if done == total => Ok(()),
        (end, total) => {
            let total = total.map_or("?".to_owned(), |total| total.to_string());
            let why = end
                .err()
                .unwrap_or_else(|| "the connection ended".to_owned());
            Err(Failure::Again(format!(
                "{what}: interrupted after {done} of {total} bytes ({why})"
            )))
        }
    }
}

fn open(part: &Path, start: u64) -> std::io::Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(part)?;
    if start == 0 {
        file.set_len(0)?;
    }
    Ok(file)
}

fn number(headers: &HeaderMap, name: header::HeaderName) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

/// `bytes START-END/TOTAL`.
fn range_start(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    text.strip_prefix("bytes ")?.split_once('-')?.0.parse().ok()
}

/// `bytes */TOTAL`.
fn range_total(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    text.split_once('/')?.1.parse().ok()
}
