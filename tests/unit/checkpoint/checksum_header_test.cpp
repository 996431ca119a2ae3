#include "checkpoint/checksum_header.hpp"
#include "lockstep/base/error.hpp"

#include <vector>

#include "catch.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using checkpoint::ChecksumHeader;

TEST_CASE("a checksum header is read back as it was written") {
    auto checksums = ChecksumHeader::for_length(1'000'000);
    for (std::uint64_t block = 0; block < checksums.hashes.size(); ++block) {
        checksums.hashes[block] = 0x0123456789abcdefULL * (block + 1);
    }
    CHECK(ChecksumHeader::decoded(checksums.encoded(), "file") == checksums);
}

TEST_CASE("blocks cover all bytes behind the checksum header, and at most 480 do") {
    for (std::uint64_t const length :
         {std::uint64_t{4096}, std::uint64_t{4097}, std::uint64_t{69632}, std::uint64_t{69633},
          std::uint64_t{4096} + 480 * 65536, std::uint64_t{4097} + 480 * 65536,
          std::uint64_t{3} << 40}) {
        CAPTURE(length);
        auto const checksums = ChecksumHeader::for_length(length);
        CHECK(checksums.hashes.size() <= 480);
        std::uint64_t next = 4096;
        for (std::uint64_t block = 0; block < checksums.hashes.size(); ++block) {
            CHECK(checksums.first_byte(block) == next);
            next = checksums.last_byte(block) + 1;
        }
        CHECK(next == length);
    }
    CHECK(ChecksumHeader::for_length(4096 + 480 * 65536).block_bytes == 65536);
    CHECK(ChecksumHeader::for_length(4097 + 480 * 65536).block_bytes == 131072);
}

TEST_CASE("a changed bit anywhere in the checksum header is an error") {
    auto checksums = ChecksumHeader::for_length(1'000'000);
    checksums.hashes[3] = 42;
    auto bytes = checksums.encoded();
    std::vector<std::size_t> missed;
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
        auto const mask = std::byte{1} << static_cast<int>(bit % 8);
        bytes[bit / 8] ^= mask;
        try {
            ChecksumHeader::decoded(bytes, "file");
            missed.push_back(bit);
        } catch (Error const& error) {
            if (error.code() != ExitCode::data) {
                missed.push_back(bit);
            }
        }
        bytes[bit / 8] ^= mask;
    }
    CHECK(missed.empty());
    CHECK_NOTHROW(ChecksumHeader::decoded(bytes, "file"));
}

TEST_CASE("what is read back is compared, and blocks that lie wholly in it are hashed") {
    test::ScratchDir const scratch;
    auto const file = File::create_new(scratch / "f");
    std::vector<std::byte> bytes(3 << 20); // more than is read at once
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        bytes[at] = static_cast<std::byte>(at * 2654435761U >> 13);
    }
    constexpr std::uint64_t offset = 10'000; // in the middle of a block
    file.write_at(offset, bytes);
    auto checksums = ChecksumHeader::for_length(offset + bytes.size() + 5'000);
    file.write_at(checksums.length - 1, std::span(bytes).first(1));
    std::vector<std::uint64_t> known(checksums.hashes.size(), 0);
    CHECK(checkpoint::read_back(file, offset, bytes, checksums, known) == bytes.size());
    for (std::uint64_t block = 0; block < checksums.hashes.size(); ++block) {
        bool const whole = block > 0 && checksums.last_byte(block) < offset + bytes.size();
        CHECK(known[block] == (whole ? 1 : 0));
        CHECK(checksums.hashes[block] ==
              (whole ? checkpoint::hash_of_block(file, checksums, block) : 0));
    }
    CHECK(known[1] == 1);
    CHECK(known.back() == 0);

    bytes[2'500'000] = ~bytes[2'500'000];
    CHECK(checkpoint::read_back(file, offset, bytes, checksums, known) == 2'500'000);
    CHECK(checkpoint::read_back(file, offset, {}, checksums, known) == 0);
    bytes[2'500'000] = ~bytes[2'500'000];
    checksums = ChecksumHeader::for_length(9'000'000);
    known.assign(checksums.hashes.size(), 0);
    CHECK_THROWS_AS(checkpoint::read_back(file, 5'000'000, bytes, checksums, known), Error);
}
