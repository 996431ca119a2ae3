// Files with changed bytes, by the thousand. LOCKSTEP_FUZZ_INPUTS sets their number,
// LOCKSTEP_FUZZ_SEED what they are.

#include "base/file.hpp"
#include "base/random.hpp"
#include "h5/file.hpp"
#include "lockstep/data/dataset.hpp"

#include <hdf5.h>

#include <array>
#include <numeric>

#include "catch.hpp"
#include "fuzzing.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::data;
using test::Outcome;

namespace {

constexpr std::int64_t samples = 40;
constexpr std::uint64_t values_per_sample = 60;

float value_at(std::int64_t sample, std::uint64_t place) {
    return static_cast<float>(
        mixed(static_cast<std::uint64_t>(sample) * values_per_sample + place) % 1000);
}

/// Chunks with a checksum each, compressed or not; ragged rows and labels beside them.
void write_checked(std::filesystem::path const& path, bool deflated) {
    std::array<hsize_t, 2> const shape{samples, values_per_sample};
    std::array<hsize_t, 2> const chunk{7, values_per_sample};
    std::vector<float> all;
    std::vector<std::int64_t> labels;
    std::vector<std::int64_t> offsets{0};
    for (std::int64_t i = 0; i < samples; ++i) {
        for (std::uint64_t j = 0; j < values_per_sample; ++j) {
            all.push_back(value_at(i, j));
        }
        labels.push_back(i % 3);
        offsets.push_back(offsets.back() + i % 4);
    }
    {
        auto file = h5::File::create(path);
        file.create_dataset("targets", h5::Type::i64, {samples});
        file.write("targets", h5::Type::i64, labels);
        file.create_dataset("rows_offsets", h5::Type::i64, {samples + 1});
        file.write("rows_offsets", h5::Type::i64, offsets);
        std::vector<float> const rows(static_cast<std::size_t>(offsets.back()), 1.0F);
        file.create_dataset("rows", h5::Type::f32, {rows.size()});
        file.write("rows", h5::Type::f32, rows);
        file.create_dataset("weights", h5::Type::f64, {samples});
        file.write("weights", h5::Type::f64, std::vector<double>(samples, 0.5));
        file.close();
    }
    hid_t const file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t const space = H5Screate_simple(2, shape.data(), nullptr);
    hid_t const form = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(form, 2, chunk.data());
    if (deflated) {
        H5Pset_shuffle(form);
        H5Pset_deflate(form, 4);
    }
    H5Pset_fletcher32(form);
    hid_t const inputs =
        H5Dcreate2(file, "inputs", H5T_IEEE_F32LE, space, H5P_DEFAULT, form, H5P_DEFAULT);
    H5Dwrite(inputs, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, all.data());
    H5Dclose(inputs);
    H5Pclose(form);
    H5Sclose(space);
    H5Fclose(file);
}

/// The samples, with everything that a training set can have.
Outcome read_all(std::filesystem::path const& path) {
    Dataset const set({.files = path.string(), .inputs = "inputs, rows", .weights = "weights"});
    Batch batch;
    Scratch scratch;
    batch.indices.resize(static_cast<std::size_t>(std::min(set.samples(), samples)));
    std::iota(batch.indices.begin(), batch.indices.end(), 0);
    set.read(batch, scratch);
    if (set.samples() != samples || batch.fields[0].reals.size() != samples * values_per_sample) {
        return Outcome::wrong;
    }
    for (std::size_t i = 0; i < batch.fields[0].reals.size(); ++i) {
        if (batch.fields[0].reals[i] !=
            value_at(static_cast<std::int64_t>(i / values_per_sample), i % values_per_sample)) {
            return Outcome::wrong;
        }
    }
    return Outcome::right;
}

int outcome_of(std::filesystem::path const& path) {
    return test::outcome_of([&] { return read_all(path); });
}

/// Changes some bytes in [first, first + count), or cuts the file there.
void mutate(std::filesystem::path const& path, std::uint64_t first, std::uint64_t count,
            std::uint64_t key) {
    auto const file = File::open_write(path);
    auto const kind = mixed(key) % 8;
    if (kind == 0) {
        std::filesystem::resize_file(path, first + mixed(key ^ 1) % count);
        return;
    }
    for (std::uint64_t i = 0; i < kind; ++i) {
        auto const at = first + mixed(key ^ mixed(i + 2)) % count;
        std::array<std::byte, 1> byte{};
        file.read_at(at, byte);
        byte[0] ^= static_cast<std::byte>(mixed(key + i) % 255 + 1);
        file.write_at(at, byte);
    }
}

} // namespace

TEST_CASE("changed bytes of chunks are never taken for samples") {
    test::ScratchDir const scratch;
    auto const inputs = test::fuzz_inputs(300) / 2;
    auto const seed = test::fuzz_seed();
    auto const path = scratch / "a.h5";
    for (std::uint64_t i = 0; i < inputs; ++i) {
        write_checked(path, i % 2 == 0);
        REQUIRE((i > 1 || outcome_of(path) == static_cast<int>(Outcome::right)));
        auto const storage = h5::File::open(path).storage("inputs");
        auto const& chunk = storage.chunks[mixed(seed + i) % storage.chunks.size()];
        mutate(path, chunk.at, chunk.bytes, mixed(seed ^ mixed(i)));
        CAPTURE(seed, i);
        CHECK(outcome_of(path) == static_cast<int>(Outcome::refused));
    }
}

TEST_CASE("changed bytes anywhere neither crash nor hang") {
    test::ScratchDir const scratch;
    auto const inputs = test::fuzz_inputs(300) / 2;
    auto const seed = test::fuzz_seed();
    auto const path = scratch / "a.h5";
    for (std::uint64_t i = 0; i < inputs; ++i) {
        write_checked(path, i % 2 == 0);
        mutate(path, 0, std::filesystem::file_size(path), mixed(seed ^ mixed(~i)));
        CAPTURE(seed, i);
        auto const outcome = outcome_of(path);
        CHECK(outcome > 0);
        CHECK(outcome != static_cast<int>(Outcome::other));
    }
}
