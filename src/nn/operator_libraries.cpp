#include "operator_libraries.hpp"

#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"

#include <string>

#include "open_library.hpp"

namespace lockstep::nn {

std::uint64_t open_operator_libraries(config::OwnValues const& values) {
    std::string contents;
    for (auto const& file : split(values.text(operators_key), ',')) {
        open_library("the library of operators", file, "Correct model.operators");
        contents += hex(hash64(read_text(file)));
    }
    return contents.empty() ? 0 : hash64(contents);
}

} // namespace lockstep::nn
