#include "origin.hpp"

#include "base/environment.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"

#include <hdf5.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "fault.hpp"
#include "space.hpp"
#include "types.hpp"

namespace lockstep::h5 {

namespace fs = std::filesystem;

namespace {

/// Views of views; a ring of them has no end.
constexpr int max_views = 16;

/// Links to links, as many as HDF5 follows.
constexpr int max_links = 16;

/// Registered filters, whose names files do not always hold.
constexpr std::array<std::pair<H5Z_filter_t, char const*>, 12> filter_names{{{4, "szip"},
                                                                             {307, "bzip2"},
                                                                             {32000, "lzf"},
                                                                             {32001, "blosc"},
                                                                             {32004, "lz4"},
                                                                             {32008, "bitshuffle"},
                                                                             {32013, "zfp"},
                                                                             {32015, "zstd"},
                                                                             {32017, "sz"},
                                                                             {32024, "sz3"},
                                                                             {32026, "blosc2"},
                                                                             {32028, "sperr"}}};

/// "${ORIGIN}" at the beginning stands for the directory of the file that names another.
fs::path expanded(std::string const& directory, fs::path const& holder) {
    constexpr std::string_view origin = "${ORIGIN}";
    return directory.starts_with(origin)
               ? fs::path(concat(holder.parent_path().string(), directory.substr(origin.size())))
               : fs::path(directory);
}

/// The first of the places that has an HDF5 file.
///
/// Throws  Error 66 that says what was looked for, and by whom; that of opening where all that are
///         there are none
File open_first(std::vector<fs::path> const& places, std::string const& what,
                fs::path const& name) {
    std::optional<Error> failure;
    for (auto const& place : places) {
        std::error_code unknown;
        if (fs::exists(place, unknown)) {
            try {
                return File::open(place);
            } catch (Error const& error) {
                failure = failure ? failure : error;
            }
        }
    }
    if (failure) {
        throw Error(failure->code(), {what, concat(failure->text().what, ": ", failure->text().why),
                                      failure->text().next});
    }
    throw Error(ExitCode::no_input, {what,
                                     concat("there is no file ", name.string(), " (looked for as ",
                                            joined({places.begin(), places.end()}, ", "), ")"),
                                     "Bring that file back, or copy it along"});
}

std::string link_value(Id file, std::string const& link, std::size_t bytes) {
    std::string value(std::max<std::size_t>(bytes, 1), '\0');
    check(H5Lget_val(file, link.c_str(), value.data(), value.size(), H5P_DEFAULT), Doing::reading,
          "H5Lget_val");
    return value;
}

} // namespace

fs::path file_of(Id object) {
    auto const length = check(H5Fget_name(object, nullptr, 0), Doing::reading, "H5Fget_name");
    std::string name(static_cast<std::size_t>(length) + 1, '\0');
    check(H5Fget_name(object, name.data(), name.size()), Doing::reading, "H5Fget_name");
    name.pop_back();
    return name;
}

std::vector<fs::path> places_of(fs::path const& name, fs::path const& holder,
                                char const* variable) {
    std::vector<fs::path> places;
    auto wanted = name;
    if (name.is_absolute()) {
        places.push_back(name);
        wanted = name.filename();
    }
    for (auto const& directory : split(environment_text(variable), ':')) {
        places.push_back(expanded(directory, holder) / wanted);
    }
    places.push_back(holder.parent_path() / wanted);
    places.push_back(wanted);
    std::error_code unknown;
    if (auto const actual = fs::canonical(holder, unknown); !unknown) {
        places.push_back(actual.parent_path() / wanted);
    }
    return places;
}

std::vector<RawFile> raw_files(Id creation, fs::path const& holder) {
    std::vector<RawFile> files;
    auto const count = static_cast<unsigned>(std::max(H5Pget_external_count(creation), 0));
    auto const prefix = environment_text("HDF5_EXTFILE_PREFIX");
    for (unsigned i = 0; i < count; ++i) {
        std::string name(4096, '\0');
        off_t offset = 0;
        hsize_t bytes = 0;
        check(H5Pget_external(creation, i, name.size() - 1, name.data(), &offset, &bytes),
              Doing::reading, "H5Pget_external");
        fs::path path = name.c_str();
        if (path.is_relative() && !prefix.empty() && prefix != ".") {
            path = expanded(prefix, holder) / path;
        }
        files.push_back({path, static_cast<std::uint64_t>(offset), bytes});
    }
    return files;
}

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
                    {what, concat("links lead to one another, or over more than ", max_links),
                     "Correct the links, or name the dataset in its own file"});
    }
    auto const file = open_first(places_of(name, path_, "HDF5_EXT_PREFIX"), what, name);
    if (!file.exists(object, links + 1)) {
        throw Error(ExitCode::no_input, {what,
                                         concat(file.path().string(), " has no ", object,
                                                "; it has ", joined(file.names(), ", ")),
                                         "Correct the link, or name the dataset in its own file"});
    }
    file.require_links(object, links + 1); // it may be one that leads nowhere itself
}

