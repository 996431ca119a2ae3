#include "base/file.hpp"
#include "checkpoint/checksum_header.hpp"
#include "checkpoint/model_file.hpp"
#include "checkpoint/reader.hpp"
#include "checkpoint/weights.hpp"
#include "checkpoint/writer.hpp"

#include <hdf5.h>

#include <fstream>
#include <functional>
#include <sys/stat.h>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"
#include "state.hpp"

using namespace lockstep;

namespace {

/// Changes a file as another program could, and gives it new checksums.
void change(std::filesystem::path const& path, std::function<void(hid_t)> const& work) {
    auto const file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    REQUIRE(file >= 0);
    work(file);
    REQUIRE(H5Fclose(file) >= 0);
    checkpoint::write_checksum_header(File::open_write(path));
}

using Put = std::function<void(hid_t, char const*)>;

/// In the place of what has that name.
std::function<void(hid_t)> instead(char const* name, Put const& put) {
    return [=](hid_t file) {
        REQUIRE(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
        put(file, name);
    };
}

Put link_to(std::filesystem::path const& path, std::string const& object) {
    return [=](hid_t file, char const* name) {
        REQUIRE(H5Lcreate_external(path.c_str(), object.c_str(), file, name, H5P_DEFAULT,
                                   H5P_DEFAULT) >= 0);
    };
}

void soft_link(hid_t file, char const* name) {
    REQUIRE(H5Lcreate_soft("/somewhere", file, name, H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

void make(hid_t file, char const* name, hid_t type, hid_t space, hid_t creation) {
    auto const set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    REQUIRE(set >= 0);
    H5Dclose(set);
    H5Pclose(creation);
    H5Sclose(space);
}

Put text_in(std::filesystem::path const& path, std::size_t bytes) {
    return [=](hid_t file, char const* name) {
        auto const type = H5Tcopy(H5T_C_S1);
        H5Tset_size(type, bytes);
        auto const creation = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_external(creation, path.c_str(), 0, bytes);
        make(file, name, type, H5Screate(H5S_SCALAR), creation);
        H5Tclose(type);
    };
}

Put view_of(std::filesystem::path const& path, std::string const& object) {
    return [=](hid_t file, char const* name) {
        hsize_t const extents = 6;
        auto const space = H5Screate_simple(1, &extents, nullptr);
        auto const creation = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_virtual(creation, space, path.c_str(), object.c_str(), space);
        make(file, name, H5T_IEEE_F32LE, space, creation);
    };
}

} // namespace

TEST_CASE("what lies outside of a file with checksums is refused, and never opened") {
    test::ScratchDir const scratch;
    test::State const state;
    std::array<float, 6> const weight{1, 2, 3, 4, 5, 6};
    auto const write = [&](std::filesystem::path const& path, bool model) {
        if (model) {
            checkpoint::write_model(
                path,
                {{"model/conv1/weight", h5::Type::f32, {2, 3}, std::as_bytes(std::span(weight))}},
                state.record);
        } else {
            checkpoint::write(comm::Communicator::self(), state.snapshot(), path, "1");
        }
    };
    auto const text = scratch / "text";
    std::ofstream(text) << "[run]\nname = other\n";
    auto const pipe = scratch / "pipe"; // whoever opens it waits for ever
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    std::vector<std::pair<std::string, std::function<void(hid_t)>>> changes{
        {"a deck in another file", instead("record/deck", text_in(text, 19))},
        {"notes in another file", instead("record/notes", text_in(text, 19))},
        {"a history in another file", instead("record/history", text_in(text, 19))},
        {"a deck behind a pipe", instead("record/deck", link_to(pipe, "/deck"))},
        {"a history behind a pipe", instead("record/history", link_to(pipe, "/history"))},
        {"a record behind a pipe", instead("record", link_to(pipe, "/record"))},
        {"a model behind a pipe", instead("model", link_to(pipe, "/model"))},
        {"a group behind a link", instead("model/conv1", soft_link)},
        {"weights behind a soft link", instead("model/conv1/weight", soft_link)},
        {"weights of another file", instead("model/conv1/weight", link_to(scratch / "m.h5", "/x"))},
        {"a view of another file", instead("model/conv1/weight", view_of(pipe, "x"))},
        {"one more link", [](hid_t file) { soft_link(file, "more"); }}};
    for (bool const model : {true, false}) {
        auto const path = scratch / (model ? "best.h5" : "c.h5");
        auto const read = [&] {
            model ? static_cast<void>(checkpoint::open_weights(path))
                  : static_cast<void>(checkpoint::Reader(path));
        };
        write(path, model);
        change(path, [](hid_t) {});
        CHECK_NOTHROW(read());
        for (auto const& [what, make_it] : changes) {
            CAPTURE(what, model);
            write(path, model);
            change(path, make_it);
            CHECK(checkpoint::verify(path).empty());
            auto const error = test::error_of(read);
            CHECK(error.code() == ExitCode::data);
            CHECK((test::says(error, "is a link to") || test::says(error, "in another file")));
        }
    }
}
