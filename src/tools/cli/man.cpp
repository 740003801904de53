// SPDX-License-Identifier: Apache-2.0
// Manual pages in roff's man macros, and where they and the completions are installed.
#include <filesystem>

#include "tools/cli/command.h"

namespace tracefire::cli {
namespace {

/// Text in which nothing is an instruction to roff; a hyphen is the sign that people type.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      out += "\\&";
      out += c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

std::string page_name(const CommandPage& page) {
  return page.name.empty() ? "tracefire" : "tracefire-" + page.name;
}

std::string option_entry(const OptionPage& option) {
  std::string head;
  for (const std::string& name : option.names) {
    head += (head.empty() ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
  }
  if (const std::string value = value_text(option); !value.empty()) {
    head += (head.empty() ? "\\fI" : " \\fI") + roff(value) + "\\fR";
  }
  if (option.positional() && option.many) head += "...";
  return ".TP\n" + head + "\n" + roff(option.text) + "\n";
}

void write_page(const std::filesystem::path& path, const std::string& text) {
  std::error_code told_by_the_next_step;
  std::filesystem::create_directories(path.parent_path(), told_by_the_next_step);
  write_file(path.string(), text);
}

}  // namespace

std::string man_page(const Manual& manual, const CommandPage& page) {
  const bool program = page.name.empty();
  std::string out = ".\\\" Made by `tracefire --man`; do not edit.\n.TH \"" +
                    upper(page_name(page)) + "\" \"1\" \"\" \"tracefire " + manual.version +
                    "\" \"Tracefire\"\n.nh\n.ad l\n";
  out += ".SH NAME\n" + roff(page_name(page)) + " \\- " + roff(page.summary) + "\n";
  out += ".SH SYNOPSIS\n\\fB" + roff(usage_line(page)) + "\\fR\n.SH DESCRIPTION\n";
  bool first = true;
  for (const std::string& paragraph : page.text) {
    if (!first) out += ".PP\n";
    first = false;
    out += roff(paragraph) + "\n";
  }
  if (program) {
    out += ".SH COMMANDS\n";
    for (const CommandPage& command : manual.commands) {
      out += ".TP\n\\fB" + roff(command.name) + "\\fR\n" + roff(command.summary) + "\n";
    }
  }
  if (!page.options.empty()) out += ".SH OPTIONS\n";
  const std::vector<std::string> groups = option_groups(page);
  for (const std::string& group : groups) {
    if (groups.size() > 1) out += ".SS \"" + roff(group) + "\"\n";
    for (const OptionPage& option : page.options) {
      if (!option.common && option.group == group) out += option_entry(option);
    }
  }
  if (groups.size() > 1) out += ".SS \"options of every command\"\n";
  for (const OptionPage& option : page.options) {
    if (option.common) out += option_entry(option);
  }
  if (!page.examples.empty()) out += ".SH EXAMPLES\n";
  for (const Example& example : page.examples) {
    out += ".TP\n\\fB" + roff(example.line) + "\\fR\n" + roff(example.text) + "\n";
  }
  if (!page.schema.empty()) {
    out += ".SH JSON\nThe schema of the output of \\fB\\-\\-json\\fR is " + roff(page.schema) +
           "; its first member says so.\n";
  }
  for (const auto& [title, entries] : page.sections) {
    out += ".SH \"" + title + "\"\n";
    for (const auto& [term, text] : entries) {
      out += ".TP\n\\fB" + roff(term) + "\\fR\n" + roff(text) + "\n";
    }
  }
  out += ".SH SEE ALSO\n";
  std::string also;
  if (!program) also = "\\fBtracefire\\fR(1)\n";
  for (const CommandPage& command : manual.commands) {
    if (!program) break;
    also += (also.empty() ? "" : ",\n") + ("\\fB" + roff(page_name(command)) + "\\fR(1)");
  }
  return out + also + (program ? "\n" : "");
}

void write_manual(const Manual& manual, const std::string& folder) {
  const std::filesystem::path share(folder);
  write_page(share / "man/man1/tracefire.1", man_page(manual, manual.program));
  for (const CommandPage& command : manual.commands) {
    write_page(share / "man/man1" / (page_name(command) + ".1"), man_page(manual, command));
  }
  write_page(share / "bash-completion/completions/tracefire", completion_script(manual, "bash"));
  // Shells look for a file of the name that was called.
  for (const std::string& name : linked_commands(manual)) {
    write_page(share / "bash-completion/completions" / ("tracefire-" + name),
               "# bash completion for tracefire-" + name + ", which is `tracefire " + name +
                   "`.\n. \"${BASH_SOURCE[0]%/*}/tracefire\"\n");
    write_page(share / "fish/vendor_completions.d" / ("tracefire-" + name + ".fish"),
               "# tracefire-" + name + " is `tracefire " + name +
                   "`.\nsource (status dirname)/tracefire.fish\n");
  }
  write_page(share / "zsh/site-functions/_tracefire", completion_script(manual, "zsh"));
  write_page(share / "fish/vendor_completions.d/tracefire.fish", completion_script(manual, "fish"));
}

}  // namespace tracefire::cli
