#include "text/pattern.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <array>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace lockstep::text {

namespace {

std::string reason_of(int code) {
    std::array<PCRE2_UCHAR, 256> text{};
    pcre2_get_error_message(code, text.data(), text.size());
    return reinterpret_cast<char const*>(text.data());
}

template <auto Free>
struct Release {
    template <class Object>
    void operator()(Object* object) const {
        Free(object);
    }
};

} // namespace

struct Pattern::Compiled {
    std::string expression;
    std::unique_ptr<pcre2_code, Release<pcre2_code_free>> code;
};

Pattern::Pattern(std::string const& expression) : compiled_(std::make_unique<Compiled>()) {
    int error = 0;
    PCRE2_SIZE place = 0;
    compiled_->expression = expression;
    compiled_->code.reset(
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &place, nullptr));
    if (!compiled_->code) {
        throw Error(ExitCode::data,
                    {concat("the regular expression ", expression, " is invalid at byte ", place),
                     reason_of(error), "Correct the expression in the file of the tokenizer"});
    }
    pcre2_jit_compile(compiled_->code.get(), PCRE2_JIT_COMPLETE); // without it, it is slower
}

Pattern::Pattern(Pattern&& other) noexcept = default;
Pattern& Pattern::operator=(Pattern&& other) noexcept = default;
Pattern::~Pattern() = default;

void Pattern::cut(std::string_view text, std::function<void(std::string_view)> const& visit) const {
    std::unique_ptr<pcre2_match_data, Release<pcre2_match_data_free>> const found(
        pcre2_match_data_create_from_pattern(compiled_->code.get(), nullptr));
    auto const* const subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    std::size_t done = 0;      // what was handed out
    std::uint32_t options = 0; // that the text is UTF-8 is looked at once
    for (std::size_t from = 0; from < text.size();) {
        int const code = pcre2_match(compiled_->code.get(), subject, text.size(), from, options,
                                     found.get(), nullptr);
        if (code == PCRE2_ERROR_NOMATCH) {
            break;
        }
        if (code < 0) {
            throw Error(ExitCode::data,
                        {concat("the regular expression ", compiled_->expression,
                                " could not split a text"),
                         reason_of(code),
                         "Use texts in UTF-8, and an expression that backtracks less"});
        }
        options = PCRE2_NO_UTF_CHECK;
        auto const* const ends = pcre2_get_ovector_pointer(found.get());
        if (ends[1] == ends[0]) { // of nothing: the next character belongs to what lies between
            from = ends[1] + 1;
            while (from < text.size() &&
                   (static_cast<unsigned char>(text[from]) & 0xC0U) == 0x80U) {
                ++from;
            }
            continue;
        }
        if (ends[0] > done) {
            visit(text.substr(done, ends[0] - done));
        }
        visit(text.substr(ends[0], ends[1] - ends[0]));
        from = done = ends[1];
    }
    if (done < text.size()) {
        visit(text.substr(done));
    }
}

} // namespace lockstep::text
