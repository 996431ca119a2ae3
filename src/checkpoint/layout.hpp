#pragma once

#include "h5/dataset.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::checkpoint {

/// One flat array over all ranks, such as "state/parameters".
struct Array {
    std::string name;
    h5::Type type = h5::Type::f32;
    std::uint64_t elements = 0;
};

/// Where arrays and views are described in the file.
inline constexpr char const* layout_path = "record/layout";

/// The arrays and views as one text, the same for the same layout.
std::string layout_text(std::vector<Array> const& arrays, std::vector<h5::View> const& views);

/// The arrays and views of such a text. Throws Error 65 that names `path`.
void read_layout(std::string const& text, std::filesystem::path const& path,
                 std::vector<Array>& arrays, std::vector<h5::View>& views);

} // namespace lockstep::checkpoint
