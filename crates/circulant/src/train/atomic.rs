//! Files that are whole at every moment.

use std::fs::File;
use std::io::Write;
use std::path::Path;

/// How the name of a file begins that [`write_atomically`] has not finished. Only a process that was killed leaves one.
pub const UNFINISHED: &str = ".unfinished-";

/// Replaces the file at `path` in one step: whoever reads it, and whenever the process dies, there is the old
/// content or the new one. What is no file, such as a pipe or `/dev/stdout`, is written to.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    // A rename would put a file in the place of a device.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return std::fs::OpenOptions::new()
            .write(true)
            .open(path)?
            .write_all(bytes);
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(UNFINISHED);
    // What others may read is for the umask to say, as with any new file.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    // The rename itself lasts only once the directory is on disk. Not every system can sync one.
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .ok();
    Ok(())
}
