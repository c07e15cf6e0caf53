//! Reading bytes from plain and gzip files, with errors that name the file.
//!
//! Sizes that a file claims are never trusted with an allocation: memory grows with the bytes that
//! really come. A plain file bounds them itself; what has no such bound (gzip, zip, a pipe) is read up
//! to [`MOST_UNPACKED`].

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::error::DataError;

const BUFFER: usize = 1 << 18;
/// The most bytes that a compressed file or a pipe may yield: 8 GiB.
pub const MOST_UNPACKED: u64 = 1 << 33;
/// The most that is reserved before any byte is seen.
const RESERVE: usize = 1 << 16;

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
    let reader = open(path)?;
    let endless = !reader
        .get_ref()
        .metadata()
        .is_ok_and(|metadata| metadata.is_file());
    let place = path.display().to_string();
    let unpacked = unpack(reader, &place, MOST_UNPACKED)?;
    Ok(if endless {
        Box::new(Limited::new(unpacked, MOST_UNPACKED))
    } else {
        unpacked
    })
}

/// Unpacks while reading, up to `limit` bytes, if the bytes start as gzip does.
pub(crate) fn unpack<'a>(
    mut reader: impl BufRead + 'a,
    place: &str,
    limit: u64,
) -> Result<Box<dyn Read + 'a>, DataError> {
    let start = reader.fill_buf().map_err(|error| damage(error, place))?;
    Ok(if start.starts_with(&[0x1f, 0x8b]) {
        Box::new(Limited::new(MultiGzDecoder::new(reader), limit))
    } else {
        Box::new(reader)
    })
}

/// A reader that fails, rather than ends, when more than `limit` bytes come.
pub(crate) struct Limited<R> {
    from: R,
    left: u64,
    limit: u64,
}

impl<R: Read> Limited<R> {
    pub fn new(from: R, limit: u64) -> Self {
        Self {
            from,
            left: limit,
            limit,
        }
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buffer.is_empty() {
            return match self.from.read(&mut [0; 1])? {
                0 => Ok(0),
                _ => Err(io::Error::new(
                    io::ErrorKind::FileTooLarge,
                    format!("at most {} bytes", self.limit),
                )),
            };
        }
        let most = usize::try_from(self.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let bytes = self.from.read(&mut buffer[..most])?;
        self.left -= bytes as u64;
        Ok(bytes)
    }
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
        io::ErrorKind::FileTooLarge => DataError::format(
            place,
            format!("{error} of content"),
            "more",
            "unpack it first and name the plain file if it really is that large; else it is damaged \
             or made to fill the memory",
        ),
        _ => DataError::io("read", Path::new(place))(error),
    }
}

fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[test]
    fn what_gzip_unpacks_to_is_bounded() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&[0; 1 << 20]).unwrap();
        let packed = encoder.finish().unwrap();
        assert!(packed.len() < 2000);
        let read = |limit: u64| {
            let mut reader = unpack(&packed[..], "bomb.gz", limit).unwrap();
            read_exactly(&mut reader, 1 << 20, "bomb.gz", "zeros")
        };
        assert_eq!(read(1 << 20).unwrap().len(), 1 << 20);
        let error = read((1 << 20) - 1).unwrap_err().to_string();
        assert!(
            error.contains("at most 1048575 bytes") && error.contains("unpack it first"),
            "{error}"
        );
    }

    #[test]
    fn a_limit_is_met_exactly() {
        let mut content = Vec::new();
        Limited::new(&b"abc"[..], 3)
            .read_to_end(&mut content)
            .unwrap();
        assert_eq!(content, b"abc");
        let error = Limited::new(&b"abcd"[..], 3).read_to_end(&mut content);
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