/// Of a link on the way to `path` that leads nowhere.
///
/// Throws  Error 66 that names it, and the file or object that it names; 65 where that file cannot
///         be opened, or links lead to one another
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
        throw Error(ExitCode::no_input,
                    {concat(link, " of ", path_.string(), " is a link to ", value),
                     concat("nothing is there, or it is over more than ", max_links, " links"),
                     "Correct the link, or name the dataset itself"});
    }
}

void require_filters(Id creation, std::string const& path, fs::path const& holder) {
    if (H5Pget_layout(creation) != H5D_CHUNKED) {
        return;
    }
    for (int i = 0; i < H5Pget_nfilters(creation); ++i) {
        std::array<char, 64> stored{};
        unsigned flags = 0;
        unsigned config = 0;
        std::size_t values = 0;
        auto const code = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values,
                                         nullptr, stored.size() - 1, stored.data(), &config);
        if (code < 0 || H5Zfilter_avail(code) > 0) {
            continue;
        }
        static_cast<void>(take_fault()); // of looking for a plug-in
        auto const* const known =
            std::find_if(filter_names.begin(), filter_names.end(),
                         [&](auto const& each) { return each.first == code; });
        std::string const name = known != filter_names.end() ? known->second : stored.data();
        throw Error(
            ExitCode::data,
            {concat("dataset ", path, " of ", holder.string(), " cannot be read"),
             concat("its chunks went through filter ", code, name.empty() ? "" : " ", name,
                    ", which is not here"),
             name == "lzf"
                 ? "h5py alone reads lzf: write the dataset again with h5py and "
                   "compression='gzip'"
                 : "Set HDF5_PLUGIN_PATH to a directory with its plug-in, such as that of PyPI's "
                   "hdf5plugin (python3 -c 'import hdf5plugin; print(hdf5plugin.PLUGIN_PATH)'), or "
                   "write the dataset again with gzip"});
    }
}

void require_raw_files(std::vector<RawFile> const& files, std::uint64_t bytes,
                       std::string const& path) {
    for (auto const& file : files) {
        auto const what =
            concat("dataset ", path, " has its bytes in another file, ", file.path.string());
        std::error_code missing;
        auto const there = fs::file_size(file.path, missing);
        if (missing) {
            throw Error(ExitCode::no_input,
                        {what, missing.message(),
                         "Bring that file back, or name its directory in HDF5_EXTFILE_PREFIX"});
        }
        auto const wanted = std::min(bytes, file.bytes);
        if (file.offset > there || wanted > there - file.offset) {
            throw Error(ExitCode::data,
                        {what,
                         concat("it was cut short: ", there, " bytes are there, and ", wanted,
                                " from byte ", file.offset, " on are needed"),
                         "Make or copy that file again"});
        }
        bytes -= wanted;
    }
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
    throw Error(ExitCode::data,
                {concat("dataset ", path, " of ", path_.string(), " cannot be opened"),
                 newer ? concat("its form is unknown to HDF5 (", reason,
                                "): a newer HDF5 wrote it, or it is damaged")
                       : concat("it is no dataset, or damaged (", reason, ")"),
                 newer ? for_older_hdf5 : "Name another, or make or copy the file again"});
}

Handle File::open_to_read(std::string const& path, int depth) const {
    auto dataset = open_named(path);
    if (!readable_.contains(path)) {
        require_sources(dataset, path, depth);
        readable_.insert(path);
    }
    // A view of blocks learns its extents when it is asked for them, and is read wrong before.
    space_of_dataset(dataset);
    return dataset;
}

