//! Downloads that resume where they stopped: an unfinished file stays, and the next try asks for the rest
//! of it (`Range`). A server that sends everything again is taken at its word.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use ureq::Agent;
use ureq::http::{HeaderMap, Response, header};

use super::super::error::DataError;
use super::Progress;

/// Tries per file; each resumes where the one before stopped.
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
            .timeout_resolve(Some(Duration::from_secs(10)))
            .timeout_connect(Some(Duration::from_secs(10)))
            .timeout_recv_response(Some(Duration::from_secs(30)))
            .timeout_recv_body(Some(Duration::from_secs(1800)))
            .build()
            .into();
        Self { agent }
    }

    /// Downloads to `part`, which has the whole file afterwards. More than `limit` bytes are refused.
    pub fn get(
        &self,
        address: &str,
        part: &Path,
        limit: u64,
        progress: &dyn Progress,
    ) -> Result<(), DataError> {
        let mut reason = String::new();
        for attempt in 0..TRIES {
            if attempt > 0 {
                progress.note(&format!("{reason}; trying again"));
                std::thread::sleep(Duration::from_millis(50 << (2 * attempt)));
            }
            match self.attempt(address, part, limit, progress) {
                Ok(()) => return Ok(()),
                Err(Failure::Again(text)) => reason = text,
                Err(Failure::Final(error)) => return Err(error),
            }
        }
        Err(DataError::Http {
            address: address.to_owned(),
            reason: format!("{reason}; gave up after {TRIES} tries, run it again to resume"),
        })
    }

    fn attempt(
        &self,
        address: &str,
        part: &Path,
        limit: u64,
        progress: &dyn Progress,
    ) -> Result<(), Failure> {
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
                    "the server cannot resume where it stopped".to_owned(),
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
        let sent = Sent {
            response,
            start,
            limit,
            address,
        };
        sent.receive(part, progress)
    }
}

/// An answer whose body is still to come.
struct Sent<'a> {
    response: Response<ureq::Body>,
    /// Where in the file it starts.
    start: u64,
    /// The most bytes of the whole file.
    limit: u64,
    address: &'a str,
}

impl Sent<'_> {
    fn receive(self, part: &Path, progress: &dyn Progress) -> Result<(), Failure> {
        let (start, limit) = (self.start, self.limit);
        let disk = |error| Failure::Final(DataError::io("write", part)(error));
        let too_large = |found: String| {
            // What is there must not be resumed.
            fs::remove_file(part).map_err(disk)?;
            Err(Failure::Final(DataError::Http {
                address: self.address.to_owned(),
                reason: format!(
                    "expected at most {limit} bytes, found {found}; this is another file: use \
                     another mirror"
                ),
            }))
        };
        let length = number(self.response.headers(), header::CONTENT_LENGTH);
        let total = length.map(|length| start.saturating_add(length));
        let mut file = open(part, start).map_err(disk)?;
        if let Some(total) = total.filter(|&total| total > limit) {
            return too_large(total.to_string());
        }
        let what = self.address.rsplit('/').next().unwrap_or(self.address);
        progress.start(what, start, total);
        let mut reader = self.response.into_body().into_reader();
        let mut buffer = vec![0; 1 << 16];
        let mut done = start;
        let end = loop {
            match reader.read(&mut buffer) {
                Ok(0) => break Ok(()),
                Ok(bytes) => {
                    done += bytes as u64;
                    if done > limit {
                        progress.finish();
                        return too_large("more".to_owned());
                    }
                    file.write_all(&buffer[..bytes]).map_err(disk)?;
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
