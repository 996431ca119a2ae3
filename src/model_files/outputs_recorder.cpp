#include "model_files/outputs_recorder.hpp"

#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "batches/outputs_format.hpp"
#include "batches/teacher_outputs.hpp"
#include "checkpoint/writer.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <unistd.h>

namespace lockstep::train {

namespace {

Error of_another_shape() {
    return {ExitCode::usage,
            {"the outputs of the samples differ in their shape",
             "a file of outputs has one shape for all samples",
             "Use a model and a data set whose samples all have the same shape"}};
}

} // namespace

void OutputsRecorder::add(std::int64_t first, torch::Tensor const& outputs) {
    auto const values = outputs.detach().to(torch::kCPU, torch::kFloat32).contiguous();
    if (!torch::isfinite(values).all().item<bool>()) {
        throw Error(
            ExitCode::data,
            {concat("the evaluated model returned a value that is not finite for samples ", first,
                    " to ", first + values.size(0) - 1),
             "a file of outputs may hold only finite values, because a model learns from them",
             "Check these samples (counted from 0) and the weights of the evaluated model"});
    }
    auto shape = values.sizes().slice(1).vec();
    if (values_.empty()) {
        first_ = first;
        shape_ = std::move(shape);
    } else if (shape != shape_) {
        throw of_another_shape();
    }
    std::span const numbers(values.const_data_ptr<float>(),
                            static_cast<std::size_t>(values.numel()));
    hash_ += hash_of_part(first, numbers);
    values_.insert(values_.end(), numbers.begin(), numbers.end());
}

std::vector<std::int64_t> OutputsRecorder::shape_of_all(comm::Communicator const& world) const {
    constexpr std::size_t max_extents = 16;
    std::vector<std::int64_t> form(1 + max_extents); // their number, then the extents
    if (!values_.empty()) {
        form.front() = static_cast<std::int64_t>(shape_.size());
        std::ranges::copy(shape_, form.begin() + 1);
    }
    auto const own = form;
    comm::all_reduce(world, std::span(form), comm::Reduce::maximum);
    comm::agree(world, "collecting the outputs", [&] {
        if (!values_.empty() && own != form) {
            throw of_another_shape();
        }
    });
    return {form.begin() + 1, form.begin() + 1 + form.front()};
}

void OutputsRecorder::write(comm::Communicator const& world, std::int64_t samples,
                            checkpoint::Record record, std::filesystem::path const& path) const {
    h5::Shape shape{static_cast<std::uint64_t>(samples)};
    std::uint64_t row = 1;
    for (auto const extent : shape_of_all(world)) {
        shape.push_back(static_cast<std::uint64_t>(extent));
        row *= shape.back();
    }
    auto const hash = comm::all_reduce(world, hash_, comm::Reduce::sum);
    record.integers[hash_of_outputs] = recorded(hash);
    checkpoint::Snapshot snapshot;
    snapshot.arrays = {{outputs_array, h5::Type::f32, shape.front() * row}};
    snapshot.views = {{outputs_view, outputs_array, 0, shape}};
    auto& own = snapshot.parts.emplace_back();
    if (!values_.empty()) {
        own.push_back(
            {static_cast<std::uint64_t>(first_) * row, std::as_bytes(std::span(values_))});
    }
    snapshot.record = std::move(record);
    auto attempt = new_token();
    comm::broadcast_text(world, attempt);
    checkpoint::write(world, snapshot, path, attempt);
}

} // namespace lockstep::train
