#include "lockstep/h5/file.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/file.hpp"
#include "lockstep/base/text.hpp"

#include <hdf5.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>

#include "types.hpp"

namespace lockstep::h5 {

namespace {

// A collective call of more than 2 GiB on a rank crashes (Open MPI 4.1.4, vulcan, 3 ranks and
// more), so larger parts go in calls of this size.
constexpr std::uint64_t call_bytes = std::uint64_t{256} << 20;

Handle property_list(hid_t kind) {
    // Its errors come back to us as exceptions; HDF5 shall not print them as well.
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    return {check(H5Pcreate(kind), "H5Pcreate"), H5Pclose};
}

Handle space_of(Shape const& shape) {
    if (shape.empty()) {
        return {check(H5Screate(H5S_SCALAR), "H5Screate"), H5Sclose};
    }
    std::vector<hsize_t> const extents(shape.begin(), shape.end());
    return {check(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
                  "H5Screate_simple"),
            H5Sclose};
}

/// Without times: files of the same content are the same bytes.
Handle dataset_creation() {
    auto list = property_list(H5P_DATASET_CREATE);
    check(H5Pset_obj_track_times(list.id(), false), "H5Pset_obj_track_times");
    return list;
}

Handle link_creation() {
    auto list = property_list(H5P_LINK_CREATE);
    check(H5Pset_create_intermediate_group(list.id(), 1), "H5Pset_create_intermediate_group");
    return list;
}

Handle open_dataset(Handle const& file, std::string const& path) {
    return {check(H5Dopen2(file.id(), path.c_str(), H5P_DEFAULT), "H5Dopen2 of " + path), H5Dclose};
}

Shape shape_of(Id space) {
    int const rank = H5Sget_simple_extent_ndims(space);
    std::vector<hsize_t> extents(static_cast<std::size_t>(std::max(rank, 0)));
    if (rank > 0) {
        H5Sget_simple_extent_dims(space, extents.data(), nullptr);
    }
    return {extents.begin(), extents.end()};
}

/// A selection of elements [first, first + count) of a one-dimensional space, maybe none.
void select(Handle const& space, std::uint64_t first, std::uint64_t count) {
    if (count == 0) {
        check(H5Sselect_none(space.id()), "H5Sselect_none");
        return;
    }
    hsize_t const start = first;
    hsize_t const extent = count;
    check(H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, &start, nullptr, &extent, nullptr),
          "H5Sselect_hyperslab");
}

herr_t collect_name(hid_t, char const* name, H5O_info_t const* info, void* into) {
    if (info->type == H5O_TYPE_DATASET) {
        static_cast<std::vector<std::string>*>(into)->emplace_back(name);
    }
    return 0;
}

Error not_hdf5(std::filesystem::path const& path) {
    std::array<char, 4> first{};
    std::ifstream(path, std::ios::binary).read(first.data(), first.size());
    bool const classic = std::string_view(first.data(), 3) == "CDF" && first[3] < 8;
    return {ExitCode::data,
            {concat("cannot open ", path.string()),
             classic ? "it is netCDF-3, which is not HDF5" : "it is not HDF5, or was cut short",
             classic ? "Convert it: nccopy -k nc4 OLD.nc NEW.nc" : "Make or copy the file again"}};
}

} // namespace

File::File(std::filesystem::path path, Handle file, bool parallel)
    : path_(std::move(path)), file_(std::move(file)), parallel_(parallel) {}

File File::create(std::filesystem::path const& path, CreateOptions const& options) {
    auto const access = property_list(H5P_FILE_ACCESS);
    check(H5Pset_alignment(access.id(), options.alignment, options.alignment), "H5Pset_alignment");
    check(H5Pset_libver_bounds(access.id(), H5F_LIBVER_V110, H5F_LIBVER_V110),
          "H5Pset_libver_bounds");
    auto const creation = property_list(H5P_FILE_CREATE);
    check(H5Pset_userblock(creation.id(), options.user_block), "H5Pset_userblock");
    // Without times, the same content makes the same bytes.
    check(H5Pset_obj_track_times(creation.id(), false), "H5Pset_obj_track_times");
    Id const id = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.id(), access.id());
    if (id < 0) {
        throw Error(ExitCode::cannot_create,
                    {concat("cannot create ", path.string()), "HDF5 could not open it for writing",
                     "Check that the directory exists and can be written"});
    }
    return {path, Handle(id, H5Fclose), false};
}

