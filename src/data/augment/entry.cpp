#include "data/augment/entry.hpp"

#include "base/letter_case.hpp"
#include "base/number.hpp"
#include "base/suggestion.hpp"
#include "base/text.hpp"
#include "data/convert.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/h5/storage.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep::data {

namespace {

ChangeKind const* kind_named(std::string_view name) {
    auto const kinds = change_kinds();
    auto const found = std::ranges::find(kinds, name, &ChangeKind::name);
    return found == kinds.end() ? nullptr : &*found;
}

std::string_view name_of(std::string_view word) {
    return trimmed(word.substr(0, word.find_first_of(":@")));
}

/// Our name of an augmentation that torchvision or others have under this one.
std::string name_elsewhere(std::string_view name) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 22> names{
        {{"randomhorizontalflip", "flip"},
         {"hflip", "flip"},
         {"horizontalflip", "flip"},
         {"randomcrop", "crop"},
         {"randomresizedcrop", "resized-crop"},
         {"rrc", "resized-crop"},
         {"colorjitter", "colour"},
         {"jitter", "colour"},
         {"color", "colour"},
         {"colors", "colour"},
         {"randomaffine", "affine"},
         {"randomrotation", "affine"},
         {"rotate", "affine"},
         {"rotation", "affine"},
         {"gaussianblur", "blur"},
         {"randomerasing", "erase"},
         {"cutout", "erase"},
         {"randomgrayscale", "gray"},
         {"gaussiannoise", "noise"},
         {"trivialaugmentwide", "trivialaugment"},
         {"specaugment", "mask"},
         {"timeshift", "shift"}}};
    std::string plain;
    for (char const c : lower_case(std::string(name))) {
        if (c != '-' && c != '_') {
            plain += c;
        }
    }
    auto const found = std::ranges::find(names, plain, [](auto const& each) { return each.first; });
    return std::string(found == names.end() ? name : found->second);
}

} // namespace

Entry::Entry(std::string const& list, std::string const& word, SampleForm const& form)
    : list_(list), word_(word), form_(form) {
    kind_ = kind_named(name_of(word));
    if (kind_ == nullptr) {
        std::vector<std::string> names;
        for (auto const& kind : change_kinds()) {
            names.emplace_back(kind.name);
        }
        refuse("unknown augmentation", suggestion(name_elsewhere(name_of(word)), names,
                                                  concat("Use ", list_text(names, "or"),
                                                         "; lockstep data augment explains them")));
    }
    auto const at = word.find('@');
    arguments_ = split(std::string_view(word).substr(0, at), ':');
    arguments_.erase(arguments_.begin());
    if (arguments_.size() < kind_->needed || arguments_.size() > kind_->arguments.size()) {
        refuse_form(concat("expected ", kind_->form()));
    }
    if (at != std::string::npos) {
        auto const chance =
            number_of<double>(trimmed(std::string_view(word).substr(at + 1))).value_or(0);
        if (!(chance > 0 && chance <= 1)) {
            refuse_form("after @ stands the probability of an entry, above 0 and at most 1");
        }
        named_probability_ = chance;
    }
}

void Entry::refuse(std::string const& why, std::string const& next) const {
    throw Error(ExitCode::usage,
                {concat("data.augment = ", list_, " (entry '", word_, "')"), why, next});
}

void Entry::refuse_form(std::string const& why) const {
    refuse(why, concat("Use an entry of the form ", kind_->form(), ": ", kind_->meaning));
}

double Entry::number(std::size_t which, double low, double high) const {
    auto const value = number_of<double>(arguments_[which]).value_or(low - 1);
    if (!(value >= low && value <= high)) {
        refuse_form(high < 1e9
                        ? concat(kind_->arguments[which], " is a number from ", low, " to ", high)
                        : concat(kind_->arguments[which], " is a number of at least ", low));
    }
    return value;
}

std::int64_t Entry::whole(std::size_t which, double low, double high) const {
    auto const value = number(which, low, high);
    if (value != std::floor(value)) {
        refuse_form(concat(kind_->arguments[which], " is a whole number"));
    }
    return static_cast<std::int64_t>(value);
}

void Entry::require_order(double low, double high) const {
    if (low > high) {
        refuse_form(concat("a range from ", low, " to ", high, " is empty"));
    }
}

std::vector<std::size_t> Entry::picture() const {
    auto const& places = form_.axes.places;
    if (places.size() < 2) {
        refuse(concat(kind_->name, " needs samples with a height and a width, but a sample has ",
                      places.empty() ? std::string("features alone")
                                     : concat("rows of ", amount_of(form_.channels(), "feature"))),
               concat("Leave out ", kind_->name));
    }
    return {places.end() - 2, places.end()};
}

std::size_t Entry::time() const {
    if (form_.axes.places.empty()) {
        refuse(concat("a sample is a row of features, which is no series in time"),
               concat("Leave out ", kind_->name));
    }
    return form_.axes.places.front();
}

void Entry::require_scales() const {
    if (!form_.scales_fit()) {
        refuse(concat("the ", form_.mean.size(),
                      " means of data.train are not those of the channels of a sample"),
               concat("Leave out ", kind_->name));
    }
}

void Entry::require_colours() const {
    static_cast<void>(picture());
    auto const channels = form_.channels();
    if (channels != 1 && channels != 3) {
        auto const& shape = form_.input.shape;
        auto const layout = form_.layout_text();
        bool const at_front = layout.starts_with("channels-first");
        auto const other = layout.empty() ? std::uint64_t{0}
                           : at_front     ? shape.back()
                                          : shape.front();
        refuse(concat(kind_->name, " needs pictures of 1 or 3 channels, but a sample of shape ",
                      h5::shape_text(shape), " has ", channels,
                      layout.empty() ? "" : concat(" (", layout, ")")),
               form_.axes.known && (other == 1 || other == 3)
                   ? concat("Set model.layout = ", at_front ? "channels-last" : "channels-first",
                            ", or leave out ", kind_->name)
                   : concat("Leave out ", kind_->name));
    }
    if (form_.input.type != h5::Type::u8 && is_whole(form_.input.type)) {
        refuse(concat("the values of dataset ", form_.input.name,
                      " are whole numbers of other types than u8, so it is not known which of them "
                      "is white"),
               concat("Leave out ", kind_->name,
                      ", or import pictures of 8 bits, or values from 0 to 1"));
    }
    require_scales();
}

std::vector<std::string> moving_entries(std::string const& list) {
    std::vector<std::string> names;
    for (auto const& word : split(list, ',')) {
        auto const* const kind = kind_named(name_of(word));
        if (kind != nullptr && kind->moves && std::ranges::count(names, kind->name) == 0) {
            names.emplace_back(kind->name);
        }
    }
    return names;
}

bool mixes_samples(std::string const& list) {
    return std::ranges::any_of(split(list, ','), [](std::string const& word) {
        auto const* const kind = kind_named(name_of(word));
        return kind != nullptr && kind->make == nullptr;
    });
}

} // namespace lockstep::data
