// A data set that all ranks open together is the one that a rank opens alone, whatever its files.

#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/gather_shared.hpp"
#include "data/audit.hpp"
#include "h5/file.hpp"
#include "lockstep/data/dataset.hpp"

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "catch.hpp"
#include "error_of.hpp"
#include "put.hpp"
#include "scratch_dir.hpp"
#include "world.hpp"

using namespace lockstep;
using namespace lockstep::data;

namespace {

/// How file `i` of a set is written, and how the set is opened.
struct Kind {
    std::string name;
    std::function<void(h5::File& file, int i, int rows)> write;
    DatasetOptions options{};
};

std::vector<std::int64_t> labels_of(int i, int rows) {
    std::vector<std::int64_t> labels(static_cast<std::size_t>(rows));
    std::iota(labels.begin(), labels.end(), i);
    for (auto& label : labels) {
        label %= 11;
    }
    return labels;
}

std::vector<float> values_of(int i, int count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    std::iota(values.begin(), values.end(), 1000.0F * static_cast<float>(i));
    return values;
}

void put_plain(h5::File& file, int i, int rows, h5::Layout const& layout) {
    auto const count = static_cast<std::uint64_t>(rows);
    file.create_dataset("inputs", h5::Type::f32, {count, 3}, layout);
    file.write("inputs", h5::Type::f32, values_of(i, 3 * rows));
    file.create_dataset("targets", h5::Type::i64, {count}, layout);
    file.write("targets", h5::Type::i64, labels_of(i, rows));
}

void put_ragged(h5::File& file, int i, int rows) {
    std::vector<std::int32_t> offsets{0};
    for (int row = 0; row < rows; ++row) {
        offsets.push_back(offsets.back() + (row + i) % 4);
    }
    auto const tokens = static_cast<std::uint64_t>(offsets.back());
    test::put<float>(file, "inputs", h5::Type::f32, {tokens + 1},
                     values_of(i, static_cast<int>(tokens) + 1));
    offsets.back() += 1;
    test::put<std::int32_t>(file, "inputs_offsets", h5::Type::i32, {offsets.size()}, offsets);
    test::put<std::int64_t>(file, "targets", h5::Type::i64, {static_cast<std::uint64_t>(rows)},
                            labels_of(i, rows));
}

/// The inputs are a view of another dataset, which HDF5 alone can read.
void put_view(h5::File& file, int i, int rows) {
    auto const count = static_cast<std::uint64_t>(rows);
    test::put<float>(file, "all", h5::Type::f32, {3 * count}, values_of(i, 3 * rows));
    file.create_view({.path = "inputs", .source = "all", .first = 0, .shape = {count, 3}},
                     h5::Type::f32);
    test::put<std::int64_t>(file, "targets", h5::Type::i64, {count}, labels_of(i, rows));
}

std::vector<Kind> kinds() {
    return {{"contiguous", [](auto& file, int i, int rows) { put_plain(file, i, rows, {}); }},
            {"chunked, every second file in chunks of another size",
             [](auto& file, int i, int rows) {
                 put_plain(file, i, rows,
                           {.chunk_rows = static_cast<std::uint64_t>(2 + i % 2), .deflate = 1});
             }},
            {"classes and scale named",
             [](auto& file, int i, int rows) {
                 put_plain(file, i, rows, {});
                 std::vector<std::string> names;
                 for (int k = 0; k < 11; ++k) {
                     names.push_back("class " + std::to_string(k));
                 }
                 file.set_attribute("/", "classes", names);
                 file.set_attribute("/", "mean", std::vector<double>{0.5});
                 file.set_attribute("/", "std", std::vector<double>{2.0});
             }},
            {"ragged", [](auto& file, int i, int rows) { put_ragged(file, i, rows); }},
            {"views", [](auto& file, int i, int rows) { put_view(file, i, rows); }},
            {"weights",
             [](auto& file, int i, int rows) {
                 put_plain(file, i, rows, {});
                 test::put<float>(file, "importance", h5::Type::f32,
                                  {static_cast<std::uint64_t>(rows)}, values_of(i + 1, rows));
             },
             {.files = {}, .weights = "importance"}},
            {"a file per sample",
             [](auto& file, int i, int) {
                 test::put<float>(file, "inputs", h5::Type::f32, {3, 2}, values_of(i, 6));
                 test::put<std::int64_t>(file, "targets", h5::Type::i64, {1}, labels_of(i, 1));
             },
             {.files = {}, .sample_per_file = true}}};
}

void write_set(std::filesystem::path const& directory, Kind const& kind, int files) {
    for (int i = 0; i < files; ++i) {
        auto file = h5::File::create(directory / ("part-" + std::to_string(100 + i) + ".h5"));
        kind.write(file, i, 5 + i * 7 % 6);
        file.close();
    }
}

void require_equal(Dataset const& alone, Dataset const& together) {
    REQUIRE(together.samples() == alone.samples());
    CHECK(together.fingerprint() == alone.fingerprint());
    CHECK(together.class_counts() == alone.class_counts());
    CHECK(together.class_names() == alone.class_names());
    CHECK(together.declared_classes() == alone.declared_classes());
    CHECK(together.mean() == alone.mean());
    CHECK(together.std() == alone.std());
    CHECK(together.inputs() == alone.inputs());
    CHECK(together.targets() == alone.targets());
    CHECK(together.remarks() == alone.remarks());
    CHECK(together.weight_hashes(4) == alone.weight_hashes(4));
    CHECK(Audit::hash_of(together) == Audit::hash_of(alone));
    CHECK(together.blocks().samples == alone.blocks().samples);
    std::vector<std::int64_t> indices(static_cast<std::size_t>(alone.samples()));
    for (std::size_t i = 0; i < indices.size(); ++i) {
        indices[i] = static_cast<std::int64_t>(i * 7 % indices.size());
    }
    Batch ours;
    Batch theirs;
    ours.indices = theirs.indices = indices;
    Scratch scratch;
    together.read(ours, scratch);
    alone.read(theirs, scratch);
    for (std::size_t f = 0; f < theirs.fields.size(); ++f) {
        CHECK(ours.fields[f].reals == theirs.fields[f].reals);
        CHECK(ours.fields[f].wholes == theirs.fields[f].wholes);
        CHECK(ours.fields[f].offsets == theirs.fields[f].offsets);
    }
}

} // namespace

