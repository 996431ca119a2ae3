#include "deploy/c_statements.hpp"

#include <map>

namespace lockstep::deploy {

namespace {

/// What the next two share; named so that it stands before them.
constexpr char const* convolution = R"(
struct convolution {
    long channels, outputs, groups;
    long in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];
};

static long first_inside(long stride, long offset)
{
    return offset >= 0 ? 0 : (-offset + stride - 1) / stride;
}
)";

/// Four channels of the output at once read each row of the input once; the innermost loop has no
/// sum, so that compilers vectorise it without being told to reorder one.
constexpr char const* convolve = R"(
static void convolve_channels(const struct convolution *f, long block, const float *x,
                              const float *weights, long per_output, float *y)
{
    const long plane = f->in[0] * f->in[1] * f->in[2];
    const long out_plane = f->out[0] * f->out[1] * f->out[2];
    const long taps = f->kernel[0] * f->kernel[1] * f->kernel[2];
    const long step = f->stride[2];
    for (long c = 0; c < f->channels / f->groups; ++c)
        for (long tap = 0; tap < taps; ++tap) {
            const long kz = tap / (f->kernel[1] * f->kernel[2]);
            const long ky = tap / f->kernel[2] % f->kernel[1], kx = tap % f->kernel[2];
            const long left = kx * f->dilation[2] - f->pad[2];
            const long low = first_inside(step, left);
            const long room = f->in[2] - left;
            const long last = room <= 0 ? 0 : (room + step - 1) / step;
            const long high = last < f->out[2] ? last : f->out[2];
            const float *w = weights + c * taps + tap;
            for (long z = 0; z < f->out[0]; ++z) {
                const long iz = z * f->stride[0] + kz * f->dilation[0] - f->pad[0];
                if (iz < 0 || iz >= f->in[0])
                    continue;
                for (long row = 0; row < f->out[1]; ++row) {
                    const long iy = row * f->stride[1] + ky * f->dilation[1] - f->pad[1];
                    if (iy < 0 || iy >= f->in[1])
                        continue;
                    const float *in = x + c * plane + (iz * f->in[1] + iy) * f->in[2] + left;
                    float *out = y + (z * f->out[1] + row) * f->out[2];
                    if (block == 4) {
                        const float w0 = w[0], w1 = w[per_output];
                        const float w2 = w[2 * per_output], w3 = w[3 * per_output];
                        float *restrict out0 = out, *restrict out1 = out + out_plane;
                        float *restrict out2 = out + 2 * out_plane;
                        float *restrict out3 = out + 3 * out_plane;
                        if (step == 1)
                            for (long i = low; i < high; ++i) {
                                const float v = in[i];
                                out0[i] += w0 * v;
                                out1[i] += w1 * v;
                                out2[i] += w2 * v;
                                out3[i] += w3 * v;
                            }
                        else
                            for (long i = low; i < high; ++i) {
                                const float v = in[i * step];
                                out0[i] += w0 * v;
                                out1[i] += w1 * v;
                                out2[i] += w2 * v;
                                out3[i] += w3 * v;
                            }
                    } else
                        for (long i = low; i < high; ++i)
                            out[i] += w[0] * in[i * step];
                }
            }
        }
}

static void convolve(const struct convolution *f, const float *x, const float *weights,
                     const float *bias, float *y)
{
    const long plane = f->in[0] * f->in[1] * f->in[2];
    const long out_plane = f->out[0] * f->out[1] * f->out[2];
    const long own = f->channels / f->groups, each = f->outputs / f->groups;
    const long per_output = own * f->kernel[0] * f->kernel[1] * f->kernel[2];
    for (long o = 0; o < f->outputs; ++o)
        for (long i = 0; i < out_plane; ++i)
            y[o * out_plane + i] = bias ? bias[o] : 0;
    for (long g = 0; g < f->groups; ++g)
        for (long o = g * each; o < (g + 1) * each;) {
            const long block = (g + 1) * each - o >= 4 ? 4 : 1;
            convolve_channels(f, block, x + g * own * plane, weights + o * per_output, per_output,
                              y + o * out_plane);
            o += block;
        }
}
)";

