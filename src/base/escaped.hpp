#pragma once

#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace lockstep {

/// A text of which parts come from files, for a terminal: control characters and bytes that are not
/// UTF-8 are written as "\x1b". Line ends and tabs stay; so do colours, with `keep_colours`.
std::string escaped(std::string_view text, bool keep_colours = false);

/// Escapes what is written to a stream, apart from this program's colours, as long as it exists.
class EscapedStream : std::streambuf {
  public:
    explicit EscapedStream(std::ostream& stream);
    EscapedStream(EscapedStream const&) = delete;
    EscapedStream& operator=(EscapedStream const&) = delete;
    ~EscapedStream() override;

  private:
    std::streamsize xsputn(char const* text, std::streamsize count) override;
    int_type overflow(int_type letter) override;
    int sync() override;

    std::ostream& stream_;
    std::streambuf* before_;
};

} // namespace lockstep
