#include "data/lengths.hpp"

#include "base/text.hpp"
#include "data/checksums.hpp"
#include "data/format.hpp"
#include "h5/offsets.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/data/dataset.hpp"

namespace lockstep::data {

std::vector<std::int64_t> ragged_lengths(std::string const& files, std::string const& field) {
    auto const name = field + "_offsets";
    std::vector<std::int64_t> lengths;
    for (auto const& path : expand_files(files)) {
        auto const file = h5::File::open(path);
        if (!file.exists(name)) {
            throw Error(ExitCode::data,
                        {path.string(),
                         concat("it has no dataset ", name, ", so all samples of dataset ", field,
                                " have the same length"),
                         "Set data.bucket-by-length = 0"});
        }
        auto const rows = readable_dataset(file, field).shape.front();
        auto const offsets = h5::read_offsets(file, name, rows);
        for (std::size_t i = 1; i < offsets.size(); ++i) {
            lengths.push_back(offsets[i] - offsets[i - 1]);
        }
    }
    return lengths;
}

} // namespace lockstep::data
