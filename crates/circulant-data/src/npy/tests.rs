//! Arrays as NumPy writes them, and what happens to damaged ones.

use std::fs;
use std::io::Write;

use tempfile::TempDir;
use zip::write::SimpleFileOptions;

use super::super::features::FeatureSet;
use super::super::images::Pixels;
use super::super::labels::Labels;
use super::super::options::Split;
use super::*;

fn npy(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let fortran = if fortran { "True" } else { "False" };
    let header =
        format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let mut bytes = [MAGIC, &[1, 0]].concat();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn array(bytes: &[u8]) -> Result<Array, DataError> {
    read_array(&mut &bytes[..], "test.npy")
}

fn features(set: DataSet) -> FeatureSet {
    match set {
        DataSet::Features(set) => set,
        DataSet::Images(_) => panic!("expected features"),
    }
}

#[test]
fn every_type_and_order_gives_the_same_numbers() {
    let doubles: Vec<u8> = [1.0_f64, 2.0, 3.0, 4.0, 5.0, 6.0]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    let big: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]
        .iter()
        .flat_map(|x| x.to_be_bytes())
        .collect();
    let long: Vec<u8> = (1_i64..=6).flat_map(i64::to_le_bytes).collect();
    for bytes in [
        npy("<f4", false, "(2, 3)", &floats(&[1., 2., 3., 4., 5., 6.])),
        npy("<f4", true, "(2, 3)", &floats(&[1., 4., 2., 5., 3., 6.])),
        npy("<f8", false, "(2, 3)", &doubles),
        npy(">f4", false, "(2L, 3L)", &big),
        npy("|u1", false, "(2, 3)", &[1, 2, 3, 4, 5, 6]),
        npy("|u1", true, "(2, 3)", &[1, 4, 2, 5, 3, 6]),
        npy("<i8", false, "(2, 3)", &long),
    ] {
        let array = array(&bytes).unwrap();
        let set = features(array.into_set(Labels::default(), "test".into()).unwrap());
        assert_eq!(set.shape(), [2, 3]);
        assert_eq!(set.values(), [1., 2., 3., 4., 5., 6.]);
    }
}

#[test]
fn fortran_order_of_three_axes() {
    let c: Vec<u8> = (0..24).collect();
    let mut fortran = Vec::new();
    for k in 0..4 {
        for j in 0..3 {
            for i in 0..2 {
                fortran.push(c[(i * 3 + j) * 4 + k]);
            }
        }
    }
    let array = array(&npy("|u1", true, "(2, 3, 4)", &fortran)).unwrap();
    assert_eq!(array.numbers, Numbers::U8(c));
}

#[test]
fn damage_is_named() {
    let whole = npy("<f4", false, "(2, 2)", &floats(&[0.; 4]));
    let error = |bytes: &[u8]| array(bytes).unwrap_err().to_string();
    assert!(error(&[]).contains("cut short"));
    assert!(error(&whole[..20]).contains("cut short"));
    assert!(error(&whole[..whole.len() - 1]).contains("cut short"));
    assert!(error(&[whole.clone(), vec![0]].concat()).contains("more bytes"));
    assert!(error(b"a text of another kind").contains("another kind"));
    assert!(error(&npy("<c8", false, "(1,)", &[0; 8])).contains("the type <c8"));
    assert!(error(&npy("<f4", false, "nonsense", &[])).contains("the header"));
    let huge = npy("<f8", false, "(9999999999, 9999999999)", &[]);
    assert!(error(&huge).contains("fit into memory"));
    let nan = array(&npy(
        "<f4",
        false,
        "(2, 2)",
        &floats(&[0., 1., 2., f32::NAN]),
    ))
    .unwrap();
    let error = nan.into_set(Labels::default(), "test".into()).unwrap_err();
    assert!(error.to_string().contains("number 1 of example 1 is NaN"));
}

#[test]
fn long_headers_are_refused_before_they_are_read() {
    let mut bytes = [MAGIC, &[2, 0]].concat();
    bytes.extend(100_000_u32.to_le_bytes());
    bytes.resize(200_000, b' ');
    let error = array(&bytes).unwrap_err().to_string();
    assert!(error.contains("a header of 100000 bytes"), "{error}");
}

