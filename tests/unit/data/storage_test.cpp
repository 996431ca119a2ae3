// Files of every layout and type that others write, read by position and compared with HDF5.

#include "h5/element_type.hpp"
#include "h5/file.hpp"
#include "lockstep/data/dataset.hpp"

#include <hdf5.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <numeric>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::data;

namespace {

struct Layout {
    std::vector<hsize_t> shape{37, 5, 6};
    std::vector<hsize_t> chunk{}; ///< none: contiguous
    bool shuffle = false;
    int deflate = 0;
    bool fletcher = false;
    hsize_t user_block = 0;
    bool partial_unfiltered = false;
    hsize_t rows_written = 37;
    double fill = 0;
};

/// Dataset x, whose values count upwards from -40 and start over at 80, and y, the labels.
void write_file(std::filesystem::path const& path, hid_t type, Layout const& layout) {
    hid_t const creation = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_userblock(creation, layout.user_block);
    hid_t const access = H5Pcreate(H5P_FILE_ACCESS);
    if (layout.partial_unfiltered) {
        H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
    }
    hid_t const file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access);
    auto const& shape = layout.shape;
    hid_t const space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
    hid_t const form = H5Pcreate(H5P_DATASET_CREATE);
    if (!layout.chunk.empty()) {
        H5Pset_chunk(form, static_cast<int>(layout.chunk.size()), layout.chunk.data());
        H5Pset_fill_value(form, H5T_NATIVE_DOUBLE, &layout.fill);
    }
    if (layout.partial_unfiltered) {
        H5Pset_chunk_opts(form, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
    }
    if (layout.shuffle) {
        H5Pset_shuffle(form);
    }
    if (layout.deflate > 0) {
        H5Pset_deflate(form, static_cast<unsigned>(layout.deflate));
    }
    if (layout.fletcher) {
        H5Pset_fletcher32(form);
    }
    hid_t const x = H5Dcreate2(file, "x", type, space, H5P_DEFAULT, form, H5P_DEFAULT);
    auto written = shape;
    written[0] = layout.rows_written;
    std::vector<double> values(
        std::accumulate(written.begin(), written.end(), std::size_t{1}, std::multiplies<>()));
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<double>(i % 120) - (H5Tget_sign(type) == H5T_SGN_NONE ? 0 : 40);
    }
    std::vector<hsize_t> const start(shape.size(), 0);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, written.data(), nullptr);
    hid_t const memory =
        H5Screate_simple(static_cast<int>(written.size()), written.data(), nullptr);
    H5Dwrite(x, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, values.data());
    hid_t const one = H5Screate_simple(1, shape.data(), nullptr);
    hid_t const y = H5Dcreate2(file, "y", H5T_STD_U8BE, one, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    std::vector<int> labels(shape[0]);
    std::iota(labels.begin(), labels.end(), 0);
    H5Dwrite(y, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, labels.data());
    for (auto const id : {x, y}) {
        H5Dclose(id);
    }
    for (auto const id : {space, memory, one}) {
        H5Sclose(id);
    }
    for (auto const id : {creation, access, form}) {
        H5Pclose(id);
    }
    H5Fclose(file);
}

std::vector<float> as_hdf5_reads(std::filesystem::path const& path) {
    hid_t const file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t const x = H5Dopen2(file, "x", H5P_DEFAULT);
    hid_t const space = H5Dget_space(x);
    std::vector<float> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
    H5Dread(x, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Sclose(space);
    H5Dclose(x);
    H5Fclose(file);
    return values;
}

Dataset open(std::filesystem::path const& path) {
    return Dataset({.files = path.string(), .inputs = "x", .targets = "y"});
}

/// Reads samples in an order with neighbours, jumps and repetitions.
void require_equal(std::filesystem::path const& path, bool bytes_of_255 = false) {
    auto const expected = as_hdf5_reads(path);
    auto const set = open(path);
    auto const size = h5::elements(set.sample_shape());
    std::vector<std::int64_t> indices;
    for (std::int64_t i = 0; i < 3 * set.samples(); ++i) {
        indices.push_back(i < set.samples() ? i : i * i * 7 % set.samples());
    }
    std::vector<float> values(indices.size() * size);
    set.read_inputs(indices, values);
    std::vector<std::int64_t> labels(indices.size());
    set.read_targets(indices, labels);
    CHECK(labels == indices);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        auto const sample = static_cast<std::size_t>(indices[i / size]);
        auto const value = expected[sample * size + i % size];
        wrong += values[i] != (bytes_of_255 ? value / 255.0F : value) ? 1 : 0;
    }
    CHECK(wrong == 0);
}

hid_t half() {
    hid_t const type = H5Tcopy(H5T_IEEE_F32LE);
    H5Tset_fields(type, 15, 10, 5, 0, 10);
    H5Tset_size(type, 2);
    H5Tset_ebias(type, 15);
    return type;
}

} // namespace