/// Adds each row of the input to the rows of the output that it reaches.
constexpr char const* convolve_transposed = R"(
static void convolve_transposed(const struct convolution *f, const float *x, const float *weights,
                                const float *bias, float *y)
{
    const long plane = f->in[0] * f->in[1] * f->in[2];
    const long out_plane = f->out[0] * f->out[1] * f->out[2];
    const long taps = f->kernel[0] * f->kernel[1] * f->kernel[2];
    const long own = f->channels / f->groups, each = f->outputs / f->groups;
    const long step = f->stride[2];
    for (long o = 0; o < f->outputs; ++o)
        for (long i = 0; i < out_plane; ++i)
            y[o * out_plane + i] = bias ? bias[o] : 0;
    for (long o = 0; o < f->outputs; ++o)
        for (long c = o / each * own; c < (o / each + 1) * own; ++c)
            for (long tap = 0; tap < taps; ++tap) {
                const long kz = tap / (f->kernel[1] * f->kernel[2]);
                const long ky = tap / f->kernel[2] % f->kernel[1], kx = tap % f->kernel[2];
                const float w = weights[(c * each + o % each) * taps + tap];
                const long left = kx * f->dilation[2] - f->pad[2];
                const long low = first_inside(step, left);
                const long room = f->out[2] - left;
                const long last = room <= 0 ? 0 : (room + step - 1) / step;
                const long high = last < f->in[2] ? last : f->in[2];
                for (long z = 0; z < f->in[0]; ++z) {
                    const long oz = z * f->stride[0] + kz * f->dilation[0] - f->pad[0];
                    if (oz < 0 || oz >= f->out[0])
                        continue;
                    for (long row = 0; row < f->in[1]; ++row) {
                        const long oy = row * f->stride[1] + ky * f->dilation[1] - f->pad[1];
                        if (oy < 0 || oy >= f->out[1])
                            continue;
                        const float *in = x + c * plane + (z * f->in[1] + row) * f->in[2];
                        float *out = y + o * out_plane + (oz * f->out[1] + oy) * f->out[2] + left;
                        for (long i = low; i < high; ++i)
                            out[i * step] += w * in[i];
                    }
                }
            }
}
)";

constexpr char const* pool = R"(
struct pooling {
    long planes;
    int kind; /* 0: the largest, 1: the mean, 2: the mean with the padding */
    long in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];
};

static void pool(const struct pooling *f, const float *x, float *y)
{
    const long taps = f->kernel[0] * f->kernel[1] * f->kernel[2];
    for (long p = 0; p < f->planes; ++p, x += f->in[0] * f->in[1] * f->in[2])
        for (long z = 0; z < f->out[0]; ++z)
            for (long row = 0; row < f->out[1]; ++row)
                for (long column = 0; column < f->out[2]; ++column) {
                    float found = f->kind == 0 ? -INFINITY : 0;
                    long count = 0;
                    for (long tap = 0; tap < taps; ++tap) {
                        const long iz = z * f->stride[0] - f->pad[0] +
                                        tap / (f->kernel[1] * f->kernel[2]) * f->dilation[0];
                        const long iy = row * f->stride[1] - f->pad[1] +
                                        tap / f->kernel[2] % f->kernel[1] * f->dilation[1];
                        const long ix = column * f->stride[2] - f->pad[2] +
                                        tap % f->kernel[2] * f->dilation[2];
                        if (iz < 0 || iz >= f->in[0] || iy < 0 || iy >= f->in[1] || ix < 0 ||
                            ix >= f->in[2])
                            continue;
                        ++count;
                        {
                            const float v = x[(iz * f->in[1] + iy) * f->in[2] + ix];
                            found = f->kind != 0 ? found + v : found < v ? v : found;
                        }
                    }
                    *y++ = f->kind == 0 ? found : found / (float)(f->kind == 1 ? count : taps);
                }
}
)";

/// The largest of bytes; kind is 0.
constexpr char const* pool_bytes = R"(
struct byte_pooling {
    long planes;
    int kind;
    long in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];
};

static void pool_bytes(const struct byte_pooling *f, const uint8_t *x, uint8_t *y)
{
    const long taps = f->kernel[0] * f->kernel[1] * f->kernel[2];
    for (long p = 0; p < f->planes; ++p, x += f->in[0] * f->in[1] * f->in[2])
        for (long z = 0; z < f->out[0]; ++z)
            for (long row = 0; row < f->out[1]; ++row)
                for (long column = 0; column < f->out[2]; ++column) {
                    uint8_t found = 0;
                    for (long tap = 0; tap < taps; ++tap) {
                        const long iz = z * f->stride[0] - f->pad[0] +
                                        tap / (f->kernel[1] * f->kernel[2]) * f->dilation[0];
                        const long iy = row * f->stride[1] - f->pad[1] +
                                        tap / f->kernel[2] % f->kernel[1] * f->dilation[1];
                        const long ix = column * f->stride[2] - f->pad[2] +
                                        tap % f->kernel[2] * f->dilation[2];
                        uint8_t v = 0;
                        if (iz >= 0 && iz < f->in[0] && iy >= 0 && iy < f->in[1] && ix >= 0 &&
                            ix < f->in[2])
                            v = x[(iz * f->in[1] + iy) * f->in[2] + ix];
                        found = found < v ? v : found;
                    }
                    *y++ = found;
                }
}
)";

