#include "raw_files.hpp"

#include "base/environment.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <hdf5.h>

#include <algorithm>
#include <system_error>

#include "places.hpp"

namespace lockstep::h5 {

namespace fs = std::filesystem;

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
                         "Put that file back, or set HDF5_EXTFILE_PREFIX to its directory"});
        }
        auto const wanted = std::min(bytes, file.bytes);
        if (file.offset > there || wanted > there - file.offset) {
            throw Error(ExitCode::data,
                        {what,
                         concat("that file was cut short to ", there, " bytes, but ", wanted,
                                " bytes are needed, starting at byte ", file.offset),
                         "Copy that file again from its source, or create it again"});
        }
        bytes -= wanted;
    }
}

} // namespace lockstep::h5
