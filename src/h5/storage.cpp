#include "lockstep/h5/storage.hpp"

#include "base/text.hpp"
#include "h5/element_type.hpp"
#include "h5/file.hpp"

#include <hdf5.h>

#include <optional>

#include "filters.hpp"
#include "origin.hpp"
#include "property_list.hpp"
#include "raw_files.hpp"
#include "space.hpp"
#include "types.hpp"

namespace lockstep::h5 {

namespace {

/// Without these every damaged extent could ask for an index that fills the memory.
constexpr std::uint64_t max_chunks = std::uint64_t{1} << 26;
constexpr std::uint64_t few_chunks = 4096;

std::optional<Filter> filter_of(int code) {
    switch (code) {
    case H5Z_FILTER_DEFLATE:
        return Filter::deflate;
    case H5Z_FILTER_SHUFFLE:
        return Filter::shuffle;
    case H5Z_FILTER_FLETCHER32:
        return Filter::fletcher32;
    default:
        return std::nullopt;
    }
}

/// What HDF5 adds to the addresses of chunks to make them places in the file: versions before
/// 1.14 forget the user block there, though not in H5Dget_offset. Found out with a file in memory
/// whose user block is larger than all the rest.
bool forgets_user_block() {
    constexpr hsize_t user_block = 65536;
    constexpr hsize_t one = 1;
    auto const access = property_list(H5P_FILE_ACCESS);
    check(H5Pset_fapl_core(access.id(), 65536, 0), Doing::planning, "H5Pset_fapl_core");
    auto const creation = property_list(H5P_FILE_CREATE);
    check(H5Pset_userblock(creation.id(), user_block), Doing::planning, "H5Pset_userblock");
    Handle const file{
        check(H5Fcreate("user-block-probe", H5F_ACC_TRUNC, creation.id(), access.id()),
              Doing::planning, "H5Fcreate (in memory)"),
        H5Fclose};
    Handle const space{
        check(H5Screate_simple(1, &one, nullptr), Doing::planning, "H5Screate_simple"), H5Sclose};
    auto const layout = property_list(H5P_DATASET_CREATE);
    check(H5Pset_chunk(layout.id(), 1, &one), Doing::planning, "H5Pset_chunk");
    Handle const dataset{check(H5Dcreate2(file.id(), "x", H5T_STD_U8LE, space.id(), H5P_DEFAULT,
                                          layout.id(), H5P_DEFAULT),
                               Doing::planning, "H5Dcreate2"),
                         H5Dclose};
    std::uint8_t const value = 1;
    check(H5Dwrite(dataset.id(), H5T_STD_U8LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value),
          Doing::planning, "H5Dwrite");
    hsize_t const origin = 0;
    unsigned mask = 0;
    haddr_t address = HADDR_UNDEF;
    hsize_t bytes = 0;
    check(H5Dget_chunk_info_by_coord(dataset.id(), &origin, &mask, &address, &bytes),
          Doing::planning, "H5Dget_chunk_info_by_coord");
    return address < user_block;
}

/// The chunks' base in the file that has the dataset, which may be another than was opened.
std::uint64_t chunk_base(Id dataset) {
    Handle const file{check(H5Iget_file_id(dataset), Doing::reading, "H5Iget_file_id"), H5Fclose};
    Handle const creation{
        check(H5Fget_create_plist(file.id()), Doing::reading, "H5Fget_create_plist"), H5Pclose};
    hsize_t user_block = 0;
    check(H5Pget_userblock(creation.id(), &user_block), Doing::reading, "H5Pget_userblock");
    return user_block > 0 && forgets_user_block() ? user_block : 0;
}

/// The filters by name where we do not know one.
std::string read_filters(Id creation, Storage& storage) {
    for (auto const& applied : filters_of(creation)) {
        auto const filter = filter_of(applied.code);
        if (!filter) {
            return concat("its chunks need filter ", applied.code, " ", applied.name);
        }
        storage.filters.push_back(*filter);
    }
    unsigned options = 0;
    check(H5Pget_chunk_opts(creation, &options), Doing::reading, "H5Pget_chunk_opts");
    storage.partial_chunks_filtered = (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) == 0;
    return {};
}

void read_fill(Id creation, Id type, Storage& storage) {
    storage.fill.assign(size_of(storage.type), std::byte{0});
    H5D_fill_value_t status = H5D_FILL_VALUE_UNDEFINED;
    check(H5Pfill_value_defined(creation, &status), Doing::reading, "H5Pfill_value_defined");
    if (status == H5D_FILL_VALUE_USER_DEFINED) {
        check(H5Pget_fill_value(creation, type, storage.fill.data()), Doing::reading,
              "H5Pget_fill_value");
    }
}

/// The chunks in row-major order; what stands in the way if there is something.
std::string read_chunks(Id dataset, std::uint64_t base, Storage& storage) {
    std::uint64_t places = 1;
    for (std::size_t d = 0; d < storage.shape.size(); ++d) {
        auto const along = (storage.shape[d] + storage.chunk[d] - 1) / storage.chunk[d];
        if (along > max_chunks / std::max<std::uint64_t>(places, 1)) {
            return "it has too many chunks";
        }
        places *= along;
    }
    hsize_t written = 0;
    Handle const space{check(H5Dget_space(dataset), Doing::reading, "H5Dget_space"), H5Sclose};
    check(H5Dget_num_chunks(dataset, space.id(), &written), Doing::reading, "H5Dget_num_chunks");
    storage.unwritten = written < places;
    if (places > few_chunks && written < places / 2) {
        return "most of its chunks were never written";
    }
    storage.chunks.reserve(places);
    std::vector<hsize_t> origin(storage.shape.size(), 0);
    for (std::uint64_t place = 0; place < places; ++place) {
        unsigned mask = 0;
        haddr_t address = HADDR_UNDEF;
        hsize_t bytes = 0;
        check(H5Dget_chunk_info_by_coord(dataset, origin.data(), &mask, &address, &bytes),
              Doing::reading, "H5Dget_chunk_info_by_coord");
        bool const there = address != HADDR_UNDEF && bytes > 0;
        storage.chunks.push_back(
            there ? Chunk{address + base, static_cast<std::uint32_t>(bytes), mask} : Chunk{});
        for (std::size_t d = origin.size(); d-- > 0;) {
            origin[d] += storage.chunk[d];
            if (origin[d] < storage.shape[d]) {
                break;
            }
            origin[d] = 0;
        }
    }
    return {};
}

} // namespace

Storage File::storage(std::string const& path) const {
    auto const dataset = open_to_read(path);
    Handle const type{check(H5Dget_type(dataset.id()), Doing::reading, "H5Dget_type"), H5Tclose};
    auto const space = space_of_dataset(dataset);
    auto const creation = creation_of(dataset);
    Storage storage;
    auto const known = known_type(type.id());
    auto const swapped = known ? std::nullopt : swapped_type(type.id());
    if (!known && !swapped) {
        storage.obstacle = "its values have a type that only the HDF5 library reads";
        return storage;
    }
    storage.type = known ? *known : *swapped;
    storage.big_endian = swapped.has_value();
    auto const extents = shape_of(space);
    storage.shape = extents;
    storage.file = file_of(dataset.id());
    if (auto const raw = raw_files(creation.id(), storage.file); !raw.empty()) {
        storage.obstacle = raw.size() > 1 ? "its bytes are in several other files" : "";
        storage.file = raw.front().path;
        storage.offset = raw.front().offset;
        return storage;
    }
    switch (H5Pget_layout(creation.id())) {
    case H5D_CONTIGUOUS: {
        auto const offset = H5Dget_offset(dataset.id());
        storage.unwritten = offset == HADDR_UNDEF && elements(extents) > 0;
        storage.obstacle = offset == HADDR_UNDEF ? "it was never written" : "";
        storage.offset = offset;
        break;
    }
    case H5D_CHUNKED: {
        std::vector<hsize_t> chunk(extents.size());
        check(H5Pget_chunk(creation.id(), static_cast<int>(chunk.size()), chunk.data()),
              Doing::reading, "H5Pget_chunk");
        storage.chunk.assign(chunk.begin(), chunk.end());
        storage.obstacle = read_filters(creation.id(), storage);
        read_fill(creation.id(), type.id(), storage);
        if (storage.obstacle.empty()) {
            storage.obstacle = read_chunks(dataset.id(), chunk_base(dataset.id()), storage);
        }
        break;
    }
    default:
        storage.obstacle = "it is stored in the file's metadata, or is a view of other datasets";
    }
    return storage;
}

} // namespace lockstep::h5
