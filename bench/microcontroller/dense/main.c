/* The usual way, for comparison: an int8 perceptron 784 - HIDDEN - 10 with relu as plain loops, one or an ensemble of MEMBERS,
 * with the averaged probabilities and both entropies. Reads and writes what src/main.rs reads and writes. */
#include <math.h>
#include <stdint.h>

#include "weights.h"

#define PAINTED 16384u
#define PAINT 0x5ca1ab1eu

static uint8_t image[784];
static int8_t hidden[HIDDEN];

static uintptr_t host(uintptr_t number, const void *arguments) {
    register uintptr_t r0 __asm__("r0") = number;
    register const void *r1 __asm__("r1") = arguments;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}
static uintptr_t call(uintptr_t number, uintptr_t a, uintptr_t b, uintptr_t c) {
    uintptr_t arguments[3];
    arguments[0] = a;
    arguments[1] = b;
    arguments[2] = c;
    return host(number, arguments);
}

static void logits(int member, float *z) {
    int j, i, k;
    for (j = 0; j < HIDDEN; j++) {
        const int8_t *row = first_weights[member][j];
        int32_t sum = first_bias[member][j];
        for (i = 0; i < 784; i++) sum += row[i] * image[i];
        sum = (int32_t)(((int64_t)sum * first_multiplier[member]) >> 31);
        hidden[j] = (int8_t)(sum < 0 ? 0 : sum > 127 ? 127 : sum);
    }
    for (k = 0; k < 10; k++) {
        const int8_t *row = second_weights[member][k];
        int32_t sum = second_bias[member][k];
        for (j = 0; j < HIDDEN; j++) sum += row[j] * hidden[j];
        z[k] = (float)sum * second_scale[member];
    }
}

static void predict(float *p, float *entropies, uint32_t *class_) {
    int member, k;
    for (k = 0; k < 10; k++) p[k] = 0.0f;
    entropies[0] = entropies[1] = 0.0f;
    for (member = 0; member < MEMBERS; member++) {
        float z[10], highest, total = 0.0f, moment = 0.0f;
        logits(member, z);
        highest = z[0];
        for (k = 1; k < 10; k++) if (z[k] > highest) highest = z[k];
        for (k = 0; k < 10; k++) {
            float below = z[k] - highest;
            z[k] = expf(below);
            total += z[k];
            moment += z[k] * below;
        }
        entropies[1] += (logf(total) - moment / total) / MEMBERS;
        for (k = 0; k < 10; k++) p[k] += z[k] / total / MEMBERS;
    }
    *class_ = 0;
    for (k = 0; k < 10; k++) {
        if (p[k] > p[*class_]) *class_ = (uint32_t)k;
        if (p[k] > 0.0f) entropies[0] -= p[k] * logf(p[k]);
    }
}

int main(void) {
    volatile uint32_t *control = (volatile uint32_t *)0xe000e010u, *reload = (volatile uint32_t *)0xe000e014u;
    volatile uint32_t *current = (volatile uint32_t *)0xe000e018u;
    volatile uint32_t here = 0;
    uintptr_t top = (uintptr_t)&here, bottom = (top - 64u - PAINTED) & ~(uintptr_t)3u, images, out, at;
    uint32_t words[14], deepest = 0;
    for (at = bottom; at < bottom + PAINTED; at += 4) *(volatile uint32_t *)at = PAINT;
    *reload = 0x00ffffffu;
    *current = 0;
    *control = 5;
    images = call(1, (uintptr_t)"images.bin", 1, 10);
    out = call(1, (uintptr_t)"predictions.bin", 5, 15);
    while (call(6, images, (uintptr_t)image, sizeof image) == 0) {
        union { float f[12]; uint32_t u[12]; } answer;
        uint32_t begin = *current, end;
        int k;
        predict(answer.f, answer.f + 10, &words[0]);
        end = *current;
        for (k = 0; k < 12; k++) words[1 + k] = answer.u[k];
        words[13] = (begin - end) & 0x00ffffffu;
        call(5, out, (uintptr_t)words, sizeof words);
    }
    for (at = bottom; at < bottom + PAINTED; at += 4) if (*(volatile uint32_t *)at != PAINT) {
        deepest = (uint32_t)(top - at);
        break;
    }
    call(5, out, (uintptr_t)&deepest, 4);
    {
        uintptr_t done[2] = {0x20026, 0};
        host(0x18, (const void *)done[0]);
    }
    for (;;) {}
}

extern uint32_t stack_top, data_start, data_end, data_source, bss_start, bss_end;

void reset(void) {
    uint32_t *from = &data_source, *to;
    *(volatile uint32_t *)0xe000ed88u |= 0xfu << 20; /* the unit for floats */
    for (to = &data_start; to < &data_end;) *to++ = *from++;
    for (to = &bss_start; to < &bss_end;) *to++ = 0;
    main();
}

__attribute__((section(".vectors"), used)) static void *const vectors[] = {&stack_top, (void *)reset, (void *)reset, (void *)reset};
