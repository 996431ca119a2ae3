#include "source.hpp"

#include <algorithm>

namespace lockstep::data {

std::size_t Source::file_of(std::int64_t sample) const {
    auto const after = std::upper_bound(first_of_file.begin(), first_of_file.end(), sample);
    return static_cast<std::size_t>(after - first_of_file.begin()) - 1;
}

std::int64_t Source::end_of_file(std::size_t file) const {
    return file + 1 < first_of_file.size() ? first_of_file[file + 1] : samples;
}

} // namespace lockstep::data
