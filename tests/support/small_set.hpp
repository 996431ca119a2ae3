#pragma once

#include "h5/file.hpp"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace lockstep::test {

/// A data set file of `samples` u8 images of 2 x 3; sample i holds i, i + 1, … and has label i % 4.
inline void write_small_set(std::filesystem::path const& path, std::uint64_t samples,
                            std::vector<std::int64_t> labels = {}) {
    std::vector<std::uint8_t> values;
    for (std::uint64_t i = 0; i < samples; ++i) {
        for (std::uint64_t j = 0; j < 6; ++j) {
            values.push_back(static_cast<std::uint8_t>(i + j));
        }
        if (labels.size() < samples) {
            labels.push_back(static_cast<std::int64_t>(labels.size() % 4));
        }
    }
    auto file = h5::File::create(path);
    file.create_dataset("inputs", h5::Type::u8, {samples, 2, 3});
    file.create_dataset("targets", h5::Type::i64, {samples});
    file.write("inputs", h5::Type::u8, values);
    file.write("targets", h5::Type::i64, labels);
    file.set_attribute("/", "mean", std::vector<double>{0.25});
    file.set_attribute("/", "std", std::vector<double>{0.5});
    file.set_attribute("/", "classes", std::vector<std::string>{"a", "b", "c", "d"});
    file.close();
}

} // namespace lockstep::test
