//! Fetching a toy set from folders and a local server: interrupted, damaged, stale and missing.

mod server;

use std::io::Write;
use std::net::TcpListener;
use std::sync::atomic::Ordering;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use self::server::Server;
use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Content that hardly packs, so that an interruption has something to interrupt.
fn content(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let next = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    (0..300_000).map(next).collect()
}

const NAMES: [&str; 2] = ["train-images", "test-images"];

fn toy(packing: Packing) -> Known {
    let files: Vec<KnownFile> = NAMES
        .iter()
        .enumerate()
        .map(|(seed, name)| {
            let content = content(seed as u64);
            let sum: [u8; 32] = Sha256::digest(&content).into();
            let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
            KnownFile {
                name,
                bytes: content.len() as u64,
                sha256: sum.leak(),
            }
        })
        .collect();
    Known {
        name: "toy",
        about: "for tests",
        files: files.leak(),
        mirrors: &[],
        packing,
        package: Package::Npm("none"),
        classes: [""; 10],
    }
}

/// A folder with the toy set as a mirror has it, and an empty cache.
fn setup() -> (TempDir, FetchOptions) {
    let folder = TempDir::new().unwrap();
    let mirror = folder.path().join("mirror/toy");
    fs::create_dir_all(&mirror).unwrap();
    for (seed, name) in NAMES.iter().enumerate() {
        let file = mirror.join(format!("{name}.gz"));
        fs::write(file, gzip(&content(seed as u64))).unwrap();
    }
    let mut options = FetchOptions::new(Cache::at(folder.path().join("cache")));
    options.registry = false;
    options.network = false;
    (folder, options)
}

/// The same behind a server.
fn online() -> (TempDir, FetchOptions, Known, Server) {
    let (folder, mut options) = setup();
    let server = serve(&folder, &mut options);
    (folder, options, toy(Packing::Gzip), server)
}

fn serve(folder: &TempDir, options: &mut FetchOptions) -> Server {
    let server = Server::new(&folder.path().join("mirror"));
    options.network = true;
    options.mirror = Some(server.base.clone());
    server
}

fn cached(options: &FetchOptions) -> Vec<String> {
    let folder = options.cache.root().join("toy");
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != ".lock")
        .collect();
    names.sort();
    names
}

fn job<'a>(known: &'a Known, options: &'a FetchOptions) -> Job<'a> {
    Job {
        known,
        cache: &options.cache,
        progress: &Silent,
    }
}

/// What a fetch that fails says.
fn failure(known: &Known, options: &FetchOptions) -> String {
    fetch(known, options, &Silent).unwrap_err().to_string()
}

const WHOLE: [&str; 2] = ["test-images", "train-images"];

#[test]
fn a_local_folder_is_taken_once() {
    let (folder, mut options) = setup();
    let known = toy(Packing::Gzip);
    options.from = Some(folder.path().join("mirror"));
    let first = fetch(&known, &options, &Silent).unwrap();
    assert!(first.source.unwrap().contains("mirror"));
    assert_eq!(cached(&options), WHOLE);
    let path = first.folder.join(NAMES[0]);
    assert_eq!(fs::read(&path).unwrap(), content(0));
    let written = fs::metadata(&path).unwrap().modified().unwrap();
    options.from = None;
    assert_eq!(fetch(&known, &options, &Silent).unwrap().source, None);
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), written);
}

#[test]
fn a_damaged_file_is_replaced_and_others_stay() {
    let (_folder, options, known, server) = online();
    fetch(&known, &options, &Silent).unwrap();
    server.requests();
    let path = options.cache.folder(&known).join(NAMES[1]);
    let mut bytes = fs::read(&path).unwrap();
    bytes[1000] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert!(options.cache.seems_whole(&known));
    fetch(&known, &options, &Silent).unwrap();
    assert_eq!(server.requests(), ["/toy/test-images.gz None"]);
    assert_eq!(fs::read(&path).unwrap(), content(1));
}

