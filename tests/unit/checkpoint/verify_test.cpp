#include "base/file.hpp"
#include "checkpoint/content.hpp"
#include "checkpoint/model_file.hpp"
#include "checkpoint/writer.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/checkpoint/verify.hpp"

#include <array>
#include <span>
#include <tuple>
#include <vector>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"
#include "state.hpp"

using namespace lockstep;

namespace {

void flip(File const& file, std::uint64_t byte, int bit) {
    std::array<std::byte, 1> value{};
    file.read_at(byte, value);
    value[0] ^= std::byte{1} << bit;
    file.write_at(byte, value);
}

std::filesystem::path written(test::ScratchDir const& scratch, test::State const& state) {
    auto const self = comm::Communicator::self();
    return checkpoint::write(self, state.snapshot(), scratch / "c.h5", "1").path;
}

/// Whether exactly one damage is told and `byte` lies in it.
bool found_at(std::filesystem::path const& path, std::uint64_t byte) {
    auto const damages = checkpoint::verify(path);
    return damages.size() == 1 && damages[0].first_byte <= byte && byte <= damages[0].last_byte;
}

} // namespace

TEST_CASE("a flipped bit in any byte of a checkpoint is found") {
    test::ScratchDir const scratch;
    auto const path = written(scratch, test::State(1500));
    auto const file = File::open_write(path);
    CHECK(checkpoint::verify(path).empty());
    std::vector<std::uint64_t> missed;
    for (std::uint64_t byte = 0; byte < file.size(); ++byte) {
        // Every bit of the checksum header and of HDF5's first metadata, one of each byte behind.
        int const first = byte < 8192 ? 0 : static_cast<int>(byte % 8);
        int const last = byte < 8192 ? 7 : first;
        for (int bit = first; bit <= last; ++bit) {
            flip(file, byte, bit);
            if (!found_at(path, byte)) {
                missed.push_back(byte);
            }
            flip(file, byte, bit);
        }
    }
    CHECK(missed.empty());
    CHECK(checkpoint::verify(path).empty());
}

