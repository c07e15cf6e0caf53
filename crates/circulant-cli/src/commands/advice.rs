//! Which flag or command helps against an error of the data crate, which knows neither.

use anyhow::Error;
use circulant_data::{DataError, Setting};

/// What to add to the message of an error.
pub fn advice(error: &Error) -> Option<String> {
    let error = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<DataError>())?;
    Some(match (error, error.setting()) {
        (DataError::NotCached { name, .. }, _) => format!("run `circulant data fetch {name}`"),
        (DataError::NoSource { name, .. }, _) => {
            format!("run `circulant data fetch {name} --from FOLDER`")
        }
        (_, Some(Setting::ArrayNames)) => "use --input-name and --label-name".to_owned(),
        (_, Some(Setting::LabelColumn)) => "use --label-name".to_owned(),
        (_, Some(Setting::PictureSize)) => "use --size HEIGHTxWIDTH".to_owned(),
        (_, Some(Setting::EncoderSize)) => "use --resize HEIGHTxWIDTH".to_owned(),
        (_, Some(Setting::Output)) => "use --out".to_owned(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use anyhow::Context;
    use circulant_data::{Cache, ReadOptions, Split, load_known, table};

    use super::*;

    #[test]
    fn flags_and_commands_are_named() {
        let error = table::parse(b"1,2\n", &ReadOptions::default(), "a.csv").unwrap_err();
        let error = Err::<(), _>(error).context("cannot train").unwrap_err();
        assert_eq!(advice(&error).as_deref(), Some("use --label-name"));
        let cache = Cache::at("nowhere");
        let error = load_known("mnist", Split::Test, 0, &cache).unwrap_err();
        let help = advice(&error.into());
        assert_eq!(help.as_deref(), Some("run `circulant data fetch mnist`"));
        assert_eq!(advice(&anyhow::anyhow!("something else")), None);
    }
}
