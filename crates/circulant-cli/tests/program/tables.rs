//! Tables as a stranger brings them: no flags, and the accuracy that logistic regression has.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{circulant, json, path, refusal, stderr, success};

/// scikit-learn's wine: 178 rows, 13 columns of very different sizes, three classes.
fn wine() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/wine.csv")
}

/// `y = 3 x + noise`, beside a column of text, a constant one and one that numbers the rows.
fn numbers(root: &Path, name: &str, rows: usize) -> PathBuf {
    let mut text = "id,x,colour,same,price\n".to_owned();
    for row in 0..rows {
        let x = (row as f64 * 0.37).sin() * 100.0;
        let noise = (row as f64 * 12.9898).sin() * 5.0;
        let (colour, more) = [("red", 0.0), ("blue", 50.0), ("green", -20.0)][row % 3];
        text.push_str(&format!(
            "{row},{x},{colour},7,{}\n",
            1000.0 + 3.0 * x + more + noise
        ));
    }
    let place = root.join(name);
    fs::write(&place, text).unwrap();
    place
}

#[test]
fn wine_is_learned_without_flags() {
    let root = TempDir::new().unwrap();
    let run = root.path().join("run");
    let data = wine();
    let output = circulant([
        "train",
        "--data",
        path(&data),
        "--validation",
        "60",
        "--out",
        path(&run),
        "--json",
    ]);
    let told = stderr(&output);
    assert!(output.status.success(), "{told}");
    assert!(
        told.contains("target \"class\": 3 classes (class_0, class_1, class_2)"),
        "{told}"
    );
    assert!(told.contains("by the log likelihood of"), "{told}");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let accuracy = summary["validation"]["accuracy"].as_f64().unwrap();
    // Logistic regression on standardised columns: 0.98. 58 of 60 is 0.967.
    assert!(accuracy >= 0.966, "{accuracy}");
    let again = json(["evaluate", path(&run), "--held-out", "--json"]);
    assert_eq!(again["accuracy"].as_f64(), Some(accuracy));
    // Columns are found by their names, in any order, and are those of training.
    let text = fs::read_to_string(&data).unwrap();
    let turned = root.path().join("turned.csv");
    let turn = |line: &str| {
        let mut cells: Vec<&str> = line.split(',').collect();
        cells.pop();
        cells.reverse();
        cells.join(",") + "\n"
    };
    fs::write(&turned, text.lines().map(turn).collect::<String>()).unwrap();
    let predict = |data: &Path| success(["predict", path(&run), "--data", path(data)]);
    assert_eq!(predict(&turned), predict(&data));
    let lost = root.path().join("lost.csv");
    fs::write(&lost, "alcohol,class\n13,class_0\n").unwrap();
    let arguments = ["predict", path(&run), "--data", path(&lost)];
    refusal(
        1,
        arguments,
        &["among them malic_acid", "the columns alcohol, class"],
    );
    let radii = json([
        "certify",
        path(&run),
        "--data",
        path(&data),
        "--samples",
        "0",
        "--json",
    ]);
    let units = radii["units"].as_array().unwrap();
    assert_eq!(units.len(), 13);
    let median = |unit: &Value| unit["radius"].as_f64().unwrap();
    let proline = units
        .iter()
        .find(|unit| unit["column"] == "proline")
        .unwrap();
    let hue = units.iter().find(|unit| unit["column"] == "hue").unwrap();
    // The same in standardised units: their ratio is that of the deviations, 314.9 and 0.2286.
    let ratio = median(proline) / median(hue);
    assert!((1200.0..1600.0).contains(&ratio), "{ratio}");
}