#[test]
fn an_interrupted_download_goes_on() {
    let (_folder, options, known, server) = online();
    server.cut.store(2, Ordering::SeqCst);
    fetch(&known, &options, &Silent).unwrap();
    assert_eq!(cached(&options), WHOLE);
    let requests = server.requests();
    let size = gzip(&content(0)).len();
    let half = size / 2;
    let more = half + (size - half) / 2;
    let expected = [
        "/toy/train-images.gz None".to_owned(),
        format!("/toy/train-images.gz Some({half})"),
        format!("/toy/train-images.gz Some({more})"),
        "/toy/test-images.gz None".to_owned(),
    ];
    assert_eq!(requests, expected);
}

#[test]
fn a_download_that_was_given_up_goes_on_in_the_next_run() {
    let (_folder, options, known, server) = online();
    server.cut.store(4, Ordering::SeqCst);
    let error = failure(&known, &options);
    assert!(
        error.contains("interrupted") && error.contains("fetch from the folder"),
        "{error}"
    );
    let left = cached(&options);
    assert!(
        left.len() == 1 && left[0].ends_with("train-images.gz.part"),
        "{left:?}"
    );
    server.requests();
    fetch(&known, &options, &Silent).unwrap();
    assert!(server.requests()[0].contains("Some("), "resumed");
    assert_eq!(cached(&options), WHOLE, "no parts are left");
}

#[test]
fn servers_without_ranges_and_finished_parts_work() {
    let (_folder, options, known, server) = online();
    server.ranges.store(false, Ordering::SeqCst);
    server.cut.store(1, Ordering::SeqCst);
    fetch(&known, &options, &Silent).unwrap();
    assert_eq!(cached(&options), WHOLE);
    server.ranges.store(true, Ordering::SeqCst);
    let job = job(&known, &options);
    fs::remove_file(options.cache.folder(&known).join(NAMES[0])).unwrap();
    let part = job.part(&format!("{}/toy", server.base), "train-images.gz");
    fs::write(&part, gzip(&content(0))).unwrap();
    fetch(&known, &options, &Silent).unwrap();
    assert_eq!(cached(&options), WHOLE);
}

#[test]
fn a_part_of_another_version_is_given_up_and_scratch_is_cleaned() {
    let (_folder, options, known, server) = online();
    let job = job(&known, &options);
    let part = job.part(&format!("{}/toy", server.base), "train-images.gz");
    fs::create_dir_all(part.with_file_name(".unpack-left")).unwrap();
    fs::write(&part, &gzip(&content(9))[..1000]).unwrap();
    fetch(&known, &options, &Silent).unwrap();
    let expected = [
        "/toy/train-images.gz Some(1000)",
        "/toy/train-images.gz None",
        "/toy/test-images.gz None",
    ];
    assert_eq!(server.requests(), expected);
    assert_eq!(cached(&options), WHOLE);
}

#[test]
fn wrong_content_never_enters_the_cache() {
    let (folder, options, known, _server) = online();
    let packed = folder.path().join("mirror/toy/train-images.gz");
    let whole = gzip(&content(0));
    for wrong in [
        gzip(&content(5)),
        gzip(b"short"),
        b"foreign".to_vec(),
        whole[..whole.len() / 2].to_vec(),
        gzip(&vec![0; 10_000_000]),
    ] {
        fs::write(&packed, wrong).unwrap();
        let error = failure(&known, &options);
        assert!(error.contains("could not get toy"), "{error}");
        assert!(
            error.contains("SHA-256") || error.contains("cut short"),
            "{error}"
        );
        assert!(cached(&options).is_empty(), "{:?}", cached(&options));
    }
    fs::remove_file(&packed).unwrap();
    let error = failure(&known, &options);
    assert!(error.contains("404"), "{error}");
    fs::write(&packed, whole).unwrap();
    fetch(&known, &options, &Silent).unwrap();
}

