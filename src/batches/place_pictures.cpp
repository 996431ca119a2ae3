#include "batches/place_pictures.hpp"

#include "base/number.hpp"
#include "base/text.hpp"
#include "batches/pictures.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace lockstep::train {

namespace {

constexpr std::size_t max_shares = 8;       ///< that fit in a line
constexpr std::int64_t min_part = 128;      ///< of a part of a picture; smaller ones are enlarged
constexpr std::int64_t gap = 4;             ///< white columns between two parts
constexpr double strength = 0.55;           ///< of a colour over the image
constexpr double dark = 0.25;               ///< how bright places are that do not count
constexpr double golden = 0.61803398874989; ///< of the circle of hues, from a class to the next

/// Red, green and blue of a class, from 0 to 255.
std::array<double, 3> colour_of(std::int64_t c) {
    double const hue = 6 * std::fmod(golden * static_cast<double>(c), 1.0);
    std::array<double, 3> colour{};
    for (std::size_t i = 0; i < 3; ++i) {
        double const at = std::fmod(5 - 2 * static_cast<double>(i) + hue, 6.0);
        colour[i] = 255 * (1 - 0.85 * std::clamp(std::min(at, 4 - at), 0.0, 1.0));
    }
    return colour;
}

/// The image [height, width, 3] with classes in colours.
torch::Tensor coloured(torch::Tensor const& image, torch::Tensor const& classes,
                       torch::Tensor const& counts) {
    auto const last = std::max<std::int64_t>(classes.max().item<std::int64_t>(), 0);
    auto table = torch::zeros({last + 1, 3}, torch::kFloat32);
    for (std::int64_t c = 1; c <= last; ++c) {
        auto const colour = colour_of(c);
        table[c].copy_(torch::tensor({colour[0], colour[1], colour[2]}));
    }
    auto const of_places = table.index({classes.clamp_min(0)});
    auto const mixed = strength * of_places + (1 - strength) * image;
    auto const shown = torch::where(classes.gt(0).unsqueeze(-1), mixed, image);
    return torch::where(counts.unsqueeze(-1), shown, dark * image);
}

std::string name_of_class(std::int64_t c, std::vector<std::string> const& names) {
    return std::cmp_less(c, names.size()) ? names[static_cast<std::size_t>(c)] : std::to_string(c);
}

} // namespace

PlaceClasses classes_of_places(task::Task const& task, task::Tensors const& sample,
                               torch::Tensor const& output) {
    PlaceClasses classes{.truth = {}, .guess = output.argmax(0).to(torch::kCPU)};
    classes.truth =
        sample.targets.only().to(torch::kCPU, torch::kInt64).reshape(classes.guess.sizes());
    if (auto const counted = task.counted(sample); counted.defined()) {
        auto const leaves_out =
            counted.to(torch::kCPU).reshape(classes.guess.sizes()).logical_not();
        classes.truth = classes.truth.masked_fill(leaves_out, -1);
    }
    return classes;
}

std::int64_t worst_slice(PlaceClasses const& places) {
    if (places.truth.dim() != 3) {
        return -1;
    }
    auto const wrong = places.truth.ne(places.guess).logical_and(places.truth.ge(0));
    auto const mistakes = wrong.flatten(1).sum(1);
    auto const middle = mistakes.size(0) / 2;
    auto worst = middle;
    for (std::int64_t i = 0; i < mistakes.size(0); ++i) {
        auto const more = (mistakes[i] - mistakes[worst]).item<std::int64_t>();
        if (more > 0 || (more == 0 && std::abs(i - middle) < std::abs(worst - middle))) {
            worst = i;
        }
    }
    return worst;
}

std::string shares_text(torch::Tensor const& classes, std::vector<std::string> const& names) {
    auto const counted = classes.masked_select(classes.ge(0));
    auto const counts = torch::bincount(counted);
    std::vector<std::pair<std::int64_t, std::int64_t>> shares; // minus the places, the class
    for (std::int64_t c = 0; c < counts.size(0); ++c) {
        if (auto const places = counts[c].item<std::int64_t>(); places > 0) {
            shares.emplace_back(-places, c);
        }
    }
    std::ranges::sort(shares);
    if (shares.size() == 1) {
        return concat("only ", name_of_class(shares.front().second, names));
    }
    std::vector<std::string> texts;
    for (auto const& [places, c] : shares) {
        if (texts.size() == max_shares) {
            texts.emplace_back("…");
            break;
        }
        auto const share = -100.0 * static_cast<double>(places);
        texts.push_back(concat(name_of_class(c, names), " ",
                               significant(share / static_cast<double>(counted.numel()), 3), " %"));
    }
    return joined(texts, ", ");
}

std::optional<Picture> picture_of_places(torch::Tensor const& sample, bool channels_last,
                                         PlaceClasses const& places, std::int64_t slice) {
    auto const levels = levels_of(sample, channels_last, slice);
    if (!levels.defined() || places.truth.dim() != 2 ||
        levels.sizes().slice(0, 2) != places.truth.sizes()) {
        return std::nullopt;
    }
    auto const image = levels.to(torch::kFloat32).expand({levels.size(0), levels.size(1), 3});
    auto const counts = places.truth.ge(0);
    auto const times = std::max<std::int64_t>(
        1, min_part / std::max<std::int64_t>(levels.size(0), levels.size(1)));
    std::vector<torch::Tensor> parts;
    for (auto const& part :
         {image, coloured(image, places.truth, counts), coloured(image, places.guess, counts)}) {
        parts.push_back(part.repeat_interleave(times, 0).repeat_interleave(times, 1));
        parts.push_back(torch::full({parts.back().size(0), gap, 3}, 255.0F));
    }
    parts.pop_back();
    return picture_of(torch::cat(parts, 1).round().clamp(0, 255).to(torch::kUInt8));
}

std::string text_of_slice(torch::Tensor const& classes) {
    auto const all = classes.to(torch::kInt64).contiguous();
    auto const* const first = all.const_data_ptr<std::int64_t>();
    auto const* const end = first + all.numel();
    auto text = concat(all.size(0), " ", all.size(1));
    for (auto const* begin = first; begin != end;) {
        auto const* const other =
            std::find_if(begin, end, [&](std::int64_t c) { return c != *begin; });
        text += concat(" ", *begin, "x", other - begin);
        begin = other;
    }
    return text;
}

torch::Tensor slice_of_text(std::string const& text) {
    auto const words = split(text, ' ');
    auto const extent = [&](std::size_t at) {
        return number_of<std::int64_t>(words.at(at)).value();
    };
    std::vector<std::int64_t> classes;
    for (std::size_t i = 2; i < words.size(); ++i) {
        auto const run = split(words[i], 'x');
        classes.insert(classes.end(),
                       static_cast<std::size_t>(number_of<std::int64_t>(run.at(1)).value()),
                       number_of<std::int64_t>(run.at(0)).value());
    }
    return torch::tensor(classes).view({extent(0), extent(1)});
}

} // namespace lockstep::train
