"""Writes scikit-learn's digits, wine, breast cancer and iris as tables with five stratified folds.

    python3 bench/tables/sets.py FOLDER [UCI]

From the folder UCI of regression tables also wine-quality: its wine.csv has the alcohol as its target, published results are about the quality.
NAME.csv has named columns and the class last; NAME-test-mask.csv has one column per fold, 1 where a row is in its test part. That is
what `circulant reproduce tables --data FOLDER` and compare.py read.
"""

import csv
import gzip
import shutil
import sys
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.model_selection import StratifiedKFold

SETS = {
    "digits": datasets.load_digits,
    "cultivars": datasets.load_wine,
    "breast-cancer": datasets.load_breast_cancer,
    "iris": datasets.load_iris,
}


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, load in SETS.items():
        data = load()
        classes = [str(data.target_names[label]) for label in data.target]
        with open(folder / f"{name}.csv", "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*data.feature_names, "class"])
            for row, label in zip(data.data, classes):
                writer.writerow([*(f"{x:.10g}" for x in row), label])
        folds = StratifiedKFold(5, shuffle=True, random_state=0).split(data.data, data.target)
        mask = np.zeros((len(classes), 5), int)
        for fold, (_, test) in enumerate(folds):
            mask[test, fold] = 1
        np.savetxt(folder / f"{name}-test-mask.csv", mask, "%d", delimiter=",")
        print(f"{name}: {data.data.shape[0]} rows, {data.data.shape[1]} columns")
    if len(sys.argv) > 2:
        wine_quality(Path(sys.argv[2]), folder)


def wine_quality(uci, folder):
    """The last two columns of wine.csv changed places."""
    with gzip.open(uci / "wine.csv.gz", "rt") as source, open(folder / "wine-quality.csv", "w") as file:
        for line in source:
            cells = line.strip().split(",")
            file.write(",".join([*cells[:-2], cells[-1], cells[-2]]) + "\n")
    with gzip.open(uci / "wine-test-mask.csv.gz") as source, open(folder / "wine-quality-test-mask.csv", "wb") as file:
        shutil.copyfileobj(source, file)


if __name__ == "__main__":
    main()