#[test]
fn a_server_cannot_fill_the_disk() {
    let (folder, options, known, server) = online();
    let packed = folder.path().join("mirror/toy/train-images.gz");
    fs::write(&packed, vec![7; 4 << 20]).unwrap();
    for (length, found) in [
        (None, "found 4194304"),
        (Some(u64::MAX), "found 18446744073709551615"),
        // Without a length, the bytes are counted as they come.
        (Some(0), "found more"),
    ] {
        *server.length.lock().unwrap() = length;
        let error = failure(&known, &options);
        assert!(
            error.contains("at most") && error.contains(found),
            "{error}"
        );
        assert!(cached(&options).is_empty(), "{:?}", cached(&options));
    }
    // A part that was there does not make the sum of the lengths overflow.
    let job = job(&known, &options);
    let part = job.part(&format!("{}/toy", server.base), "train-images.gz");
    fs::write(&part, [7; 1000]).unwrap();
    *server.length.lock().unwrap() = Some(u64::MAX);
    let error = failure(&known, &options);
    assert!(error.contains("at most"), "{error}");
}

#[test]
fn files_of_an_archive_are_bounded() {
    /// A tar archive of one file of zeros, made as it is read.
    fn archive(name: &str, size: u64) -> impl std::io::Read {
        use std::io::Read;
        let mut header = tar::Header::new_gnu();
        header.set_path(name).unwrap();
        header.set_size(size);
        header.set_cksum();
        std::io::Cursor::new(header.as_bytes().to_vec()).chain(std::io::repeat(0).take(size + 1024))
    }
    let (folder, options) = setup();
    let known = crate::known::CIFAR10;
    fs::create_dir_all(options.cache.folder(&known)).unwrap();
    let job = job(&known, &options);
    let path = folder.path().join("cifar10.tar.gz");
    let mut encoder = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
    let mut content = archive("data_batch_1.png", pictures::MOST_BYTES + 1);
    std::io::copy(&mut content, &mut encoder).unwrap();
    encoder.finish().unwrap();
    let error = local::take_archive(&job, &path).unwrap_err().to_string();
    assert!(error.contains("at most 67108864 bytes"), "{error}");
}

#[test]
fn archives_are_unpacked_from_a_server_and_a_folder() {
    let (folder, mut options) = setup();
    let known = toy(Packing::Tar("toy-fashion-mnist.tar.gz"));
    let mut archive = tar::Builder::new(Vec::new());
    for (seed, name) in NAMES.iter().enumerate() {
        let content = content(seed as u64);
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        let path = format!("some/folder/{name}");
        archive
            .append_data(&mut header, path, &content[..])
            .unwrap();
    }
    let bytes = gzip(&archive.into_inner().unwrap());
    let mirror = folder.path().join("mirror/toy");
    fs::write(mirror.join("toy-fashion-mnist.tar.gz"), &bytes).unwrap();
    for name in NAMES {
        fs::remove_file(mirror.join(format!("{name}.gz"))).unwrap();
    }
    let server = serve(&folder, &mut options);
    server.cut.store(1, Ordering::SeqCst);
    fetch(&known, &options, &Silent).unwrap();
    assert_eq!(cached(&options), WHOLE);
    options.cache = Cache::at(folder.path().join("second"));
    options.network = false;
    options.from = Some(mirror.clone());
    fetch(&known, &options, &Silent).unwrap();
    assert_eq!(cached(&options), WHOLE);
    let third = &bytes[..bytes.len() / 3];
    fs::write(mirror.join("toy-fashion-mnist.tar.gz"), third).unwrap();
    options.cache = Cache::at(folder.path().join("third"));
    let error = failure(&known, &options);
    assert!(error.contains("could not get toy"), "{error}");
}

#[test]
fn failures_say_what_to_do() {
    let (folder, mut options) = setup();
    let known = toy(Packing::Gzip);
    options.from = Some(folder.path().join("nowhere"));
    options.network = true;
    // Nothing listens on the port of a listener that is gone.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap();
    drop(listener);
    options.mirror = Some(format!("http://{port}"));
    let error = failure(&known, &options);
    assert!(
        error.contains("nowhere") && error.contains("cannot connect"),
        "{error}"
    );
    assert!(error.contains("train-images.gz, test-images.gz"), "{error}");
    let file = folder.path().join("a-file");
    fs::write(&file, "").unwrap();
    options.cache = Cache::at(&file);
    let error = failure(&known, &options);
    assert!(error.contains("a-file"), "{error}");
}
