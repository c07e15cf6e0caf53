"""scikit-learn on the tables of `circulant reproduce tables`, with the same splits.

    python3 bench/tables/compare.py --data FOLDER[,FOLDER] [--splits N] [--ours runs/tables/results.json]

Regression: a multilayer perceptron, a Gaussian process (up to 2,000 training rows), gradient boosting, Bayesian ridge. What says no
deviation of its own (perceptron, boosting) gets one Gaussian noise from a tenth of the training rows that it has not seen. Classification:
perceptron, Gaussian process (up to 700 rows), gradient boosting, logistic regression. Inputs and targets are standardised by the training rows.
Prints RMSE, log likelihood, CRPS, 90 % coverage; accuracy, log loss, ECE. Finished splits are kept in --out and not repeated.
"""

import argparse
import gzip
import json
import math
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor

warnings.filterwarnings("ignore")


def opened(folder, name):
    plain = folder / f"{name}.csv"
    return open(plain) if plain.exists() else gzip.open(folder / f"{name}.csv.gz", "rt")


def read(folder, name):
    with opened(folder, name) as file:
        rows = [line.strip().split(",") for line in file]
    with opened(folder, f"{name}-test-mask") as file:
        mask = np.loadtxt(file, delimiter=",", ndmin=2) == 1
    if len(rows) == len(mask) + 1:
        rows = rows[1:]
    x = np.array([row[:-1] for row in rows], float)
    try:
        y = np.array([float(row[-1]) for row in rows])
        classes = np.all(y == np.round(y)) and len(np.unique(y)) <= 20
    except ValueError:
        y, classes = np.array([row[-1] for row in rows]), True
    return x, (np.unique(y, return_inverse=True)[1] if classes else y), mask, classes


def standard(x, test):
    mean, deviation = x.mean(0), x.std(0)
    keep = deviation > 1e-12 * np.abs(mean)
    scale = lambda part: (part[:, keep] - mean[keep]) / deviation[keep]
    return scale(x), scale(test)


def with_noise(model, x, y, test):
    """A model of the mean, and the deviation of what it misses on rows that it has not seen."""
    seen, unseen, y_seen, y_unseen = train_test_split(x, y, test_size=0.1, random_state=0)
    model.fit(seen, y_seen)
    noise = np.sqrt(np.mean((model.predict(unseen) - y_unseen) ** 2))
    model.fit(x, y)
    return model.predict(test), np.full(len(test), noise)


def regressions(x, y, test):
    yield "perceptron", lambda: with_noise(MLPRegressor(hidden_layer_sizes=(64, 64), max_iter=1000, alpha=1e-3, early_stopping=len(x) > 3000, random_state=0), x, y, test)
    if len(x) <= 2000:
        kernel = ConstantKernel() * RBF(np.ones(x.shape[1]), (1e-2, 1e3)) + WhiteKernel(0.1, (1e-6, 10))
        yield "Gaussian process", lambda: GaussianProcessRegressor(kernel, random_state=0).fit(x, y).predict(test, return_std=True)
    yield "gradient boosting", lambda: with_noise(HistGradientBoostingRegressor(random_state=0), x, y, test)
    yield "Bayesian ridge", lambda: BayesianRidge().fit(x, y).predict(test, return_std=True)


def classifiers(x, y):
    yield "perceptron", lambda: MLPClassifier(hidden_layer_sizes=(64, 64), max_iter=1000, random_state=0).fit(x, y)
    if len(x) <= 700:
        yield "Gaussian process", lambda: GaussianProcessClassifier(random_state=0).fit(x, y)
    yield "gradient boosting", lambda: HistGradientBoostingClassifier(random_state=0).fit(x, y)
    yield "logistic regression", lambda: LogisticRegression(max_iter=5000).fit(x, y)


def score_numbers(mean, deviation, y):
    z = (y - mean) / deviation
    crps = deviation * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / math.sqrt(math.pi))
    return [
        float(np.sqrt(np.mean((y - mean) ** 2))),
        float(np.mean(norm.logpdf(y, mean, deviation))),
        float(np.mean(crps)),
        float(np.mean(np.abs(z) <= norm.ppf(0.95))),
    ]


def score_classes(p, y):
    top, right = p.max(1), p.argmax(1) == y
    bins = np.minimum((top * 15).astype(int), 14)
    gaps = [abs(right[bins == b].mean() - top[bins == b].mean()) * np.mean(bins == b) for b in np.unique(bins)]
    loss = -np.mean(np.log(np.clip(p[np.arange(len(y)), y], 1e-15, 1)))
    return [float(right.mean()), float(loss), float(sum(gaps))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--sets")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--out", default="runs/tables-peers.jsonl")
    parser.add_argument("--ours")
    flags = parser.parse_args()
    out = Path(flags.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    done = [json.loads(line) for line in open(out)] if out.exists() else []
    results = {(line["set"], line["split"], line["model"]): line["scores"] for line in done}
    tasks = {}
    for folder in map(Path, flags.data.split(",")):
        names = sorted({path.name.split("-test-mask")[0] for path in folder.glob("*-test-mask.csv*")})
        for name in names:
            if flags.sets and name not in flags.sets.split(","):
                continue
            x, y, mask, classes = read(folder, name)
            tasks[name] = classes
            for split in range(min(flags.splits, mask.shape[1])):
                test = mask[:, split]
                inputs, others = standard(x[~test], x[test])
                if classes:
                    fits = [(model, (lambda fit=fit: score_classes(fit().predict_proba(others), y[test]))) for model, fit in classifiers(inputs, y[~test])]
                else:
                    middle, size = y[~test].mean(), y[~test].std()
                    target = (y[~test] - middle) / size

                    def scored(fit):
                        mean, deviation = fit()
                        return score_numbers(mean * size + middle, deviation * size, y[test])

                    fits = [(model, (lambda fit=fit: scored(fit))) for model, fit in regressions(inputs, target, others)]
                for model, fit in fits:
                    if (name, split, model) in results:
                        continue
                    scores = fit()
                    results[name, split, model] = scores
                    with open(out, "a") as file:
                        file.write(json.dumps({"set": name, "split": split, "model": model, "scores": scores}) + "\n")
    ours = {}
    if flags.ours:
        for row in json.load(open(flags.ours))["sets"]:
            keys = ["accuracy", "log_loss", "ece"] if row["mean"]["task"] == "classification" else ["rmse", "log_likelihood", "crps", "coverage90"]
            ours[row["set"]] = [row["mean"][key] for key in keys]
    ranks = {}
    for name, classes in tasks.items():
        print(f"{name} ({'accuracy, log loss, ECE' if classes else 'RMSE, log likelihood, CRPS, 90 % coverage'})")
        models = dict.fromkeys(model for (own, _, model) in results if own == name)
        rows = {model: np.mean([s for (own, _, m), s in results.items() if (own, m) == (name, model)], 0) for model in models}
        if name in ours:
            rows["circulant"] = np.array(ours[name])
        for model, scores in rows.items():
            print(f"  {model:<20}" + "".join(f"{x:10.4f}" for x in scores))
        order = sorted(rows, key=lambda model: rows[model][1] if classes else -rows[model][1])
        for rank, model in enumerate(order, 1):
            ranks.setdefault(model, []).append(rank)
    print("mean rank in log likelihood or log loss, over the tables that a model was run on")
    for model, own in sorted(ranks.items(), key=lambda item: np.mean(item[1])):
        print(f"  {model:<20}{np.mean(own):6.2f}  of {len(own)} tables")


if __name__ == "__main__":
    main()