#[test]
fn no_rows_and_no_columns_are_named() {
    let set = |shape: &str| {
        let array = array(&npy("<f4", false, shape, &[]))?;
        array.into_set(Labels::default(), "test".into())
    };
    for shape in ["(0, 4)", "(4, 0)", "(0,0)", "(3, 0, 2)", "(0, 1, 28, 28)"] {
        let error = set(shape).unwrap_err().to_string();
        assert!(error.contains("is empty"), "{error}");
    }
    // No bytes are needed for these, but their sizes cannot be multiplied.
    for shape in [
        "(0, 8589934592, 8589934592, 1)",
        "(8589934592, 8589934592, 0)",
    ] {
        for fortran in [false, true] {
            let error = array(&npy("|u1", fortran, shape, &[])).unwrap_err();
            assert!(error.to_string().contains("fit into memory"), "{error}");
        }
    }
}

#[test]
fn what_npz_unpacks_to_is_bounded() {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default();
    archive.start_file("x.npy", options).unwrap();
    let zeros = npy("|u1", false, "(1000, 1000)", &[0; 1_000_000]);
    archive.write_all(&zeros).unwrap();
    let packed = archive.finish().unwrap().into_inner();
    let read = |limit| {
        let content = std::io::Cursor::new(&packed);
        unpack_npz(content, &ReadOptions::default(), "x.npz", limit)
    };
    assert!(read(zeros.len() as u64).is_ok());
    let error = read(zeros.len() as u64 - 1).unwrap_err().to_string();
    assert!(
        error.contains("at most") && error.contains("unpack it first"),
        "{error}"
    );
}

#[test]
fn labels_are_found_beside_the_inputs() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("x_train.npy");
    fs::write(&path, npy("|u1", false, "(2, 4, 5)", &[7; 40])).unwrap();
    let labels = folder.path().join("y_train.npy");
    let wide: Vec<u8> = [3_i64, 1].iter().flat_map(|x| x.to_le_bytes()).collect();
    fs::write(&labels, npy("<i8", false, "(2,)", &wide)).unwrap();
    let DataSet::Images(set) = read_npy(&path, &ReadOptions::default()).unwrap() else {
        panic!("images");
    };
    assert_eq!(set.shape(), [2, 1, 4, 5]);
    assert_eq!(set.labels().values, Some(vec![3, 1]));
    assert_eq!(set.pixels(), &Pixels::U8(vec![7; 40]));
    for (content, message) in [
        (
            npy("|u1", false, "(3,)", &[0; 3]),
            "2 examples and 3 labels",
        ),
        (npy("|u1", false, "(2, 10)", &[0; 20]), "one-hot"),
        (
            npy("<f4", false, "(2,)", &floats(&[0.0, 0.5])),
            "a whole number",
        ),
    ] {
        fs::write(&labels, content).unwrap();
        let error = read_npy(&path, &ReadOptions::default()).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn npz_has_both_parts_and_damage_is_named() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("set.npz");
    let mut archive = zip::ZipWriter::new(fs::File::create(&path).unwrap());
    for (index, (name, content)) in [
        (
            "x_train.npy",
            npy("<f4", false, "(2, 3)", &floats(&[1.; 6])),
        ),
        ("y_train.npy", npy("|u1", false, "(2,)", &[0, 1])),
        ("x_test.npy", npy("<f4", false, "(1, 3)", &floats(&[2.; 3]))),
        ("y_test.npy", npy("|u1", false, "(1,)", &[1])),
    ]
    .into_iter()
    .enumerate()
    {
        let method = [
            zip::CompressionMethod::Stored,
            zip::CompressionMethod::Deflated,
        ];
        let options = SimpleFileOptions::default().compression_method(method[index % 2]);
        archive.start_file(name, options).unwrap();
        archive.write_all(&content).unwrap();
    }
    archive.finish().unwrap();
    let mut options = ReadOptions::default();
    assert_eq!(features(read_npz(&path, &options).unwrap()).shape(), [2, 3]);
    options.split = Split::Test;
    let test = features(read_npz(&path, &options).unwrap());
    assert_eq!(test.labels().values, Some(vec![1]));
    options.input_name = Some("nothing".into());
    let error = read_npz(&path, &options).unwrap_err().to_string();
    assert!(
        error.contains("x_train, y_train, x_test, y_test"),
        "{error}"
    );
    let bytes = fs::read(&path).unwrap();
    for content in [&bytes[..bytes.len() / 2], b"", b"foreign"] {
        fs::write(&path, content).unwrap();
        let error = read_npz(&path, &ReadOptions::default()).unwrap_err();
        assert!(error.to_string().contains("NPZ archive"), "{error}");
    }
}
