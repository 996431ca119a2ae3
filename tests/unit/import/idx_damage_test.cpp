#include "data/inspect.hpp"
#include "import/idx_source.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/data/dataset.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "catch.hpp"
#include "importing.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::data;
using namespace lockstep::import;

namespace {

std::string header(std::vector<std::uint32_t> const& shape) {
    std::string text{'\0', '\0', '\x08', static_cast<char>(shape.size())};
    for (auto const extent : shape) {
        for (int shift = 24; shift >= 0; shift -= 8) {
            text.push_back(static_cast<char>((extent >> shift) & 0xff));
        }
    }
    return text;
}

void write_bytes(std::filesystem::path const& path, std::string const& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

/// The deflated form of "labels 0 1 2", as `printf … | gzip -n` writes it.
std::string gzipped_labels() {
    auto const bytes = std::to_array<unsigned char>({0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00,
                                                     0x00, 0x03, 0x63, 0x60, 0xe0, 0x60, 0x64, 0x60,
                                                     0x60, 0x60, 0x66, 0x60, 0x64, 0x02, 0x00, 0xe9,
                                                     0xec, 0x55, 0xf9, 0x0b, 0x00, 0x00, 0x00});
    return {bytes.begin(), bytes.end()};
}

/// Imports `images` and `labels` as a pair; "" or the error's text.
std::string outcome(test::ScratchDir const& scratch, std::string const& images,
                    std::string const& labels) {
    write_bytes(scratch / "images", images);
    write_bytes(scratch / "labels", labels);
    try {
        auto const pair = (scratch / "images").string() + "," + (scratch / "labels").string();
        test::import_to(scratch / "set.h5", *idx_source({pair, {}}));
    } catch (Error const& error) {
        CHECK(error.code() == ExitCode::data);
        CHECK_FALSE(std::filesystem::exists(scratch / "set.h5"));
        return error.what();
    }
    return "";
}

} // namespace

TEST_CASE("IDX files whose end is not where the header says are refused") {
    test::ScratchDir const scratch;
    auto const images = header({3, 1, 2}) + "abcdef";
    auto const labels = header({3}) + std::string{'\0', '\1', '\2'};
    CHECK(outcome(scratch, images, labels.substr(0, 10)).find("is 1 bytes shorter") !=
          std::string::npos);
    CHECK(outcome(scratch, images + "g", labels).find("more than its header") != std::string::npos);
    CHECK(outcome(scratch, header({4000000000, 28, 28}), labels).find("of its size can") !=
          std::string::npos);
    CHECK(outcome(scratch, header({}), labels).find("0 dimensions") != std::string::npos);
    CHECK(outcome(scratch, images, labels).empty());
}

TEST_CASE("a gzipped IDX file with any changed or missing byte is refused") {
    test::ScratchDir const scratch;
    auto const images = header({3, 1, 2}) + "abcdef";
    auto const whole = gzipped_labels();
    REQUIRE(outcome(scratch, images, whole).empty());
    CHECK(Dataset({.files = (scratch / "set.h5").string()}).class_counts() ==
          std::vector<std::int64_t>{1, 1, 1});
    std::filesystem::remove(scratch / "set.h5");
    // Bytes 4 to 9 of the header are a time, a system and hints: of no consequence.
    for (std::size_t at = 10; at < whole.size(); ++at) {
        CAPTURE(at);
        auto changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ 0x01);
        CHECK_FALSE(outcome(scratch, images, changed).empty());
        CHECK_FALSE(outcome(scratch, images, whole.substr(0, at)).empty());
    }
}

TEST_CASE("a validation share takes that part of every class, and no image is lost or doubled") {
    test::ScratchDir const scratch;
    std::string images = header({100, 1, 2});
    std::string labels = header({100});
    for (char i = 0; i < 100; ++i) { // image i holds i, i; label 0 for 60 of them, 1 for 40
        images += std::string(2, i);
        labels += static_cast<char>(i % 5 < 3 ? 0 : 1);
    }
    for (std::string const set : {"train", "t10k"}) {
        write_bytes(scratch / (set + "-images-idx3-ubyte"), images);
        write_bytes(scratch / (set + "-labels-idx1-ubyte"), labels);
    }
    auto const report = test::import_to(scratch / "out", *idx_source({scratch.path(), {"a", "b"}}),
                                        {.out = {}, .split = {.shares = {0.9, 0.1}}});
    REQUIRE(report.files.size() == 3);
    Dataset const train({.files = (scratch / "out/train.h5").string()});
    Dataset const validation({.files = (scratch / "out/validation.h5").string()});
    CHECK(train.class_counts() == std::vector<std::int64_t>{54, 36});
    CHECK(validation.class_counts() == std::vector<std::int64_t>{6, 4});
    auto const info = describe(scratch / "out/train.h5");
    CHECK(describe(scratch / "out/test.h5").mean == info.mean);
    CHECK(describe(scratch / "out/validation.h5").std == info.std);
    std::vector<int> seen;
    for (auto const* set : {&train, &validation}) {
        std::vector<std::int64_t> all(static_cast<std::size_t>(set->samples()));
        std::iota(all.begin(), all.end(), 0);
        std::vector<float> values(2 * all.size());
        std::vector<std::int64_t> targets(all.size());
        set->read_inputs(all, values);
        set->read_targets(all, targets);
        for (std::size_t i = 0; i < all.size(); ++i) {
            auto const value = values[2 * i] * info.std[0] + info.mean[0];
            seen.push_back(static_cast<int>(std::lround(value * 255)));
            CHECK(targets[i] == (seen.back() % 5 < 3 ? 0 : 1));
        }
    }
    std::sort(seen.begin(), seen.end());
    std::vector<int> every(100);
    std::iota(every.begin(), every.end(), 0);
    CHECK(seen == every);
}
