#pragma once

#include "h5/file.hpp"

#include <string>
#include <vector>

namespace lockstep::test {

/// Makes a dataset of these values.
template <class Stored>
void put(h5::File& file, std::string const& name, h5::Type type, h5::Shape const& shape,
         std::vector<Stored> const& values) {
    file.create_dataset(name, type, shape);
    file.write(name, type, values);
}

} // namespace lockstep::test
