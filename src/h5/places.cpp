#include "places.hpp"

#include "base/environment.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <optional>
#include <string_view>

namespace lockstep::h5 {

namespace fs = std::filesystem;

fs::path expanded(std::string const& directory, fs::path const& holder) {
    constexpr std::string_view origin = "${ORIGIN}";
    return directory.starts_with(origin)
               ? fs::path(concat(holder.parent_path().string(), directory.substr(origin.size())))
               : fs::path(directory);
}

std::vector<fs::path> places_of(fs::path const& name, fs::path const& holder,
                                char const* variable) {
    std::vector<fs::path> places;
    auto wanted = name;
    if (name.is_absolute()) {
        places.push_back(name);
        wanted = name.filename();
    }
    for (auto const& directory : split(environment_text(variable), ':')) {
        places.push_back(expanded(directory, holder) / wanted);
    }
    places.push_back(holder.parent_path() / wanted);
    places.push_back(wanted);
    std::error_code unknown;
    if (auto const actual = fs::canonical(holder, unknown); !unknown) {
        places.push_back(actual.parent_path() / wanted);
    }
    return places;
}

File open_first(std::vector<fs::path> const& places, std::string const& what,
                fs::path const& name) {
    std::optional<Error> failure;
    for (auto const& place : places) {
        std::error_code unknown;
        if (fs::exists(place, unknown)) {
            try {
                return File::open(place);
            } catch (Error const& error) {
                failure = failure ? failure : error;
            }
        }
    }
    if (failure) {
        throw Error(failure->code(),
                    {what, concat(failure->text().what, " (", failure->text().why, ")"),
                     failure->text().next});
    }
    throw Error(ExitCode::no_input, {what,
                                     concat("there is no file ", name.string(), " (looked for as ",
                                            joined({places.begin(), places.end()}, ", "), ")"),
                                     "Copy that file to one of these paths"});
}

} // namespace lockstep::h5
