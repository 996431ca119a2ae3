// Read before each file that clang-tidy looks at: clang before version 16 lacks what libstdc++'s
// std::source_location is made of.
#pragma once

#if defined(__clang__) && __clang_major__ < 16
namespace std {

struct source_location {
    static constexpr source_location current(char const* file = __builtin_FILE(),
                                             unsigned line = __builtin_LINE()) noexcept {
        source_location here;
        here.file_ = file;
        here.line_ = line;
        return here;
    }
    constexpr char const* file_name() const noexcept { return file_; }
    constexpr unsigned line() const noexcept { return line_; }

  private:
    char const* file_ = "";
    unsigned line_ = 0;
};

} // namespace std
#endif