namespace {

Handle creation_of(Handle const& dataset) {
    return {check(H5Dget_create_plist(dataset.id()), Doing::reading, "H5Dget_create_plist"),
            H5Pclose};
}

bool is_virtual(Handle const& creation) {
    return H5Pget_layout(creation.id()) == H5D_VIRTUAL;
}

/// A name of a virtual dataset's source, that of block 0 where each block has one.
template <class Get>
std::string source_name(Get get, Id creation, std::size_t which) {
    auto const length = check(get(creation, which, nullptr, 0), Doing::reading, "H5Pget_virtual_…");
    std::string name(static_cast<std::size_t>(length) + 1, '\0');
    check(get(creation, which, name.data(), name.size()), Doing::reading, "H5Pget_virtual_…");
    name.pop_back();
    std::string first;
    for (std::size_t i = 0; i < name.size(); ++i) {
        bool const escaped = name[i] == '%' && i + 1 < name.size();
        first += !escaped ? name[i] : name[++i] == 'b' ? '0' : name[i];
    }
    return first;
}

struct VirtualSource {
    std::string file;
    std::string dataset;
    std::size_t which = 0; ///< mapping
};

std::vector<VirtualSource> virtual_sources(Id creation) {
    std::size_t count = 0;
    check(H5Pget_virtual_count(creation, &count), Doing::reading, "H5Pget_virtual_count");
    std::vector<VirtualSource> sources;
    for (std::size_t i = 0; i < count; ++i) {
        sources.push_back({source_name(H5Pget_virtual_filename, creation, i),
                           source_name(H5Pget_virtual_dsetname, creation, i), i});
    }
    return sources;
}

/// Whether a source has all elements that a mapping takes from it; HDF5 takes fill values for
/// others.
bool reaches(Id creation, std::size_t which, Handle const& source) {
    Handle const wanted{
        check(H5Pget_virtual_srcspace(creation, which), Doing::reading, "H5Pget_virtual_srcspace"),
        H5Sclose};
    Handle const there{check(H5Dget_space(source.id()), Doing::reading, "H5Dget_space"), H5Sclose};
    auto const extents = shape_of(there);
    if (H5Sget_select_type(wanted.id()) == H5S_SEL_ALL) { // whatever is there
        Handle const shown{
            check(H5Pget_virtual_vspace(creation, which), Doing::reading, "H5Pget_virtual_vspace"),
            H5Sclose};
        auto const count = H5Sget_select_npoints(shown.id());
        return count < 0 || count == H5Sget_simple_extent_npoints(there.id());
    }
    std::vector<hsize_t> first(H5S_MAX_RANK);
    std::vector<hsize_t> last(H5S_MAX_RANK);
    if (H5Sget_select_bounds(wanted.id(), first.data(), last.data()) < 0) {
        static_cast<void>(take_fault());
        return true; // as many as there are
    }
    return std::equal(extents.begin(), extents.end(), last.begin(), std::greater<>());
}

/// Of the elements of a view, those that no mapping takes from anywhere; 0 where the view grows
/// with its sources.
std::int64_t unmapped(Id creation, Handle const& dataset) {
    std::size_t count = 0;
    check(H5Pget_virtual_count(creation, &count), Doing::reading, "H5Pget_virtual_count");
    Handle const space{check(H5Dget_space(dataset.id()), Doing::reading, "H5Dget_space"), H5Sclose};
    auto missing = H5Sget_simple_extent_npoints(space.id());
    for (std::size_t i = 0; i < count; ++i) {
        Handle const shown{
            check(H5Pget_virtual_vspace(creation, i), Doing::reading, "H5Pget_virtual_vspace"),
            H5Sclose};
        auto const points = H5Sget_select_npoints(shown.id());
        if (points < 0) {
            return 0;
        }
        missing -= points;
    }
    return std::max<std::int64_t>(missing, 0);
}

} // namespace

void File::require_sources(Handle const& dataset, std::string const& path, int depth) const {
    auto const creation = creation_of(dataset);
    auto const holder = file_of(dataset.id());
    require_filters(creation.id(), path, holder);
    if (auto const raw = raw_files(creation.id(), holder); !raw.empty()) {
        require_raw_files(raw, H5Dget_storage_size(dataset.id()), path);
    }
    if (!is_virtual(creation)) {
        return;
    }
    if (depth == max_views) {
        throw Error(ExitCode::data,
                    {concat("dataset ", path, " of ", holder.string(), " is a view of views"),
                     "they lead to one another", "Make the file again"});
    }
    std::map<std::string, File> files;
    for (auto const& source : virtual_sources(creation.id())) {
        auto const what = concat("dataset ", path, " of ", holder.string(), " is a view of ",
                                 source.dataset, " in ", source.file);
        auto const places = source.file == "." ? std::vector{holder}
                                               : places_of(source.file, holder, "HDF5_VDS_PREFIX");
        bool const here = source.file == "." && holder == path_;
        if (!here && !files.contains(source.file)) {
            files.emplace(source.file, open_first(places, what, source.file));
        }
        auto const& file = here ? *this : files.at(source.file);
        if (!file.exists(source.dataset)) {
            throw Error(ExitCode::no_input,
                        {what, concat(file.path().string(), " has no dataset ", source.dataset),
                         "Bring it back, or make the view again"});
        }
        if (!reaches(creation.id(), source.which, file.open_to_read(source.dataset, depth + 1))) {
            throw Error(ExitCode::data,
                        {what, "that does not have the elements that the view shows",
                         "Bring the whole of it back, or make the view again"});
        }
    }
    if (auto const missing = unmapped(creation.id(), dataset); missing > 0) {
        throw Error(ExitCode::data,
                    {concat("dataset ", path, " of ", holder.string(), " is a view"),
                     concat(missing, " of its elements are taken from no dataset: HDF5 gives fill "
                                     "values for them"),
                     "Make the view again, no larger than what it shows"});
    }
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
