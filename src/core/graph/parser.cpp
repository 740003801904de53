// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <map>

#include "core/base/parse_device.h"
#include "core/graph/builder.h"
#include "core/graph/scanner.h"
#include "core/graph/text.h"

namespace tracefire {
namespace {

/// Reads one text. Every function leaves the scanner behind what it read, or returns an error.
class Parser {
 public:
  Parser(const OpSet& ops, std::string_view text) : ops_(ops), scan_(text) {}

  Result<GraphPtr> parse() {
    if (scan_.size() > text_limits::kBytes) return scan_.fail("a text of at most 1 GiB");
    TF_ASSIGN(GraphPtr graph, this->graph(0));
    if (!scan_.at_end()) return scan_.fail("the end of the text after the graph's '}'");
    return graph;
  }

 private:
  using Names = std::map<std::string, Value, std::less<>>;

  Result<GraphPtr> graph(int depth) {
    if (depth > text_limits::kNesting) {
      return scan_.fail(concat_text("at most ", text_limits::kNesting, " regions in each other"));
    }
    TF_RETURN_IF_ERROR(scan_.expect_word("graph"));
    std::string name;
    if (scan_.peek() == '"') {
      TF_ASSIGN(name, scan_.string());
    } else if (scan_.peek() != '(') {
      TF_ASSIGN(name, scan_.identifier("the graph's name or '('"));
    }
    Builder builder(ops_, std::move(name));
    Names names;
    TF_RETURN_IF_ERROR(scan_.expect('('));
    for (size_t count = 0; !scan_.take(')'); ++count) {
      if (count) TF_RETURN_IF_ERROR(scan_.expect(',', "',' or ')'"));
      TF_RETURN_IF_ERROR(param(&builder, &names));
    }
    TF_RETURN_IF_ERROR(scan_.expect('{'));
    while (!scan_.take_word("return")) TF_RETURN_IF_ERROR(node(&builder, &names, depth));
    if (scan_.peek() != '}') TF_RETURN_IF_ERROR(results(&builder, names));
    TF_RETURN_IF_ERROR(scan_.expect('}', "',' or '}'"));
    return builder.finish();
  }

  Status count_values(size_t more) {
    values_ += more;
    if (values_ <= text_limits::kValues) return {};
    return scan_.fail(concat_text("at most ", text_limits::kValues, " values"));
  }

  Status define(std::string_view name, Value value, Names* names) {
    TF_RETURN_IF_ERROR(count_values(1));
    if (names->emplace(name, value).second) return {};
    return scan_.fail(concat_text("a new name; %", name, " is defined already"));
  }

  Result<Value> use(const Names& names) {
    TF_ASSIGN(std::string_view name, scan_.value_name());
    auto found = names.find(name);
    if (found != names.end()) return found->second;
    return scan_.fail(concat_text("a value of this graph; %", name, " is not defined before"));
  }

  Status param(Builder* builder, Names* names) {
    TF_ASSIGN(std::string_view value_name, scan_.value_name());
    TF_RETURN_IF_ERROR(scan_.expect(':'));
    TF_ASSIGN(std::string_view word, scan_.identifier("'slot', 'token' or an element type"));
    ParamKind kind = ParamKind::kInput;
    if (word == "slot") kind = ParamKind::kSlot;
    if (word == "token" && scan_.peek() != '(') kind = ParamKind::kToken;
    if (kind != ParamKind::kInput) {
      TF_ASSIGN(word, scan_.identifier("an element type"));
    }
    TF_ASSIGN(ValueType type, rest_of_type(word));
    std::string name;
    if (scan_.peek() == '"') {
      TF_ASSIGN(name, scan_.string());
    }
    Device device;
    if (scan_.take('@')) {
      TF_ASSIGN(device, this->device());
    }
    Value value = builder->param(std::move(type), std::move(name), kind, device);
    return define(value_name, value, names);
  }

