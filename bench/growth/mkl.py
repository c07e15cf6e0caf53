"""What MKL's transforms alone take: PyTorch's rfft and irfft of as many values as growth.rs takes, one line of JSON per length.

    python mkl.py THREADS SECONDS
"""

import json
import sys
import time

import torch

VALUES = 1 << 20
LENGTHS = [2**k for k in range(4, 17)] + [784]


def main():
    threads, seconds = int(sys.argv[1]), float(sys.argv[2])
    if not torch.backends.mkl.is_available():
        sys.exit("error: expected a PyTorch with MKL, found one without")
    torch.set_num_threads(threads)
    for length in LENGTHS:
        x = torch.rand(max(VALUES // length, 16), length)
        best, start, calls = float("inf"), time.perf_counter(), 0
        while calls < 4 or time.perf_counter() - start < seconds:
            begin = time.perf_counter()
            torch.fft.irfft(torch.fft.rfft(x), n=length)
            best, calls = min(best, time.perf_counter() - begin), calls + 1
        point = {"series": "MKL, both transforms", "x": length, "microseconds": best * 1e6 / len(x), "per": "row"}
        print(json.dumps({**point, "threads": threads}), flush=True)


if __name__ == "__main__":
    main()
