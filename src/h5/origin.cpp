#include "origin.hpp"

#include "base/text.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"

#include <hdf5.h>

#include <algorithm>
#include <map>

#include "extent.hpp"
#include "fault.hpp"
#include "filters.hpp"
#include "places.hpp"
#include "property_list.hpp"
#include "raw_files.hpp"
#include "space.hpp"
#include "view.hpp"

namespace lockstep::h5 {

namespace fs = std::filesystem;

namespace {

/// Views of views; a ring of them has no end.
constexpr int max_views = 16;

/// Sources of sources that HDF5 follows whenever it reads a view: their number may grow with each
/// level.
constexpr int max_nested = 100'000;

} // namespace

fs::path file_of(Id object) {
    auto const length = check(H5Fget_name(object, nullptr, 0), Doing::reading, "H5Fget_name");
    std::string name(static_cast<std::size_t>(length) + 1, '\0');
    check(H5Fget_name(object, name.data(), name.size()), Doing::reading, "H5Fget_name");
    name.pop_back();
    return name;
}

Handle File::open_named(std::string const& path) const {
    auto const id = H5Dopen2(file_.id(), path.c_str(), H5P_DEFAULT);
    if (id >= 0) {
        return {id, H5Dclose};
    }
    auto const fault = take_fault();
    if (fault.error_number != 0) {
        throw system_error(concat("cannot open ", named(path)), fault.error_number,
                           "Check the disk's health");
    }
    auto const& reason = fault.why;
    require_links(path, 0);
    bool const newer = reason.find("version") != std::string::npos;
    throw Error(
        ExitCode::data,
        {concat("dataset ", path, " of ", path_.string(), " cannot be opened"),
         newer ? concat("its format is unknown to HDF5 (", reason,
                        "), so a newer HDF5 wrote it, or it is damaged")
               : concat("it is not a dataset, or it is damaged (", reason, ")"),
         newer ? for_older_hdf5
               : "Name another dataset. If the file is damaged, copy it again from its source"});
}

Handle File::open_to_read(std::string const& path, int depth) const {
    auto dataset = open_named(path);
    if (!readable_.contains(path)) {
        readable_[path] = require_sources(dataset, path, depth);
    }
    // A view of blocks learns its extents when it is asked for them, and is read wrong before.
    space_of_dataset(dataset);
    return dataset;
}

int File::require_sources(Handle const& dataset, std::string const& path, int depth) const {
    auto const creation = creation_of(dataset);
    auto const holder = file_of(dataset.id());
    require_filters(creation.id(), path, holder);
    if (auto const raw = raw_files(creation.id(), holder); !raw.empty()) {
        require_raw_files(raw, H5Dget_storage_size(dataset.id()), path);
    }
    if (!is_virtual(creation)) {
        require_bounded(dataset, creation, path, holder);
        return 0;
    }
    if (depth == max_views) {
        throw Error(
            ExitCode::data,
            {concat("dataset ", path, " of ", holder.string(), " has no readable source"),
             "its virtual datasets are nested more than 16 deep, or refer to each other in a "
             "circle",
             "Recreate the file so that its virtual datasets refer to the files that hold "
             "the data"});
    }
    std::map<std::string, File> files;
    int followed = 0; // sources, with theirs
    int nested = 0;
    for (auto const& source : virtual_sources(creation.id())) {
        auto const what = concat("dataset ", path, " of ", holder.string(),
                                 " is a view of dataset ", source.dataset, " in ", source.file);
        auto const places = source.file == "." ? std::vector{holder}
                                               : places_of(source.file, holder, "HDF5_VDS_PREFIX");
        bool const here = source.file == "." && holder == path_;
        if (!here && !files.contains(source.file)) {
            files.emplace(source.file, open_first(places, what, source.file));
        }
        auto const& file = here ? *this : files.at(source.file);
        if (!file.exists(source.dataset)) {
            throw Error(ExitCode::no_input,
                        {what,
                         concat("this source dataset does not exist in ", file.path().string()),
                         "Put the source dataset back, or create the view again"});
        }
        if (!reaches(creation.id(), source.which, file.open_to_read(source.dataset, depth + 1))) {
            throw Error(ExitCode::data, {what, "the source lacks elements that the view shows",
                                         "Put the whole source back, or create the view again"});
        }
        auto const below = file.readable_.at(source.dataset);
        followed += 1 + below;
        nested += below;
        if (nested > max_nested) {
            throw Error(ExitCode::data,
                        {concat("dataset ", path, " of ", holder.string(), " is a view of views"),
                         concat("to read it, more than ", max_nested,
                                " sources of its sources would be opened"),
                         "Recreate the file so that its virtual datasets refer to the files that "
                         "hold the data"});
        }
    }
    if (auto const missing = unmapped(creation.id(), dataset); missing > 0) {
        throw Error(
            ExitCode::data,
            {concat("dataset ", path, " of ", holder.string(), " is a view"),
             concat(missing, missing == 1 ? " of its elements has" : " of its elements have",
                    " no source dataset, so HDF5 returns fill values there"),
             "Recreate the view so that it is no larger than its source datasets"});
    }
    return followed;
}

Origin File::origin(std::string const& path) const {
    auto const dataset = open_to_read(path);
    auto const creation = creation_of(dataset);
    std::string name(4096, '\0');
    check(H5Iget_name(dataset.id(), name.data(), name.size()), Doing::reading, "H5Iget_name");
    Origin origin{.file = file_of(dataset.id()),
                  .name = name.c_str(),
                  .is_virtual = is_virtual(creation),
                  .sources = {}};
    auto const add = [&](fs::path const& file) {
        if (std::find(origin.sources.begin(), origin.sources.end(), file) == origin.sources.end()) {
            origin.sources.push_back(file);
        }
    };
    for (auto const& raw : raw_files(creation.id(), origin.file)) {
        add(raw.path);
    }
    if (origin.is_virtual) {
        for (auto const& source : virtual_sources(creation.id())) {
            if (source.file != ".") {
                add(open_first(places_of(source.file, origin.file, "HDF5_VDS_PREFIX"), path,
                               source.file)
                        .path());
            }
        }
    }
    return origin;
}

} // namespace lockstep::h5
