// A strict reader of the XML that pages are written in: what it accepts is well-formed.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cctype>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace zl::test {

struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  // of itself and everything below, entities resolved
  std::vector<Element> children;

  // Everything below with this name, in document order.
  std::vector<const Element*> all(const std::string& wanted) const {
    std::vector<const Element*> found;
    for (const Element& child : children) {
      if (child.name == wanted) found.push_back(&child);
      for (const Element* below : child.all(wanted)) found.push_back(below);
    }
    return found;
  }
  std::string attribute(const std::string& key) const {
    const auto found = attributes.find(key);
    return found == attributes.end() ? "" : found->second;
  }
};

class XmlReader {
 public:
  // Throws std::runtime_error with the position of what is not well-formed.
  static Element read(const std::string& text) {
    XmlReader reader(text);
    const std::string doctype = "<!DOCTYPE html>\n";
    if (text.rfind(doctype, 0) == 0) reader.at_ = doctype.size();
    Element root = reader.element();
    while (reader.at_ < text.size()) reader.require(std::isspace(reader.next()) != 0, "trailing");
    return root;
  }

 private:
  explicit XmlReader(const std::string& text) : text_(text) {}

  void require(bool condition, const std::string& what) const {
    if (condition) return;
    throw std::runtime_error(what + " before: " + text_.substr(at_, 60));
  }
  char peek() const {
    require(at_ < text_.size(), "end of text");
    return text_[at_];
  }
  char next() {
    const char c = peek();
    ++at_;
    return c;
  }
  void expect(const std::string& literal) {
    require(text_.compare(at_, literal.size(), literal) == 0, "no '" + literal + "'");
    at_ += literal.size();
  }
  std::string name() {
    std::string out;
    while (std::isalnum(static_cast<unsigned char>(peek())) != 0 || peek() == '-') out += next();
    require(!out.empty(), "no name");
    return out;
  }
  // One character of text, an entity being one.
  std::string character() {
    if (peek() != '&') return std::string(1, next());
    static const std::map<std::string, std::string> entities{
        {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}};
    for (const auto& [entity, value] : entities) {
      if (text_.compare(at_, entity.size(), entity) != 0) continue;
      at_ += entity.size();
      return value;
    }
    require(false, "unknown entity");
    return "";
  }
  void attributes_of(Element& element) {
    while (peek() == ' ') {
      next();
      const std::string key = name();
      expect("=\"");
      std::string value;
      while (peek() != '"') {
        require(peek() != '<', "markup in an attribute");
        value += character();
      }
      next();
      require(element.attributes.emplace(key, value).second, "attribute twice");
    }
  }
  Element element() {
    expect("<");
    Element out;
    out.name = name();
    attributes_of(out);
    if (peek() == '/') {
      expect("/>");
      return out;
    }
    expect(">");
    while (text_.compare(at_, 2, "</") != 0) {
      if (peek() == '<') {
        out.children.push_back(element());
        out.text += out.children.back().text;
      } else {
        out.text += character();
      }
    }
    expect("</" + out.name + ">");
    return out;
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

// The table whose caption this is, as rows of cells; the first row is the header. Empty: none.
using Rows = std::vector<std::vector<Element>>;
inline Rows table_rows(const Element& page, const std::string& caption) {
  Rows rows;
  for (const Element* table : page.all("table")) {
    if (table->children.at(0).text != caption) continue;
    for (const Element* row : table->all("tr")) rows.push_back(row->children);
    break;
  }
  return rows;
}

// The exact number of a cell; NaN: it has none.
inline double number_of(const Element& cell) {
  const auto data = cell.all("data");
  return data.empty() ? std::stod("nan") : std::stod(data[0]->attribute("value"));
}

}  // namespace zl::test
