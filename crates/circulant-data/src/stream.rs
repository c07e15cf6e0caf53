//! Reading bytes from plain and gzip files, with errors that name the file.
//!
//! Sizes that a file claims are never trusted with an allocation: memory grows with the bytes that
//! really come.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::error::DataError;

const BUFFER: usize = 1 << 18;
/// The most that is reserved before any byte is seen.
const RESERVE: usize = 1 << 24;

/// Opens a file for reading.
pub(crate) fn open(path: &Path) -> Result<BufReader<File>, DataError> {
    let file = File::open(path).map_err(DataError::io("open", path))?;
    let metadata = file.metadata().map_err(DataError::io("read", path))?;
    if metadata.is_dir() {
        return Err(DataError::format(
            path.display().to_string(),
            "a file",
            "a folder",
            "name a file in it",
        ));
    }
    Ok(BufReader::with_capacity(BUFFER, file))
}

/// Opens a file and unpacks it while reading if it starts as gzip does.
pub(crate) fn open_unpacked(path: &Path) -> Result<Box<dyn Read>, DataError> {
    let mut reader = open(path)?;
    let start = reader.fill_buf().map_err(DataError::io("read", path))?;
    Ok(if start.starts_with(&[0x1f, 0x8b]) {
        Box::new(MultiGzDecoder::new(reader))
    } else {
        Box::new(reader)
    })
}

/// The first bytes of a file, unpacked if it is gzip; fewer if it is shorter or its gzip is broken.
pub(crate) fn peek(path: &Path, bytes: usize) -> Result<Vec<u8>, DataError> {
    let mut start = Vec::new();
    match open_unpacked(path)?
        .take(bytes as u64)
        .read_to_end(&mut start)
    {
        Ok(_) => Ok(start),
        Err(error) if is_damage(&error) => Ok(start),
        Err(error) => Err(DataError::io("read", path)(error)),
    }
}

/// Exactly `bytes` bytes. `what` names them in the error.
pub(crate) fn read_exactly(
    reader: &mut dyn Read,
    bytes: usize,
    place: &str,
    what: &str,
) -> Result<Vec<u8>, DataError> {
    let mut content = Vec::with_capacity(bytes.min(RESERVE));
    reader
        .take(bytes as u64)
        .read_to_end(&mut content)
        .map_err(|error| damage(error, place))?;
    if content.len() == bytes {
        Ok(content)
    } else {
        Err(DataError::Truncated {
            place: place.to_owned(),
            expected: format!("{bytes} bytes of {what}"),
            found: format!("{} bytes", content.len()),
        })
    }
}

/// Fails when bytes are left. For gzip this also makes the decoder check its own checksum.
pub(crate) fn expect_end(reader: &mut dyn Read, place: &str, after: &str) -> Result<(), DataError> {
    let mut more = [0; 1];
    match reader.read(&mut more) {
        Ok(0) => Ok(()),
        Ok(_) => Err(DataError::format(
            place,
            format!("the end of the file after {after}"),
            "more bytes",
            "the sizes in its header are wrong, or two files were joined: get it again",
        )),
        Err(error) => Err(damage(error, place)),
    }
}

/// An I/O error, told apart from a damaged gzip stream.
pub(crate) fn damage(error: io::Error, place: &str) -> DataError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => DataError::Truncated {
            place: place.to_owned(),
            expected: "a whole compressed stream".to_owned(),
            found: "its beginning only".to_owned(),
        },
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => DataError::format(
            place,
            "an intact compressed stream",
            error.to_string(),
            "the file is damaged: copy or download it again",
        ),
        _ => DataError::io("read", Path::new(place))(error),
    }
}

fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof)
}
