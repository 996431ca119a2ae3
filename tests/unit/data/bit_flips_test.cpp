#include "base/file.hpp"
#include "base/text.hpp"
#include "data/verify.hpp"
#include "import/hdf5_source.hpp"
#include "lockstep/base/error.hpp"

#include <array>
#include <vector>

#include "catch.hpp"
#include "importing.hpp"
#include "scratch_dir.hpp"
#include "small_set.hpp"

using namespace lockstep;
using namespace lockstep::data;
using namespace lockstep::import;

namespace {

/// Whether `verify` tells that the file is not what was imported.
bool finds_damage(std::filesystem::path const& path) {
    try {
        return !verify(path).empty();
    } catch (Error const& error) {
        return error.code() == ExitCode::data;
    }
}

} // namespace

TEST_CASE("a flipped bit anywhere in a data set file is found") {
    test::ScratchDir const scratch;
    test::write_small_set(scratch / "source.h5", 50);
    auto const path = scratch / "set.h5";
    test::import_to(path, *hdf5_source({.source = scratch / "source.h5"}));
    REQUIRE(verify(path).empty());
    auto const raw = lockstep::File::open_write(path);
    std::vector<std::uint64_t> missed;
    // One bit of every byte.
    for (std::uint64_t at = 0; at < raw.size(); ++at) {
        std::array<std::byte, 1> byte{};
        raw.read_at(at, byte);
        auto const before = byte;
        byte[0] ^= std::byte{1} << static_cast<int>(at % 7);
        raw.write_at(at, byte);
        if (!finds_damage(path)) {
            missed.push_back(at);
        }
        raw.write_at(at, before);
    }
    CAPTURE(missed);
    CHECK(missed.empty());
    CHECK(verify(path).empty());
}

TEST_CASE("bytes that were added or cut off are found") {
    test::ScratchDir const scratch;
    test::write_small_set(scratch / "source.h5", 50);
    auto const path = scratch / "set.h5";
    test::import_to(path, *hdf5_source({.source = scratch / "source.h5"}));
    auto const size = std::filesystem::file_size(path);
    std::filesystem::resize_file(path, size + 1);
    CHECK(finds_damage(path));
    std::filesystem::resize_file(path, size - 1);
    CHECK(finds_damage(path));
}

TEST_CASE("a file without checksums cannot be verified, which is said") {
    test::ScratchDir const scratch;
    test::write_small_set(scratch / "source.h5", 5);
    CHECK_THROWS_WITH(verify(scratch / "source.h5"),
                      Catch::Contains("has no dataset named checksums/rest"));
}
