//! A small HTTP server that can hang up in the middle of an answer.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A server for the files of a folder.
pub struct Server {
    /// Its address.
    pub base: String,
    /// How many answers are cut.
    pub cut: Arc<AtomicUsize>,
    /// Whether it can resume in the middle.
    pub ranges: Arc<AtomicBool>,
    /// The length that it claims, 0 for none at all.
    pub length: Arc<Mutex<Option<u64>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Serves until the tests end.
    pub fn new(folder: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            base: format!("http://{}", listener.local_addr().unwrap()),
            cut: Arc::default(),
            ranges: Arc::new(AtomicBool::new(true)),
            length: Arc::default(),
            requests: Arc::default(),
        };
        let (cut, ranges, length, requests) = (
            server.cut.clone(),
            server.ranges.clone(),
            server.length.clone(),
            server.requests.clone(),
        );
        let folder = folder.to_owned();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let can_range = ranges.load(Ordering::SeqCst);
                let left = cut.load(Ordering::SeqCst);
                let cuts = left > 0;
                cut.store(left.saturating_sub(1), Ordering::SeqCst);
                let claim = *length.lock().unwrap();
                answer(stream.unwrap(), &folder, cuts, can_range, claim, &requests);
            }
        });
        server
    }

    /// Path and range of every request since the last call.
    pub fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }
}

fn answer(
    mut stream: TcpStream,
    folder: &Path,
    cuts: bool,
    ranges: bool,
    claim: Option<u64>,
    log: &Mutex<Vec<String>>,
) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let path = first.split(' ').nth(1).unwrap().to_owned();
    let headers: Vec<String> = lines
        .map(Result::unwrap)
        .take_while(|line| !line.is_empty())
        .map(|line| line.to_lowercase())
        .collect();
    let start = headers.iter().find_map(|line| {
        line.strip_prefix("range: bytes=")?
            .trim_end_matches('-')
            .parse()
            .ok()
    });
    log.lock().unwrap().push(format!("{path} {start:?}"));
    let Ok(body) = fs::read(folder.join(&path[1..])) else {
        let _ = stream
            .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return;
    };
    let start: usize = start.filter(|_| ranges).unwrap_or(0);
    let total = body.len();
    let (status, range) = match start {
        0 => ("200 OK", String::new()),
        _ if start >= total => (
            "416 Range Not Satisfiable",
            format!("Content-Range: bytes */{total}\r\n"),
        ),
        _ => (
            "206 Partial Content",
            format!("Content-Range: bytes {start}-{}/{total}\r\n", total - 1),
        ),
    };
    let body = &body[start.min(total)..];
    let length = match claim.unwrap_or(body.len() as u64) {
        0 => String::new(),
        length => format!("Content-Length: {length}\r\n"),
    };
    let head = format!("HTTP/1.1 {status}\r\n{length}{range}Connection: close\r\n\r\n");
    let _ = stream.write_all(head.as_bytes());
    let end = if cuts { body.len() / 2 } else { body.len() };
    let _ = stream.write_all(&body[..end]);
}
