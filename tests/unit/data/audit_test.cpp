// All bytes of data sets are looked at once: checksums, and whether they are those of before.

#include "base/clock.hpp"
#include "base/file.hpp"
#include "data/audit.hpp"
#include "import/hdf5_source.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <sys/resource.h>

#include "catch.hpp"
#include "error_of.hpp"
#include "importing.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::data;
using namespace lockstep::import;

namespace {

constexpr std::uint64_t audited_samples = 5000;
constexpr std::uint64_t values = 500; ///< of a sample: several blocks in all

void write(std::filesystem::path const& path, std::uint64_t rows_of_chunk = 0) {
    std::vector<float> inputs(audited_samples * values);
    std::iota(inputs.begin(), inputs.end(), 0.0F);
    std::vector<std::int64_t> const labels(audited_samples, 1);
    auto file = h5::File::create(path);
    if (rows_of_chunk > 0) {
        file.create_dataset("inputs", h5::Type::f32, {audited_samples, values},
                            {.chunk_rows = rows_of_chunk, .deflate = 1});
    } else {
        file.create_dataset("inputs", h5::Type::f32, {audited_samples, values});
    }
    file.create_dataset("targets", h5::Type::i64, {audited_samples});
    file.write("inputs", h5::Type::f32, inputs);
    file.write("targets", h5::Type::i64, labels);
    file.close();
}

Dataset opened(std::filesystem::path const& path) {
    return Dataset({.files = path.string()});
}

/// What `work` throws, or an error of no kind.
template <class Work>
Error failure_of(Work const& work) {
    try {
        work();
    } catch (Error const& error) {
        return error;
    }
    return {ExitCode::ok, {}};
}

/// The record of a walk that has seen everything.
std::string full_record(Dataset const& set) {
    Audit audit({&set});
    audit.start();
    audit.finish();
    return audit.record();
}

void flip(std::filesystem::path const& path, std::uint64_t at) {
    auto const time = std::filesystem::last_write_time(path);
    auto const file = File::open_write(path);
    std::array<std::byte, 1> byte{};
    file.read_at(at, byte);
    byte[0] ^= std::byte{0x10};
    file.write_at(at, byte);
    std::filesystem::last_write_time(path, time);
}

std::uint64_t place_of(std::filesystem::path const& path, std::uint64_t sample) {
    return h5::File::open(path).storage("inputs").offset + sample * values * sizeof(float);
}

/// What comparing with a record, and then walking, come upon.
Error found(std::filesystem::path const& path, std::string const& record) {
    auto const set = opened(path);
    Audit audit({&set});
    return failure_of([&] {
        audit.compare(record);
        audit.start();
        audit.finish();
    });
}

} // namespace

TEST_CASE("a set is the same under another name and time, and after a walk of any length") {
    test::ScratchDir const scratch;
    for (std::uint64_t const chunk : {0, 64}) {
        write(scratch / "a.h5", chunk);
        auto const set = opened(scratch / "a.h5");
        auto const begun = Audit({&set}).record();
        auto const record = full_record(set);
        CHECK(begun != record);
        std::filesystem::copy_file(scratch / "a.h5", scratch / "b.h5",
                                   std::filesystem::copy_options::overwrite_existing);
        CHECK(found(scratch / "b.h5", record).code() == ExitCode::ok);
        CHECK(found(scratch / "b.h5", begun).code() == ExitCode::ok);
        CHECK(found(scratch / "b.h5", "").code() == ExitCode::ok);
    }
}

TEST_CASE("one changed value is found, by its time, by its sample or by the walk") {
    test::ScratchDir const scratch;
    write(scratch / "a.h5");
    auto const record = full_record(opened(scratch / "a.h5"));
    for (std::uint64_t const sample : {std::uint64_t{0}, std::uint64_t{17}, audited_samples - 1}) {
        write(scratch / "a.h5");
        flip(scratch / "a.h5", place_of(scratch / "a.h5", sample) + 2);
        auto const error = found(scratch / "a.h5", record);
        CHECK(error.code() == ExitCode::usage);
        CHECK(test::says(error, "dataset inputs of"));
        CHECK(test::says(error, "a.h5"));
    }
}

TEST_CASE("a changed chunk is found, and of several files the right one is named") {
    test::ScratchDir const scratch;
    auto const names = (scratch / "a.h5").string() + "," + (scratch / "b.h5").string();
    write(scratch / "a.h5", 64);
    write(scratch / "b.h5", 64);
    auto const record = full_record(Dataset({.files = names}));
    flip(scratch / "b.h5", h5::File::open(scratch / "b.h5").storage("inputs").chunks.at(3).at + 9);
    Dataset const set({.files = names});
    Audit audit({&set});
    auto const error = test::error_of([&] {
        audit.compare(record);
        audit.finish();
    });
    CHECK(error.code() == ExitCode::usage);
    CHECK(test::says(error, "b.h5"));
}

