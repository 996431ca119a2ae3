#pragma once

#include <string>
#include <string_view>

namespace lockstep::text {

/// Bytes as the letters that stand for them in tokenizer files: printable ones of Latin-1 for
/// themselves, the others from U+0100 on (Radford et al., GPT-2's bytes_to_unicode).
std::string letters_of(std::string_view bytes);

/// The bytes that such letters stand for, or `text` itself where a letter stands for no byte, as in
/// the names of special tokens.
std::string bytes_of_letters(std::string_view text);

} // namespace lockstep::text
