#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep {

/// Takes "--name VALUE" or "--name=VALUE" out of the arguments; `otherwise` where it is missing. Of
/// several the last one counts.
std::string take_option(std::vector<std::string>& arguments, std::string const& name,
                        std::string const& otherwise);
/// Takes "--name" out of the arguments; whether it was there.
bool take_flag(std::vector<std::string>& arguments, std::string const& name);
/// Throws Error 64 when an option has none of these values.
void require_one_of(std::string const& option, std::string const& value,
                    std::vector<std::string> const& names);
/// Throws Error 64 when an argument is left that begins with "--", or when there are fewer
/// arguments than `least` or more than `most`.
void expect_arguments(std::vector<std::string> const& arguments, std::size_t least,
                      std::size_t most, std::string const& usage);

} // namespace lockstep
