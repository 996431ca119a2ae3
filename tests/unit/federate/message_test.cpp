#include "base/file.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "checkpoint/checksum_header.hpp"
#include "federate/message.hpp"
#include "federate/signature_block.hpp"
#include "h5/file.hpp"
#include "lockstep/checkpoint/verify.hpp"

#include <hdf5.h>

#include <array>
#include <functional>

#include "catch.hpp"
#include "error_of.hpp"
#include "long_form.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::federate;

namespace {

SigningKey key_of(char const* name) {
    return SigningKey(Secret(Digest{}).derived(name));
}

Binding const bound{"f00d", 3, "update", "anna", "cafe"};

Message example() {
    Message message(bound);
    std::vector<std::uint32_t> const words{1, 2, 3, 0xffffffff};
    message.add_words("change", words);
    message.add_text("samples", "12");
    message.add_text("empty", "");
    return message;
}

int tampered_files() {
    return test::is_long() ? 500 : 50;
}

} // namespace

TEST_CASE("what was written is read, by those who know its sender") {
    test::ScratchDir const scratch;
    auto const path = scratch / "m.h5";
    auto const key = key_of("anna");
    example().write(path, key);
    auto const read = Message::read(path, bound, key.public_key());
    CHECK(read.words("change") == std::vector<std::uint32_t>{1, 2, 3, 0xffffffff});
    CHECK(read.text("samples") == "12");
    CHECK(read.text("empty").empty());
    CHECK(read.digest() == example().digest());
    CHECK(test::code_of([&] { read.words("samples"); }) == ExitCode::data);
    CHECK(test::code_of([&] { read.text("nothing"); }) == ExitCode::data);
    CHECK(test::code_of([&] { Message::read(scratch / "none.h5", bound, key.public_key()); }) ==
          ExitCode::no_input);
}

TEST_CASE("a message in the place of a checkpoint is called what it is, also where it is cut off") {
    test::ScratchDir const scratch;
    auto const path = scratch / "m.h5";
    example().write(path, key_of("anna"));
    for (auto const bytes : {std::filesystem::file_size(path), std::uintmax_t{5000}}) {
        std::filesystem::resize_file(path, bytes);
        auto const error = test::error_of([&] { checkpoint::VerifiedFile const file(path); });
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, "it is a message of a federation"));
        CHECK(test::says(error, "global/round-"));
        CHECK_FALSE(test::says(error, "damaged"));
    }
}

TEST_CASE("a message of another federation, round, phase, site, model or key is refused") {
    test::ScratchDir const scratch;
    auto const path = scratch / "m.h5";
    auto const key = key_of("anna");
    example().write(path, key);
    auto const refused = [&](Binding const& expected, char const* why) {
        auto const error = test::error_of([&] { Message::read(path, expected, key.public_key()); });
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, why));
    };
    auto other = bound;
    other.federation = "beef";
    refused(other, "federation f00d, not for beef");
    other = bound;
    other.round = 4;
    refused(other, "round 3, not for 4");
    other = bound;
    other.phase = "shares";
    refused(other, "phase update, not for shares");
    other = bound;
    other.sender = "bert";
    refused(other, "sender anna, not for bert");
    other = bound;
    other.model = "babe";
    refused(other, "model cafe, not for babe");
    auto const error =
        test::error_of([&] { Message::read(path, bound, key_of("bert").public_key()); });
    CHECK(test::says(error, "is signed by"));
}

