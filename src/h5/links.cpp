#include "base/text.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"

#include <hdf5.h>

#include <algorithm>

#include "places.hpp"

namespace lockstep::h5 {

namespace {

/// Links to links, as many as HDF5 follows.
constexpr int max_links = 16;

std::string link_value(Id file, std::string const& link, std::size_t bytes) {
    std::string value(std::max<std::size_t>(bytes, 1), '\0');
    check(H5Lget_val(file, link.c_str(), value.data(), value.size(), H5P_DEFAULT), Doing::reading,
          "H5Lget_val");
    return value;
}

} // namespace

/// The target of an external link.
void File::require_external(std::string const& value, std::string const& link, int links) const {
    char const* name = nullptr;
    char const* object = nullptr;
    unsigned flags = 0;
    check(H5Lunpack_elink_val(value.data(), value.size(), &flags, &name, &object), Doing::reading,
          "H5Lunpack_elink_val");
    auto const what = concat(link, " of ", path_.string(), " is a link to ", object, " in ", name);
    if (links == max_links) {
        throw Error(ExitCode::data,
                    {what, concat("links form a cycle, or a chain of more than ", max_links),
                     "Correct the links, or name the file that holds the dataset itself"});
    }
    auto const file = open_first(places_of(name, path_, "HDF5_EXT_PREFIX"), what, name);
    if (!file.exists(object, links + 1)) {
        throw Error(ExitCode::no_input,
                    {what,
                     concat(file.path().string(), " has no ", object, "; it has ",
                            joined(file.names(), ", ")),
                     "Correct the link, or name the file that contains the dataset itself"});
    }
    file.require_links(object, links + 1); // it may be one that leads nowhere itself
}

/// Refuses a link on the way to `path` that leads nowhere.
///
/// Throws  Error 66 that names it, and the file or object that it names; 65 where that file cannot
///         be opened, or links form a cycle
void File::require_links(std::string const& path, int links) const {
    auto const file = file_.id();
    for (std::size_t slash = 0; slash != std::string::npos;) {
        slash = path.find('/', slash + 1);
        auto const link = path.substr(0, slash);
        H5L_info_t info{};
        if (H5Lexists(file, link.c_str(), H5P_DEFAULT) <= 0 ||
            H5Lget_info(file, link.c_str(), &info, H5P_DEFAULT) < 0) {
            return;
        }
        if (info.type == H5L_TYPE_HARD || H5Oexists_by_name(file, link.c_str(), H5P_DEFAULT) > 0) {
            continue;
        }
        if (info.type == H5L_TYPE_EXTERNAL) {
            require_external(link_value(file, link, info.u.val_size), link, links);
        }
        auto const value = info.type == H5L_TYPE_SOFT
                               ? std::string(link_value(file, link, info.u.val_size).c_str())
                               : std::string("an object of another file");
        throw Error(
            ExitCode::no_input,
            {concat(link, " of ", path_.string(), " is a link to ", value),
             concat("its target does not exist, or is more than ", max_links, " links away"),
             "Correct the link, or name the dataset itself"});
    }
}

} // namespace lockstep::h5
