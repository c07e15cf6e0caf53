/* Reads the model of model.h as docs/edge.md describes it, and computes what the Rust runtime computes. */
#define CIRCULANT_MODEL_DATA
#include "circulant.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

typedef struct { float re, im; } cpx;

typedef struct {
    int kind, format, shift, rank;
    uint32_t count, stream, columns, run, sharing;
    const uint8_t *mean_scales, *mean, *factor_scales, *factor, *deviation;
    float deviation_scale;
} gaussian;

typedef struct {
    int kind, activation;
    uint32_t size[4];
    uint32_t inputs, outputs, whole; /* whole: outputs with those that are left out */
    uint32_t rows;                   /* where the layer's rows begin among those of all layers */
    gaussian weights, bias;
} layer;

static layer layers[CIRCULANT_LAYERS];
static const uint8_t *normalisation, *bounds, *targets;
static uint32_t normalised, plane_size;
static int unit;
static float rounding[2];
static cpx input_values[CIRCULANT_COMPLEX], spectrum[CIRCULANT_COMPLEX], work[CIRCULANT_COMPLEX], sums[CIRCULANT_COMPLEX];
static cpx prime_values[CIRCULANT_PRIME + 1];
static float coordinates[CIRCULANT_COORDINATES], values[CIRCULANT_VALUES], next_values[CIRCULANT_VALUES];
static float logits[CIRCULANT_LOGITS];
static cpx channel_sums[CIRCULANT_SUMS];
/* Of every row of a half plane: its first coordinate, and how many of its bins are kept. */
static uint32_t row_start[CIRCULANT_ROWS], row_kept[CIRCULANT_ROWS];

