// Imports of views and links: names that only the files have that they lead to.

#include "base/text.hpp"
#include "h5/handle.hpp"
#include "import/hdf5_source.hpp"
#include "lockstep/data/dataset.hpp"

#include <hdf5.h>

#include <array>
#include <tuple>

#include "catch.hpp"
#include "importing.hpp"
#include "links.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::import;

namespace {

constexpr hsize_t rows = 3;

/// Three rows of a table.
void write_table(std::filesystem::path const& path, std::vector<std::string> const& classes) {
    auto file = h5::File::create(path);
    file.create_dataset("inputs", h5::Type::f32, {rows, 2});
    file.write("inputs", h5::Type::f32, std::vector<float>{-1, 1, 0, 1, 1, -1});
    file.create_dataset("targets", h5::Type::i64, {rows});
    file.write("targets", h5::Type::i64, std::vector<std::int64_t>{0, 1, 0});
    file.set_attribute("/", "classes", classes);
    file.set_attribute("/", "columns", std::vector<std::string>{"height", "weight"});
    file.set_attribute("/", "sample_rate", std::vector<double>{8000});
    file.close();
}

/// Views of these tables, one after the other.
void write_views(std::filesystem::path const& path, std::vector<std::string> const& sources) {
    h5::Handle file{H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose};
    for (auto const& [name, type, width] : {std::tuple("inputs", H5T_IEEE_F32LE, hsize_t{2}),
                                            std::tuple("targets", H5T_STD_I64LE, hsize_t{0})}) {
        int const rank = width == 0 ? 1 : 2;
        std::array<hsize_t, 2> const whole{rows * sources.size(), width};
        std::array<hsize_t, 2> const part{rows, width};
        h5::Handle const space{H5Screate_simple(rank, whole.data(), nullptr), H5Sclose};
        h5::Handle const of_source{H5Screate_simple(rank, part.data(), nullptr), H5Sclose};
        h5::Handle const creation{H5Pcreate(H5P_DATASET_CREATE), H5Pclose};
        for (std::size_t i = 0; i < sources.size(); ++i) {
            std::array<hsize_t, 2> const first{rows * i, 0};
            H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, first.data(), nullptr, part.data(),
                                nullptr);
            H5Pset_virtual(creation.id(), space.id(), sources[i].c_str(), name, of_source.id());
        }
        H5Sselect_all(space.id());
        h5::Handle const made{
            H5Dcreate2(file.id(), name, type, space.id(), H5P_DEFAULT, creation.id(), H5P_DEFAULT),
            H5Dclose};
    }
}

std::string told(std::filesystem::path const& path) {
    return joined(hdf5_source({.source = path})->remarks(), "\n");
}

} // namespace

TEST_CASE("an import has the names of the files that views and links lead to") {
    test::ScratchDir const scratch;
    write_table(scratch / "a.h5", {"cat", "dog"});
    write_table(scratch / "b.h5", {"cat", "dog"});
    test::write_links(scratch / "links.h5", "a.h5", {"inputs", "targets"});
    write_views(scratch / "views.h5", {"a.h5", "b.h5"});
    test::write_links(scratch / "links_to_views.h5", "views.h5", {"inputs", "targets"});
    for (std::string const name : {"links.h5", "views.h5", "links_to_views.h5"}) {
        CAPTURE(name);
        CHECK(told(scratch / name).find("whose list of columns and sample rate are taken over") !=
              std::string::npos);
        test::import_to(scratch / "out.h5", *hdf5_source({.source = scratch / name}));
        data::Dataset const set({.files = (scratch / "out.h5").string()});
        CHECK(set.class_names() == std::vector<std::string>{"cat", "dog"});
        CHECK(set.facts().columns == std::vector<std::string>{"height", "weight"});
        CHECK(set.facts().sample_rate == 8000);
    }
    CHECK(told(scratch / "a.h5").empty());
}

TEST_CASE("an import tells of names behind a view that differ, and of what it does not take over") {
    test::ScratchDir const scratch;
    write_table(scratch / "a.h5", {"cat", "dog"});
    write_table(scratch / "b.h5", {"dog", "cat"});
    write_views(scratch / "views.h5", {"a.h5", "b.h5"});
    CHECK(told(scratch / "views.h5").find("b.h5, whose list of classes is not taken over") !=
          std::string::npos);
    test::import_to(scratch / "ours.h5",
                    *hdf5_source({.source = scratch / "a.h5", .mean = {0.1}, .std = {0.5}}));
    test::write_links(scratch / "links.h5", "ours.h5", {"inputs", "targets"});
    CHECK(told(scratch / "links.h5").find("whose mean, std and sources are not taken over") !=
          std::string::npos);
}