TEST_CASE("a wrong checksum of a file of ours is found in every block, and outside of them") {
    test::ScratchDir const scratch;
    write(scratch / "theirs.h5");
    test::import_to(scratch / "ours.h5", *hdf5_source({.source = scratch / "theirs.h5"}));
    auto const set = opened(scratch / "ours.h5");
    auto const of_walk = [&] {
        return failure_of([&] {
            Audit audit({&set});
            audit.start();
            audit.finish();
        });
    };
    CHECK(of_walk().code() == ExitCode::ok);
    auto const begin = place_of(scratch / "ours.h5", 0);
    for (std::uint64_t const block : {0, 4, 9}) {
        flip(scratch / "ours.h5", begin + (block << 20U) + 5);
        auto const error = of_walk();
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, "dataset inputs, block " + std::to_string(block)));
        flip(scratch / "ours.h5", begin + (block << 20U) + 5);
    }
    auto const text = read_text(scratch / "ours.h5");
    flip(scratch / "ours.h5", text.find("xxh3-64"));
    CHECK(of_walk().code() == ExitCode::data);
}

TEST_CASE("the walk runs with the least priority, so that it takes nothing from training") {
    test::ScratchDir const scratch;
    write(scratch / "a.h5");
    auto const set = opened(scratch / "a.h5");
    int niceness = 0;
    Stopwatch const watch;
    while (niceness < 19 &&
           watch.seconds() < 60) { // a walk may end before it is seen, or begin late
        Audit audit({&set});
        audit.start();
        Stopwatch const turn;
        while (niceness < 19 && turn.seconds() < 0.2) {
            for (auto const& thread : std::filesystem::directory_iterator("/proc/self/task")) {
                auto const number = std::stoul(thread.path().filename().string());
                niceness =
                    std::max(niceness, ::getpriority(PRIO_PROCESS, static_cast<id_t>(number)));
            }
        }
    }
    CHECK(niceness == 19);
}

TEST_CASE("changed weights are found, and of several files the right one is named") {
    test::ScratchDir const scratch;
    auto const weigh = [&](std::string const& name, double first) {
        auto const path = scratch / name;
        std::vector<double> weights(audited_samples, 1.0);
        weights[3] = first;
        auto file = h5::File::create(path);
        std::vector<float> const inputs(audited_samples, 2.0F);
        file.create_dataset("inputs", h5::Type::f32, {audited_samples, 1});
        file.create_dataset("targets", h5::Type::i64, {audited_samples});
        file.create_dataset("importance", h5::Type::f64, {audited_samples});
        file.write("inputs", h5::Type::f32, inputs);
        file.write("targets", h5::Type::i64, std::vector<std::int64_t>(audited_samples, 1));
        file.write("importance", h5::Type::f64, weights);
        file.close();
        return path.string();
    };
    auto const names = weigh("a.h5", 1) + "," + weigh("b.h5", 1);
    auto const weighted = [&] { return Dataset({.files = names, .weights = "importance"}); };
    auto const before = weighted();
    auto const record = full_record(before);
    CHECK(failure_of([&] { Audit({&before}).compare(record); }).code() == ExitCode::ok);
    weigh("b.h5", 2);
    auto const set = weighted();
    auto const error = test::error_of([&] { Audit({&set}).compare(record); });
    CHECK(error.code() == ExitCode::usage);
    CHECK(test::says(error, "dataset importance of " + (scratch / "b.h5").string()));
    // A share of the audited_samples has its own weights; older records tell nothing of them.
    auto const whole = record.substr(0, record.find("weights "));
    CHECK(failure_of([&] { Audit({&set}).compare(whole); }).code() == ExitCode::ok);
    auto const [learnt, measured] = set.divided(20, 1);
    auto const of_share = full_record(learnt);
    CHECK(failure_of([&] { Audit({&learnt}).compare(of_share); }).code() == ExitCode::ok);
}

TEST_CASE("hosts that see the same files read each byte once, and know together what one knows") {
    test::ScratchDir const scratch;
    std::string names;
    for (char const* const name : {"a.h5", "b.h5", "c.h5"}) {
        write(scratch / name);
        names += (names.empty() ? "" : ",") + (scratch / name).string();
    }
    Dataset const set({.files = names});
    auto const record = full_record(set);
    auto const walked = [&](Audit& audit, Audit& other) {
        audit.finish();
        other.finish();
        CHECK(audit.known() != other.known());
        audit.learn(other.known());
        audit.require_good();
    };
    {
        Audit first({&set}, {0, 2});
        Audit second({&set}, {1, 2});
        CHECK(first.bytes() + second.bytes() == Audit({&set}).bytes());
        CHECK(first.bytes() > 0);
        CHECK(second.bytes() > 0);
        walked(first, second);
        CHECK(first.record() == record);
    }
    // What only the other host looks at has changed.
    for (char const* const name : {"a.h5", "b.h5"}) {
        flip(scratch / name, place_of(scratch / name, 17));
        Audit first({&set}, {0, 2});
        Audit second({&set}, {1, 2});
        auto const error = failure_of([&] {
            first.compare(record);
            walked(first, second);
        });
        CHECK(error.code() == ExitCode::usage);
        CHECK(test::says(error, name));
        flip(scratch / name, place_of(scratch / name, 17));
    }
}
