//! Pictures as people have them: a folder by class to learn from; one file, a pattern, a list or a folder to predict; sets of classes and galleries.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use image::{DynamicImage, GrayImage, ImageBuffer, Luma, Rgb, Rgba};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{circulant, json, path, program, refusal, stderr, success, words};

/// Bright above, or bright below.
fn shade(class: usize, index: usize, y: u32, height: u32) -> u8 {
    let above = y < height / 2;
    if above == (class == 0) {
        200 - index as u8
    } else {
        20 + 2 * index as u8
    }
}

/// Twenty pictures of each of two classes.
fn by_class(root: &Path) -> PathBuf {
    let folder = root.join("by class");
    for (class, name) in ["sky", "ground"].into_iter().enumerate() {
        fs::create_dir_all(folder.join(name)).unwrap();
        for index in 0..20 {
            let picture = GrayImage::from_fn(8, 8, |_, y| Luma([shade(class, index, y, 8)]));
            let kind = ["png", "jpg"][index % 2];
            picture
                .save(folder.join(name).join(format!("{index}.{kind}")))
                .unwrap();
        }
    }
    folder
}

/// New pictures of other sizes and kinds, of both classes in turn.
fn photographs(root: &Path) -> PathBuf {
    let folder = root.join("photographs");
    fs::create_dir_all(&folder).unwrap();
    let colour = ImageBuffer::from_fn(12, 16, |_, y| Rgb([shade(0, 3, y, 16); 3]));
    DynamicImage::from(colour)
        .save(folder.join("a.jpg"))
        .unwrap();
    let alpha = ImageBuffer::from_fn(8, 8, |_, y| {
        let s = shade(1, 3, y, 8);
        Rgba([s, s, s, 255])
    });
    DynamicImage::from(alpha)
        .save(folder.join("b.png"))
        .unwrap();
    let deep = ImageBuffer::from_fn(9, 30, |_, y| Luma([u16::from(shade(0, 5, y, 30)) * 257]));
    DynamicImage::from(deep).save(folder.join("c.png")).unwrap();
    folder
}

fn trained(root: &Path) -> PathBuf {
    let (data, out) = (by_class(root), root.join("run"));
    let more = words("--steps 150 --model dense --batch 16 --learning-rate 0.02");
    let output = circulant(
        [
            &["train", "--data", path(&data), "--out", path(&out)][..],
            &more,
        ]
        .concat(),
    );
    let message = stderr(&output);
    assert!(output.status.success(), "{message}");
    assert!(
        message.contains("4 of 40 pictures are held out"),
        "{message}"
    );
    out
}

/// `predict` as JSON, with more flags.
fn command<'a>(run: &'a str, data: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let flags = ["predict", run, "--data", data, "--json", "--samples", "10"];
    [&flags[..], more].concat()
}

/// Objects by the names of their files.
fn rows(text: &str) -> HashMap<String, Value> {
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).expect("JSON");
        let file = Path::new(row["file"].as_str().expect("a file"))
            .file_name()
            .unwrap();
        (file.to_string_lossy().into_owned(), row)
    };
    text.lines().map(row).collect()
}

#[test]
fn pictures_are_predicted_however_they_are_named() {
    let root = TempDir::new().unwrap();
    let (run, folder) = (trained(root.path()), photographs(root.path()));
    let output = circulant(command(path(&run), path(&folder), &[]));
    let message = stderr(&output);
    assert!(
        message.contains("2 of 3 pictures scaled to 8 x 8 pixels"),
        "{message}"
    );
    let all = rows(&String::from_utf8(output.stdout).unwrap());
    for (file, name) in [("a.jpg", "sky"), ("b.png", "ground"), ("c.png", "sky")] {
        assert_eq!(all[file]["name"], name, "{file}: {all:?}");
    }
    let one = rows(&success(command(
        path(&run),
        path(&folder.join("c.png")),
        &[],
    )));
    assert_eq!(
        (one.len(), &one["c.png"]["probabilities"]),
        (1, &all["c.png"]["probabilities"])
    );
    let pattern = rows(&success(command(
        path(&run),
        path(&folder.join("*.png")),
        &[],
    )));
    assert_eq!(pattern.len(), 2);
    assert_eq!(pattern["b.png"]["name"], all["b.png"]["name"]);
    // A list on stdin, in its order.
    let mut child = program(
        [
            &["predict", path(&run), "--data", "-"][..],
            &["--samples", "10"],
        ]
        .concat(),
    )
    .stdin(Stdio::piped())
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let list = format!(
        "{}\n{}\n",
        folder.join("b.png").display(),
        folder.join("a.jpg").display()
    );
    child
        .stdin
        .take()
        .unwrap()
        .write_all(list.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let csv = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines[0][..4], ["index", "file", "class", "name"]);
    assert!(
        lines[1][1].ends_with("b.png") && lines[2][1].ends_with("a.jpg"),
        "{csv}"
    );
    assert_eq!((lines[1][3], lines[2][3]), ("ground", "sky"));
    // The same pictures, certified.
    let radii = root.path().join("radii.json");
    let flags = words("--samples 5 --out");
    success(
        [
            &["certify", path(&run), "--data", path(&folder)][..],
            &flags,
            &[path(&radii)],
        ]
        .concat(),
    );
    let found: Value = serde_json::from_str(&fs::read_to_string(radii).unwrap()).unwrap();
    for row in found["rows"].as_array().unwrap() {
        let number = |key: &str| row[key].as_f64().unwrap();
        assert!(row["file"].as_str().unwrap().len() == 5, "{row}");
        assert!(
            0.0 < number("average") && number("average") <= number("per_sample"),
            "{row}"
        );
        assert_eq!(row["average_class"], row["class"]);
    }
    let average = &found["average"];
    assert_eq!(average["accuracy"], Value::Null);
    assert!(average["per_sample"]["median"].as_f64() >= average["radius"]["median"].as_f64());
    let shares = average["certified"].as_array().unwrap();
    assert_eq!(shares[0]["share"], 1.0, "{average}");
    // What cannot be read says what to do.
    let refused =
        |data: &str, parts: &[&str]| refusal(1, ["predict", path(&run), "--data", data], parts);
    refused(path(&folder.join("*.gif")), &["no file matches"]);
    fs::write(folder.join("d.png"), "no picture").unwrap();
    refused(path(&folder), &["d.png", "cut short"]);
}

