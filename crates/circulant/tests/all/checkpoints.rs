//! Checkpoints: resumed to the last bit, refused by other runs, never a broken file.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use circulant::bayes::{BayesianConfig, CheckpointPlan, KlWeight, PosteriorKind, Site, Svi};
use circulant::models::{HiddenKind, ImageClassifierConfig};

use crate::training::{config, data, device, fit, numbers, run};

#[test]
fn resuming_equals_never_stopping() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run.safetensors");
    let data = data(80);
    for kind in [HiddenKind::SpectralCirculant, HiddenKind::Convolution] {
        let mut whole = run(kind, config().with_steps(10), &data);
        let losses = fit(&mut whole, &data);
        let mut first = run(kind, config().with_steps(5), &data);
        fit(&mut first, &data);
        first.save(&path, data.fingerprint()).expect("saves");
        drop(first);
        // Another process would start from other numbers: these are all replaced.
        let mut second = run(kind, config().with_steps(10), &data);
        second.resume(&path, data.fingerprint()).expect("resumes");
        assert_eq!(second.steps_done(), 5);
        assert_eq!(fit(&mut second, &data), losses[5..]);
        assert!(numbers(second.network()) == numbers(whole.network()));
    }
}

#[test]
fn other_settings_are_refused_by_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run.safetensors");
    let data = data(40);
    let kind = HiddenKind::SpectralCirculant;
    let base = || config().with_steps(2);
    let mut svi = run(kind, base(), &data);
    fit(&mut svi, &data);
    svi.save(&path, data.fingerprint()).expect("saves");
    for (what, other) in [
        ("samples per step 1", base().with_samples(3)),
        ("KL weight 1", base().with_kl_weight(KlWeight::WarmUp(5))),
        (
            "KL weight 1",
            base().with_kl_weight(KlWeight::Constant(0.5)),
        ),
        ("learning rate", base().with_learning_rate(0.123)),
        ("learning rate", base().with_final_rate(Some(0.1))),
    ] {
        let mut other = run(kind, other, &data);
        let error = other.resume(&path, data.fingerprint());
        let error = error.expect_err("other settings").to_string();
        assert!(error.contains(what), "{what}: {error}");
        assert_eq!(other.steps_done(), 0);
    }
    let model = ImageClassifierConfig::new(kind).init(&device());
    let layout = model.hidden.spectrum_layout().expect("spectral");
    let posterior = PosteriorKind::LowRank {
        rank: 8,
        jitter: 1e-3,
    };
    let jittered = Site::default_spectral(&layout).with_posterior(posterior);
    let network = BayesianConfig::new().with_site("hidden.coordinates", jittered);
    let network = network.init(model).expect("valid");
    let mut other = Svi::new(network.clone(), base(), data.examples()).expect("valid");
    let error = other.resume(&path, data.fingerprint());
    let error = error.expect_err("another jitter").to_string();
    assert!(error.contains("jitter 1e-6"), "{error}");
    assert!(network.load_checkpoint(&path).is_err());
    // When training ends is not what a step does, unless its learning rate depends on it.
    for same in [
        base().with_steps(20),
        base().with_patience(Some(3)),
        base().with_kl_weight(KlWeight::Constant(1.0)),
    ] {
        let mut same = run(kind, same, &data);
        same.resume(&path, data.fingerprint()).expect("resumes");
        // A schedule of the caller's own does not make it another run.
        same.set_learning_rate(1e-4);
        same.save(&path, data.fingerprint()).expect("saves");
    }
    let falling = || base().with_final_rate(Some(0.1));
    let mut svi = run(kind, falling(), &data);
    fit(&mut svi, &data);
    svi.save(&path, data.fingerprint()).expect("saves");
    let mut longer = run(kind, falling().with_steps(20), &data);
    let error = longer
        .resume(&path, data.fingerprint())
        .expect_err("longer");
    assert!(error.to_string().contains("over 2 steps"), "{error}");
    // On a schedule of its own from where it stands, it goes on; only there, and with the same rate.
    let anew = |from| falling().with_steps(20).with_rate_from(Some(from));
    for refused in [anew(1), anew(2).with_learning_rate(0.5)] {
        let mut other = run(kind, refused, &data);
        assert!(other.resume(&path, data.fingerprint()).is_err());
    }
    let mut longer = run(kind, anew(2), &data);
    longer.resume(&path, data.fingerprint()).expect("resumes");
    fit(&mut longer, &data);
    longer.save(&path, data.fingerprint()).expect("saves");
    let mut again = run(kind, anew(2), &data);
    again.resume(&path, data.fingerprint()).expect("resumes");
    assert_eq!(again.steps_done(), 20);
}