  /// What stands left of the '=' and the name of the operation.
  Status node(Builder* builder, Names* names, int depth) {
    if (++nodes_ > text_limits::kNodes) {
      return scan_.fail(concat_text("at most ", text_limits::kNodes, " operations"));
    }
    std::vector<std::string_view> outputs;
    if (scan_.peek() == '%') {
      do {
        if (outputs.size() >= text_limits::kListItems) return scan_.fail("fewer results");
        TF_ASSIGN(std::string_view name, scan_.value_name());
        outputs.push_back(name);
      } while (scan_.take(','));
      TF_RETURN_IF_ERROR(scan_.expect('=', "',' or '='"));
    }
    Node node;
    scan_.mark();
    TF_RETURN_IF_ERROR(op_name(&node));
    TF_RETURN_IF_ERROR(scan_.expect('('));
    while (!scan_.take(')')) {
      if (!node.inputs.empty()) TF_RETURN_IF_ERROR(scan_.expect(',', "',' or ')'"));
      if (node.inputs.size() >= text_limits::kListItems) return scan_.fail("fewer operands");
      TF_ASSIGN(Value input, use(*names));
      node.inputs.push_back(input);
    }
    TF_RETURN_IF_ERROR(node_parts(&node, depth));
    return add(builder, std::move(node), outputs, names);
  }

  Status op_name(Node* node) {
    TF_ASSIGN(std::string_view name, scan_.identifier("an operation, '%' or 'return'"));
    std::optional<OpId> op = ops_.find(name);
    if (!op) return scan_.fail(concat_text("an operation; none is called '", name, "'"));
    int64_t version = 1;
    if (scan_.take('.')) {
      TF_RETURN_IF_ERROR(scan_.expect('v', "a version such as v2"));
      TF_ASSIGN(version, scan_.integer());
    }
    node->op = *op;
    if (version == ops_.version(*op)) return {};
    return scan_.fail(concat_text("version ", ops_.version(*op), " of ", name, ", not ", version));
  }

  /// Attributes, regions, types, name, device and location.
  Status node_parts(Node* node, int depth) {
    if (scan_.take('{')) TF_RETURN_IF_ERROR(attrs(&node->attrs));
    if (scan_.take('[')) {
      while (!scan_.take(']')) {
        TF_ASSIGN(GraphPtr region, graph(depth + 1));
        node->regions.push_back(std::move(region));
      }
    }
    if (scan_.take(':')) {
      do {
        if (node->outputs.size() >= text_limits::kListItems) return scan_.fail("fewer types");
        TF_ASSIGN(std::string_view word, scan_.identifier("an element type"));
        TF_ASSIGN(ValueType type, rest_of_type(word));
        node->outputs.push_back(std::move(type));
      } while (scan_.take(','));
    }
    if (scan_.take_word("as")) {
      TF_ASSIGN(node->name, scan_.string());
    }
    if (scan_.take('@')) {
      TF_ASSIGN(node->device, device());
      if (scan_.take_word("by")) {
        TF_RETURN_IF_ERROR(scan_.expect_word("user"));
        node->device_by_user = true;
      }
    }
    if (scan_.take_word("at")) {
      TF_ASSIGN(std::string file, scan_.string());
      TF_RETURN_IF_ERROR(scan_.expect(':'));
      TF_ASSIGN(int64_t line, scan_.integer());
      if (line < 0 || line > std::numeric_limits<int32_t>::max())
        return scan_.fail("a line number");
      node->location = make_location(file, static_cast<int32_t>(line));
    }
    return {};
  }

  Status add(Builder* builder, Node node, const std::vector<std::string_view>& outputs,
             Names* names) {
    std::vector<ValueType> written = node.outputs;
    if (written.size() != outputs.size()) {
      return scan_.fail_at_mark(concat_text("as many types as results; ", outputs.size(),
                                            " results and ", written.size(), " types are given"));
    }
    Result<Value> first = builder->add(std::move(node));
    if (!first.ok()) return scan_.fail_at_mark("a valid operation; " + first.status().str());
    const Node& made = builder->graph().nodes.back();
    if (made.outputs != written) {
      std::string inferred;
      for (const ValueType& type : made.outputs)
        inferred += (inferred.empty() ? "" : ", ") + type.str();
      return scan_.fail_at_mark(concat_text("the types that ", ops_.name(made.op), " gives (",
                                            inferred.empty() ? "none" : inferred, ")"));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      TF_RETURN_IF_ERROR(define(outputs[i], {first->node, static_cast<int32_t>(i)}, names));
    }
    return {};
  }

