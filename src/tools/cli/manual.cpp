// SPDX-License-Identifier: Apache-2.0
// The pages: what the parser's tree says, and the text of --help.
#include "tools/cli/manual.h"

#include <algorithm>

#include "tools/cli/command.h"
#include "tools/cli/common.h"
#include "tools/text/escape.h"

namespace tracefire::cli {
namespace {

using Words = std::map<std::string, std::vector<std::string>>;

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(at, begin);
    parts.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
  }
  return parts;
}

OptionPage page_of(const CLI::Option& option, const Words& words) {
  OptionPage page;
  for (const std::string& name : option.get_snames()) page.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) page.names.push_back("--" + name);
  const bool flag = option.get_items_expected_max() == 0;
  if (!flag) page.value = page.positional() ? option.get_name(true) : option.get_type_name();
  page.value_optional = !flag && !page.positional() && option.get_items_expected_min() == 0;
  if (page.value.find('|') != std::string::npos) {
    page.words = split(page.value, '|');
  }
  page.text = option.get_description();
  page.common = option.get_group() == kCommonOptions;
  page.group = option.get_group() == "Options" ? "options" : option.get_group();
  page.many = !flag && option.get_items_expected_max() > 1;
  const auto found = words.find(page.value);
  if (page.words.empty() && found != words.end() && !page.program()) page.words = found->second;
  page.optional = page.text.rfind(kRequired, 0) != 0;
  if (!page.optional) page.text.erase(0, std::string_view(kRequired).size());
  return page;
}

std::vector<OptionPage> options_of(const CLI::App& app, const Words& words) {
  std::vector<OptionPage> pages;
  for (const CLI::Option* option : app.get_options()) pages.push_back(page_of(*option, words));
  // Positional arguments first, what every command has last.
  std::stable_sort(pages.begin(), pages.end(), [](const OptionPage& a, const OptionPage& b) {
    const auto rank = [](const OptionPage& p) { return p.positional() ? 0 : p.common ? 2 : 1; };
    return rank(a) < rank(b);
  });
  return pages;
}

/// "-h, --help" or "--color auto|always|never" or "CODE...".
std::string heading_of(const OptionPage& option) {
  std::string text;
  for (const std::string& name : option.names) text += (text.empty() ? "" : ", ") + name;
  const std::string value = value_text(option);
  if (!value.empty()) text += (text.empty() ? "" : " ") + value;
  if (option.positional() && option.many) text += "...";
  return text;
}

constexpr size_t kTextColumn = 22, kSummaryColumn = 14;

class HelpWriter {
 public:
  HelpWriter(const Console& console) : console_(console), width_(console.prose_width()) {}

  void paragraph(const std::string& text) {
    out_ += "\n";
    for (const std::string& line : wrapped(text, width_)) out_ += line + "\n";
  }
  void heading(const std::string& text) {
    out_ += "\n" + console_.styled(Style::kBold, text) + "\n";
  }
  /// A term with its text beside it, or below it where the term is long.
  void entry(const std::string& term, const std::string& text, size_t column = kTextColumn) {
    std::string line = "  " + term;
    const std::vector<std::string> lines = wrapped(text, width_ - static_cast<int>(column));
    size_t next = 0;
    if (text::display_width(line) + 2 <= column) {
      line.append(column - text::display_width(line), ' ');
      line += lines[next++];
    }
    out_ += line + "\n";
    for (; next < lines.size(); ++next) out_ += std::string(column, ' ') + lines[next] + "\n";
  }
  /// The options for which `wanted` says yes, under a title; nothing where there is none.
  template <class Wanted>
  void options(const std::string& title, const CommandPage& page, const Wanted& wanted) {
    bool first = true;
    for (const OptionPage& option : page.options) {
      if (!wanted(option)) continue;
      if (first) heading(title);
      first = false;
      entry(heading_of(option), option.text);
    }
  }
  void line(const std::string& text) { out_ += text + "\n"; }
  std::string take() { return std::move(out_); }

 private:
  const Console& console_;
  const int width_;
  std::string out_;
};

}  // namespace

