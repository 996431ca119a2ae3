#pragma once

#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace lockstep {

/// A text of which parts come from files, for a terminal: control characters and bytes that are not
/// UTF-8 are written as "\x1b". Line ends and tabs stay.
std::string escaped(std::string_view text);

/// A text that takes one line, such as a name: escaped, its line ends too.
std::string escaped_line(std::string_view text);

/// Escapes what is written to a stream, as long as it exists. Only `write_obeyed` gets past it.
class EscapedStream : public std::streambuf {
  public:
    explicit EscapedStream(std::ostream& stream);
    EscapedStream(EscapedStream const&) = delete;
    EscapedStream& operator=(EscapedStream const&) = delete;
    ~EscapedStream() override;

  private:
    friend void write_obeyed(std::ostream& stream, std::string_view text);

    std::streamsize xsputn(char const* text, std::streamsize count) override;
    int_type overflow(int_type letter) override;
    int sync() override;

    std::ostream& stream_;
    std::streambuf* before_;
};

/// Writes a text whose escape sequences are this program's own: in it, what comes from files must
/// have been escaped before.
void write_obeyed(std::ostream& stream, std::string_view text);

} // namespace lockstep