TEST_CASE("what is gathered lies in order on every host, whatever its length") {
    auto const& world = test::world();
    auto const bytes_of = [](int rank) {
        return std::vector<std::byte>(static_cast<std::size_t>(rank * rank % 7 * 5),
                                      static_cast<std::byte>(rank + 1));
    };
    for (int const neighbours : {1, 2, 3}) {
        auto const gathered = comm::gather_shared(world, bytes_of(world.rank()),
                                                  comm::HostLayout::of_neighbours(neighbours));
        REQUIRE(gathered.of_rank.size() == static_cast<std::size_t>(world.size()));
        for (int rank = 0; rank < world.size(); ++rank) {
            auto const there = gathered.of_rank[static_cast<std::size_t>(rank)];
            CHECK(std::ranges::equal(there, bytes_of(rank)));
        }
        comm::barrier(world); // before another round
    }
}

TEST_CASE("files that ranks share out make the set that one rank opens") {
    auto const& world = test::world();
    for (auto const& kind : kinds()) {
        for (int const files : {1, 9}) {
            CAPTURE(kind.name, files);
            test::ScratchDir const scratch(world);
            comm::agree(world, "write", [&] {
                if (world.is_root()) {
                    write_set(scratch / "", kind, files);
                }
            });
            auto options = kind.options;
            options.files = (scratch / "*.h5").string();
            auto const together = Dataset::open_together(options, world);
            require_equal(Dataset(options), together);
        }
    }
}

TEST_CASE("a bad file is the same error for all, as for one rank alone") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    auto const plain = kinds().front();
    auto const spoil = [&](int which) {
        comm::agree(world, "write", [&] {
            if (world.is_root()) {
                write_set(scratch / "", plain, 6);
                auto file = h5::File::create(scratch / ("part-10" + std::to_string(which) + ".h5"));
                test::put<float>(file, "inputs", h5::Type::f32, {4, 2}, values_of(0, 8));
                test::put<std::int64_t>(file, "targets", h5::Type::i64, {4}, labels_of(0, 4));
                file.close();
            }
        });
    };
    DatasetOptions const options{.files = (scratch / "*.h5").string()};
    for (int const which : {1, 3, 5}) {
        spoil(which);
        auto const alone = test::error_of([&] { Dataset{options}; });
        auto const together = test::error_of([&] { Dataset::open_together(options, world); });
        CHECK(together.code() == alone.code());
        CHECK(together.text().what == alone.text().what);
        CHECK(together.text().why == alone.text().why);
        comm::barrier(world); // before files are written again
    }
    CHECK(test::code_of([&] {
              Dataset::open_together({.files = (scratch / "none-*.h5").string()}, world);
          }) == ExitCode::no_input);
    CHECK(test::code_of([&] { Dataset::open_together({.files = " "}, world); }) == ExitCode::usage);
}
