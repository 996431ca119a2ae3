#include "operator_libraries.hpp"

#include "base/text.hpp"

#include <string>

#include "open_library.hpp"

namespace lockstep::nn {

void open_operator_libraries(config::OwnValues const& values) {
    for (auto const& file : split(values.text(operators_key), ',')) {
        open_library("the library of operators", file, "Correct model.operators");
    }
}

} // namespace lockstep::nn
