//! Checks that every set passes when it is made.

use super::error::DataError;

pub(crate) fn float_range(values: &[f32]) -> (f32, f32) {
    let start = (f32::INFINITY, f32::NEG_INFINITY);
    values
        .iter()
        .fold(start, |(low, high), &x| (low.min(x), high.max(x)))
}

pub(crate) fn check_shape(
    shape: &[usize],
    values: usize,
    place: &str,
    what: &str,
) -> Result<(), DataError> {
    let product = shape
        .iter()
        .try_fold(1_usize, |n, &size| n.checked_mul(size));
    match product {
        Some(0) => Err(DataError::Empty {
            place: place.to_owned(),
            expected: format!("{what}, found the shape {shape:?}"),
        }),
        Some(product) if product == values => Ok(()),
        product => Err(DataError::format(
            place,
            format!(
                "{} numbers for the shape {shape:?}",
                product.map_or("countable".to_owned(), |n| n.to_string())
            ),
            values.to_string(),
            "check the sizes in the file",
        )),
    }
}

pub(crate) fn check_finite(values: &[f32], row: usize, place: &str) -> Result<(), DataError> {
    match values.iter().position(|x| !x.is_finite()) {
        None => Ok(()),
        Some(position) => Err(DataError::NotFinite {
            place: place.to_owned(),
            example: position / row,
            position: position % row,
            value: values[position],
        }),
    }
}
