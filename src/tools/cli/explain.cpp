// SPDX-License-Identifier: Apache-2.0
// `tracefire explain`: what an error code means.
#include <cctype>
#include <cstdio>
#include <set>

#include "core/base/error_texts.h"
#include "core/base/text.h"
#include "tools/cli/command.h"

namespace tracefire::cli {
namespace {

struct Options {
  bool json = false;
  std::vector<std::string> codes;
};

constexpr std::string_view kPrefix = "TF-E";

std::string code_of(const CatalogueEntry& entry) {
  char text[16];
  std::snprintf(text, sizeof text, "TF-E%04u", static_cast<unsigned>(entry.number));
  return text;
}

/// Small letters and digits alone: "kShape-Mismatch" is "kshapemismatch".
std::string folded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && std::isalnum(byte)) out += static_cast<char>(std::tolower(byte));
  }
  return out;
}

/// The number in "TF-E0103", "[E103]", "103"; -1 where the text is no number.
int number_in(const std::string& folded_text) {
  size_t at = folded_text.rfind("tfe", 0) == 0 ? 3 : folded_text.rfind("e", 0) == 0 ? 1 : 0;
  if (at == folded_text.size() || folded_text.size() - at > 6) return -1;
  int number = 0;
  for (; at < folded_text.size(); ++at) {
    if (!std::isdigit(static_cast<unsigned char>(folded_text[at]))) return -1;
    number = number * 10 + (folded_text[at] - '0');
  }
  return number;
}

std::string nearest(const std::string& wanted, int number) {
  if (number >= 0) {
    const CatalogueEntry* best = nullptr;
    for (const CatalogueEntry& entry : kErrorCatalogue) {
      if (best == nullptr || std::abs(entry.number - number) < std::abs(best->number - number)) {
        best = &entry;
      }
    }
    return code_of(*best) + " (" + best->name + ")";
  }
  std::vector<std::string> names;
  for (const CatalogueEntry& entry : kErrorCatalogue) names.push_back(folded(entry.name));
  const std::string closest =
      closest_name(wanted, std::vector<std::string_view>(names.begin(), names.end()));
  for (const CatalogueEntry& entry : kErrorCatalogue) {
    if (!closest.empty() && folded(entry.name) == closest) {
      return code_of(entry) + " (" + entry.name + ")";
    }
  }
  return "";
}

const CatalogueEntry& entry_of(const std::string& given) {
  const std::string wanted = folded(given);
  const int number = number_in(wanted);
  for (const CatalogueEntry& entry : kErrorCatalogue) {
    const std::string name = folded(entry.name);
    if (entry.number == number || wanted == name || wanted == "k" + name) return entry;
  }
  const std::string closest = nearest(wanted, number);
  wrong_usage("there is no error '", printable(given, 80), "'.",
              closest.empty() ? "" : " The nearest is " + closest + ".",
              " `tracefire explain` lists them all.");
}

/// Every code that a text mentions, once, in the order of the text.
std::vector<std::string> codes_in(const std::string& text) {
  std::vector<std::string> codes;
  std::set<std::string> seen;
  for (size_t at = text.find(kPrefix); at != std::string::npos; at = text.find(kPrefix, at + 1)) {
    size_t end = at + kPrefix.size();
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
    const std::string code = text.substr(at, end - at);
    if (end - at == kPrefix.size() + 4 && seen.insert(code).second) codes.push_back(code);
  }
  return codes;
}

Json to_json(const CatalogueEntry& entry) {
  const ErrorText& text = *find_error_text(entry.number);
  return {{"code", code_of(entry)}, {"name", entry.name},
          {"kind", entry.kind},     {"summary", entry.summary},
          {"cause", text.cause},    {"expected", text.expected},
          {"help", entry.help},     {"example", {{"wrong", text.wrong}, {"right", text.right}}}};
}

class Printer {
 public:
  explicit Printer(Console& console) : console_(console) {}

  void entry(const CatalogueEntry& entry) {
    const ErrorText& text = *find_error_text(entry.number);
    console_.print(console_.styled(Style::kBold, code_of(entry) + " " + entry.name) + "\n");
    prose(entry.summary, 0);
    section("What happened", text.cause);
    section("What was expected", text.expected);
    section("What to do", entry.help);
    example("Example", text.wrong);
    example("Instead", text.right);
  }

 private:
  void prose(const std::string& text, int indent) {
    for (const std::string& line : wrapped(text, console_.prose_width() - indent)) {
      console_.print(std::string(static_cast<size_t>(indent), ' ') + line + "\n");
    }
  }
  void section(const char* title, const std::string& text) {
    console_.print("\n" + console_.styled(Style::kBold, title) + "\n");
    prose(text, 2);
  }
  /// Programs and commands keep their lines.
  void example(const char* title, const std::string& text) {
    console_.print("\n" + console_.styled(Style::kBold, title) + "\n");
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      console_.print("    " + text.substr(begin, end - begin) + "\n");
      begin = end + 1;
    }
  }
  Console& console_;
};

void print_list(Console& console) {
  Table table({"CODE", "NAME", "MEANING"});
  for (const CatalogueEntry& entry : kErrorCatalogue) {
    table.row({code_of(entry), entry.name, entry.summary});
  }
  console.print(table.text(console));
}

int explain(Context& context, const Options& options) {
  std::vector<std::string> codes;
  for (const std::string& code : options.codes) {
    if (code != "-") {
      codes.push_back(code);
      continue;
    }
    const std::vector<std::string> found = codes_in(read_input("-"));
    if (found.empty()) context.console.say("tracefire: the text mentions no error code");
    codes.insert(codes.end(), found.begin(), found.end());
  }
  std::vector<const CatalogueEntry*> entries;
  for (const std::string& code : codes) entries.push_back(&entry_of(code));
  if (options.codes.empty()) {
    for (const CatalogueEntry& entry : kErrorCatalogue) entries.push_back(&entry);
  }
  if (options.json) {
    Json document = context.document();
    document["errors"] = Json::array();
    for (const CatalogueEntry* entry : entries) document["errors"].push_back(to_json(*entry));
    context.print(document);
    return kSuccess;
  }
  if (options.codes.empty()) {
    print_list(context.console);
    return kSuccess;
  }
  Printer printer(context.console);
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) context.console.print("\n");
    printer.entry(*entries[i]);
  }
  return kSuccess;
}

}  // namespace

Command explain_command() {
  Command command;
  command.name = "explain";
  command.summary = "explains an error code and says what to do about it";
  command.text = {
      "Tells about an error: what happened, what was expected, what to do, and an example. The "
      "code "
      "may be written TF-E0103, E0103, 103 or as its name, BadAttribute or kBadAttribute. Without "
      "a "
      "code it lists all errors.",
      "With - for a code it reads standard input and explains every code that the text mentions."};
  command.examples = {{"tracefire explain TF-E0101", "One error."},
                      {"./train 2>&1 | tracefire explain -", "Every error of a run."},
                      {"tracefire explain --json", "The whole catalogue, for programs."}};
  command.schema = "tracefire.explain/1";
  command.settings = UseOfSettings::kNone;
  std::vector<std::string> codes;
  for (const CatalogueEntry& entry : kErrorCatalogue) codes.push_back(code_of(entry));
  command.words = {{"CODE", codes}};
  command.define = [](CLI::App& app) -> Action {
    auto options = std::make_shared<Options>();
    app.add_option("CODE", options->codes, "a code, the name of an error, or - for standard input");
    add_json_flag(app, options->json, "tracefire.explain/1");
    return [options](Context& context) -> int { return explain(context, *options); };
  };
  return command;
}

}  // namespace tracefire::cli