  Status results(Builder* builder, const Names& names) {
    do {
      TF_RETURN_IF_ERROR(count_values(1));
      int32_t slot = -1;
      if (scan_.take_word("slot")) {
        TF_ASSIGN(Value param, use(names));
        if (!param.is_param()) return scan_.fail("a parameter after 'slot'");
        slot = param.index;
        TF_RETURN_IF_ERROR(scan_.expect('='));
      }
      TF_ASSIGN(Value value, use(names));
      builder->result(value, slot);
    } while (scan_.take(','));
    return {};
  }

  Result<Device> device() {
    TF_ASSIGN(std::string_view text, scan_.device_text());
    Result<Device> device = try_parse_device(text);
    if (device.ok()) return device;
    return scan_.fail("a device; " + device.status().message());
  }

  Result<ValueType> rest_of_type(std::string_view dtype_word) {
    ValueType type;
    TF_ASSIGN(type.dtype, dtype(dtype_word));
    TF_ASSIGN(type.shape, shape(true));
    return type;
  }

  Result<DType> dtype(std::string_view word) {
    if (std::optional<DType> found = dtype_from_name(word)) return *found;
    return scan_.fail(concat_text("an element type; '", word, "' is none"));
  }

  /// Sizes of a type; those of an attribute may be any numbers, which its row judges.
  Result<Shape> shape(bool of_type) {
    TF_RETURN_IF_ERROR(scan_.expect('('));
    Shape out;
    while (!scan_.take(')')) {
      TF_ASSIGN(Dim dim, sum(0));
      bool refused = dim.is_constant() && (dim.value() < 0 || dim.value() > text_limits::kSize);
      if (of_type && refused) {
        return scan_.fail(concat_text("a size from 0 to 2^60, not ", dim.value()));
      }
      out.push_back(dim);
      if (out.rank() > static_cast<int>(text_limits::kRank)) {
        return scan_.fail(concat_text("at most ", text_limits::kRank, " axes"));
      }
      if (scan_.peek() != ')') TF_RETURN_IF_ERROR(scan_.expect(',', "',' or ')'"));
    }
    return out;
  }

  // sum := product (('+' | '-') product)*; product := atom (('*' | '//') atom)*
  Result<Dim> sum(int depth) {
    TF_ASSIGN(Dim left, product(depth));
    std::vector<Dim> parts = {left};
    while (true) {
      char op = scan_.peek();
      if (op != '+' && op != '-') break;
      TF_RETURN_IF_ERROR(size_operator(op));
      TF_ASSIGN(Dim right, product(depth));
      parts.push_back(op == '+' ? right : Dim(0) - right);
    }
    // In pairs: every sum on the way is kept for good, so a long one must not pass through all
    // shorter ones.
    while (parts.size() > 1) {
      size_t half = (parts.size() + 1) / 2;
      for (size_t i = 0; i + half < parts.size(); ++i) parts[i] = parts[i] + parts[i + half];
      parts.resize(half);
    }
    return parts[0];
  }

  Status size_operator(char op) {
    if (++size_operators_ > text_limits::kSizeOperators) {
      return scan_.fail(
          concat_text("at most ", text_limits::kSizeOperators, " operators in sizes"));
    }
    return scan_.expect(op);
  }

  Result<Dim> product(int depth) {
    TF_ASSIGN(Dim left, atom(depth));
    while (true) {
      char op = scan_.peek();
      if (op != '*' && op != '/') return left;
      TF_RETURN_IF_ERROR(size_operator(op));
      if (op == '/') TF_RETURN_IF_ERROR(scan_.expect('/', "'//'"));
      TF_ASSIGN(Dim right, atom(depth));
      left = op == '*' ? left * right : floor_div(left, right);
    }
  }