bool CommandPage::runs_a_program() const {
  return std::any_of(options.begin(), options.end(),
                     [](const OptionPage& option) { return option.program(); });
}

std::vector<std::string> linked_commands(const Manual& manual) {
  std::vector<std::string> names;
  for (const char* name : {"doctor", "monitor", "prove"}) {
    if (manual.find(name) != nullptr) names.push_back(name);
  }
  return names;
}

const CommandPage* Manual::find(std::string_view name) const {
  if (name.empty()) return &program;
  for (const CommandPage& page : commands) {
    if (page.name == name) return &page;
  }
  return nullptr;
}

Manual describe(const CLI::App& app, const std::vector<Command>& commands, std::string version) {
  Manual manual;
  manual.version = std::move(version);
  const Words common_words = common_option_words();
  manual.program = program_page();
  manual.program.options = options_of(app, common_words);
  for (const Command& command : commands) {
    CommandPage page{command.name,
                     command.summary,
                     command.text,
                     command.examples,
                     command.schema,
                     command.sections,
                     {}};
    Words words = common_words;
    for (const Command& other : commands) words["COMMAND"].push_back(other.name);
    words.insert(command.words.begin(), command.words.end());
    page.options = options_of(*app.get_subcommand(command.name), words);
    manual.commands.push_back(std::move(page));
  }
  return manual;
}

std::string value_text(const OptionPage& option) {
  return option.value_optional ? "[" + option.value + "]" : option.value;
}

std::vector<std::string> option_groups(const CommandPage& page) {
  std::vector<std::string> groups;
  for (const OptionPage& option : page.options) {
    const bool known = std::find(groups.begin(), groups.end(), option.group) != groups.end();
    if (!option.common && !known) groups.push_back(option.group);
  }
  return groups;
}

std::string usage_line(const CommandPage& page) {
  if (page.name.empty()) return "tracefire COMMAND [OPTION]...";
  // More options than that, or than fit into a line, are read below, not here.
  constexpr int kMostShown = 5;
  constexpr size_t kMostColumns = 72;
  const auto own = std::count_if(page.options.begin(), page.options.end(),
                                 [](const OptionPage& o) { return !o.common && !o.positional(); });
  const auto line = [&](bool options) {
    std::string text = "tracefire " + page.name + (options ? "" : " [OPTION]...");
    for (const OptionPage& option : page.options) {
      if (option.common || (!option.positional() && !options)) continue;
      std::string one = option.positional() ? option.value : option.names.back();
      if (!option.positional() && !option.value.empty()) one += " " + option.value;
      if (option.optional) one = "[" + one + "]";
      text += " " + one + (option.many ? "..." : "");
    }
    return text;
  };
  const std::string all = line(true);
  return own > kMostShown || all.size() > kMostColumns ? line(false) : all;
}

std::string help_text(const Manual& manual, const CommandPage& page, const Console& console) {
  HelpWriter help(console);
  help.line(console.styled(Style::kBold, "usage:") + " " + usage_line(page));
  for (const std::string& paragraph : page.text) help.paragraph(paragraph);
  const bool program = page.name.empty();
  if (program) {
    help.heading("commands:");
    for (const CommandPage& command : manual.commands) {
      help.entry(command.name, command.summary, kSummaryColumn);
    }
  }
  if (program) {
    help.options("options:", page, [](const OptionPage&) { return true; });
  } else {
    for (const std::string& group : option_groups(page)) {
      help.options(group + ":", page, [&](const OptionPage& option) {
        return !option.common && option.group == group;
      });
    }
    help.options("options of every command:", page,
                 [](const OptionPage& option) { return option.common; });
  }
  if (!page.examples.empty()) help.heading("examples:");
  for (const Example& example : page.examples) {
    help.line("  " + example.line);
    for (const std::string& line : wrapped(example.text, console.prose_width() - 6)) {
      help.line("      " + line);
    }
  }
  if (program) help.paragraph("`tracefire COMMAND --help` says more about a command.");
  return help.take();
}

}  // namespace tracefire::cli