TEST_CASE("every type is read, in either order of bytes, from every layout") {
    test::ScratchDir const scratch;
    hid_t const half_type = half();
    for (auto const type :
         {H5T_STD_I8LE, H5T_STD_U8LE, H5T_STD_U8BE, H5T_STD_I16LE, H5T_STD_I16BE, H5T_STD_U16LE,
          H5T_STD_U16BE, H5T_STD_I32LE, H5T_STD_I32BE, H5T_STD_U32BE, half_type, H5T_IEEE_F32LE,
          H5T_IEEE_F32BE, H5T_IEEE_F64LE, H5T_IEEE_F64BE}) {
        bool const bytes = H5Tget_size(type) == 1 && H5Tget_sign(type) == H5T_SGN_NONE;
        for (auto const& layout : {Layout{}, Layout{.chunk = {4, 5, 6}},
                                   Layout{.chunk = {8, 5, 6}, .shuffle = true, .deflate = 4}}) {
            write_file(scratch / "a.h5", type, layout);
            require_equal(scratch / "a.h5", bytes);
        }
    }
    H5Tclose(half_type);
}

TEST_CASE("chunks of any form, with any filters, are put together") {
    test::ScratchDir const scratch;
    std::vector<Layout> const layouts{
        {.chunk = {4, 3, 4}},                    // samples in several chunks
        {.chunk = {10, 2, 6}, .deflate = 1},     // reaching over every edge
        {.chunk = {37, 5, 6}, .fletcher = true}, // all in one
        {.chunk = {1, 5, 6}, .shuffle = true, .fletcher = true},
        {.chunk = {5, 5, 4}, .shuffle = true, .deflate = 9, .fletcher = true},
        {.chunk = {8, 5, 6}, .deflate = 4, .user_block = 4096}, // places move by the user block
        {.chunk = {8, 5, 6}, .user_block = 1024},
        {.user_block = 2048},
        {.chunk = {8, 3, 6}, .deflate = 4, .partial_unfiltered = true},
        {.chunk = {4, 5, 6}, .rows_written = 13, .fill = 7}, // most chunks are not there
        {.shape = {37}, .chunk = {5}, .deflate = 4},
        {.shape = {37, 2, 3, 2, 4}, .chunk = {3, 2, 2, 1, 3}, .shuffle = true, .deflate = 4}};
    for (auto const& layout : layouts) {
        write_file(scratch / "a.h5", H5T_IEEE_F32LE, layout);
        require_equal(scratch / "a.h5");
    }
}

TEST_CASE("a chunk whose bytes were changed is named with its samples") {
    test::ScratchDir const scratch;
    auto const path = scratch / "a.h5";
    for (bool const deflated : {true, false}) {
        write_file(path, H5T_IEEE_F64LE,
                   {.shape = {37, 50},
                    .chunk = {4, 50},
                    .deflate = deflated ? 4 : 0,
                    .fletcher = !deflated});
        auto const set = open(path);
        CHECK(set.blocks().samples == 4);
        auto const changed = std::filesystem::last_write_time(path);
        {
            std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
            file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(path)) * 3 / 4);
            file.write("broken", 6);
        }
        std::vector<float> values(37 * 50);
        std::vector<std::int64_t> all(37);
        std::iota(all.begin(), all.end(), 0);
        auto const noticed = test::error_of([&] { set.read_inputs(all, values); });
        CHECK(noticed.code() == ExitCode::data);
        CHECK(test::says(noticed, "changed since the run began"));
        std::filesystem::last_write_time(path, changed);
        auto const error = test::error_of([&] { set.read_inputs(all, values); });
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, "the chunk of samples"));
        CHECK(test::says(error, path.string()));
    }
}

TEST_CASE("a file that ends within a chunk is refused with the samples of that chunk") {
    test::ScratchDir const scratch;
    auto const path = scratch / "a.h5";
    write_file(path, H5T_IEEE_F64LE, {.shape = {37, 50}, .chunk = {4, 50}});
    auto const set = open(path);
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 100);
    auto const opened = test::error_of([&] { open(path); });
    CHECK(opened.code() == ExitCode::data);
    std::vector<float> values(37 * 50);
    std::vector<std::int64_t> all(37);
    std::iota(all.begin(), all.end(), 0);
    CHECK(test::error_of([&] { set.read_inputs(all, values); }).code() == ExitCode::data);
}

TEST_CASE("more files than may be open at once are read") {
    test::ScratchDir const scratch;
    for (int i = 0; i < 300; ++i) {
        write_file(scratch / (std::to_string(1000 + i) + ".h5"), H5T_IEEE_F32LE,
                   {.shape = {3, 20}, .rows_written = 3});
    }
    auto const set = open(scratch / "*.h5");
    CHECK(set.samples() == 900);
    std::vector<std::int64_t> indices(900);
    for (std::size_t i = 0; i < indices.size(); ++i) {
        indices[i] = static_cast<std::int64_t>(i * 7 % 900);
    }
    std::vector<float> values(900 * 20);
    set.read_inputs(indices, values);
    for (std::size_t i = 0; i < indices.size(); ++i) {
        CHECK(values[i * 20] == static_cast<float>(indices[i] % 3 * 20 - 40));
    }
    auto const files = std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                                     std::filesystem::directory_iterator());
    CHECK(files < 290);
}
