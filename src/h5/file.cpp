#include "h5/file.hpp"

#include "base/file.hpp"
#include "base/file_kind.hpp"
#include "base/text.hpp"
#include "comm/native.hpp"
#include "h5/version.hpp"
#include "lockstep/base/error.hpp"

#include <hdf5.h>

#include <algorithm>
#include <cerrno>

#include "conversion.hpp"
#include "disk.hpp"
#include "fault.hpp"
#include "origin.hpp"
#include "refused_writes.hpp"
#include "space.hpp"
#include "types.hpp"

namespace lockstep::h5 {

namespace {

// A collective call of more than 2 GiB on a rank crashes (Open MPI 4.1.4, vulcan, 3 ranks and
// more), so larger parts go in calls of this size.
constexpr std::uint64_t call_bytes = std::uint64_t{256} << 20;

Handle property_list(hid_t kind) {
    // Its errors come back to us as exceptions; HDF5 shall not print them as well.
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    return {check(H5Pcreate(kind), Doing::planning, "H5Pcreate"), H5Pclose};
}

/// Without times: files of the same content are the same bytes.
Handle dataset_creation() {
    auto list = property_list(H5P_DATASET_CREATE);
    check(H5Pset_obj_track_times(list.id(), false), Doing::planning, "H5Pset_obj_track_times");
    return list;
}

Handle link_creation() {
    auto list = property_list(H5P_LINK_CREATE);
    check(H5Pset_create_intermediate_group(list.id(), 1), Doing::planning,
          "H5Pset_create_intermediate_group");
    return list;
}

herr_t collect_link(hid_t, char const* name, H5L_info_t const* info, void* into) {
    if (info->type == H5L_TYPE_SOFT || info->type == H5L_TYPE_EXTERNAL) {
        static_cast<std::vector<std::string>*>(into)->emplace_back(name);
    }
    return 0;
}

herr_t collect_name(hid_t, char const* name, H5O_info_t const* info, void* into) {
    if (info->type == H5O_TYPE_DATASET) {
        static_cast<std::vector<std::string>*>(into)->emplace_back(name);
    }
    return 0;
}

/// A rank must come to this together with the others, whatever its disk says. Who asks what it said
/// calls `File::close`.
herr_t close_together(hid_t file) {
    Disk unasked;
    RefusedWrites const refused(unasked);
    return H5Fclose(file);
}

Error not_opened(std::filesystem::path const& path, std::string const& reason) {
    auto const says = [&](char const* words) { return reason.find(words) != std::string::npos; };
    auto const error = [&](std::string const& why, std::string const& next) {
        return Error(ExitCode::data, {concat("cannot open ", path.string()), why, next});
    };
    if (says("already open for")) {
        return error("it is marked as open for writing: a program writes it, or ended without "
                     "closing it",
                     concat("Wait until it is closed; where nobody has it open: h5clear -s ",
                            path.string()));
    }
    if (says("superblock version")) {
        return error(concat("its form is unknown to HDF5 ", library_version(), " (", reason,
                            "): a newer HDF5 wrote it, or it is damaged"),
                     for_older_hdf5);
    }
    auto const kind = kind_of_file(path);
    return error(kind.name.empty() ? std::string("it is not HDF5, or was cut short")
                                   : concat("it is ", kind.name),
                 kind.data.empty() ? std::string("Make or copy the file again") : kind.data);
}

} // namespace

File::File(std::filesystem::path path, Handle file, std::shared_ptr<Disk> disk, Access access)
    : path_(std::move(path)), disk_(std::move(disk)), access_(access), file_(std::move(file)) {}

void File::require_written() const {
    if (disk_->error_number() != 0) {
        throw system_error(concat("cannot write ", path_.string()), disk_->error_number(),
                           "Check the disk's free space, quota and health");
    }
}

File File::create(std::filesystem::path const& path, CreateOptions const& options) {
    auto const access = property_list(H5P_FILE_ACCESS);
    auto const disk = std::make_shared<Disk>();
    use_disk(access, disk);
    check(H5Pset_alignment(access.id(), options.alignment, options.alignment), Doing::planning,
          "H5Pset_alignment");
    check(H5Pset_libver_bounds(access.id(), H5F_LIBVER_V110, H5F_LIBVER_V110), Doing::planning,
          "H5Pset_libver_bounds");
    auto const creation = property_list(H5P_FILE_CREATE);
    check(H5Pset_userblock(creation.id(), options.user_block), Doing::planning, "H5Pset_userblock");
    // Without times, the same content makes the same bytes.
    check(H5Pset_obj_track_times(creation.id(), false), Doing::planning, "H5Pset_obj_track_times");
    Id const id = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.id(), access.id());
    if (id < 0) {
        auto const what = concat("cannot create ", path.string());
        auto const fault = take_fault();
        auto const of_system =
            system_error(what, fault.error_number, "Check the disk's free space, quota and health");
        if (fault.error_number != 0 && of_system.code() == ExitCode::io) {
            throw Error(of_system);
        }
        throw Error(ExitCode::cannot_create,
                    {what, fault.why, "Check that the directory exists and can be written"});
    }
    return {path, Handle(id, H5Fclose), disk};
}