TEST_CASE("damage is told by block, all of it") {
    test::ScratchDir const scratch;
    auto const path = written(scratch, test::State(100'000)); // 1.2 MB, some twenty blocks
    auto const file = File::open_write(path);
    flip(file, 4096 + 65536 * 2 + 17, 3);
    flip(file, file.size() - 1, 7);
    auto const damages = checkpoint::verify(path);
    REQUIRE(damages.size() == 2);
    CHECK(damages[0].first_byte == 4096 + 65536 * 2);
    CHECK(damages[0].last_byte == 4096 + 65536 * 3 - 1);
    CHECK(damages[0].what.find("block 2 ") != std::string::npos);
    CHECK(damages[1].last_byte == file.size() - 1);
}

TEST_CASE("a file cut short anywhere, or with bytes added, is found") {
    test::ScratchDir const scratch;
    auto const path = written(scratch, test::State(30'000));
    auto const whole = read_text(path);
    for (std::uint64_t length = 0; length < whole.size();
         length += length < 10'000 ? 499 : 65'521) {
        std::filesystem::resize_file(path, length);
        CAPTURE(length);
        CHECK_FALSE(checkpoint::verify(path).empty());
    }
    write_text_durably(path, whole);
    std::filesystem::resize_file(path, whole.size() - 1);
    auto const cut = checkpoint::verify(path);
    REQUIRE_FALSE(cut.empty());
    CHECK(cut[0].what.find("cut short at byte") != std::string::npos);
    write_text_durably(path, whole);
    CHECK(checkpoint::verify(path).empty());
    write_text_durably(path, whole + '\0');
    auto const damages = checkpoint::verify(path);
    REQUIRE(damages.size() == 1);
    CHECK(damages[0].first_byte == whole.size());
}

TEST_CASE("a damaged file is called what it is") {
    test::ScratchDir const scratch;
    std::array<float, 300> const values{};
    auto const bytes = std::as_bytes(std::span(values));
    auto const self = comm::Communicator::self();
    test::State const state(300);
    auto outputs = state.snapshot();
    outputs.arrays = {{"values", h5::Type::f32, 300}};
    outputs.views = {{"outputs", "values", 0, {30, 10}}};
    outputs.parts = {{{0, bytes}}};
    checkpoint::write(self, state.snapshot(), scratch / "state.h5", "1");
    checkpoint::write(self, outputs, scratch / "outputs.h5", "1");
    checkpoint::write_model(scratch / "model.h5", {{"model/a", h5::Type::f32, {300}, bytes}},
                            state.record);
    checkpoint::write_model(scratch / "int8.h5",
                            {{"quantised/values", h5::Type::f32, {300}, bytes},
                             {"model/a", h5::Type::f32, {300}, bytes}},
                            state.record, checkpoint::Alignment::none);
    std::vector<checkpoint::NamedArray> server{{"server/control", h5::Type::f32, {300}, bytes}};
    for (auto const* const name : {"model/a", "model/b", "model/c", "model/d", "model/e"}) {
        server.push_back({name, h5::Type::f32, {300}, bytes});
    }
    checkpoint::write_model(scratch / "server.h5", server, state.record);
    checkpoint::write_model(scratch / "layer.h5",
                            {{"model/a", h5::Type::f32, {300}, bytes},
                             {"model/quantised", h5::Type::f32, {300}, bytes}},
                            state.record);
    using checkpoint::Content;
    for (auto const& [name, content, said] :
         {std::tuple("state.h5", Content::checkpoint, "Use another checkpoint of the run"),
          std::tuple("outputs.h5", Content::outputs, "It is a file of outputs"),
          std::tuple("model.h5", Content::model, "It is a model, such as best.h5"),
          std::tuple("server.h5", Content::model, "It is a model, such as best.h5"),
          std::tuple("layer.h5", Content::model, "It is a model, such as best.h5"),
          std::tuple("int8.h5", Content::quantised, "It is an int8 model")}) {
        CAPTURE(name);
        auto const path = scratch / name;
        auto const verified = [&] { checkpoint::VerifiedFile const file(path); };
        CHECK(checkpoint::content_of(File::open_read(path)) == content);
        flip(File::open_write(path), std::filesystem::file_size(path) - 1, 3);
        CHECK(test::says(test::error_of(verified), said));
        std::filesystem::resize_file(path, 5000);
        CHECK(test::says(test::error_of(verified), said));
        CHECK(test::says(test::error_of(verified), "cut short at byte 5000"));
        std::filesystem::resize_file(path, 4100);
        CHECK(checkpoint::content_of(File::open_read(path)) == Content::unknown);
        CHECK(test::says(test::error_of(verified), "Copy the file again from its source"));
    }
}

TEST_CASE("what another program wrote is cut off, and no damaged checkpoint") {
    test::ScratchDir const scratch;
    auto const path = scratch / "theirs.h5";
    std::vector<float> const values(1000);
    auto file = h5::File::create(path);
    file.create_dataset("values", h5::Type::f32, {values.size()});
    file.write("values", h5::Type::f32, values);
    file.close();
    auto const refused = [&] { checkpoint::VerifiedFile const verified(path); };
    CHECK(test::says(test::error_of(refused), "an HDF5 file that another program wrote"));
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 8);
    auto const error = test::error_of(refused);
    CHECK(error.code() == ExitCode::data);
    CHECK(test::says(error, "it is an HDF5 file that is cut off"));
    CHECK_FALSE(test::says(error, "damaged"));
    CHECK_FALSE(test::says(error, "checkpoint"));
}

TEST_CASE("what is no checkpoint does not verify, and what is not there is 66") {
    test::ScratchDir const scratch;
    write_text_durably(scratch / "t", std::string(10'000, 'x'));
    CHECK(checkpoint::verify(scratch / "t").size() == 1);
    write_text_durably(scratch / "zeros", std::string(10'000, '\0'));
    CHECK(checkpoint::verify(scratch / "zeros").size() == 1);
    write_text_durably(scratch / "empty", "");
    CHECK(checkpoint::verify(scratch / "empty").size() == 1);
    try {
        static_cast<void>(checkpoint::verify(scratch / "none"));
        CHECK(false);
    } catch (Error const& error) {
        CHECK(error.code() == ExitCode::no_input);
    }
}
