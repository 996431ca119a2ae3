#include "h5/offsets.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

namespace lockstep::h5 {

std::vector<std::int64_t> read_offsets(File const& file, std::string const& path,
                                       std::uint64_t rows) {
    auto const shape = file.info(path).shape;
    std::vector<std::int64_t> offsets;
    if (shape.size() == 1 && shape.front() >= 2) {
        offsets.resize(shape.front());
        file.read(path, Type::i64, offsets);
    }
    if (offsets.empty() || offsets.front() != 0 ||
        offsets.back() != static_cast<std::int64_t>(rows) || !std::ranges::is_sorted(offsets)) {
        throw Error(ExitCode::data,
                    {file.path().string(),
                     concat("dataset ", path, " does not divide ", rows, " rows into samples"),
                     "For N samples, store N + 1 integers in this dataset: the first row of each "
                     "sample, then the number of rows"});
    }
    return offsets;
}

} // namespace lockstep::h5