File File::open(std::filesystem::path const& path) {
    if (!std::filesystem::exists(path)) {
        throw Error(ExitCode::no_input, {concat("cannot open ", path.string()), "no such file",
                                         "Check the path, or make the file first"});
    }
    static_cast<void>(
        lockstep::File::open_read(path)); // says what HDF5 does not: no permission, a directory
    auto const access = property_list(H5P_FILE_ACCESS);
    auto const disk = std::make_shared<Disk>();
    use_disk(access, disk);
    // Nobody writes a finished file, and file systems without locks must still be readable.
    check(H5Pset_file_locking(access.id(), false, true), Doing::planning, "H5Pset_file_locking");
    Id const id = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id());
    if (id < 0) {
        auto const fault = take_fault();
        if (fault.error_number != 0) {
            throw system_error(concat("cannot open ", path.string()), fault.error_number,
                               "Check the disk's health, and the limit of open files (ulimit -n)");
        }
        throw not_opened(path, fault.why);
    }
    return {path, Handle(id, H5Fclose), disk};
}

File File::open_parallel(std::filesystem::path const& path, comm::Communicator const& comm) {
    auto const access = property_list(H5P_FILE_ACCESS);
    check(H5Pset_fapl_mpio(access.id(), comm::raw(comm), MPI_INFO_NULL), Doing::planning,
          "H5Pset_fapl_mpio");
    check(H5Pset_coll_metadata_write(access.id(), true), Doing::planning,
          "H5Pset_coll_metadata_write");
    auto disk = std::make_shared<Disk>();
    RefusedWrites const refused(*disk);
    Id const id = H5Fopen(path.c_str(), H5F_ACC_RDWR, access.id());
    if (id < 0) {
        auto const what = concat("cannot open ", path.string(), " on all ranks");
        constexpr char const* next = "Check the disk's free space, quota and health, and the limit "
                                     "of open files (ulimit -n)";
        auto const fault = take_fault();
        throw fault.error_number != 0 ? system_error(what, fault.error_number, next)
                                      : Error(ExitCode::io, {what, fault.why, next});
    }
    return {path, Handle(id, close_together), std::move(disk), Access::together};
}

void File::keep_open(std::string const& dataset) {
    RefusedWrites const refused(*disk_);
    kept_open_.push_back(open_dataset(dataset, Doing::writing));
}

std::string File::named(std::string const& dataset) const {
    return concat("dataset ", dataset, " of ", path_.string());
}

Handle File::open_dataset(std::string const& path, Doing doing) const {
    return {check(H5Dopen2(file_.id(), path.c_str(), H5P_DEFAULT), doing,
                  concat("H5Dopen2 of ", named(path))),
            H5Dclose};
}

