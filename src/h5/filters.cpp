#include "filters.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <hdf5.h>

#include <algorithm>
#include <array>
#include <utility>

#include "fault.hpp"

namespace lockstep::h5 {

namespace fs = std::filesystem;

namespace {

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

} // namespace

std::vector<StoredFilter> filters_of(Id creation) {
    std::vector<StoredFilter> filters;
    int const count = H5Pget_nfilters(creation);
    for (int i = 0; i < count; ++i) {
        std::array<char, 64> name{};
        unsigned flags = 0;
        unsigned config = 0;
        std::size_t values = 0;
        auto const code = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values,
                                         nullptr, name.size() - 1, name.data(), &config);
        filters.push_back({code, name.data()});
    }
    return filters;
}

void require_filters(Id creation, std::string const& path, fs::path const& holder) {
    if (H5Pget_layout(creation) != H5D_CHUNKED) {
        return;
    }
    for (auto const& filter : filters_of(creation)) {
        if (filter.code < 0 || H5Zfilter_avail(filter.code) > 0) {
            continue;
        }
        static_cast<void>(take_fault()); // of looking for a plug-in
        auto const* const known =
            std::find_if(filter_names.begin(), filter_names.end(),
                         [&](auto const& each) { return each.first == filter.code; });
        std::string const name = known != filter_names.end() ? known->second : filter.name;
        throw Error(
            ExitCode::data,
            {concat("dataset ", path, " of ", holder.string(), " cannot be read"),
             concat("its chunks need filter ", filter.code, name.empty() ? "" : " ", name,
                    ", which is not installed here"),
             name == "lzf"
                 ? "Write the dataset again with h5py and compression='gzip', because only h5py "
                   "reads lzf"
                 : "Set HDF5_PLUGIN_PATH to a directory that has the filter's plug-in, such as "
                   "that of PyPI's hdf5plugin (python3 -c 'import hdf5plugin; "
                   "print(hdf5plugin.PLUGIN_PATH)'), or "
                   "write the dataset again with gzip"});
    }
}

} // namespace lockstep::h5
