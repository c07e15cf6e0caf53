/* Reads inputs of CIRCULANT_INPUTS bytes from stdin; per input a line of class, probabilities, predictive and expected
 * entropy and radius.
 *
 *   cc -std=c99 -O2 -o network main.c circulant.c -lm && ./network < images.bin
 */
#include <stdio.h>
#include <stdlib.h>

#include "circulant.h"

int main(int count, char **arguments) {
    static uint8_t input[CIRCULANT_INPUTS];
    circulant_sampling sampling = {CIRCULANT_SAMPLES, 0, 0, 1};
    circulant_prediction prediction;
    if (count > 1) sampling.samples = (uint32_t)strtoul(arguments[1], NULL, 10);
    if (count > 2) sampling.weights = atoi(arguments[2]);
    if (circulant_init() != 0) {
        fprintf(stderr, "the model is damaged\n");
        return 1;
    }
    while (fread(input, 1, sizeof input, stdin) == sizeof input) {
        int k;
        if (circulant_predict(input, NULL, &sampling, &prediction) != 0) {
            fprintf(stderr, "usage: network [samples, 1 to 65536] [1 to draw weights] < inputs\n");
            return 1;
        }
        printf("%d", prediction.class_);
        for (k = 0; k < CIRCULANT_CLASSES; k++) printf(" %.9g", (double)prediction.probability[k]);
        printf(" %.9g %.9g %.9g\n", (double)prediction.predictive_entropy, (double)prediction.expected_entropy,
               (double)prediction.radius);
    }
    return 0;
}
