#include "h5/file.hpp"

#include "base/file.hpp"
#include "base/file_kind.hpp"
#include "base/text.hpp"
#include "comm/native.hpp"
#include "h5/refused_writes.hpp"
#include "h5/version.hpp"
#include "lockstep/base/error.hpp"

#include <hdf5.h>

#include "disk.hpp"
#include "fault.hpp"
#include "origin.hpp"
#include "property_list.hpp"

namespace lockstep::h5 {

namespace {

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
        return error("the file is marked as open for writing, so a program is still writing to the "
                     "file, or has ended without closing it",
                     concat("Wait until that program closes the file. If no program has the file "
                            "open, run h5clear -s ",
                            path.string()));
    }
    if (says("superblock version")) {
        return error(concat("its format is unknown to HDF5 ", library_version(), " (", reason,
                            "), so a newer HDF5 wrote it, or it is damaged"),
                     for_older_hdf5);
    }
    if (says("truncated file")) {
        return error("it is an HDF5 file that is cut off",
                     "Copy the file again from its source, or create the file again");
    }
    auto const kind = kind_of_file(path);
    return error(is_hdf5(path)
                     ? std::string("it is an HDF5 file, and it was cut short or is damaged")
                 : kind.name.empty() ? std::string("it is not an HDF5 file, or it was cut short")
                                     : concat("it is ", kind.name),
                 kind.data.empty()
                     ? std::string("Copy the file again from its source, or create the file again")
                     : kind.data);
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
    std::error_code ignored; // what cannot be removed cannot be created either
    std::filesystem::remove(path, ignored);
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
                    {what, fault.why, "Check that the directory exists and can be written to"});
    }
    return {path, Handle(id, H5Fclose), disk};
}

File File::open(std::filesystem::path const& path) {
    // Says what HDF5 does not: no such file, no permission, a directory.
    static_cast<void>(lockstep::File::open_read(path));
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
                               "Check the disk's health, and the limit on open files (ulimit -n)");
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
        auto const what = concat("cannot open ", path.string(), " for parallel writing");
        constexpr char const* next = "Check the disk (free space, quota, health), and the limit on "
                                     "open files (ulimit -n)";
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