#[test]
fn numbers_are_predicted_with_their_deviation() {
    let root = TempDir::new().unwrap();
    let data = numbers(root.path(), "prices.csv", 240);
    let run = root.path().join("run");
    let output = circulant([
        "train",
        "--data",
        path(&data),
        "--validation",
        "40",
        "--steps",
        "1000",
        "--out",
        path(&run),
        "--json",
    ]);
    let told = stderr(&output);
    assert!(output.status.success(), "{told}");
    for part in [
        "target \"price\": a number",
        "\"id\" numbers the rows",
        "left out: \"same\"",
        "\"colour\": text, 3 levels",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let held = &summary["validation"];
    let number = |name: &str| held[name].as_f64().unwrap();
    assert!(number("rmse") < 20.0, "{held}");
    assert!(number("rmse_of_mean") > 150.0, "{held}");
    assert!((0.7..=1.0).contains(&number("coverage90")), "{held}");
    let again = json(["evaluate", path(&run), "--held-out", "--json"]);
    assert_eq!(again["rmse"], held["rmse"]);
    let rows = success(["predict", path(&run), "--data", path(&data)]);
    assert!(rows.starts_with("index,mean,deviation,aleatoric,epistemic,lower,upper\n"));
    assert_eq!(rows.lines().count(), 241);
    let first: Vec<f64> = rows
        .lines()
        .nth(1)
        .unwrap()
        .split(',')
        .map(|x| x.parse().unwrap())
        .collect();
    let [_, mean, deviation, aleatoric, epistemic, lower, upper] = first[..] else {
        panic!("{first:?}")
    };
    assert!(lower < mean && mean < upper && aleatoric.hypot(epistemic) - deviation < 1e-9);
    // Intervals with a promise, calibrated on what was held out.
    let covered = success([
        "predict",
        path(&run),
        "--data",
        path(&data),
        "--coverage",
        "0.8",
    ]);
    assert_eq!(covered.lines().count(), 241);
    assert_ne!(covered, rows);
    let promised = json([
        "evaluate",
        path(&run),
        "--data",
        path(&data),
        "--coverage",
        "0.8",
        "--json",
    ]);
    let promised = &promised["promised"];
    assert_eq!(promised["calibration_inputs"], 40);
    assert!(promised["coverage"].as_f64().unwrap() > 0.7, "{promised}");
    let sets = ["--coverage", "0.8", "--sets", "aps"];
    let predict = ["predict", path(&run), "--data", path(&data)];
    refusal(
        1,
        [&predict[..], &sets].concat(),
        &["--sets", "for classes"],
    );
    let too_much = [&predict[..], &["--coverage", "0.99"]].concat();
    refusal(1, too_much, &["at least 99 calibration examples, got 40"]);
    // How far the prediction can move.
    let certified = json([
        "certify",
        path(&run),
        "--data",
        path(&data),
        "--tolerance",
        "10",
        "--samples",
        "5",
        "--json",
    ]);
    let number = |name: &str| certified[name].as_f64().unwrap();
    let radius = certified["radius"]["median"].as_f64().unwrap();
    assert!(
        radius > 0.0 && number("lipschitz") * radius <= 10.0,
        "{certified}"
    );
    let column = &certified["columns"][0];
    assert_eq!(column["column"], "x");
    // The prices rise by 3 per unit, so nothing less can be promised.
    assert!(column["largest_slope"].as_f64().unwrap() > 2.5, "{column}");
    let wrong = [
        "certify",
        path(&run),
        "--data",
        path(&data),
        "--tolerance",
        "0",
    ];
    refusal(1, wrong, &["--tolerance"]);
    let ood = [
        "evaluate",
        path(&run),
        "--data",
        path(&data),
        "--ood",
        "glyphs",
    ];
    refusal(1, ood, &["--ood"]);
    // Training goes on where it stood, and beyond its end.
    success(["train", "--resume", path(&run)]);
    let fewer = ["train", "--resume", path(&run), "--steps", "10"];
    refusal(1, fewer, &["--steps", "give more"]);
    let more = circulant(["train", "--resume", path(&run), "--steps", "1100"]);
    assert!(more.status.success(), "{}", stderr(&more));
    let told = stderr(&more);
    assert!(
        told.contains("falls anew, from step 1000 to step 1100"),
        "{told}"
    );
    success(["train", "--resume", path(&run)]);
    fs::write(
        &data,
        fs::read_to_string(&data).unwrap().replace("red", "black"),
    )
    .unwrap();
    refusal(
        1,
        ["train", "--resume", path(&run)],
        &["the data have changed"],
    );
}

#[test]
fn what_is_no_good_table_is_named() {
    let root = TempDir::new().unwrap();
    let train = |text: &str, flags: &[&str], parts: &[&str]| {
        let data = root.path().join("t.csv");
        fs::write(&data, text).unwrap();
        let out = root.path().join("out");
        let arguments = [
            &["train", "--data", path(&data), "--out", path(&out)][..],
            flags,
        ]
        .concat();
        refusal(1, &arguments, parts);
        assert!(!out.exists(), "nothing is left behind");
    };
    let gaps = "a,b,y\n1,2,u\n,3,v\n4,1,u\n5,2,v\n";
    train(
        gaps,
        &[],
        &["column \"a\"", "row 2", "--missing mean, median or drop"],
    );
    train(
        "a,y\n1,u\n2,u\n",
        &[],
        &["the same in all rows", "--target"],
    );
    train(
        "a,y\n1,0.5\n2,0.7\n3,0.1\n",
        &["--task", "classification"],
        &["--task regression"],
    );
    train(
        "a,y\n1,0.5\n2,0.7\n3,0.1\n",
        &["--class-weight", "balanced"],
        &["--class-weight"],
    );
    train(
        gaps,
        &["--target", "z"],
        &["a column \"z\"", "the columns a, b, y"],
    );
    let out = root.path().join("out");
    let glyphs = [
        "train",
        "--data",
        "glyphs",
        "--target",
        "y",
        "--out",
        path(&out),
    ];
    refusal(1, glyphs, &["for tables"]);
}
