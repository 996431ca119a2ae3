#include "deploy/wire.hpp"

#include <bit>
#include <optional>

namespace lockstep::deploy {

namespace {

constexpr int varint_type = 0;
constexpr int fixed64_type = 1;
constexpr int text_type = 2;
constexpr int fixed32_type = 5;
constexpr int metadata_field = 14;

/// Reads a message's fields one after the other; stops at what is none.
class Reader {
  public:
    explicit Reader(std::string_view bytes) : rest_(bytes) {}

    struct Field {
        int number = 0;
        std::string_view text{}; ///< of a text or message; else empty
    };
    std::optional<Field> next() {
        auto const key = varint();
        if (!key) {
            return std::nullopt;
        }
        auto const type = static_cast<int>(*key & 7);
        Field field{static_cast<int>(*key >> 3)};
        auto size = type == varint_type
                        ? std::optional<std::uint64_t>(varint() ? 0 : rest_.size() + 1)
                    : type == fixed64_type ? std::optional<std::uint64_t>(8)
                    : type == fixed32_type ? std::optional<std::uint64_t>(4)
                    : type == text_type    ? varint()
                                           : std::nullopt;
        if (!size || *size > rest_.size()) {
            return std::nullopt;
        }
        if (type == text_type) {
            field.text = rest_.substr(0, *size);
        }
        rest_.remove_prefix(*size);
        return field;
    }

  private:
    std::optional<std::uint64_t> varint() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
            auto const byte = static_cast<unsigned char>(rest_.front());
            rest_.remove_prefix(1);
            value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
            if (byte < 0x80) {
                return value;
            }
        }
        return std::nullopt;
    }

    std::string_view rest_;
};

} // namespace

void Message::varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) {
        bytes_.push_back(static_cast<char>(value | 0x80));
    }
    bytes_.push_back(static_cast<char>(value));
}

void Message::key(int field, int type) {
    varint(static_cast<std::uint64_t>(field) << 3 | static_cast<unsigned>(type));
}

Message& Message::number(int field, std::int64_t value) {
    key(field, varint_type);
    varint(static_cast<std::uint64_t>(value));
    return *this;
}

Message& Message::real(int field, float value) {
    key(field, fixed32_type);
    auto const bits = std::bit_cast<std::uint32_t>(value);
    for (unsigned shift = 0; shift < 32; shift += 8) {
        bytes_.push_back(static_cast<char>(bits >> shift));
    }
    return *this;
}

Message& Message::text(int field, std::string_view value) {
    key(field, text_type);
    varint(value.size());
    bytes_.append(value);
    return *this;
}

std::string metadata_of(std::string_view model, std::string_view key) {
    Reader fields(model);
    while (auto const field = fields.next()) {
        if (field->number != metadata_field) {
            continue;
        }
        Reader entry(field->text);
        auto const name = entry.next();
        auto const value = entry.next();
        if (name && value && name->number == 1 && value->number == 2 && name->text == key) {
            return std::string(value->text);
        }
    }
    return {};
}

} // namespace lockstep::deploy
