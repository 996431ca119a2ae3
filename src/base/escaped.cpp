#include "base/escaped.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace lockstep {

namespace {

bool is_printed(char letter) {
    return letter >= 0x20 && letter < 0x7f; // of signed letters, too, those of ASCII alone
}

bool is_plain(char letter) {
    return is_printed(letter) || letter == '\n' || letter == '\t';
}

/// The bytes of a character beyond ASCII that `text` begins with; 0: none that may be shown.
std::size_t shown_bytes(std::string_view text) {
    auto const character = first_character(text);
    constexpr char32_t last_control = 0x9f; // of eight bits
    return character.point > last_control ? character.bytes : 0;
}

std::string escaped_but(bool (*stays)(char), std::string_view text) {
    std::string result;
    result.reserve(text.size());
    while (!text.empty()) {
        auto const bytes = stays(text[0]) ? 1 : shown_bytes(text);
        if (bytes > 0) {
            result += text.substr(0, bytes);
        } else {
            result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
        }
        text.remove_prefix(std::max<std::size_t>(bytes, 1));
    }
    return result;
}

} // namespace

std::string escaped(std::string_view text) {
    return escaped_but(is_plain, text);
}

std::string escaped_line(std::string_view text) {
    return escaped_but(is_printed, text);
}

EscapedStream::EscapedStream(std::ostream& stream) : stream_(stream), before_(stream.rdbuf(this)) {}

EscapedStream::~EscapedStream() {
    stream_.rdbuf(before_);
}

std::streamsize EscapedStream::xsputn(char const* text, std::streamsize count) {
    std::string_view const all(text, static_cast<std::size_t>(count));
    if (std::ranges::all_of(all, is_plain)) {
        return before_->sputn(text, count);
    }
    auto const shown = escaped(all);
    auto const size = static_cast<std::streamsize>(shown.size());
    return before_->sputn(shown.data(), size) == size ? count : 0;
}

EscapedStream::int_type EscapedStream::overflow(int_type letter) {
    auto const one = traits_type::to_char_type(letter);
    return xsputn(&one, 1) == 1 ? letter : traits_type::eof();
}

int EscapedStream::sync() {
    return before_->pubsync();
}

void write_obeyed(std::ostream& stream, std::string_view text) {
    auto const* const shown = dynamic_cast<EscapedStream const*>(stream.rdbuf());
    auto* const target = shown == nullptr ? stream.rdbuf() : shown->before_;
    auto const size = static_cast<std::streamsize>(text.size());
    if (target->sputn(text.data(), size) != size) {
        stream.setstate(std::ios::badbit);
    }
}

} // namespace lockstep
