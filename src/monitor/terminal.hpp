#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::monitor {

struct TerminalSize {
    std::size_t columns = 80;
    std::size_t rows = 24;
};

/// Whether standard output finally reaches a terminal: mpirun gives its ranks a terminal or a pipe
/// of their own and forwards what they write.
bool on_terminal();

/// The size of the terminal that standard output ends in; 80 x 24 if it is not known.
TerminalSize terminal_size();

/// Whether to use colours: on a terminal that is not dumb, unless NO_COLOR is set.
bool colours_welcome();

/// Whether the locale can show more than ASCII.
bool utf8_welcome();

/// How a text stands out.
enum class Style { plain, bold, dim, red, green, yellow, blue, magenta, cyan };

/// Escapes texts and puts them in a style, where colours are on. Streams that escape take them only
/// by write_obeyed().
class Paint {
  public:
    explicit Paint(bool on) : on_(on) {}

    bool on() const noexcept { return on_; }
    std::string operator()(Style style, std::string_view text) const;

  private:
    bool on_;
};

/// Columns that a text takes, without escape sequences; each letter of UTF-8 counts as one.
std::size_t columns_of(std::string_view text);

/// The text cut to `columns` columns; escape sequences are kept, so that colours end.
std::string cut(std::string_view text, std::size_t columns);

} // namespace lockstep::monitor
