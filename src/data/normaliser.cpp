#include "normaliser.hpp"

#include "comm/rounding.hpp"
#include "data/convert.hpp"
#include "h5/element_type.hpp"

#include <algorithm>
#include <type_traits>

namespace lockstep::data {

Normaliser::Normaliser(h5::Type type, h5::Shape const& shape, std::vector<double> const& mean,
                       std::vector<double> const& std, bool last)
    : type_(type),
      plane_(mean.size() > 1 && axis_of_channels(mean.size(), shape, last) > 0
                 ? 1
                 : std::max<std::size_t>(
                       h5::elements(shape) / std::max<std::size_t>(mean.size(), 1), 1)),
      mean_(mean), std_(std) {
    if (type_ != h5::Type::u8) {
        return;
    }
    for (std::size_t channel = 0; channel < std::max<std::size_t>(mean.size(), 1); ++channel) {
        auto& table = tables_.emplace_back();
        for (std::size_t value = 0; value < table.size(); ++value) {
            table[value] = static_cast<float>(value) / 255.0F;
            if (!mean_.empty()) {
                table[value] = (table[value] - static_cast<float>(mean_[channel])) /
                               static_cast<float>(std_[channel]);
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
    using Real = std::conditional_t<float_holds<Stored>, float, double>;
    for (std::size_t begin = 0; begin < into.size(); begin += plane_) {
        auto const channel = begin / plane_ % mean_.size();
        auto const shift = static_cast<Real>(mean_[channel]);
        auto const scale = static_cast<Real>(std_[channel]);
        for (std::size_t i = begin; i < std::min(begin + plane_, into.size()); ++i) {
            into[i] =
                static_cast<float>((static_cast<Real>(element<Stored>(raw, i)) - shift) / scale);
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

} // namespace lockstep::data