/// What the inputs of one place are, less their zero, is gathered into a row, 0 where there is
/// padding; each output is its product with a row of weights, a sum that compilers vectorise.
constexpr char const* integers = R"(
#define ONE_PLACE {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}

struct integer_layer {
    struct {
        long channels, outputs, groups;
        long in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];
    } form;
    int zero;
    float scale, inverse, out_zero;
};

static uint8_t to_byte(float value, float inverse, float zero)
{
    const float whole = rintf(value * inverse) + zero;
    return (uint8_t)(whole > 0 ? whole < 255 ? whole : 255 : 0);
}

static void gather(const struct integer_layer *layer, const uint8_t *x, long place)
{
    const long *in = layer->form.in, *out = layer->form.out, *kernel = layer->form.kernel;
    const long *stride = layer->form.stride, *pad = layer->form.pad;
    const long *dilation = layer->form.dilation;
    const long own = layer->form.channels / layer->form.groups;
    const long z = place / (out[1] * out[2]) * stride[0] - pad[0];
    const long y = place / out[2] % out[1] * stride[1] - pad[1];
    const long left = place % out[2] * stride[2] - pad[2];
    int16_t *to = patch;
    for (long c = 0; c < own; ++c, x += in[0] * in[1] * in[2])
        for (long kz = 0; kz < kernel[0]; ++kz)
            for (long ky = 0; ky < kernel[1]; ++ky) {
                const long iz = z + kz * dilation[0], iy = y + ky * dilation[1];
                const int inside = iz >= 0 && iz < in[0] && iy >= 0 && iy < in[1];
                const uint8_t *row = inside ? x + (iz * in[1] + iy) * in[2] : x;
                for (long kx = 0; kx < kernel[2]; ++kx) {
                    const long ix = left + kx * dilation[2];
                    *to++ = inside && ix >= 0 && ix < in[2] ? (int16_t)(row[ix] - layer->zero) : 0;
                }
            }
}

static int32_t product(long count, const int16_t *a, const int8_t *b)
{
    int32_t sum = 0;
    for (long i = 0; i < count; ++i)
        sum += a[i] * b[i];
    return sum;
}

/* Gives reals, or bytes where there are no reals. */
static void integer_layer(const struct integer_layer *layer, const uint8_t *x,
                          const int8_t *weights, const float *scales, const float *bias,
                          float *reals, uint8_t *bytes)
{
    const long *in = layer->form.in, *out = layer->form.out, *kernel = layer->form.kernel;
    const long places = out[0] * out[1] * out[2];
    const long groups = layer->form.groups, each = layer->form.outputs / groups;
    const long own = layer->form.channels / groups;
    const long count = own * kernel[0] * kernel[1] * kernel[2];
    for (long g = 0; g < groups; ++g, x += own * in[0] * in[1] * in[2])
        for (long place = 0; place < places; ++place) {
            gather(layer, x, place);
            for (long o = g * each; o < (g + 1) * each; ++o) {
                const int32_t sum = product(count, patch, weights + o * count);
                const float value = (float)sum * (layer->scale * scales[o]) + bias[o];
                if (reals)
                    reals[o * places + place] = value;
                else
                    bytes[o * places + place] = to_byte(value, layer->inverse, layer->out_zero);
            }
        }
}
)";

constexpr char const* multiply = R"(
static void multiply(long rows, long inner, long columns, const float *a, const float *b,
                     const float *bias, float *y)
{
    for (long row = 0; row < rows; ++row, a += inner, y += columns) {
        float *restrict out = y;
        for (long j = 0; j < columns; ++j)
            out[j] = bias ? bias[j] : 0;
        for (long k = 0; k < inner; ++k) {
            const float v = a[k];
            const float *restrict from = b + k * columns;
            for (long j = 0; j < columns; ++j)
                out[j] += v * from[j];
        }
    }
}
)";

constexpr char const* softmax = R"(
static void softmax(long before, long count, long behind, const float *x, float *y)
{
    for (long i = 0; i < before; ++i)
        for (long j = 0; j < behind; ++j) {
            const float *from = x + i * count * behind + j;
            float *to = y + i * count * behind + j;
            float largest = -INFINITY, sum = 0;
            for (long k = 0; k < count; ++k)
                largest = from[k * behind] > largest ? from[k * behind] : largest;
            for (long k = 0; k < count; ++k)
                sum += to[k * behind] = expf(from[k * behind] - largest);
            for (long k = 0; k < count; ++k)
                to[k * behind] /= sum;
        }
}
)";