#[test]
fn sets_of_classes_have_their_coverage_and_reports_their_pictures() {
    let root = TempDir::new().unwrap();
    let (run, folder) = (trained(root.path()), photographs(root.path()));
    let run = path(&run);
    // What was held out is what is evaluated, where there is no test part.
    let report = root.path().join("report.html");
    let evaluated = json([
        "evaluate",
        run,
        "--json",
        "--report",
        path(&report),
        "--coverage",
        "0.5",
    ]);
    assert_eq!(evaluated["inputs"], 4);
    let coverage = &evaluated["coverage"];
    assert_eq!(
        (&coverage["calibration_inputs"], &coverage["inputs"]),
        (&2.into(), &2.into())
    );
    assert_eq!(coverage["method"], "threshold");
    let page = fs::read_to_string(report).unwrap();
    // Four most certain ones, and the same four the other way round.
    assert!(page.matches("data:image/png;base64,").count() >= 8);
    assert!(page.contains("Least certain") && page.contains("ground"));
    let data = path(&folder);
    let plain = rows(&success(command(run, data, &["--coverage", "0.5"])));
    let robust = rows(&success(command(
        run,
        data,
        &["--coverage", "0.5", "--robust", "0.05"],
    )));
    for (file, row) in &plain {
        let set = |row: &Value| row["set"].as_array().expect("a set").clone();
        let (plain, robust) = (set(row), set(&robust[file]));
        assert!(
            plain.iter().all(|class| robust.contains(class)),
            "{file} {plain:?} {robust:?}"
        );
    }
    let csv = success([
        "predict",
        run,
        "--data",
        data,
        "--coverage",
        "0.5",
        "--sets",
        "aps",
    ]);
    assert!(
        csv.lines()
            .next()
            .unwrap()
            .ends_with("mutual_information,set")
    );
    let all = root.path().join("by class");
    let named = rows(&success(command(
        run,
        data,
        &["--coverage", "0.9", "--calibration", path(&all)],
    )));
    assert!(named.values().all(|row| row["set"].is_array()));
    refusal(
        1,
        command(run, data, &["--coverage", "0.9"]),
        &["at least 9 calibration examples, got 4", "hold out more"],
    );
    refusal(
        1,
        command(run, data, &["--coverage", "1.5"]),
        &["--coverage", "between 0 and 1"],
    );
    refusal(
        1,
        command(run, data, &["--coverage", "0.5", "--robust", "-1"]),
        &["--robust"],
    );
    refusal(2, command(run, data, &["--robust", "0.1"]), &["--coverage"]);
    refusal(
        1,
        command(run, data, &["--coverage", "0.5", "--calibration", data]),
        &["no labels", "--calibration"],
    );
}

#[test]
fn scores_tell_other_inputs_apart() {
    let root = TempDir::new().unwrap();
    let (run, folder) = (trained(root.path()), root.path().join("noise"));
    let run = path(&run);
    fs::create_dir_all(&folder).unwrap();
    for index in 0..4_u32 {
        let noise = GrayImage::from_fn(8, 8, |x, y| {
            Luma([((x * 97 + y * 57 + index * 31) % 251) as u8])
        });
        noise.save(folder.join(format!("{index}.png"))).unwrap();
    }
    for score in [
        "entropy",
        "mutual-information",
        "probability",
        "feature-density",
    ] {
        let flags = ["--ood", path(&folder), "--score", score, "--json"];
        let evaluated = json([&["evaluate", run][..], &flags].concat());
        let chosen = &evaluated["ood"][0]["chosen"];
        assert_eq!(chosen["score"], score);
        let auroc = chosen["auroc"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&auroc));
        if score == "entropy" {
            assert_eq!(chosen["auroc"], evaluated["ood"][0]["auroc"]);
        }
        if score == "feature-density" {
            assert_eq!(auroc, 1.0, "nothing in training is like noise");
        }
        let csv = success(["predict", run, "--data", path(&folder), "--score", score]);
        assert!(
            csv.lines()
                .next()
                .unwrap()
                .ends_with("mutual_information,score")
        );
    }
    // By its training alone; without a word it is the density, with the same numbers as fitted anew.
    let predict = ["predict", run, "--data", path(&folder), "--score"];
    let (of_run, density) = (success(predict), Path::new(run).join("density.safetensors"));
    assert_eq!(
        of_run,
        success([&predict[..], &["feature-density"]].concat())
    );
    let bytes = fs::read(&density).unwrap();
    fs::write(&density, &bytes[..100]).unwrap();
    refusal(1, predict, &["density.safetensors", "remove it"]);
    fs::remove_file(&density).unwrap();
    assert_eq!(of_run, success(predict));
    refusal(2, ["evaluate", run, "--score", "entropy"], &["--ood"]);
}