  Result<Dim> atom(int depth) {
    if (depth > text_limits::kNesting) {
      return scan_.fail(concat_text("at most ", text_limits::kNesting, " parentheses"));
    }
    char c = scan_.peek();
    if (c == '-' || (c >= '0' && c <= '9')) {
      TF_ASSIGN(int64_t number, scan_.integer());
      return Dim(number);
    }
    if (scan_.take('(')) {
      TF_ASSIGN(Dim inner, sum(depth + 1));
      TF_RETURN_IF_ERROR(scan_.expect(')'));
      return inner;
    }
    TF_ASSIGN(std::string_view name, scan_.identifier("a size: a number, a name or '('"));
    if (name == "max" && scan_.take('(')) {
      TF_ASSIGN(Dim largest, sum(depth + 1));
      while (scan_.take(',')) {
        if (++size_operators_ > text_limits::kSizeOperators) return scan_.fail("fewer sizes");
        TF_ASSIGN(Dim next, sum(depth + 1));
        largest = max(largest, next);
      }
      TF_RETURN_IF_ERROR(scan_.expect(')', "',' or ')'"));
      return largest;
    }
    return symbol(name);
  }

  Result<Dim> symbol(std::string_view name) {
    auto known = symbols_.find(name);
    int64_t bound = Dim::kUnbounded;
    bool bounded = scan_.take('<');
    if (bounded) {
      TF_RETURN_IF_ERROR(scan_.expect('=', "'<='"));
      TF_ASSIGN(bound, scan_.integer());
      if (bound < 0) return scan_.fail("a bound of 0 or more");
      if (known != symbols_.end()) {
        return scan_.fail(concat_text("no bound here; ", name, " is in use already"));
      }
    }
    if (known != symbols_.end()) return known->second;
    if (symbols_.size() >= text_limits::kSymbols) {
      return scan_.fail(concat_text("at most ", text_limits::kSymbols, " symbols"));
    }
    return symbols_.emplace(name, Dim::fresh(std::string(name), bound)).first->second;
  }

  Status attrs(Attrs* out) {
    for (size_t count = 0; !scan_.take('}'); ++count) {
      if (count) TF_RETURN_IF_ERROR(scan_.expect(',', "',' or '}'"));
      if (count > text_limits::kListItems) return scan_.fail("fewer attributes");
      TF_ASSIGN(std::string_view name, scan_.identifier("an attribute's name or '}'"));
      if (out->has(name)) return scan_.fail(concat_text("another name; ", name, " is given twice"));
      TF_RETURN_IF_ERROR(scan_.expect('='));
      TF_ASSIGN(Attr value, attr());
      out->set(name, std::move(value));
    }
    return {};
  }

  Result<Attr> attr() {
    char c = scan_.peek();
    if (c == '"') {
      TF_ASSIGN(std::string text, scan_.string());
      return Attr(std::move(text));
    }
    if (c == '(') {
      TF_ASSIGN(Shape s, shape(false));
      return Attr(std::move(s));
    }
    if (c == '[') return integers();
    if (c == '-' || (c >= '0' && c <= '9')) return scan_.number();
    TF_ASSIGN(std::string_view word, scan_.identifier("an attribute's value"));
    if (word == "true" || word == "false") return Attr(word == "true");
    if (word == "inf") return Attr(std::numeric_limits<double>::infinity());
    if (word == "nan") return Attr(std::numeric_limits<double>::quiet_NaN());
    TF_ASSIGN(DType type, dtype(word));
    return Attr(type);
  }

  Result<Attr> integers() {
    TF_RETURN_IF_ERROR(scan_.expect('['));
    std::vector<int64_t> list;
    while (!scan_.take(']')) {
      if (!list.empty()) TF_RETURN_IF_ERROR(scan_.expect(',', "',' or ']'"));
      if (list.size() >= text_limits::kListItems) return scan_.fail("a shorter list");
      TF_ASSIGN(int64_t item, scan_.integer());
      list.push_back(item);
    }
    return Attr(std::move(list));
  }

  const OpSet& ops_;
  Scanner scan_;
  std::map<std::string, Dim, std::less<>> symbols_;
  size_t nodes_ = 0;
  size_t size_operators_ = 0;
  size_t values_ = 0;
};

}  // namespace

Result<GraphPtr> parse(const OpSet& ops, std::string_view text) {
  TF_ASSIGN(GraphPtr graph, Parser(ops, text).parse());
  Status status = verify(ops, *graph);
  if (status.ok()) return graph;
  return error(ErrorCode::kBadText, "the text is no valid graph: ", status.message());
}

}  // namespace tracefire
