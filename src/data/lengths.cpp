#include "lockstep/data/lengths.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"
#include "lockstep/data/dataset.hpp"
#include "lockstep/h5/file.hpp"

namespace lockstep::data {

std::vector<std::int64_t> ragged_lengths(std::string const& files, std::string const& field) {
    auto const name = field + "_offsets";
    std::vector<std::int64_t> lengths;
    for (auto const& path : expand_files(files)) {
        auto const file = h5::File::open(path);
        if (!file.exists(name)) {
            throw Error(ExitCode::data, {path.string(),
                                         concat("it has no ", name, ": samples of ", field,
                                                " are all of one length"),
                                         "Set data.bucket-by-length = 0"});
        }
        std::vector<std::int64_t> offsets(h5::elements(file.info(name).shape));
        file.read(name, h5::Type::i64, offsets.data());
        for (std::size_t i = 1; i < offsets.size(); ++i) {
            lengths.push_back(offsets[i] - offsets[i - 1]);
        }
    }
    return lengths;
}

} // namespace lockstep::data
