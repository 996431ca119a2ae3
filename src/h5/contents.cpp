#include "base/text.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"

#include <hdf5.h>

#include <algorithm>
#include <utility>

#include "fault.hpp"
#include "origin.hpp"
#include "property_list.hpp"
#include "space.hpp"
#include "types.hpp"
#include "view.hpp"

namespace lockstep::h5 {

namespace {

constexpr std::ptrdiff_t max_groups = 100; ///< HDF5 visits groups by recursion

std::ptrdiff_t groups_above(std::string_view name) {
    return std::ranges::count(name, '/');
}

herr_t collect_link(hid_t, char const* name, H5L_info_t const* info, void* into) {
    if (info->type == H5L_TYPE_SOFT || info->type == H5L_TYPE_EXTERNAL) {
        static_cast<std::vector<std::string>*>(into)->emplace_back(name);
    }
    return groups_above(name) < max_groups ? 0 : 1; // ends the visit
}

herr_t collect_foreign(hid_t, char const* name, H5L_info_t const* info, void* into) {
    if (info->type != H5L_TYPE_HARD) {
        static_cast<std::vector<std::string>*>(into)->emplace_back(name);
    }
    return groups_above(name) < max_groups ? 0 : 1;
}

/// A dataset, and where its header lies: opened by its name, it would be looked for from the root.
struct Found {
    std::string name;
    haddr_t address;
};

herr_t collect_dataset(hid_t, char const* name, H5O_info_t const* info, void* into) {
    if (info->type == H5O_TYPE_DATASET) {
        static_cast<std::vector<Found>*>(into)->push_back({name, info->addr});
    }
    return groups_above(name) < max_groups ? 0 : 1;
}

/// What a visit of all links or objects of a file returned: that it came to its end.
void require_all_visited(herr_t visited, char const* call, std::filesystem::path const& path) {
    if (check(visited, Doing::reading, call) > 0) {
        throw Error(ExitCode::data,
                    {concat("cannot read ", path.string()),
                     concat("its groups are nested more than ", max_groups, " levels deep"),
                     "Copy its datasets to groups nearer to the root"});
    }
}

std::vector<Found> datasets_in(Handle const& file, std::filesystem::path const& path) {
    std::vector<Found> found;
    require_all_visited(
        H5Ovisit2(file.id(), H5_INDEX_NAME, H5_ITER_INC, collect_dataset, &found, H5O_INFO_BASIC),
        "H5Ovisit2", path);
    return found;
}

std::vector<std::string> names_of_datasets(Handle const& file, std::filesystem::path const& path) {
    std::vector<std::string> names;
    for (auto& each : datasets_in(file, path)) {
        names.push_back(std::move(each.name));
    }
    return names;
}

/// Whether values of a dataset of that creation list lie in other files.
bool lies_elsewhere(Handle const& creation) {
    if (H5Pget_external_count(creation.id()) != 0) {
        return true;
    }
    auto const elsewhere = [](VirtualSource const& source) { return source.file != "."; };
    return is_virtual(creation) && std::ranges::any_of(virtual_sources(creation.id()), elsewhere);
}

} // namespace

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
    if (groups_above(path) > max_groups) {
        return false;
    }
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
    auto const creation = creation_of(dataset);
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

std::vector<DatasetInfo> File::datasets() const {
    std::vector<DatasetInfo> all;
    for (auto const& name : names_of_datasets(file_, path_)) {
        all.push_back(info(name));
    }
    return all;
}

std::vector<std::string> File::names() const {
    auto names = names_of_datasets(file_, path_);
    require_all_visited(H5Lvisit(file_.id(), H5_INDEX_NAME, H5_ITER_INC, collect_link, &names),
                        "H5Lvisit", path_);
    std::sort(names.begin(), names.end());
    return names;
}

File File::open_self_contained(std::filesystem::path const& path) {
    auto file = open(path);
    file.require_self_contained();
    return file;
}

void File::require_self_contained() const {
    auto const refuse = [&](std::string const& name, std::string const& why) {
        throw Error(ExitCode::data,
                    {concat("cannot read ", path_.string()), concat(name, " in it ", why),
                     "Lockstep writes no such file. Copy the file again from its source"});
    };
    std::vector<std::string> links;
    require_all_visited(H5Lvisit(file_.id(), H5_INDEX_NAME, H5_ITER_INC, collect_foreign, &links),
                        "H5Lvisit", path_);
    if (!links.empty()) {
        refuse(links.front(), "is a link to another place or file");
    }
    for (auto const& [name, address] : datasets_in(file_, path_)) {
        Handle const dataset{
            check(H5Oopen_by_addr(file_.id(), address), Doing::reading, "H5Oopen_by_addr"),
            H5Oclose};
        if (lies_elsewhere(creation_of(dataset))) {
            refuse(name, "has its values in another file");
        }
    }
}

} // namespace lockstep::h5