void File::create_group(std::string const& path) {
    auto const creation = property_list(H5P_GROUP_CREATE);
    check(H5Pset_obj_track_times(creation.id(), false), Doing::planning, "H5Pset_obj_track_times");
    Handle group{check(H5Gcreate2(file_.id(), path.c_str(), link_creation().id(), creation.id(),
                                  H5P_DEFAULT),
                       Doing::writing, concat("H5Gcreate2 of ", path, " in ", path_.string())),
                 H5Gclose};
    group.close(concat("group ", path, " of ", path_.string()));
}

void File::make_dataset(std::string const& path, Type type, Shape const& shape, Handle const& how) {
    Handle dataset{
        check(H5Dcreate2(file_.id(), path.c_str(), stored_type(type).id(), space_of(shape).id(),
                         link_creation().id(), how.id(), H5P_DEFAULT),
              Doing::writing, concat("H5Dcreate2 of ", named(path))),
        H5Dclose};
    dataset.close(named(path));
}

void File::create_dataset(std::string const& path, Type type, Shape const& shape) {
    auto const creation = dataset_creation();
    check(H5Pset_layout(creation.id(), H5D_CONTIGUOUS), Doing::planning, "H5Pset_layout");
    check(H5Pset_alloc_time(creation.id(), H5D_ALLOC_TIME_EARLY), Doing::planning,
          "H5Pset_alloc_time");
    check(H5Pset_fill_time(creation.id(), H5D_FILL_TIME_NEVER), Doing::planning,
          "H5Pset_fill_time");
    make_dataset(path, type, shape, creation);
}

namespace {

/// In chunks of so many rows, shuffled and deflated where `level` is above 0.
Handle chunked_creation(Shape const& shape, std::uint64_t rows, int level) {
    auto creation = dataset_creation();
    std::vector<hsize_t> chunk(shape.begin(), shape.end());
    chunk.at(0) = std::min<std::uint64_t>(rows, shape.at(0));
    check(H5Pset_chunk(creation.id(), static_cast<int>(chunk.size()), chunk.data()),
          Doing::planning, "H5Pset_chunk");
    if (level > 0) {
        check(H5Pset_shuffle(creation.id()), Doing::planning, "H5Pset_shuffle");
        check(H5Pset_deflate(creation.id(), static_cast<unsigned>(level)), Doing::planning,
              "H5Pset_deflate");
    }
    return creation;
}

} // namespace

void File::create_compressed(std::string const& path, Type type, Shape const& shape,
                             Compression const& how) {
    auto const creation = chunked_creation(shape, how.chunk_rows, how.deflate);
    check(H5Pset_fletcher32(creation.id()), Doing::planning, "H5Pset_fletcher32");
    make_dataset(path, type, shape, creation);
}

void File::create_chunked_dataset(std::string const& path, Type type, Shape const& shape,
                                  Chunking chunking) {
    make_dataset(path, type, shape, chunked_creation(shape, chunking.rows, chunking.level));
}

void File::create_view(View const& view, Type type) {
    auto const source = open_dataset(view.source, Doing::writing);
    auto const source_space = space_of_dataset(source);
    select_rows(source_space, view.first, elements(view.shape));
    auto const space = space_of(view.shape);
    auto const creation = dataset_creation();
    check(H5Pset_virtual(creation.id(), space.id(), ".", view.source.c_str(), source_space.id()),
          Doing::planning, "H5Pset_virtual");
    make_dataset(view.path, type, view.shape, creation);
}

namespace {

std::uint64_t elements_of(Handle const& dataset) {
    return elements(shape_of(space_of_dataset(dataset)));
}

/// Before HDF5 touches the values, of which it knows no length.
void require_fit(std::string const& dataset, std::uint64_t elements, std::uint64_t given) {
    if (elements != given) {
        throw Error(ExitCode::data,
                    {concat(dataset, " has ", elements, " elements"),
                     concat(given, " were expected"),
                     "It does not belong to the others of its file: make or copy the file again"});
    }
}

void require_within(std::string const& dataset, std::uint64_t extent, std::uint64_t first,
                    std::uint64_t count) {
    if (first > extent || count > extent - first) {
        throw Error(ExitCode::data, {concat(dataset, " ends at ", extent),
                                     concat(first, " to ", first + count, " were expected"),
                                     "The file is damaged, or of another form: make it again"});
    }
}

} // namespace