static uint32_t u32_at(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static uint32_t u16_at(const uint8_t *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }
static float f32_at(const uint8_t *p) {
    uint32_t bits = u32_at(p);
    float value;
    memcpy(&value, &bits, 4);
    return value;
}
static float f16_at(const uint8_t *p) {
    uint32_t half = u16_at(p);
    float value = (float)(half & 1023u);
    int exponent = (int)(half >> 10 & 31u);
    value = exponent ? ldexpf(value + 1024.0f, exponent - 25) : ldexpf(value, -24);
    return half & 0x8000u ? -value : value;
}

/* The group of value i, of an array with so many columns of a factor. */
static uint32_t group_of(const gaussian *g, uint32_t i, uint32_t rank) {
    if (g->columns) return i % g->columns;
    return g->shift == 255 ? i / (g->run * rank) : i >> g->shift;
}
static float mean_at(const gaussian *g, uint32_t i) {
    if (g->format == 0) return f32_at(g->mean + 4 * (size_t)i);
    if (g->format == 1) return f16_at(g->mean + 2 * (size_t)i);
    return (float)(int8_t)g->mean[i] * f32_at(g->mean_scales + 4 * (size_t)group_of(g, i, 1));
}
static float factor_at(const gaussian *g, uint32_t i) {
    if (g->format == 0) return f32_at(g->factor + 4 * (size_t)i);
    if (g->format == 1) return f16_at(g->factor + 2 * (size_t)i);
    return (float)(int8_t)g->factor[i] * f32_at(g->factor_scales + 4 * (size_t)group_of(g, i, (uint32_t)g->rank));
}
static float deviation_at(const gaussian *g, uint32_t i) {
    uint32_t code;
    if (g->kind == 0) return 0.0f;
    if (g->format == 0) return f32_at(g->deviation + 4 * (size_t)i);
    if (g->format == 1) return f16_at(g->deviation + 2 * (size_t)i);
    if (g->sharing == 0) code = g->deviation[i];
    else if (g->columns) code = (uint32_t)g->deviation[i / g->columns] + g->deviation[g->count / g->columns + i % g->columns];
    else code = g->deviation[i / g->sharing];
    return g->deviation_scale * exp2f(-(float)code / 16.0f);
}

static const uint8_t *array(const uint8_t **at, uint32_t count, uint32_t size) {
    const uint8_t *start = *at;
    *at += (count * size + 3u) / 4u * 4u;
    return start;
}

static void read_gaussian(gaussian *g, const uint8_t **at, uint32_t columns, uint32_t run) {
    const uint8_t *p = *at;
    uint32_t size, deviations;
    g->kind = p[0];
    g->format = p[1];
    g->shift = p[2];
    g->rank = p[3];
    g->count = u32_at(p + 4);
    g->stream = u16_at(p + 8);
    g->sharing = u16_at(p + 10);
    g->columns = columns;
    g->run = run;
    *at += 12;
    size = g->format == 0 ? 4u : g->format == 1 ? 2u : 1u;
    if (g->format == 2) g->mean_scales = array(at, columns ? columns : group_of(g, g->count - 1, 1) + 1, 4);
    g->mean = array(at, g->count, size);
    if (g->kind == 2) {
        uint32_t entries = g->count * (uint32_t)g->rank;
        if (g->format == 2) g->factor_scales = array(at, group_of(g, entries - 1, (uint32_t)g->rank) + 1, 4);
        g->factor = array(at, entries, size);
    }
    if (g->kind != 0) {
        if (g->format == 2) g->deviation_scale = f32_at(array(at, 1, 4));
        deviations = g->sharing == 0 ? g->count : columns ? g->count / columns + columns : (g->count - 1) / g->sharing + 1;
        g->deviation = array(at, deviations, size);
    }
}

static uint32_t crc32(const uint8_t *p, size_t count) {
    uint32_t crc = 0xffffffffu;
    while (count--) {
        int bit;
        crc ^= *p++;
        for (bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1u ? 0xedb88320u : 0u);
    }
    return ~crc;
}

/* The half plane of a grid: a bin is kept if its radius, as a whole number, is at most the limit. In the first column, and in the
 * last one of an even width, a bin is the conjugate of that in row height - u: those of the rows above the middle have no coordinates,
 * those of row 0 and of the middle one. */

static uint64_t squared_part(uint32_t k, uint32_t n, uint32_t other) {
    uint64_t part = (uint64_t)(2 * k > n ? n - k : k) * (other > 3 ? other / 2 : 1);
    return part * part;
}

static uint32_t paired_coordinates(uint32_t u, uint32_t height) {
    return u == 0 || 2 * u == height ? 1u : 2 * u > height ? 0u : 2u;
}

static void fill_rows(const layer *own, uint64_t limit) {
    uint32_t height = own->size[2], width = own->size[3], last = width / 2, start = 0, u, v;
    for (u = 0; u < height; u++) {
        uint32_t kept = 0, paired;
        for (v = 0; v <= last; v++) kept += squared_part(u, height, width) + squared_part(v, width, height) <= limit;
        paired = (kept > 0 ? 1u : 0u) + (kept > last && last > 0 && 2 * last == width ? 1u : 0u);
        row_start[own->rows + u] = start;
        row_kept[own->rows + u] = kept;
        start += 2 * (kept - paired) + paired * paired_coordinates(u, height);
    }
}

/* Coordinates of a bin: where they begin, how many (none of one that is left out), and whether it is the conjugate. */
static uint32_t bin_at(const layer *own, uint32_t u, uint32_t v, int *parts, int *conjugate) {
    uint32_t height = own->size[2], width = own->size[3], paired = v == 0 || 2 * v == width, first;
    *conjugate = paired && 2 * u > height;
    if (*conjugate) u = height - u;
    first = paired_coordinates(u, height);
    *parts = v >= row_kept[own->rows + u] ? 0 : paired && first == 1u ? 1 : 2;
    return row_start[own->rows + u] + (v == 0 ? 0 : first + 2 * (v - 1));
}

int circulant_init(void) {
    const uint8_t *p = circulant_model, *at;
    uint32_t rows = 0;
    int l;
    if (memcmp(p, "CIRC", 4) != 0 || u16_at(p + 4) != 3 || u32_at(p + 8) != CIRCULANT_MODEL_BYTES) return -1;
    if (crc32(p + 16, CIRCULANT_MODEL_BYTES - 16) != u32_at(p + 12)) return -1;
    plane_size = u32_at(p + 20) * u32_at(p + 24);
    unit = (int)(u16_at(p + 34) & 1u);
    normalised = u32_at(p + 40);
    rounding[0] = f32_at(p + 44);
    rounding[1] = f32_at(p + 48);
    normalisation = p + 56;
    at = normalisation + 8 * (size_t)normalised;
    targets = at;
    if (CIRCULANT_TASK == 1) at += 12 * CIRCULANT_CLASSES;
    bounds = u16_at(p + 34) & 2u ? at : NULL;
    if (bounds) at += 2 * CIRCULANT_CLASSES * (CIRCULANT_CLASSES - 1);
    for (l = 0; l < CIRCULANT_LAYERS; l++) {
        layer *own = &layers[l];
        int padded;
        own->kind = at[0];
        own->activation = at[1];
        padded = at[2];
        at += 4;
        own->size[0] = u32_at(at);
        own->size[1] = u32_at(at + 4);
        if (own->kind == 2) {
            own->size[2] = u32_at(at + 8);
            own->size[3] = u32_at(at + 12);
            own->rows = rows;
            rows += own->size[2];
            fill_rows(own, (uint64_t)u32_at(at + 20) << 32 | u32_at(at + 16));
            at += 24;
            own->inputs = own->size[0] * own->size[2] * own->size[3];
            own->outputs = own->size[1] * own->size[2] * own->size[3];
            own->whole = own->outputs;
            if (padded) {
                own->inputs = u32_at(at);
                own->outputs = u32_at(at + 4);
                at += 8;
            }
        } else {
            at += 8;
            own->inputs = own->size[0];
            own->outputs = own->kind == 1 ? own->size[0] : own->size[1];
            own->whole = own->outputs;
        }
        read_gaussian(&own->weights, &at, own->kind == 3 ? own->outputs : 0, own->size[0] * own->size[1]);
        read_gaussian(&own->bias, &at, 0, 1);
    }
    return 0;
}

/* Noise. Weights are drawn with the desktop's: Philox4x32-10 and Box-Muller in groups of 256 values. Sums are drawn with a hash
 * of a counter and a table of quantiles. Either way a value depends on its index alone. */

typedef struct { uint64_t seed, stream; uint32_t key[2]; int weights; } noise;

static uint64_t mix(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static void philox(uint64_t seed, uint64_t stream, uint64_t block, uint32_t w[4]) {
    uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    int round;
    for (round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xd2511f53u * c0, p1 = (uint64_t)0xcd9e8d57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    w[0] = c0;
    w[1] = c1;
    w[2] = c2;
    w[3] = c3;
}

static void pair(uint32_t radius, uint32_t angle, float *cosine, float *sine) {
    float u = ((float)(radius >> 1) + 0.5f) / 2147483648.0f;
    float length = sqrtf(-2.0f * logf(u));
    float turn = (float)((double)angle * (6.283185307179586 / 4294967296.0));
    *cosine = length * cosf(turn);
    *sine = length * sinf(turn);
}

static noise noise_of(const gaussian *g, uint64_t seed, int64_t sample, int weights) {
    noise n;
    uint64_t key;
    n.seed = mix(seed ^ mix(4));
    n.stream = (uint64_t)sample << 16 | g->stream;
    n.weights = weights;
    key = mix(n.seed ^ mix(n.stream));
    n.key[0] = (uint32_t)key;
    n.key[1] = (uint32_t)(key >> 32);
    return n;
}

static uint32_t word_at(const noise *n, uint32_t index) {
    uint32_t x = index * 0x9e3779b9u ^ n->key[0];
    x = (x ^ x >> 16) * 0x21f0aaadu + n->key[1];
    x = (x ^ x >> 15) * 0xd35a2d97u;
    return x ^ x >> 15;
}

/* The value that the upper 16 bits of a word choose. */
static float normal_of(uint32_t word) {
    uint32_t tail = (word >> 16 & 0x7fffu) << 1 | 1u, octave = 15, place, part;
    int32_t high, low, size;
    while (!(tail >> octave & 1u)) octave--;
    tail <<= 31u - octave;
    place = octave << 4 | (tail >> 27 & 15u);
    part = tail >> 16 & 0x7ffu;
    high = circulant_quantiles[place];
    low = circulant_quantiles[place + 1];
    size = high - (((high - low) * (int32_t)part + 1024) >> 11);
    return (float)(word >> 31 ? -size : size) * (1.0f / 4096.0f);
}

static float normal_at(const noise *n, uint32_t index) {
    if (n->weights) {
        uint32_t at = index % 256u, own = at % 128u, w[4];
        float cosine, sine;
        philox(n->seed, n->stream, (uint64_t)(index / 256u) * 64u + own % 64u, w);
        pair(w[own / 64u], w[own / 64u + 2], &cosine, &sine);
        return at < 128u ? cosine : sine;
    }
    return normal_of(word_at(n, index));
}

/* Values of a parameter: of a draw (sample >= 0), or its mean. */

static float xi[64];
static noise own_noise;

static void start_values(const gaussian *g, uint64_t seed, int64_t sample, int weights) {
    int r;
    if (sample < 0 || g->kind == 0) return;
    own_noise = noise_of(g, seed, sample, weights);
    for (r = 0; r < g->rank; r++) xi[r] = normal_at(&own_noise, (uint32_t)r);
}

static float value_at(const gaussian *g, int64_t sample, uint32_t i) {
    float value = mean_at(g, i);
    int r;
    if (sample < 0 || g->kind == 0) return value;
    for (r = 0; r < g->rank; r++) value += factor_at(g, i * (uint32_t)g->rank + (uint32_t)r) * xi[r];
    return value + deviation_at(g, i) * normal_at(&own_noise, (uint32_t)g->rank + i);
}

/* The transform sum_t in[t * stride] w^(kt), w = exp(-2 pi i/n), by splitting off prime factors. */

static cpx times(cpx a, cpx b) {
    cpx c;
    c.re = a.re * b.re - a.im * b.im;
    c.im = a.re * b.im + a.im * b.re;
    return c;
}
static cpx root(uint32_t k, uint32_t n) {
    double angle = -6.283185307179586 * (double)(k % n) / (double)n;
    cpx c;
    c.re = (float)cos(angle);
    c.im = (float)sin(angle);
    return c;
}
static cpx roots[CIRCULANT_ROOTS];
static uint32_t roots_order;

static void fill_roots(uint32_t n) {
    uint32_t k;
    if (roots_order == n) return;
    for (k = 0; k < n; k++) roots[k] = root(k, n);
    roots_order = n;
}

static void transform(const cpx *in, uint32_t stride, cpx *out, uint32_t n) {
    uint32_t p = 2, m, q, k, r, step = roots_order / n;
    if (n == 1) {
        out[0] = in[0];
        return;
    }
    while (n % p != 0 && p * p <= n) p++;
    if (n % p != 0) p = n;
    m = n / p;
    for (q = 0; q < p; q++) transform(in + (size_t)q * stride, stride * p, out + (size_t)q * m, m);
    for (k = 0; k < m; k++) {
        for (q = 0; q < p; q++) prime_values[q] = times(out[k + q * m], roots[q * k * step]);
        for (r = 0; r < p; r++) {
            cpx sum = prime_values[0];
            for (q = 1; q < p; q++) {
                cpx term = times(prime_values[q], roots[(q * r % p) * m * step]);
                sum.re += term.re;
                sum.im += term.im;
            }
            out[k + r * m] = sum;
        }
    }
}

/* The whole transform of a real signal of which there are so many values, and zeros behind them; only the first half is kept by those
 * who call it. */
static void real_forward(const float *x, uint32_t count, cpx *half, uint32_t n) {
    uint32_t t;
    for (t = 0; t < n; t++) {
        work[t].re = t < count ? x[t] : 0.0f;
        work[t].im = 0.0f;
    }
    fill_roots(n);
    transform(work, 1, sums, n);
    memcpy(half, sums, (n / 2 + 1) * sizeof(cpx));
}

/* n times the signal of a half spectrum: the forward transform of the conjugate, conjugated. */
static void real_inverse(const cpx *half, float *x, uint32_t n) {
    uint32_t k;
    for (k = 0; k <= n / 2; k++) {
        cpx value = half[k];
        if (k == 0 || 2 * k == n) value.im = 0.0f;
        work[k].re = value.re;
        work[k].im = -value.im;
        if (k != 0 && 2 * k != n) work[n - k] = value;
    }
    fill_roots(n);
    transform(work, 1, sums, n);
    for (k = 0; k < n; k++) x[k] = sums[k].re;
}

static void columns(cpx *plane, uint32_t height, uint32_t width, int inverse) {
    uint32_t u, v;
    fill_roots(height);
    for (v = 0; v < width; v++) {
        for (u = 0; u < height; u++) {
            work[u] = plane[u * width + v];
            if (inverse) work[u].im = -work[u].im;
        }
        transform(work, 1, sums, height);
        for (u = 0; u < height; u++) {
            plane[u * width + v] = sums[u];
            if (inverse) plane[u * width + v].im = -sums[u].im;
        }
    }
}

static void image_forward(const float *x, uint32_t count, cpx *plane, uint32_t height, uint32_t width) {
    uint32_t u, bins = width / 2 + 1;
    for (u = 0; u < height; u++) {
        uint32_t start = u * width < count ? u * width : count;
        real_forward(x + start, count - start, plane + (size_t)u * bins, width);
    }
    columns(plane, height, bins, 0);
}

static void load(const layer *first, const float *x) {
    uint32_t i, c, bins;
    float scale;
    if (first->kind == 1) {
        bins = first->size[0] / 2 + 1;
        real_forward(x, first->size[0], input_values, first->size[0]);
        scale = 1.0f / (float)first->size[0];
    } else if (first->kind == 2) {
        uint32_t height = first->size[2], width = first->size[3];
        bins = height * (width / 2 + 1);
        for (c = 0; c < first->size[0]; c++) {
            uint32_t start = c * height * width;
            image_forward(x + start, first->inputs - start, input_values + (size_t)c * bins, height, width);
        }
        bins *= first->size[0];
        scale = 1.0f / (float)(height * width);
    } else {
        return;
    }
    for (i = 0; i < bins; i++) {
        input_values[i].re *= scale;
        input_values[i].im *= scale;
    }
}

/* Sums over the channels of a first layer, as the Rust runtime's sums.rs describes them: per output and bin the mean, the parts
 * of the factor, and the root of the covariance. */

#define PARTS(g) ((uint32_t)(g)->rank + 3u)

static void add_scaled(cpx *sum, cpx value, float scale) {
    sum->re += scale * value.re;
    sum->im += scale * value.im;
}

/* Whether the bias is part of the sums: one value per output, or one deviation for all positions of an output. */
static int folds(const layer *own) {
    const gaussian *bias = &own->bias;
    return bias->rank == 0 && (bias->count == own->size[1] || bias->kind == 0 || bias->sharing == own->size[2] * own->size[3]);
}

static void add_bias_noise(const layer *own) {
    uint32_t out = own->size[1], height = own->size[2], width = own->size[3], bins = width / 2 + 1;
    uint32_t u, v, o, parts = PARTS(&own->weights), each = own->bias.count == out ? 1 : height * width;
    for (o = 0; o < out; o++) for (u = 0; u < height; u++) for (v = 0; v < bins; v++) {
        cpx *root_of = channel_sums + ((size_t)o * height * bins + u * bins + v) * parts + parts - 2;
        int real = (v == 0 || 2 * v == width) && (u == 0 || 2 * u == height);
        float square = deviation_at(&own->bias, o * each) * deviation_at(&own->bias, o * each);
        if (each == 1) square *= u == 0 && v == 0 ? 1.0f : 0.0f;
        else square /= (float)(height * width) * (real ? 1.0f : 2.0f);
        root_of[0].re += square;
        if (!real) root_of[1].re += square;
    }
}

static void add_bias_means(const layer *own) {
    uint32_t out = own->size[1], height = own->size[2], width = own->size[3], bins = height * (width / 2 + 1);
    uint32_t o, i, parts = PARTS(&own->weights), count = height * width;
    for (o = 0; o < out; o++) {
        uint32_t there = own->bias.count == out || own->bias.count > (o + 1) * count ? count : own->bias.count - o * count;
        for (i = 0; i < there; i++) next_values[i] = mean_at(&own->bias, own->bias.count == out ? o : o * count + i);
        image_forward(next_values, there, spectrum, height, width);
        for (i = 0; i < bins; i++) add_scaled(&channel_sums[((size_t)o * bins + i) * parts], spectrum[i], 1.0f / (float)(height * width));
    }
}

static void prepare_sums(const layer *own) {
    uint32_t in = own->size[0], out = own->size[1], height = own->size[2], width = own->size[3], bins = width / 2 + 1;
    uint32_t u, v, c, o, parts = PARTS(&own->weights), i;
    const gaussian *g = &own->weights;
    memset(channel_sums, 0, sizeof channel_sums);
    for (u = 0; u < height; u++) for (v = 0; v < bins; v++) {
        int count, conjugate, part, r;
        uint32_t at = bin_at(own, u, v, &count, &conjugate);
        for (o = 0; o < out; o++) {
            cpx *sums_at = channel_sums + ((size_t)o * height * bins + u * bins + v) * parts;
            for (c = 0; c < in; c++) {
                cpx x = input_values[(c * height + u) * bins + v], factor = x;
                for (part = 0; part < count; part++) {
                    uint32_t coordinate = ((at + (uint32_t)part) * in + c) * out + o;
                    float deviation = deviation_at(g, coordinate);
                    add_scaled(&sums_at[0], factor, mean_at(g, coordinate));
                    for (r = 0; r < g->rank; r++) {
                        add_scaled(&sums_at[1 + r], factor, factor_at(g, coordinate * (uint32_t)g->rank + (uint32_t)r));
                    }
                    sums_at[parts - 2].re += deviation * factor.re * deviation * factor.re;
                    sums_at[parts - 2].im += deviation * factor.re * deviation * factor.im;
                    sums_at[parts - 1].re += deviation * factor.im * deviation * factor.im;
                    factor.re = conjugate ? x.im : -x.im;
                    factor.im = conjugate ? -x.re : x.re;
                }
            }
        }
    }
    if (folds(own)) add_bias_noise(own);
    for (i = 0; i < out * height * bins; i++) {
        cpx *root_of = channel_sums + (size_t)i * parts + parts - 2;
        float a = sqrtf(root_of[0].re), b = a > 0.0f ? root_of[0].im / a : 0.0f, rest = root_of[1].re - b * b;
        root_of[0].re = a;
        root_of[0].im = b;
        root_of[1].re = rest > 0.0f ? sqrtf(rest) : 0.0f;
    }
    if (folds(own)) add_bias_means(own);
}

static void draw_sums(const layer *own, uint32_t o, int64_t sample) {
    uint32_t height = own->size[2], width = own->size[3], bins = width / 2 + 1, u, v, i, parts = PARTS(&own->weights);
    int r;
    for (i = 0; i < height * bins; i++) {
        uint32_t place = o * height * bins + i;
        const cpx *part = channel_sums + (size_t)place * parts;
        cpx value = part[0];
        if (sample >= 0) {
            uint32_t word = word_at(&own_noise, (uint32_t)own->weights.rank + place);
            float one = normal_of(word), two = normal_of(word << 16);
            for (r = 0; r < own->weights.rank; r++) add_scaled(&value, part[1 + r], xi[r]);
            add_scaled(&value, part[parts - 2], one);
            value.im += two * part[parts - 1].re;
        }
        spectrum[i] = value;
    }
    for (u = height / 2 + 1; u < height; u++) for (v = 0; v < bins; v += width / 2 ? width / 2 : 1) {
        if (v == 0 || 2 * v == width) {
            spectrum[u * bins + v].re = spectrum[(height - u) * bins + v].re;
            spectrum[u * bins + v].im = -spectrum[(height - u) * bins + v].im;
        }
    }
}

/* next = layer(values) before bias and activation; input_values holds the spectrum of values, or channel_sums their sums. */
static void convolve(const layer *own, uint64_t seed, int64_t sample, int weights, int summed) {
    uint32_t k;
    start_values(&own->weights, seed, sample, weights);
    if (summed && sample >= 0) own_noise = noise_of(&own->weights, seed, sample, weights);
    if (own->kind == 1) {
        uint32_t n = own->size[0], modes = own->size[1], at = 0;
        for (k = 0; k <= n / 2; k++) {
            cpx h = {0.0f, 0.0f};
            if (k < modes) {
                h.re = value_at(&own->weights, sample, at++);
                if (k != 0 && 2 * k != n) h.im = value_at(&own->weights, sample, at++);
            }
            spectrum[k] = times(input_values[k], h);
        }
        real_inverse(spectrum, next_values, n);
    } else {
        uint32_t in = own->size[0], out = own->size[1], height = own->size[2], width = own->size[3];
        uint32_t bins = width / 2 + 1, o, c, u, v;
        for (k = 0; !summed && k < own->weights.count; k++) coordinates[k] = value_at(&own->weights, sample, k);
        for (o = 0; o < out; o++) {
            if (summed) draw_sums(own, o, sample);
            for (u = 0; !summed && u < height; u++) for (v = 0; v < bins; v++) {
                int parts, conjugate;
                uint32_t at = bin_at(own, u, v, &parts, &conjugate);
                cpx sum = {0.0f, 0.0f};
                for (c = 0; parts > 0 && c < in; c++) {
                    cpx h, term;
                    h.re = coordinates[(at * in + c) * out + o];
                    h.im = parts == 2 ? coordinates[((at + 1) * in + c) * out + o] : 0.0f;
                    if (conjugate) h.im = -h.im;
                    term = times(h, input_values[(c * height + u) * bins + v]);
                    sum.re += term.re;
                    sum.im += term.im;
                }
                spectrum[u * bins + v] = sum;
            }
            columns(spectrum, height, bins, 1);
            for (u = 0; u < height; u++) real_inverse(spectrum + (size_t)u * bins, next_values + (size_t)(o * height + u) * width, width);
        }
    }
}

static void add_bias(const layer *own, uint64_t seed, int64_t sample, int weights, float *out) {
    uint32_t i, each = own->bias.count == own->outputs ? 1 : own->whole / own->bias.count;
    float bias = 0.0f;
    start_values(&own->bias, seed, sample, weights);
    for (i = 0; i < own->outputs; i++) {
        if (i % each == 0) bias = value_at(&own->bias, sample, i / each);
        out[i] += bias;
    }
}

static void dense(const layer *own, const float *x, uint64_t seed, int64_t sample, int weights, float *out) {
    uint32_t t, k, outputs = own->outputs;
    noise n;
    if (weights || sample < 0 || own->bias.rank > 0) {
        start_values(&own->weights, seed, sample, weights);
        for (k = 0; k < outputs; k++) out[k] = 0.0f;
        for (t = 0; t < own->inputs; t++) for (k = 0; k < outputs; k++) out[k] += x[t] * value_at(&own->weights, sample, t * outputs + k);
        add_bias(own, seed, sample, weights, out);
        return;
    }
    n = noise_of(&own->weights, seed, sample, 0);
    for (k = 0; k < outputs; k++) {
        float mean = mean_at(&own->bias, k), spread = deviation_at(&own->bias, k), variance = spread * spread;
        for (t = 0; t < own->inputs; t++) {
            float part = x[t] * deviation_at(&own->weights, t * outputs + k);
            mean += x[t] * mean_at(&own->weights, t * outputs + k);
            variance += part * part;
        }
        out[k] = mean + sqrtf(variance) * normal_at(&n, k);
    }
}

static void activate(int activation, float *x, uint32_t count) {
    uint32_t i;
    for (i = 0; i < count; i++) {
        if (activation == 1) x[i] = tanhf(x[i]);
        if (activation == 2 && x[i] < 0.0f) x[i] = 0.0f;
        if (activation == 3 && i % 2 == 1 && x[i - 1] > x[i]) {
            float larger = x[i - 1];
            x[i - 1] = x[i];
            x[i] = larger;
        }
    }
}

/* Whether sums over the channels of the first layer are drawn: where they take no more memory than its spectra. */
static int has_sums(void) {
    const layer *own = &layers[0];
    return own->kind == 2 && own->size[1] * PARTS(&own->weights) <= own->size[0];
}

static void forward(const float *x, uint64_t seed, int64_t sample, int weights) {
    int l;
    for (l = 0; l < CIRCULANT_LAYERS; l++) {
        const layer *own = &layers[l];
        if (l == CIRCULANT_LAYERS - 1) {
            dense(own, x, seed, sample, weights, logits);
            return;
        }
        if (own->kind == 3) {
            dense(own, x, seed, sample, weights, next_values);
        } else {
            int summed = l == 0 && !weights && has_sums();
            /* The spectrum of the input serves all draws of a single hidden layer. */
            if (!summed && (l > 0 || CIRCULANT_LAYERS > 2)) load(own, x);
            convolve(own, seed, sample, weights, summed);
            if (!summed || !folds(own)) add_bias(own, seed, sample, weights, next_values);
        }
        activate(own->activation, next_values, own->outputs);
        memcpy(values + CIRCULANT_INPUTS, next_values, own->outputs * sizeof(float));
        x = values + CIRCULANT_INPUTS;
    }
}

int circulant_predict(const uint8_t *bytes, const float *floats, const circulant_sampling *sampling,
                      circulant_prediction *prediction) {
    float squares[CIRCULANT_CLASSES], norm = 0.0f, expected = 0.0f, share = 1.0f / (float)sampling->samples;
    uint32_t i, s;
    int k;
    if (sampling->samples == 0 || sampling->samples > 65536u) return -1;
    for (i = 0; i < CIRCULANT_INPUTS; i++) {
        float x = bytes ? (float)bytes[i] / (unit ? 255.0f : 1.0f) : floats[i];
        if (!isfinite(x)) return -1;
        if (normalised) {
            uint32_t place = normalised == CIRCULANT_INPUTS && normalised != CIRCULANT_CHANNELS ? i : i / plane_size;
            x = (x - f32_at(normalisation + 4 * (size_t)place)) / f32_at(normalisation + 4 * (size_t)(normalised + place));
        }
        values[i] = x;
        norm += x * x;
    }
    memset(prediction, 0, sizeof *prediction);
    memset(squares, 0, sizeof squares);
    load(&layers[0], values);
    if (has_sums()) prepare_sums(&layers[0]);
    for (s = 0; s < sampling->samples; s++) {
        float highest, total = 0.0f, moment = 0.0f;
        forward(values, sampling->seed, (int64_t)s, sampling->weights);
        if (CIRCULANT_TASK != 0) {
            for (k = 0; k < CIRCULANT_CLASSES; k++) {
                float value = logits[k], spread = logits[CIRCULANT_LOGITS - CIRCULANT_CLASSES + k];
                if (!isfinite(value) || !isfinite(spread)) return -1;
                if (CIRCULANT_TASK == 2) {
                    /* Differences from the first rate keep their digits. */
                    value = expf(value);
                    if (s == 0) prediction->noise[k] = value;
                    value -= prediction->noise[k];
                } else {
                    value *= f32_at(targets + 12 * (size_t)k);
                    if (CIRCULANT_NOISE_PER_INPUT) prediction->noise[k] += expf(6.0f * tanhf(spread / 3.0f));
                }
                if (!isfinite(value * value)) return -1;
                prediction->mean[k] += value;
                squares[k] += value * value;
            }
            continue;
        }
        highest = logits[0];
        for (k = 0; k < CIRCULANT_CLASSES; k++) {
            if (!isfinite(logits[k])) return -1;
            if (logits[k] > highest) highest = logits[k];
        }
        for (k = 0; k < CIRCULANT_CLASSES; k++) {
            float weight = expf(logits[k] - highest);
            total += weight;
            moment += weight * (logits[k] - highest);
        }
        expected += logf(total) - moment / total;
        for (k = 0; k < CIRCULANT_CLASSES; k++) {
            float p = expf(logits[k] - highest) / total;
            prediction->mean[k] += p;
            squares[k] += p * p;
        }
    }
    for (k = 0; k < CIRCULANT_CLASSES; k++) {
        float p = prediction->mean[k] * share, variance = squares[k] * share - p * p;
        prediction->mean[k] = p;
        prediction->deviation[k] = variance > 0.0f ? sqrtf(variance) : 0.0f;
        if (CIRCULANT_TASK == 2) {
            float rate = prediction->noise[k] + p;
            prediction->mean[k] = rate > 0.0f ? rate : 0.0f;
            prediction->noise[k] = sqrtf(prediction->mean[k]);
            continue;
        }
        if (CIRCULANT_TASK == 1) {
            float factor = CIRCULANT_NOISE_PER_INPUT ? sqrtf(prediction->noise[k] * share) : 1.0f;
            prediction->mean[k] += f32_at(targets + 12 * (size_t)k + 4);
            prediction->noise[k] = f32_at(targets + 12 * (size_t)k + 8) * factor;
            continue;
        }
        if (p > prediction->mean[prediction->class_]) prediction->class_ = k;
        if (p > 0.0f) prediction->predictive_entropy -= p * logf(p);
    }
    prediction->expected_entropy = expected * share;
    prediction->radius = -1.0f;
    if (sampling->radius && bounds) {
        float slack, radius = INFINITY;
        int own = 0;
        norm = sqrtf(norm);
        slack = 2.0f * (rounding[0] * norm + rounding[1]);
        load(&layers[0], values);
        forward(values, 0, -1, 1);
        for (k = 1; k < CIRCULANT_CLASSES; k++) if (logits[k] > logits[own]) own = k;
        for (k = 0; k < CIRCULANT_CLASSES; k++) {
            int low = k < own ? k : own, high = k < own ? own : k;
            float bound, r;
            if (k == own) continue;
            bound = f32_at(bounds + 4 * (size_t)(high * (high - 1) / 2 + low));
            r = (logits[own] - logits[k] - slack) / (bound > 1.2e-38f ? bound : 1.2e-38f) * (1.0f - 1e-6f);
            if (r < radius) radius = r;
        }
        if (radius > norm) radius = norm;
        prediction->radius = radius > 0.0f ? radius : 0.0f;
        prediction->radius_class = own;
    }
    return 0;
}
