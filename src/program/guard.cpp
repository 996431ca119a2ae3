#include "guard.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace lockstep::program {

namespace {

/// Recursive descent over Python's operators, weakest first.
class Expression {
  public:
    Expression(std::string const& text, std::map<std::string, at::Tensor> const& inputs)
        : text_(text), inputs_(inputs) {}

    bool value() {
        auto const result = any();
        skip_blanks();
        if (at_ != text_.size()) {
            fail();
        }
        return result != 0;
    }

  private:
    [[noreturn]] void fail() const {
        throw Error(ExitCode::usage,
                    {concat("the export assumed that ", text_),
                     "Lockstep cannot evaluate that condition",
                     "Export the model with dynamic_shapes that do not need this condition"});
    }
    void skip_blanks() {
        while (at_ < text_.size() && text_[at_] == ' ') {
            ++at_;
        }
    }
    bool take(std::string_view word) {
        skip_blanks();
        if (!std::string_view(text_).substr(at_).starts_with(word)) {
            return false;
        }
        at_ += word.size();
        return true;
    }
    /// A product, not a power.
    bool take_times() {
        skip_blanks();
        return !std::string_view(text_).substr(at_).starts_with("**") && take("*");
    }
    void require(std::string_view word) {
        if (!take(word)) {
            fail();
        }
    }

    double any() {
        auto left = all();
        while (take("or ")) {
            auto const right = all();
            left = left != 0 || right != 0 ? 1 : 0;
        }
        return left;
    }
    double all() {
        auto left = comparison();
        while (take("and ")) {
            auto const right = comparison();
            left = left != 0 && right != 0 ? 1 : 0;
        }
        return left;
    }
    double comparison() {
        if (take("not ")) {
            return deeper([this] { return comparison(); }) == 0 ? 1 : 0;
        }
        auto const left = sum();
        if (take("==")) {
            return left == sum() ? 1 : 0;
        }
        if (take("!=")) {
            return left != sum() ? 1 : 0;
        }
        if (take("<=")) {
            return left <= sum() ? 1 : 0;
        }
        if (take(">=")) {
            return left >= sum() ? 1 : 0;
        }
        if (take("<")) {
            return left < sum() ? 1 : 0;
        }
        return take(">") ? (left > sum() ? 1 : 0) : left;
    }
    double sum() {
        auto left = product();
        for (;;) {
            if (take("+")) {
                left += product();
            } else if (take("-")) {
                left -= product();
            } else {
                return left;
            }
        }
    }
    double product() {
        auto left = power();
        for (;;) {
            if (take("//")) {
                left = std::floor(left / power());
            } else if (take("/")) {
                left /= power();
            } else if (take("%")) {
                auto const by = power();
                left -= by * std::floor(left / by);
            } else if (take_times()) {
                left *= power();
            } else {
                return left;
            }
        }
    }
    double power() {
        if (take("-")) { // weaker than a power to its right
            return -deeper([this] { return power(); });
        }
        auto const base = deeper([this] { return atom(); });
        return take("**") ? std::pow(base, deeper([this] { return power(); })) : base;
    }
    /// A condition of a damaged file may nest without end.
    template <class Parse>
    double deeper(Parse const& parse) {
        constexpr int deepest = 200;
        if (++depth_ > deepest) {
            fail();
        }
        auto const result = parse();
        --depth_;
        return result;
    }
    double atom() {
        if (take("True")) {
            return 1;
        }
        if (take("False")) {
            return 0;
        }
        if (take("min(")) {
            return extreme([](double a, double b) { return std::min(a, b); });
        }
        if (take("max(")) {
            return extreme([](double a, double b) { return std::max(a, b); });
        }
        if (take("(")) {
            auto const result = any();
            require(")");
            return result;
        }
        return take("L['") ? size() : literal();
    }
    template <class Better>
    double extreme(Better const& better) {
        auto result = any();
        while (take(",")) {
            result = better(result, any());
        }
        require(")");
        return result;
    }
    /// Reads the size of an input, which is named as its placeholder is: L['args'][0] is args_0.
    double size() {
        std::string name;
        for (char const* link = ""; !take(".size()["); link = "_") {
            if (!name.empty()) {
                require("[");
                take("'");
            }
            auto const end = std::min(text_.find_first_of("']", at_), text_.size());
            name.append(link).append(text_, at_, end - at_);
            at_ = end;
            take("'");
            require("]");
        }
        auto const input = inputs_.find(name);
        if (input == inputs_.end()) {
            fail();
        }
        auto const dimension = deeper([this] { return atom(); });
        require("]");
        if (!(dimension >= 0 && dimension < static_cast<double>(input->second.dim()))) {
            fail();
        }
        return static_cast<double>(input->second.size(static_cast<std::int64_t>(dimension)));
    }
    double literal() {
        skip_blanks();
        char* end = nullptr;
        auto const* const begin = text_.c_str() + at_;
        auto const result = std::strtod(begin, &end);
        if (end == begin) {
            fail();
        }
        at_ += static_cast<std::size_t>(end - begin);
        return result;
    }

    std::string const& text_;
    std::map<std::string, at::Tensor> const& inputs_;
    std::size_t at_ = 0;
    int depth_ = 0;
};

} // namespace

bool holds(std::string const& guard, std::map<std::string, at::Tensor> const& inputs) {
    return Expression(guard, inputs).value();
}

} // namespace lockstep::program