void File::write(std::string const& path, Type type, std::span<std::byte const> values) {
    auto dataset = open_dataset(path, Doing::writing);
    require_fit(named(path), elements_of(dataset), values.size() / size_of(type));
    check(H5Dwrite(dataset.id(), stored_type(type).id(), H5S_ALL, H5S_ALL, H5P_DEFAULT,
                   values.data()),
          Doing::writing, concat("H5Dwrite of ", named(path)));
    dataset.close(named(path));
    require_written();
}

void File::read(std::string const& path, Type type, std::span<std::byte> values) const {
    auto const dataset = open_to_read(path);
    require_fit(named(path), elements_of(dataset), values.size() / size_of(type));
    check(
        H5Dread(dataset.id(), stored_type(type).id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
        Doing::reading, concat("H5Dread of ", named(path)));
}

std::uint64_t File::calls_for(std::uint64_t bytes) {
    return (bytes + call_bytes - 1) / call_bytes;
}

Transfer File::write_parts(std::string const& path, Type type, std::span<Part const> parts,
                           std::uint64_t calls) {
    bool const together = access_ == Access::together;
    RefusedWrites const refused(*disk_);
    auto dataset = open_dataset(path, Doing::writing);
    auto const extent = elements_of(dataset);
    auto const memory_type = stored_type(type);
    auto const transfer = property_list(H5P_DATASET_XFER);
    if (together) {
        check(H5Pset_dxpl_mpio(transfer.id(), H5FD_MPIO_COLLECTIVE), Doing::planning,
              "H5Pset_dxpl_mpio");
        // Still collective for HDF5, but each rank writes its own part: as fast, and free of the
        // aggregators' faults with large parts and full disks (Open MPI 4.1.4).
        check(H5Pset_dxpl_mpio_collective_opt(transfer.id(), H5FD_MPIO_INDIVIDUAL_IO),
              Doing::planning, "H5Pset_dxpl_mpio_collective_opt");
    }
    Transfer result{together, 0};
    std::uint64_t const unit = size_of(type);
    auto const write = [&](Part const& part) {
        auto const count = part.bytes.size() / unit;
        require_within(named(path), extent, part.first, count);
        auto const file_space = space_of_dataset(dataset);
        select_rows(file_space, part.first, count);
        auto const memory_space = space_of({std::max<std::uint64_t>(count, 1)});
        select_rows(memory_space, 0, count);
        check(H5Dwrite(dataset.id(), memory_type.id(), memory_space.id(), file_space.id(),
                       transfer.id(), part.bytes.data()),
              Doing::writing, concat("H5Dwrite of ", named(path)));
        if (together) {
            std::uint32_t local = 0;
            std::uint32_t global = 0;
            check(H5Pget_mpio_no_collective_cause(transfer.id(), &local, &global), Doing::planning,
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
    dataset.close(named(path));
    require_written();
    result.collective = together && result.cause == H5D_MPIO_COLLECTIVE;
    return result;
}

void File::read_part(std::string const& path, Type type, std::uint64_t first,
                     std::span<std::byte> bytes) const {
    auto const dataset = open_to_read(path);
    auto const memory_type = stored_type(type);
    std::uint64_t const unit = size_of(type);
    require_within(named(path), elements_of(dataset), first, bytes.size() / unit);
    for (std::uint64_t begin = 0; begin < bytes.size(); begin += call_bytes) {
        std::uint64_t const length = std::min<std::uint64_t>(call_bytes, bytes.size() - begin);
        auto const file_space = space_of_dataset(dataset);
        select_rows(file_space, first + begin / unit, length / unit);
        auto const memory_space = space_of({length / unit});
        check(H5Dread(dataset.id(), memory_type.id(), memory_space.id(), file_space.id(),
                      H5P_DEFAULT, bytes.data() + begin),
              Doing::reading, concat("H5Dread of ", named(path)));
    }
}

void File::read_rows(std::string const& path, Type type, Rows rows,
                     std::span<std::byte> values) const {
    auto const dataset = open_to_read(path);
    auto const space = space_of_dataset(dataset);
    auto shape = shape_of(space);
    require_within(named(path), shape.empty() ? 0 : shape.front(), rows.first, rows.count);
    if (rows.count == 0) {
        return;
    }
    select_rows(space, rows.first, rows.count);
    shape.front() = rows.count;
    require_fit(named(path), elements(shape), values.size() / size_of(type));
    Conversion const conversion;
    auto const memory_type = stored_type(type); // whose end would take the reason off the stack
    auto const memory_space = space_of(shape);
    auto const read = H5Dread(dataset.id(), memory_type.id(), memory_space.id(), space.id(),
                              conversion.list(), values.data());
    conversion.require_fit(named(path), type);
    check(read, Doing::reading, concat("H5Dread of ", named(path)));
}

bool File::exists(std::string const& path) const {
    return exists(path, 0);
}

bool File::exists(std::string const& path, int links) const {
    auto const there = [&](std::string const& name) {
        auto const found = H5Lexists(file_.id(), name.c_str(), H5P_DEFAULT);
        if (found >= 0) {
            return found > 0;
        }
        // What lies below a dataset is not there; what a disk does not give, nobody knows.
        auto const fault = take_fault();
        if (fault.error_number != 0) {
            throw system_error(concat("cannot look for ", name, " in ", path_.string()),
                               fault.error_number, "Check the disk's health");
        }
        return false;
    };
    // Every group on the way must be asked for by itself.
    for (auto slash = path.find('/', 1); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
        auto const group = path.substr(0, slash);
        if (H5Lexists(file_.id(), group.c_str(), H5P_DEFAULT) <= 0) {
            return false;
        }
        require_links(group, links);
    }
    return there(path);
}

DatasetInfo File::info(std::string const& path) const {
    auto const dataset = open_named(path);
    Handle const type{check(H5Dget_type(dataset.id()), Doing::reading, "H5Dget_type"), H5Tclose};
    auto const space = space_of_dataset(dataset);
    Handle const creation{
        check(H5Dget_create_plist(dataset.id()), Doing::reading, "H5Dget_create_plist"), H5Pclose};
    DatasetInfo info{path,  known_type(type.id()), readable_type(type.id()), shape_of(space),
                     false, std::nullopt};
    auto const offset = H5Dget_offset(dataset.id());
    bool const own_bytes = H5Pget_external_count(creation.id()) == 0 &&
                           file_of(dataset.id()) == path_; // links may lead elsewhere
    if (H5Pget_layout(creation.id()) == H5D_CONTIGUOUS && own_bytes && offset != HADDR_UNDEF) {
        info.contiguous = true;
        info.offset = offset;
    }
    return info;
}

namespace {

std::vector<std::string> names_of_datasets(Handle const& file) {
    std::vector<std::string> names;
    check(H5Ovisit2(file.id(), H5_INDEX_NAME, H5_ITER_INC, collect_name, &names, H5O_INFO_BASIC),
          Doing::reading, "H5Ovisit2");
    return names;
}

} // namespace

std::vector<DatasetInfo> File::datasets() const {
    std::vector<DatasetInfo> all;
    for (auto const& name : names_of_datasets(file_)) {
        all.push_back(info(name));
    }
    return all;
}

std::vector<std::string> File::names() const {
    auto names = names_of_datasets(file_);
    check(H5Lvisit(file_.id(), H5_INDEX_NAME, H5_ITER_INC, collect_link, &names), Doing::reading,
          "H5Lvisit");
    std::sort(names.begin(), names.end());
    return names;
}

void File::flush() {
    RefusedWrites const refused(*disk_);
    check(H5Fflush(file_.id(), H5F_SCOPE_GLOBAL), Doing::writing,
          concat("H5Fflush of ", path_.string()));
    require_written();
}

void File::close() {
    RefusedWrites const refused(*disk_);
    kept_open_.clear();
    file_.close(path_.string());
    require_written();
}

} // namespace lockstep::h5
