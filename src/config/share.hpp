#pragma once

#include <optional>
#include <string>

namespace lockstep::config {

/// The per cent of a text such as "10 %", which data.validation may be instead of files; nothing
/// for any other text.
std::optional<double> share_of(std::string const& files);

} // namespace lockstep::config
