#include "batches/teacher_outputs.hpp"

#include "base/file.hpp"
#include "base/file_kind.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "batches/outputs_format.hpp"
#include "checkpoint/content.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "data/audit.hpp"
#include "data/plan.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::train {

namespace {

Error not_outputs(std::filesystem::path const& path, std::string const& kind = {}) {
    return {ExitCode::usage,
            {concat(path.string(), " does not hold the outputs of a model"),
             kind.empty() ? std::string("lockstep evaluate --outputs has not written this file")
                          : concat("it is ", kind),
             "Write a file of outputs with lockstep evaluate DECK MODEL --outputs FILE.h5"}};
}

checkpoint::Reader reader_of_outputs(checkpoint::VerifiedFile const& file) {
    require_file_of_outputs(file.path());
    checkpoint::Reader reader(file);
    bool const whole =
        reader.has(outputs_array) && reader.views().size() == 1 &&
        !reader.views().front().shape.empty() &&
        h5::elements(reader.views().front().shape) == reader.array(outputs_array).elements &&
        reader.array(outputs_array).type == h5::Type::f32 &&
        reader.array(outputs_array).elements <= reader.bytes() / sizeof(float) &&
        reader.record().integers.contains(hash_of_data) &&
        reader.record().integers.contains(hash_of_outputs) &&
        reader.record().notes.contains(task_note);
    if (!whole) {
        throw not_outputs(file.path());
    }
    return reader;
}

} // namespace

void require_file_of_outputs(std::filesystem::path const& path) {
    auto const content = checkpoint::content_of(File::open_read(path));
    if (content != checkpoint::Content::outputs) {
        throw not_outputs(path, content == checkpoint::Content::unknown
                                    ? kind_of_file(path).name
                                    : checkpoint::name_of(content));
    }
}

TeacherOutputs::TeacherOutputs(checkpoint::VerifiedFile const& file)
    : reader_(reader_of_outputs(file)) {
    auto const& shape = reader_.views().front().shape;
    info_ = {
        .name = outputs_view, .type = h5::Type::f32, .shape = {shape.begin() + 1, shape.end()}};
}

std::int64_t TeacherOutputs::hash_of(data::Dataset const& set) {
    return static_cast<std::int64_t>(data::Audit::hash_of(set) >> 1);
}

std::int64_t TeacherOutputs::samples() const {
    return static_cast<std::int64_t>(reader_.views().front().shape.front());
}

std::int64_t TeacherOutputs::hash() const {
    return record().integers.at(hash_of_outputs);
}

std::uint64_t hash_of_part(std::int64_t first, std::span<float const> outputs) {
    return hash64(concat(first, " ", hash64(std::as_bytes(outputs))));
}

void TeacherOutputs::require_values(comm::Communicator const& world) const {
    auto const refuse = [&](std::string const& why) {
        throw Error(ExitCode::data,
                    {concat(reader_.path().string(), " cannot be used"), why,
                     "Write the file again with lockstep evaluate DECK MODEL --outputs FILE.h5"});
    };
    constexpr char const* phase = "reading the outputs of a teacher";
    std::uint64_t hash = 0;
    comm::agree(world, phase, [&] {
        data::EvaluationPlan const plan{samples(), outputs_batch};
        auto const mine = plan.batches_of(world.rank(), world.size());
        auto const row = h5::elements(info_.shape);
        std::vector<float> values;
        for (std::int64_t batch = mine.first; batch < mine.first + mine.count; ++batch) {
            auto const part = plan.part(batch);
            values.resize(static_cast<std::uint64_t>(part.count) * row);
            reader_.read(outputs_array, static_cast<std::uint64_t>(part.first) * row,
                         std::as_writable_bytes(std::span(values)));
            if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) {
                refuse(concat("an output of samples ", part.first, " to ",
                              part.first + part.count - 1, " is not finite"));
            }
            hash += hash_of_part(part.first, values);
        }
    });
    hash = comm::all_reduce(world, hash, comm::Reduce::sum);
    comm::agree(world, phase, [&] {
        if (recorded(hash) != this->hash()) {
            refuse("its outputs are not those that its hash was recorded for");
        }
    });
}

void TeacherOutputs::read(std::span<std::int64_t const> samples, std::vector<float>& into) const {
    auto const row = h5::elements(info_.shape);
    into.resize(samples.size() * row);
    auto rest = std::as_writable_bytes(std::span(into));
    for (auto const sample : samples) {
        auto const bytes = rest.first(row * sizeof(float));
        reader_.read(outputs_array, static_cast<std::uint64_t>(sample) * row, bytes);
        rest = rest.subspan(bytes.size());
    }
}

} // namespace lockstep::train