#[test]
fn checkpoints_of_other_runs_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run.safetensors");
    let (data, other_data) = (data(40), data(41));
    let mut svi = run(HiddenKind::SpectralCirculant, config().with_steps(2), &data);
    fit(&mut svi, &data);
    svi.save(&path, data.fingerprint()).expect("saves");
    let before = numbers(svi.network());

    let mut resume = |path: &Path, fingerprint: u64| {
        let error = svi.resume(path, fingerprint).expect_err("another run");
        assert!(numbers(svi.network()) == before, "nothing has changed");
        assert_eq!(svi.steps_done(), 2);
        error.to_string()
    };
    assert!(resume(&path, other_data.fingerprint()).contains("data"));
    assert!(resume(&directory.path().join("none"), 0).contains("none"));
    let whole = std::fs::read(&path).expect("reads");
    let damaged = directory.path().join("damaged.safetensors");
    for length in [0, 5, 100, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&damaged, &whole[..length]).expect("writes");
        let error = resume(&damaged, data.fingerprint());
        assert!(
            error.contains("not a complete checkpoint"),
            "{length}: {error}"
        );
    }
    let mut flipped = whole.clone();
    let last = flipped.len() - 3;
    flipped[last] ^= 1;
    std::fs::write(&damaged, &flipped).expect("writes");
    assert!(resume(&damaged, data.fingerprint()).contains("checksum"));
    // Another model.
    let mut dense = run(HiddenKind::SpectralBccb, config().with_steps(2), &data);
    let error = dense
        .resume(&path, data.fingerprint())
        .expect_err("another model");
    assert!(error.to_string().contains("hidden.coordinates"), "{error}");
    let mut seed = run(HiddenKind::SpectralCirculant, config().with_seed(1), &data);
    let error = seed
        .resume(&path, data.fingerprint())
        .expect_err("another seed");
    assert!(error.to_string().contains("seed"), "{error}");
    assert!(std::fs::read(&path).expect("reads") == whole, "left alone");
}

const CHILD: &str = "CIRCULANT_TEST_CHECKPOINT";

/// The process that [`killing_during_a_save_leaves_a_whole_checkpoint`] kills: saves without end.
#[test]
fn child_that_saves_without_end() {
    let Ok(path) = std::env::var(CHILD) else {
        return;
    };
    let data = data(40);
    let mut svi = run(HiddenKind::SpectralCirculant, config(), &data);
    let plan = CheckpointPlan {
        path: PathBuf::from(path),
        every: 1,
    };
    svi.fit(&data, Some(&plan), |_| ControlFlow::Continue(()))
        .expect("trains");
}

#[test]
fn killing_during_a_save_leaves_a_whole_checkpoint() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run.safetensors");
    let data = data(40);
    for delay in 0..6 {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "checkpoints::child_that_saves_without_end"])
            .env(CHILD, &path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        while !path.exists() {
            let ended = child.try_wait().expect("can be asked");
            assert!(ended.is_none(), "the child ended without a checkpoint");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        std::thread::sleep(std::time::Duration::from_millis(30 + 7 * delay));
        child.kill().expect("was running");
        child.wait().expect("ends");
        let mut svi = run(HiddenKind::SpectralCirculant, config(), &data);
        svi.resume(&path, data.fingerprint())
            .expect("the old checkpoint or the new one, never a broken one");
        assert!(svi.steps_done() > 0);
    }
}