TEST_CASE("every changed byte is found, with checksums made right again, too") {
    test::ScratchDir const scratch;
    auto const path = scratch / "m.h5";
    auto const key = key_of("anna");
    example().write(path, key);
    auto const good = read_text(path);
    // What a forger cannot do without the key: sign. All else is for anyone to make.
    auto const forger = scratch / "forged.h5";
    constexpr auto header = checkpoint::checksum_header_bytes;
    auto const refused = [&](std::string const& bytes, std::string const& why = "") {
        write_text_durably(forger, bytes);
        checkpoint::write_checksum_header(File::open_write(forger));
        auto const error = test::error_of([&] { Message::read(forger, bound, key.public_key()); });
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, why));
    };
    for (int i = 0; i < tampered_files(); ++i) {
        auto bytes = good;
        auto const draw = random_key(1, Stream::order, {static_cast<std::uint64_t>(i)});
        bool const cut = i % 10 == 9;
        if (cut) {
            bytes.resize(draw % bytes.size());
        } else {
            bytes[draw % bytes.size()] ^= static_cast<char>(1 << (draw >> 60 & 7));
        }
        write_text_durably(forger, bytes);
        CHECK(test::code_of([&] { Message::read(forger, bound, key.public_key()); }) ==
              ExitCode::data);
        bytes = good;
        bytes[header + (draw >> 8) % (bytes.size() - header)] ^= static_cast<char>(1 << (draw & 7));
        refused(bytes);
    }
    // Every part of the block that holds the signature.
    for (std::size_t at = header; at < header + 600; at += 8) {
        auto bytes = good;
        bytes[at] ^= 1;
        refused(bytes);
    }
    // Another's signature over the same, under either key.
    auto const anothers = scratch / "anothers.h5";
    example().write(anothers, key_of("bert"));
    auto forged = read_text(anothers);
    refused(forged);
    forged.replace(header + 16, sizeof(PublicKey), good, header + 16, sizeof(PublicKey));
    refused(forged, "its signature is wrong");
    // The block of one message with the bytes of another.
    Message second(bound);
    second.add_text("samples", "13");
    second.write(anothers, key);
    auto mixed = read_text(anothers);
    mixed.replace(4096, 4096, good, 4096, 4096);
    refused(mixed, "its bytes are not those that were signed");
}

TEST_CASE("a signature is of its text and key alone") {
    auto const anna = key_of("anna");
    auto signature = anna.sign("text");
    CHECK(is_signed("text", signature, anna.public_key()));
    CHECK_FALSE(is_signed("texu", signature, anna.public_key()));
    CHECK_FALSE(is_signed("text", signature, key_of("bert").public_key()));
    signature[5] ^= 1;
    CHECK_FALSE(is_signed("text", signature, anna.public_key()));
}

TEST_CASE("what is encrypted is read by its key alone") {
    auto const key = Secret(Digest{}).derived("key");
    auto box = encrypted(Octets{1, 2, 3}, key);
    CHECK(decrypted(box, key) == Octets{1, 2, 3});
    CHECK_FALSE(decrypted(box, key.derived("other")));
    box.back() ^= 1;
    CHECK_FALSE(decrypted(box, key));
    CHECK_FALSE(decrypted(Octets{1, 2}, key));
}

TEST_CASE("a message that its sender has signed with values in other files is refused for that") {
    test::ScratchDir const scratch;
    auto const key = key_of("anna");
    auto const refused = [&](std::function<void(hid_t)> const& change, char const* why) {
        auto const path = scratch / "m.h5";
        SignedFile file(path, 4096);
        {
            auto h5 = h5::File::create(file.path(), {.user_block = signed_from});
            h5.create_dataset("samples", h5::Type::u8, {2});
            h5.write("samples", h5::Type::u8, std::array<std::uint8_t, 2>{'1', '2'});
            h5.close();
        }
        auto const raw = H5Fopen(file.path().c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
        change(raw);
        H5Fclose(raw);
        file.commit(concat(bound.text(), "parts ", hex_text(example().digest()), "\n"), key);
        auto const error = test::error_of([&] { Message::read(path, bound, key.public_key()); });
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, why));
    };
    auto const dataset = [](hid_t file, hid_t creation) {
        hsize_t const count = 4;
        auto const space = H5Screate_simple(1, &count, nullptr);
        H5Dclose(
            H5Dcreate2(file, "change", H5T_STD_U32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT));
        H5Sclose(space);
        H5Pclose(creation);
    };
    refused(
        [&](hid_t file) {
            auto const creation = H5Pcreate(H5P_DATASET_CREATE);
            H5Pset_external(creation, "secret", 0, 16);
            dataset(file, creation);
        },
        "change in it has its values in another file");
    refused(
        [&](hid_t file) {
            H5Lcreate_external("other.h5", "change", file, "change", H5P_DEFAULT, H5P_DEFAULT);
        },
        "change in it is a link to another place");
    refused([](hid_t file) { H5Lcreate_soft("samples", file, "more", H5P_DEFAULT, H5P_DEFAULT); },
            "more in it is a link to another place");
    refused([](hid_t) {}, "it changed while it was read");
}
