/* A Bayesian network of circulant layers in C99: no dependency but <math.h>, no allocation.
 *
 * circulant_init() once, then circulant_predict() per input. All memory is static: CIRCULANT_MEMORY bytes, see model.h.
 */
#ifndef CIRCULANT_H
#define CIRCULANT_H

#include <stdint.h>

#include "model.h"

/* What is known about one input; entropies are in nats. */
typedef struct {
    float mean[CIRCULANT_CLASSES];      /* probabilities of classes, values or rates of counts, averaged over the networks drawn */
    float deviation[CIRCULANT_CLASSES]; /* over the networks drawn */
    float noise[CIRCULANT_CLASSES];     /* of values and counts: the deviation that no amount of data removes */
    float predictive_entropy;           /* of classes: all uncertainty */
    float expected_entropy;             /* of classes: what no amount of data removes */
    float radius;                       /* of the ball in which the mean network decides the same; -1: not known */
    int radius_class;                   /* that decision */
    int class_;                         /* the most probable class */
} circulant_prediction;

/* How networks are drawn. */
typedef struct {
    uint32_t samples; /* 1 to 65536 */
    uint64_t seed;
    int weights;      /* draw every weight, as the desktop does, not the sums of dense layers */
    int radius;       /* also find the radius */
} circulant_sampling;

/* Checks the model. 0, or -1 if it is damaged. */
int circulant_init(void);

/* Predicts an input of CIRCULANT_INPUTS bytes or floats (the other one is NULL). 0, or -1 for a number that is not finite
 * or for no samples. */
int circulant_predict(const uint8_t *bytes, const float *floats, const circulant_sampling *sampling,
                      circulant_prediction *prediction);

#endif