constexpr char const* log_softmax = R"(
static void log_softmax(long before, long count, long behind, const float *x, float *y)
{
    for (long i = 0; i < before; ++i)
        for (long j = 0; j < behind; ++j) {
            const float *from = x + i * count * behind + j;
            float *to = y + i * count * behind + j;
            float largest = -INFINITY, sum = 0;
            for (long k = 0; k < count; ++k)
                largest = from[k * behind] > largest ? from[k * behind] : largest;
            for (long k = 0; k < count; ++k)
                sum += expf(from[k * behind] - largest);
            for (long k = 0; k < count; ++k)
                to[k * behind] = from[k * behind] - largest - logf(sum);
        }
}
)";

constexpr char const* sum_up = R"(
static void sum_up(long before, long count, long behind, const float *x, float *y)
{
    for (long i = 0; i < before * count * behind; ++i)
        y[i] = x[i] + (i / behind % count > 0 ? y[i - behind] : 0);
}
)";

constexpr char const* sum_up_wholes = R"(
static void sum_up_wholes(long before, long count, long behind, const int64_t *x, int64_t *y)
{
    for (long i = 0; i < before * count * behind; ++i)
        y[i] = x[i] + (i / behind % count > 0 ? y[i - behind] : 0);
}
)";

constexpr char const* layer_norm = R"(
static void layer_norm(long rows, long width, float epsilon, const float *x, const float *scale,
                       const float *shift, float *y)
{
    for (long row = 0; row < rows; ++row, x += width, y += width) {
        float mean = 0, variance = 0, factor;
        for (long i = 0; i < width; ++i)
            mean += x[i];
        mean /= (float)width;
        for (long i = 0; i < width; ++i)
            variance += (x[i] - mean) * (x[i] - mean);
        factor = 1 / sqrtf(variance / (float)width + epsilon);
        for (long i = 0; i < width; ++i)
            y[i] = (x[i] - mean) * factor * scale[i] + (shift ? shift[i] : 0);
    }
}
)";

/// Where a grid, from -1 to 1, points to in images; outside there are zeros (padding 0), the values
/// at the edges (1), or the image mirrored at them (2). Mode 1 takes the nearest value.
constexpr char const* sample_grid = R"(
static float grid_place(float at, long size, int padding, int corners)
{
    const float last = (float)(size - 1);
    const float low = corners ? 0 : -0.5f, span = corners ? last : (float)size;
    float place = corners ? (at + 1) / 2 * last : ((at + 1) * (float)size - 1) / 2;
    if (padding == 2) {
        const float way = fabsf(place - low), times = span > 0 ? floorf(way / span) : 0;
        const float rest = span > 0 ? way - times * span : 0;
        place = fmodf(times, 2) == 0 ? rest + low : span - rest + low;
    }
    if (padding != 0)
        place = place > 0 ? place < last ? place : last : 0;
    return place > -2 && place < last + 2 ? place : -2; /* so that it fits a whole number */
}

static void sample_grid(long samples, long channels, long rows, long columns, long places,
                        int mode, int padding, int corners, const float *x, const float *grid,
                        float *y)
{
    for (long n = 0; n < samples; ++n, x += channels * rows * columns, y += channels * places)
        for (long p = 0; p < places; ++p, grid += 2) {
            const float column = grid_place(grid[0], columns, padding, corners);
            const float row = grid_place(grid[1], rows, padding, corners);
            const float left = mode == 1 ? rintf(column) : floorf(column);
            const float top = mode == 1 ? rintf(row) : floorf(row);
            for (long c = 0; c < channels; ++c) {
                float sum = 0;
                for (int corner = 0; corner < (mode == 1 ? 1 : 4); ++corner) {
                    const long i = (long)top + corner / 2, j = (long)left + corner % 2;
                    const float across = corner % 2 ? column - left : 1 - (column - left);
                    const float down = corner / 2 ? row - top : 1 - (row - top);
                    if (i >= 0 && i < rows && j >= 0 && j < columns)
                        sum += x[(c * rows + i) * columns + j] * (mode == 1 ? 1 : across * down);
                }
                y[c * places + p] = sum;
            }
        }
}
)";

} // namespace

std::string c_helper(std::string const& name) {
    static std::map<std::string, char const*> const texts{
        {"convolution", convolution},
        {"convolve", convolve},
        {"convolve_transposed", convolve_transposed},
        {"pool", pool},
        {"pool_bytes", pool_bytes},
        {"integers", integers},
        {"multiply", multiply},
        {"softmax", softmax},
        {"log_softmax", log_softmax},
        {"sum_up", sum_up},
        {"sum_up_wholes", sum_up_wholes},
        {"sample_grid", sample_grid},
        {"layer_norm", layer_norm}};
    return texts.at(name);
}

} // namespace lockstep::deploy
