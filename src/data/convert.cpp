#include "data/convert.hpp"

#include "comm/rounding.hpp"
#include "h5/file.hpp"

#include <algorithm>
#include <cstring>

namespace lockstep::data {

namespace {

template <class Stored>
Stored element(std::span<std::byte const> raw, std::size_t at) {
    Stored value{};
    std::memcpy(&value, raw.data() + at * sizeof(Stored), sizeof(Stored));
    return value;
}

template <class Stored>
void widen(std::span<std::byte const> raw, std::span<std::int64_t> into) {
    for (std::size_t i = 0; i < into.size(); ++i) {
        // NOLINTNEXTLINE(bugprone-signed-char-misuse,cert-str34-c): numbers, not letters
        into[i] = static_cast<std::int64_t>(element<Stored>(raw, i));
    }
}

} // namespace

Normaliser::Normaliser(h5::Type type, h5::Shape const& shape, std::vector<double> const& mean,
                       std::vector<double> const& std)
    : type_(type),
      plane_(std::max<std::size_t>(h5::elements(shape) / std::max<std::size_t>(mean.size(), 1), 1)),
      mean_(mean.begin(), mean.end()), std_(std.begin(), std.end()) {
    if (type_ != h5::Type::u8) {
        return;
    }
    for (std::size_t channel = 0; channel < std::max<std::size_t>(mean.size(), 1); ++channel) {
        auto& table = tables_.emplace_back();
        for (std::size_t value = 0; value < table.size(); ++value) {
            table[value] = static_cast<float>(value) / 255.0F;
            if (!mean_.empty()) {
                table[value] = (table[value] - mean_[channel]) / std_[channel];
            }
        }
    }
}

bool Normaliser::changes_nothing() const noexcept {
    return type_ == h5::Type::f32 && mean_.empty();
}

template <class Stored>
void Normaliser::normalise(std::span<std::byte const> raw, std::span<float> into) const {
    if (mean_.empty()) {
        for (std::size_t i = 0; i < into.size(); ++i) {
            into[i] = static_cast<float>(element<Stored>(raw, i));
        }
        return;
    }
    for (std::size_t begin = 0; begin < into.size(); begin += plane_) {
        auto const channel = begin / plane_ % mean_.size();
        float const shift = mean_[channel];
        float const scale = std_[channel];
        for (std::size_t i = begin; i < std::min(begin + plane_, into.size()); ++i) {
            into[i] = (static_cast<float>(element<Stored>(raw, i)) - shift) / scale;
        }
    }
}

void Normaliser::normalise_halves(std::span<std::byte const> raw, std::span<float> into) const {
    for (std::size_t i = 0; i < into.size(); ++i) {
        into[i] = comm::unpacked(element<std::uint16_t>(raw, i), comm::Rounding::fp16);
    }
    if (!mean_.empty()) {
        normalise<float>(std::as_bytes(into), into); // element by element, each read before written
    }
}

void Normaliser::operator()(std::span<std::byte const> raw, std::span<float> into) const {
    if (type_ == h5::Type::u8) {
        for (std::size_t begin = 0; begin < into.size(); begin += plane_) {
            auto const& table = tables_[begin / plane_ % tables_.size()];
            for (std::size_t i = begin; i < std::min(begin + plane_, into.size()); ++i) {
                into[i] = table[std::to_integer<std::size_t>(raw[i])];
            }
        }
    } else if (type_ == h5::Type::f16) {
        normalise_halves(raw, into);
    } else {
        with_type(type_, [&](auto stored) { normalise<decltype(stored)>(raw, into); });
    }
}

bool is_whole(h5::Type type) {
    return type != h5::Type::f16 && type != h5::Type::f32 && type != h5::Type::f64;
}

bool fit_channels(std::size_t moments, h5::Shape const& shape) {
    return moments <= 1 || (!shape.empty() && moments == shape.front());
}

void to_wholes(h5::Type type, std::span<std::byte const> raw, std::span<std::int64_t> into) {
    with_type(type, [&](auto stored) { widen<decltype(stored)>(raw, into); });
}

} // namespace lockstep::data