File File::open(std::filesystem::path const& path) {
    if (!std::filesystem::exists(path)) {
        throw Error(ExitCode::no_input, {concat("cannot open ", path.string()), "no such file",
                                         "Check the path, or make the file first"});
    }
    lockstep::File::open_read(path); // says what HDF5 does not: no permission, a directory
    auto const access = property_list(H5P_FILE_ACCESS);
    // Nobody writes a finished file, and file systems without locks must still be readable.
    H5Pset_file_locking(access.id(), false, true);
    Id const id = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id());
    if (id < 0) {
        throw not_hdf5(path);
    }
    return {path, Handle(id, H5Fclose), false};
}

File File::open_parallel(std::filesystem::path const& path, comm::Communicator const& comm) {
    auto const access = property_list(H5P_FILE_ACCESS);
    check(H5Pset_fapl_mpio(access.id(), comm.raw(), MPI_INFO_NULL), "H5Pset_fapl_mpio");
    check(H5Pset_coll_metadata_write(access.id(), true), "H5Pset_coll_metadata_write");
    Id const id = check(H5Fopen(path.c_str(), H5F_ACC_RDWR, access.id()),
                        concat("H5Fopen (parallel) of ", path.string()));
    return {path, Handle(id, H5Fclose), true};
}

void File::create_group(std::string const& path) {
    auto const creation = property_list(H5P_GROUP_CREATE);
    check(H5Pset_obj_track_times(creation.id(), false), "H5Pset_obj_track_times");
    Handle const group{check(H5Gcreate2(file_.id(), path.c_str(), link_creation().id(),
                                        creation.id(), H5P_DEFAULT),
                             "H5Gcreate2 of " + path),
                       H5Gclose};
}

void File::create_dataset(std::string const& path, Type type, Shape const& shape) {
    auto const creation = dataset_creation();
    check(H5Pset_layout(creation.id(), H5D_CONTIGUOUS), "H5Pset_layout");
    check(H5Pset_alloc_time(creation.id(), H5D_ALLOC_TIME_EARLY), "H5Pset_alloc_time");
    check(H5Pset_fill_time(creation.id(), H5D_FILL_TIME_NEVER), "H5Pset_fill_time");
    check(H5Pset_obj_track_times(creation.id(), false), "H5Pset_obj_track_times");
    Handle const dataset{
        check(H5Dcreate2(file_.id(), path.c_str(), stored_type(type).id(), space_of(shape).id(),
                         link_creation().id(), creation.id(), H5P_DEFAULT),
              "H5Dcreate2 of " + path),
        H5Dclose};
}

void File::create_compressed(std::string const& path, Type type, Shape const& shape,
                             Compression const& how) {
    auto const creation = property_list(H5P_DATASET_CREATE);
    std::vector<hsize_t> chunk(shape.begin(), shape.end());
    chunk.front() = how.chunk_rows;
    check(H5Pset_chunk(creation.id(), static_cast<int>(chunk.size()), chunk.data()),
          "H5Pset_chunk");
    check(H5Pset_shuffle(creation.id()), "H5Pset_shuffle");
    check(H5Pset_deflate(creation.id(), static_cast<unsigned>(how.deflate)), "H5Pset_deflate");
    check(H5Pset_fletcher32(creation.id()), "H5Pset_fletcher32");
    check(H5Pset_obj_track_times(creation.id(), false), "H5Pset_obj_track_times");
    Handle const dataset{
        check(H5Dcreate2(file_.id(), path.c_str(), stored_type(type).id(), space_of(shape).id(),
                         link_creation().id(), creation.id(), H5P_DEFAULT),
              "H5Dcreate2 of " + path),
        H5Dclose};
}

