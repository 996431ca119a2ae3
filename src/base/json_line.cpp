#include "base/json_line.hpp"

#include "base/json_text.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>
#include <utility>

namespace lockstep {

JsonLine::JsonLine(std::string const& text) {
    auto json = json_or_nothing(text);
    if (json.is_object()) {
        json_ = std::make_shared<nlohmann::json const>(std::move(json));
    }
}

nlohmann::json const* JsonLine::value(std::string const& key) const {
    if (!json_) {
        return nullptr;
    }
    auto const at = json_->find(key);
    return at == json_->end() ? nullptr : &*at;
}

double JsonLine::number(std::string const& key) const {
    auto const* found = value(key);
    return found != nullptr && found->is_number() ? found->get<double>()
                                                  : std::numeric_limits<double>::quiet_NaN();
}

std::int64_t JsonLine::whole(std::string const& key, std::int64_t otherwise) const {
    constexpr double exact = 9e15; // what a double holds to the unit
    auto const found = number(key);
    return std::abs(found) < exact ? static_cast<std::int64_t>(found) : otherwise;
}

std::string JsonLine::text(std::string const& key) const {
    auto const* found = value(key);
    return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

bool JsonLine::flag(std::string const& key, bool otherwise) const {
    auto const* found = value(key);
    return found != nullptr && found->is_boolean() ? found->get<bool>() : otherwise;
}

std::vector<std::string> JsonLine::texts(std::string const& key) const {
    std::vector<std::string> all;
    auto const* found = value(key);
    if (found != nullptr && found->is_array()) {
        for (auto const& entry : *found) {
            all.push_back(entry.is_string() ? entry.get<std::string>() : std::string());
        }
    }
    return all;
}

JsonLine JsonLine::within(nlohmann::json const* found) const {
    JsonLine inner;
    if (found != nullptr && found->is_object()) {
        inner.json_ = std::shared_ptr<nlohmann::json const>(json_, found);
    }
    return inner;
}

JsonLine JsonLine::record(std::string const& key) const {
    return within(value(key));
}

std::vector<JsonLine> JsonLine::records(std::string const& key) const {
    std::vector<JsonLine> all;
    auto const* found = value(key);
    if (found != nullptr && found->is_array()) {
        for (auto const& entry : *found) {
            if (entry.is_object()) {
                all.push_back(within(&entry));
            }
        }
    }
    return all;
}

std::vector<std::vector<double>> JsonLine::rows(std::string const& key) const {
    std::vector<std::vector<double>> all;
    auto const* found = value(key);
    if (found == nullptr || !found->is_array()) {
        return all;
    }
    for (auto const& row : *found) {
        auto& numbers = all.emplace_back();
        if (row.is_array()) {
            for (auto const& entry : row) {
                numbers.push_back(entry.is_number() ? entry.get<double>()
                                                    : std::numeric_limits<double>::quiet_NaN());
            }
        }
    }
    return all;
}

std::map<std::string, double> JsonLine::numbers() const {
    std::map<std::string, double> all;
    if (json_) {
        for (auto const& [key, entry] : json_->items()) {
            if (entry.is_number()) {
                all[key] = entry.get<double>();
            }
        }
    }
    return all;
}

} // namespace lockstep
