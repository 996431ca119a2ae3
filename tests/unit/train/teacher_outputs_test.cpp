#include "base/text.hpp"
#include "batches/outputs_format.hpp"
#include "batches/teacher_outputs.hpp"
#include "checkpoint/writer.hpp"

#include <limits>
#include <numeric>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

namespace {

constexpr std::uint64_t samples = 300; // in three parts
constexpr std::uint64_t row = 2;

std::vector<float> counted() {
    std::vector<float> values(samples * row);
    std::iota(values.begin(), values.end(), 1.0F);
    return values;
}

std::int64_t hash_of(std::vector<float> const& values) {
    constexpr auto part = static_cast<std::uint64_t>(train::outputs_batch);
    std::uint64_t hash = 0;
    for (std::uint64_t first = 0; first < samples; first += part) {
        hash += train::hash_of_part(
            static_cast<std::int64_t>(first),
            std::span(values).subspan(first * row, std::min(part, samples - first) * row));
    }
    return train::recorded(hash);
}

checkpoint::Record record_for(std::int64_t hash) {
    checkpoint::Record record;
    record.integers = {{train::hash_of_data, 1}, {train::hash_of_outputs, hash}};
    record.notes = {{train::task_note, "classification"}};
    return record;
}

std::filesystem::path written(test::ScratchDir const& scratch, std::vector<float> const& values,
                              checkpoint::Record record) {
    checkpoint::Snapshot snapshot;
    snapshot.arrays = {{train::outputs_array, h5::Type::f32, values.size()}};
    snapshot.views = {{train::outputs_view, train::outputs_array, 0, {samples, row}}};
    snapshot.parts = {{{0, std::as_bytes(std::span(values))}}};
    snapshot.record = std::move(record);
    return checkpoint::write(comm::Communicator::self(), snapshot, scratch / "o.h5", "1").path;
}

} // namespace

TEST_CASE("outputs other than the recorded ones, and those that are not finite, are refused") {
    test::ScratchDir const scratch;
    auto const self = comm::Communicator::self();
    auto const refused = [&](std::vector<float> const& values, std::int64_t hash, char const* why) {
        auto const path = written(scratch, values, record_for(hash));
        auto const error =
            test::error_of([&] { train::TeacherOutputs(path).require_values(self); });
        return error.code() == ExitCode::data && test::says(error, why);
    };
    auto const right = counted();
    train::TeacherOutputs const outputs(written(scratch, right, record_for(hash_of(right))));
    CHECK_NOTHROW(outputs.require_values(self));
    for (std::size_t const at : {std::size_t{0}, right.size() - 1}) {
        auto other = right;
        other[at] += 1;
        CHECK(refused(other, hash_of(right), "not those that its hash was recorded for"));
        other[at] = std::numeric_limits<float>::quiet_NaN();
        CHECK(refused(other, hash_of(other), "is not finite"));
    }
}

TEST_CASE("a file that does not say whose outputs it holds is no file of outputs") {
    test::ScratchDir const scratch;
    auto const right = counted();
    for (auto const* const name : {train::hash_of_data, train::hash_of_outputs, train::task_note}) {
        CAPTURE(name);
        auto record = record_for(hash_of(right));
        record.integers.erase(name);
        record.notes.erase(name);
        auto const path = written(scratch, right, record);
        CHECK(test::error_of([&] { train::TeacherOutputs{path}; }).code() == ExitCode::usage);
    }
}