void File::create_chunked_dataset(std::string const& path, Type type, Shape const& shape,
                                  Chunking chunking) {
    auto const creation = property_list(H5P_DATASET_CREATE);
    std::vector<hsize_t> chunk(shape.begin(), shape.end());
    chunk.at(0) = std::min(chunking.rows, shape[0]);
    check(H5Pset_chunk(creation.id(), static_cast<int>(chunk.size()), chunk.data()),
          "H5Pset_chunk");
    if (chunking.level > 0) {
        check(H5Pset_shuffle(creation.id()), "H5Pset_shuffle");
        check(H5Pset_deflate(creation.id(), static_cast<unsigned>(chunking.level)),
              "H5Pset_deflate");
    }
    Handle const dataset{
        check(H5Dcreate2(file_.id(), path.c_str(), stored_type(type).id(), space_of(shape).id(),
                         link_creation().id(), creation.id(), H5P_DEFAULT),
              "H5Dcreate2 of " + path),
        H5Dclose};
}

void File::create_view(View const& view, Type type) {
    auto const source = open_dataset(file_, view.source);
    Handle const source_space{check(H5Dget_space(source.id()), "H5Dget_space"), H5Sclose};
    select(source_space, view.first, elements(view.shape));
    auto const space = space_of(view.shape);
    auto const creation = dataset_creation();
    check(H5Pset_virtual(creation.id(), space.id(), ".", view.source.c_str(), source_space.id()),
          "H5Pset_virtual");
    Handle const dataset{
        check(H5Dcreate2(file_.id(), view.path.c_str(), stored_type(type).id(), space.id(),
                         link_creation().id(), creation.id(), H5P_DEFAULT),
              "H5Dcreate2 of " + view.path),
        H5Dclose};
}

void File::write(std::string const& path, Type type, void const* values) {
    auto const dataset = open_dataset(file_, path);
    check(H5Dwrite(dataset.id(), stored_type(type).id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values),
          "H5Dwrite of " + path);
}

void File::read(std::string const& path, Type type, void* values) const {
    auto const dataset = open_dataset(file_, path);
    check(H5Dread(dataset.id(), stored_type(type).id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values),
          "H5Dread of " + path);
}

std::uint64_t File::calls_for(std::uint64_t bytes) {
    return (bytes + call_bytes - 1) / call_bytes;
}

Transfer File::write_parts(std::string const& path, Type type, std::span<Part const> parts,
                           std::uint64_t calls) {
    auto const dataset = open_dataset(file_, path);
    auto const memory_type = stored_type(type);
    auto const transfer = property_list(H5P_DATASET_XFER);
    if (parallel_) {
        check(H5Pset_dxpl_mpio(transfer.id(), H5FD_MPIO_COLLECTIVE), "H5Pset_dxpl_mpio");
        // Still collective for HDF5, but each rank writes its own part: as fast, and free of the
        // aggregators' faults with large parts and full disks (Open MPI 4.1.4).
        check(H5Pset_dxpl_mpio_collective_opt(transfer.id(), H5FD_MPIO_INDIVIDUAL_IO),
              "H5Pset_dxpl_mpio_collective_opt");
    }
    Transfer result{parallel_, 0};
    std::uint64_t const unit = size_of(type);
    auto const write = [&](Part const& part) {
        auto const count = part.bytes.size() / unit;
        Handle const file_space{check(H5Dget_space(dataset.id()), "H5Dget_space"), H5Sclose};
        select(file_space, part.first, count);
        auto const memory_space = space_of({std::max<std::uint64_t>(count, 1)});
        select(memory_space, 0, count);
        check(H5Dwrite(dataset.id(), memory_type.id(), memory_space.id(), file_space.id(),
                       transfer.id(), part.bytes.data()),
              "H5Dwrite of " + path);
        if (parallel_) {
            std::uint32_t local = 0;
            std::uint32_t global = 0;
            check(H5Pget_mpio_no_collective_cause(transfer.id(), &local, &global),
                  "H5Pget_mpio_no_collective_cause");
            result.cause |= local | global;
        }
    };
    std::uint64_t done = 0;
    for (auto const& part : parts) {
        for (std::uint64_t begin = 0; begin < part.bytes.size(); begin += call_bytes, ++done) {
            auto const length = std::min<std::uint64_t>(call_bytes, part.bytes.size() - begin);
            write({part.first + begin / unit, part.bytes.subspan(begin, length)});
        }
    }
    for (; done < calls; ++done) {
        write({}); // the others still have something
    }
    result.collective = parallel_ && result.cause == H5D_MPIO_COLLECTIVE;
    return result;
}

