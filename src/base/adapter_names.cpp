#include "base/adapter_names.hpp"

#include "base/text.hpp"

namespace lockstep {

bool is_of_adapter(std::string_view name, char dot) {
    auto const part = name.substr(name.rfind(dot) + 1); // all of it where there is none
    return part == adapter_a || part == adapter_b;
}

std::string adapter_name(std::string_view weight, std::string_view part) {
    constexpr std::string_view last = "weight";
    bool const is_one = weight.ends_with(last) && (weight == last || weight.ends_with(".weight"));
    return is_one ? concat(weight.substr(0, weight.size() - last.size()), part) : "";
}

} // namespace lockstep
