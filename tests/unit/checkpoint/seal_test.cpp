#include "lockstep/base/error.hpp"
#include "lockstep/checkpoint/seal.hpp"

#include <vector>

#include "catch.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using checkpoint::Seal;

TEST_CASE("a seal is read back as it was written") {
    auto seal = Seal::for_length(1'000'000);
    for (std::uint64_t block = 0; block < seal.hashes.size(); ++block) {
        seal.hashes[block] = 0x0123456789abcdefULL * (block + 1);
    }
    CHECK(Seal::decoded(seal.encoded(), "file") == seal);
}

TEST_CASE("blocks cover all bytes behind the seal, and at most 480 do") {
    for (std::uint64_t const length :
         {std::uint64_t{4096}, std::uint64_t{4097}, std::uint64_t{69632}, std::uint64_t{69633},
          std::uint64_t{4096} + 480 * 65536, std::uint64_t{4097} + 480 * 65536,
          std::uint64_t{3} << 40}) {
        CAPTURE(length);
        auto const seal = Seal::for_length(length);
        CHECK(seal.hashes.size() <= 480);
        std::uint64_t next = 4096;
        for (std::uint64_t block = 0; block < seal.hashes.size(); ++block) {
            CHECK(seal.first_byte(block) == next);
            next = seal.last_byte(block) + 1;
        }
        CHECK(next == length);
    }
    CHECK(Seal::for_length(4096 + 480 * 65536).block_bytes == 65536);
    CHECK(Seal::for_length(4097 + 480 * 65536).block_bytes == 131072);
}

TEST_CASE("a changed bit anywhere in the seal is an error") {
    auto seal = Seal::for_length(1'000'000);
    seal.hashes[3] = 42;
    auto bytes = seal.encoded();
    std::vector<std::size_t> missed;
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
        auto const mask = std::byte{1} << static_cast<int>(bit % 8);
        bytes[bit / 8] ^= mask;
        try {
            Seal::decoded(bytes, "file");
            missed.push_back(bit);
        } catch (Error const& error) {
            if (error.code() != ExitCode::data) {
                missed.push_back(bit);
            }
        }
        bytes[bit / 8] ^= mask;
    }
    CHECK(missed.empty());
    CHECK_NOTHROW(Seal::decoded(bytes, "file"));
}

TEST_CASE("what is read back is compared, and blocks that lie wholly in it are hashed") {
    test::ScratchDir const scratch;
    auto const file = File::create(scratch / "f");
    std::vector<std::byte> bytes(3 << 20); // more than is read at once
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        bytes[at] = static_cast<std::byte>(at * 2654435761U >> 13);
    }
    constexpr std::uint64_t offset = 10'000; // in the middle of a block
    file.write_at(offset, bytes);
    auto seal = Seal::for_length(offset + bytes.size() + 5'000);
    file.write_at(seal.length - 1, std::span(bytes).first(1));
    std::vector<std::uint64_t> known(seal.hashes.size(), 0);
    CHECK(checkpoint::read_back(file, offset, bytes, seal, known) == bytes.size());
    for (std::uint64_t block = 0; block < seal.hashes.size(); ++block) {
        bool const whole = block > 0 && seal.last_byte(block) < offset + bytes.size();
        CHECK(known[block] == (whole ? 1 : 0));
        CHECK(seal.hashes[block] == (whole ? checkpoint::hash_of_block(file, seal, block) : 0));
    }
    CHECK(known[1] == 1);
    CHECK(known.back() == 0);

    bytes[2'500'000] = ~bytes[2'500'000];
    CHECK(checkpoint::read_back(file, offset, bytes, seal, known) == 2'500'000);
    CHECK(checkpoint::read_back(file, offset, {}, seal, known) == 0);
    bytes[2'500'000] = ~bytes[2'500'000];
    seal = Seal::for_length(9'000'000);
    known.assign(seal.hashes.size(), 0);
    CHECK_THROWS_AS(checkpoint::read_back(file, 5'000'000, bytes, seal, known), Error);
}
