#include "operator_libraries.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

#include "open_library.hpp"

namespace lockstep::nn {

std::vector<std::string> operator_libraries(std::string const& value) {
    auto files = split(value, ',');
    if (std::ranges::any_of(files, [](auto const& file) { return file.empty(); })) {
        throw Error(ExitCode::usage,
                    {concat("model.", operators_key, " = ", value),
                     "a name in this list of libraries is empty",
                     "Separate libraries by single commas, with none before or after them"});
    }
    return files;
}

void open_operator_libraries(config::OwnValues const& values) {
    for (auto const& file : operator_libraries(values.text(operators_key))) {
        open_library("the library of operators", file, "Correct model.operators");
    }
}

} // namespace lockstep::nn