void File::read_part(std::string const& path, Type type, std::uint64_t first,
                     std::span<std::byte> bytes) const {
    auto const dataset = open_dataset(file_, path);
    auto const memory_type = stored_type(type);
    std::uint64_t const unit = size_of(type);
    for (std::uint64_t begin = 0; begin < bytes.size(); begin += call_bytes) {
        std::uint64_t const length = std::min<std::uint64_t>(call_bytes, bytes.size() - begin);
        Handle const file_space{check(H5Dget_space(dataset.id()), "H5Dget_space"), H5Sclose};
        select(file_space, first + begin / unit, length / unit);
        auto const memory_space = space_of({length / unit});
        check(H5Dread(dataset.id(), memory_type.id(), memory_space.id(), file_space.id(),
                      H5P_DEFAULT, bytes.data() + begin),
              "H5Dread of " + path);
    }
}

namespace {

/// Selects whole rows of a space; returns the shape of what was selected.
Shape select_rows(Handle const& space, File::Rows rows) {
    auto shape = shape_of(space.id());
    std::vector<hsize_t> start(shape.size(), 0);
    start[0] = rows.first;
    shape[0] = rows.count;
    std::vector<hsize_t> const count(shape.begin(), shape.end());
    check(H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                              nullptr),
          "H5Sselect_hyperslab");
    return shape;
}

} // namespace

void File::read_rows(std::string const& path, Type type, Rows rows, void* values) const {
    auto const dataset = open_dataset(file_, path);
    Handle const space{check(H5Dget_space(dataset.id()), "H5Dget_space"), H5Sclose};
    auto const shape = select_rows(space, rows);
    check(H5Dread(dataset.id(), stored_type(type).id(), space_of(shape).id(), space.id(),
                  H5P_DEFAULT, values),
          "H5Dread of " + path);
}

void File::write_rows(std::string const& path, Type type, Rows rows, void const* values) {
    auto const dataset = open_dataset(file_, path);
    Handle const space{check(H5Dget_space(dataset.id()), "H5Dget_space"), H5Sclose};
    auto const shape = select_rows(space, rows);
    check(H5Dwrite(dataset.id(), stored_type(type).id(), space_of(shape).id(), space.id(),
                   H5P_DEFAULT, values),
          "H5Dwrite of " + path);
}

bool File::exists(std::string const& path) const {
    // Every group on the way must be asked for by itself.
    for (auto slash = path.find('/', 1); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
        if (H5Lexists(file_.id(), path.substr(0, slash).c_str(), H5P_DEFAULT) <= 0) {
            return false;
        }
    }
    return H5Lexists(file_.id(), path.c_str(), H5P_DEFAULT) > 0;
}

DatasetInfo File::info(std::string const& path) const {
    auto const dataset = open_dataset(file_, path);
    Handle const type{check(H5Dget_type(dataset.id()), "H5Dget_type"), H5Tclose};
    Handle const space{check(H5Dget_space(dataset.id()), "H5Dget_space"), H5Sclose};
    Handle const creation{check(H5Dget_create_plist(dataset.id()), "H5Dget_create_plist"),
                          H5Pclose};
    DatasetInfo info{path,  known_type(type.id()), readable_type(type.id()), shape_of(space.id()),
                     false, std::nullopt};
    auto const offset = H5Dget_offset(dataset.id());
    bool const own_bytes = H5Pget_external_count(creation.id()) == 0;
    if (H5Pget_layout(creation.id()) == H5D_CONTIGUOUS && own_bytes && offset != HADDR_UNDEF) {
        info.contiguous = true;
        info.offset = offset;
    }
    return info;
}

std::vector<DatasetInfo> File::datasets() const {
    std::vector<std::string> names;
    check(H5Ovisit2(file_.id(), H5_INDEX_NAME, H5_ITER_INC, collect_name, &names, H5O_INFO_BASIC),
          "H5Ovisit2 (reading names)");
    std::vector<DatasetInfo> all;
    all.reserve(names.size());
    for (auto const& name : names) {
        all.push_back(info(name));
    }
    return all;
}

void File::flush() {
    check(H5Fflush(file_.id(), H5F_SCOPE_GLOBAL), "H5Fflush");
}

void File::close() {
    file_.close();
}

} // namespace lockstep::h5
