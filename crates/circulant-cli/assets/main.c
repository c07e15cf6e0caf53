/* Reads inputs of CIRCULANT_INPUTS bytes from stdin, or with a third argument of as many floats; per input a line of class,
 * probabilities, predictive and expected entropy and radius. Of values and counts: per output mean, deviation and noise.
 *
 *   cc -std=c99 -O2 -o network main.c circulant.c -lm && ./network < images.bin
 */
#include <stdio.h>
#include <stdlib.h>

#include "circulant.h"

int main(int count, char **arguments) {
    static union { uint8_t bytes[CIRCULANT_INPUTS]; float floats[CIRCULANT_INPUTS]; } input;
    const uint8_t *bytes = count > 3 ? NULL : input.bytes;
    size_t size = count > 3 ? sizeof input.floats : sizeof input.bytes;
    circulant_sampling sampling = {CIRCULANT_SAMPLES, 0, 0, 1};
    circulant_prediction prediction;
    if (count > 1) sampling.samples = (uint32_t)strtoul(arguments[1], NULL, 10);
    if (count > 2) sampling.weights = atoi(arguments[2]);
    if (circulant_init() != 0) {
        fprintf(stderr, "the model is damaged\n");
        return 1;
    }
    while (fread(&input, 1, size, stdin) == size) {
        int k;
        if (circulant_predict(bytes, bytes ? NULL : input.floats, &sampling, &prediction) != 0) {
            fprintf(stderr, "usage: network [samples, 1 to 65536] [1 to draw weights] [floats] < inputs\n");
            return 1;
        }
        if (CIRCULANT_TASK != 0) {
            for (k = 0; k < CIRCULANT_CLASSES; k++) {
                printf("%.9g %.9g %.9g%c", (double)prediction.mean[k], (double)prediction.deviation[k],
                       (double)prediction.noise[k], k + 1 < CIRCULANT_CLASSES ? ' ' : '\n');
            }
            continue;
        }
        printf("%d", prediction.class_);
        for (k = 0; k < CIRCULANT_CLASSES; k++) printf(" %.9g", (double)prediction.mean[k]);
        printf(" %.9g %.9g %.9g\n", (double)prediction.predictive_entropy, (double)prediction.expected_entropy,
               (double)prediction.radius);
    }
    return 0;
}
