// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/run.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>

namespace tracefire {

void add_failures(const HostReader& reader, size_t read, size_t words,
                  std::vector<ErrorWord>* failed) {
  for (size_t i = 0; i < words; ++i) {
    ErrorWord word;
    std::memcpy(&word, reader.data(read) + i * sizeof word, sizeof word);
    if (word.step_plus_one != 0) failed->push_back(word);
  }
}

std::string place_of(const Node& node) {
  std::string place = concat_text("in '", OpTable::instance().name(node.op), "'");
  if (!node.name.empty()) place += concat_text(" (", node.name, ")");
  if (node.location.file != nullptr) place += concat_text(" from ", node.location.str());
  return place;
}

/// "label 7 is out of range; labels run from 0 to 2", or of an index where the node does not say
/// what its numbers are; without the end where it depends on the sizes of a run.
std::string out_of_range_text(const Graph& graph, const Node& node, int64_t number) {
  const std::string_view op = OpTable::instance().name(node.op);
  std::string what = "index";
  Dim count;
  if (op == "check_range") {
    const std::string& message = node.attrs.text("message");
    if (!message.empty()) what = message;
    count = node.attrs.shape("limit")[0];
  } else if (op == "softmax_cross_entropy" || op == "softmax_cross_entropy_grad") {
    const Shape& logits = graph.type(node.inputs[0]).shape;
    what = "label";
    count = logits[logits.rank() - 1];
  }
  std::string text = concat_text(what, " ", number, " is out of range");
  if (what == "label" && count.is_constant()) {
    text += concat_text("; labels run from 0 to ", count.value() - 1);
  }
  return text;
}

Status check_failure(const Program& program, const ErrorWord& word) {
  const size_t step = word.step_plus_one - 1;
  if (step >= program.steps.size()) {
    return error(ErrorCode::kInternal, "an error block names step ", step, " of '", program.name,
                 "', which has ", program.steps.size());
  }
  const Graph& graph = *program.graph;
  const Node& node = graph.nodes[static_cast<size_t>(program.steps[step].node)];
  const auto code = static_cast<ErrorCode>(word.code);
  switch (code) {
    case ErrorCode::kIndexOutOfRange:
      return error(code, place_of(node), ": ", out_of_range_text(graph, node, word.detail),
                   "; check the indices or labels");
    case ErrorCode::kNotFinite:
      return error(code, place_of(node), ": element ", word.detail, " is NaN or infinite");
    default:
      return error(code, place_of(node), ": check failed with value ", word.detail);
  }
}

Run::Run(ProgramPtr program, std::vector<ErrorBlock> blocks, std::vector<Parent> params,
         ResultNeeds needs)
    : program_(std::move(program)),
      blocks_(std::move(blocks)),
      params_(std::move(params)),
      needs_(std::move(needs)) {
  can_fail_ =
      !blocks_.empty() || std::any_of(params_.begin(), params_.end(),
                                      [](const Parent& parent) { return parent.run != nullptr; });
  for (const Parent& parent : params_) {
    if (parent.run) depth_ = std::max(depth_.load(), parent.run->depth() + 1);
  }
}

Run::~Run() {
  // A history that nobody observed is a chain of owners: release it in a loop, not by recursion.
  std::vector<Parent> doomed = std::move(params_);
  while (!doomed.empty()) {
    const std::shared_ptr<Run> run = std::move(doomed.back().run);
    doomed.pop_back();
    if (run.use_count() != 1) continue;
    std::move(run->params_.begin(), run->params_.end(), std::back_inserter(doomed));
    run->params_.clear();
  }
}

void Run::keep_failures(std::vector<ErrorWord> words) {
  if (read_) return;  // another thread was faster
  read_ = true;
  words_ = std::move(words);
  blocks_.clear();
}

Status Run::read_errors() {
  if (read_) return {};
  HostReader reader;
  for (const ErrorBlock& block : blocks_) reader.add(block.storage, block.bytes());
  TF_RETURN_IF_ERROR(reader.run());
  std::vector<ErrorWord> words;
  for (size_t i = 0; i < blocks_.size(); ++i) add_failures(reader, i, blocks_[i].words, &words);
  keep_failures(std::move(words));
  return {};
}

void UnreadErrors::add(const std::shared_ptr<Run>& run, HostReader* reader) {
  std::vector<std::shared_ptr<Run>> open{run};
  while (!open.empty()) {
    const std::shared_ptr<Run> now = std::move(open.back());
    open.pop_back();
    if (now == nullptr || !seen_.insert(now.get()).second) continue;
    std::lock_guard<std::mutex> lock(now->mutex_);
    if (!now->can_fail_) continue;
    if (!now->read_) {
      Entry entry{now, {}};
      for (const ErrorBlock& block : now->blocks_) {
        entry.reads.push_back({reader->add(block.storage, block.bytes()), block.words});
      }
      entries_.push_back(std::move(entry));
    }
    for (const Run::Parent& parent : now->params_) open.push_back(parent.run);
  }
}

void UnreadErrors::deliver(const HostReader& reader) {
  for (const Entry& entry : entries_) {
    std::vector<ErrorWord> words;
    for (const Read& read : entry.reads) add_failures(reader, read.number, read.words, &words);
    std::lock_guard<std::mutex> lock(entry.run->mutex_);
    entry.run->keep_failures(std::move(words));
  }
  entries_.clear();
}

bool Run::settle() {
  // A loop over a history that may be long: every value observed in a training loop ends here.
  std::vector<Run*> runs{this};
  std::set<Run*> seen{this};
  for (size_t i = 0; i < runs.size(); ++i) {
    std::lock_guard<std::mutex> lock(runs[i]->mutex_);
    if (!runs[i]->can_fail_) continue;
    if (!runs[i]->read_errors().ok() || !runs[i]->words_.empty()) return false;
    for (const Parent& parent : runs[i]->params_) {
      if (parent.run && seen.insert(parent.run.get()).second) runs.push_back(parent.run.get());
    }
  }
  std::vector<Parent> forgotten;  // released at the end, one by one and outside of the locks
  for (Run* run : runs) {
    std::lock_guard<std::mutex> lock(run->mutex_);
    run->can_fail_ = false;
    run->depth_ = 0;
    std::move(run->params_.begin(), run->params_.end(), std::back_inserter(forgotten));
    run->params_.clear();
  }
  return true;
}

Status Run::check_words(int32_t index, std::vector<Parent>* parents) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!can_fail_) return {};
  TF_RETURN_IF_ERROR(read_errors());
  const Needs& needs = (*needs_)[static_cast<size_t>(index)];
  for (const ErrorWord& word : words_) {
    const auto step = static_cast<int32_t>(word.step_plus_one) - 1;
    if (needs.checks.count(step) != 0) return check_failure(*program_, word);
  }
  for (int32_t param : needs.params) {
    const Parent& parent = params_[static_cast<size_t>(param)];
    if (parent.run) parents->push_back(parent);
  }
  return {};
}

Status Run::check(int32_t index) {
  if (settle()) return {};
  std::vector<Parent> open;
  std::set<std::pair<Run*, int32_t>> seen;
  TF_RETURN_IF_ERROR(check_words(index, &open));
  while (!open.empty()) {
    const Parent parent = std::move(open.back());
    open.pop_back();
    if (!seen.emplace(parent.run.get(), parent.result).second) continue;
    TF_RETURN_IF_ERROR(parent.run->check_words(parent.result, &open));
  }
  return {};
}

}  // namespace tracefire
