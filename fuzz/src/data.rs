//! Readers of data sets.

use std::io::Cursor;

use circulant_data::{
    Labels, ReadOptions, cifar, idx, npy, picture, table, tensors, tiny_imagenet,
};

/// A set that was read is used as one: all of it is looked at.
macro_rules! used {
    ($set:expr) => {
        if let Ok(set) = $set {
            let _ = (set.labels().counts(), set.fingerprint(), set.range());
        }
    };
}

/// IDX, plain and gzip.
pub fn idx(bytes: &[u8]) {
    let _ = idx::parse(bytes, "fuzz");
}

/// One NumPy array, as inputs and as labels.
pub fn npy(bytes: &[u8]) {
    if let Ok(array) = npy::read_array(&mut &bytes[..], "fuzz") {
        let _ = array.clone().into_labels("fuzz");
        used!(array.into_set(Labels::default(), "fuzz".to_owned()));
    }
}

/// An archive of NumPy arrays.
pub fn npz(bytes: &[u8]) {
    used!(npy::npz(
        Cursor::new(bytes),
        &ReadOptions::default(),
        "fuzz".to_owned()
    ));
}

/// A table: the first byte chooses whether labels are optional or in a numbered column.
pub fn csv(bytes: &[u8]) {
    let (choice, bytes) = bytes.split_first().unwrap_or((&0, bytes));
    let options = ReadOptions {
        labels_optional: choice & 1 == 1,
        label_name: (choice & 2 == 2).then(|| (choice >> 2).to_string()),
        ..ReadOptions::default()
    };
    if let Ok(set) = table::parse(bytes, &options, "fuzz") {
        let _ = (set.labels().counts(), set.fingerprint(), set.range());
        let columns = set.shape()[1];
        let _ = set.into_images([1, 1, columns]);
    }
}

/// Tensors.
pub fn safetensors(bytes: &[u8]) {
    used!(tensors::parse(
        Cursor::new(bytes),
        &ReadOptions::default(),
        "fuzz".to_owned()
    ));
}

/// One file of an image folder.
pub fn picture(bytes: &[u8]) {
    if let Ok(set) = picture::parse(bytes, "fuzz") {
        let _ = (set.fingerprint(), set.pixels().range());
    }
}

/// Tiny-ImageNet's list of validation pictures.
pub fn annotations(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let classes = ["n01".to_owned(), "n02".to_owned()];
    let _ = tiny_imagenet::annotations(&text, &classes, "fuzz");
}

/// A batch of CIFAR-10.
pub fn cifar(bytes: &[u8]) {
    let _ = cifar::parse(bytes, "fuzz");
    // Most bytes are no whole records; these are.
    let records: Vec<u8> = bytes
        .iter()
        .take(4)
        .flat_map(|&label| [vec![label], vec![label; 3072]].concat())
        .collect();
    let _ = cifar::parse(&records, "fuzz");
}
