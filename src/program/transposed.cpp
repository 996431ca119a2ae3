#include "program/transposed.hpp"

#include "base/vector_clones.hpp"
#include "program/own_kernels.hpp"
#include "program/transpose_block.hpp"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

namespace lockstep::program {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// One matrix of `rows` rows, and memory for the other.
struct Matrix {
    std::int64_t rows;
    std::int64_t columns;
    float const* from;
    float* to;
};

/// The part of a matrix that is narrower than a block.
[[gnu::always_inline]] inline void exchange(Matrix const& matrix, std::int64_t first_row,
                                            std::int64_t last_row, std::int64_t first_column,
                                            std::int64_t last_column) {
    for (auto row = first_row; row < last_row; ++row) {
        for (auto column = first_column; column < last_column; ++column) {
            matrix.to[column * matrix.rows + row] = matrix.from[row * matrix.columns + column];
        }
    }
}

LOCKSTEP_VECTOR_CLONES void transpose_matrix(Matrix const& matrix) {
    auto const& [rows, columns, from, to] = matrix;
    auto const whole_rows = rows / block_side * block_side;
    auto const whole_columns = columns / block_side * block_side;
    FloatBlock block{};
    for (std::int64_t row = 0; row < whole_rows; row += block_side) {
        for (std::int64_t column = 0; column < whole_columns; column += block_side) {
            load_block(from + row * columns + column, columns, block_side, block);
            transpose(block);
            auto* target = to + column * rows + row;
            for (auto const& values : block) {
                std::memcpy(target, &values, sizeof(values));
                target += rows;
            }
        }
    }
    exchange(matrix, 0, whole_rows, whole_columns, columns);
    exchange(matrix, whole_rows, rows, 0, columns);
}

at::Tensor transposed_values(at::Tensor const& values) {
    auto const count = values.size(0);
    auto const rows = values.size(1);
    auto const columns = values.size(2);
    auto outputs = at::empty({count, columns, rows}, values.options());
    auto const* const from = values.const_data_ptr<float>();
    auto* const to = outputs.mutable_data_ptr<float>();
    constexpr std::int64_t values_at_once = 32'768; // as LibTorch's operators
    auto const size = rows * columns;
    at::parallel_for(0, count, 1 + values_at_once / size,
                     [&](std::int64_t first, std::int64_t last) {
                         for (auto n = first; n < last; ++n) {
                             transpose_matrix({rows, columns, from + n * size, to + n * size});
                         }
                     });
    return outputs;
}

class TransposeFunction : public torch::autograd::Function<TransposeFunction> {
  public:
    static at::Tensor forward(AutogradContext* /*context*/, at::Tensor const& values) {
        RECORD_FUNCTION("lockstep::transposed", std::vector<c10::IValue>({values}));
        return transposed_values(values);
    }
    static variable_list backward(AutogradContext* /*context*/, variable_list const& gradients) {
        return {transposed(gradients[0])};
    }
};

} // namespace

at::Tensor transposed(at::Tensor const& values) {
    return values.dim() == 3 && may_compute(values) ? TransposeFunction::apply(values)
                                                    : values.transpose(1, 2);
}

} // namespace lockstep::program
