#include "scenarios/yaml_tree.h"

#include "tests/scenarios/scenario_testing.h"

namespace spes::scenarios {
namespace {

std::string YamlError(const std::string& text) {
  return ErrorOf([&] { ParseYaml(text, "s.yaml"); });
}

TEST(YamlTree, KnowsTheLineOfEveryPart) {
  const Tree tree = ParseYaml("a: 1\n# comment\nb:\n  - x\n  - {c: 2,\n     d: ~}\n", "s.yaml");
  ASSERT_EQ(tree.kind, Tree::Kind::kMap);
  EXPECT_EQ(tree.keys[1].place.Text(), "s.yaml:3");
  const Tree& list = *tree.Find("b");
  ASSERT_EQ(list.items.size(), 2u);
  EXPECT_EQ(list.items[0].place.line, 4);
  EXPECT_EQ(list.items[1].keys[1].place.line, 6);
  EXPECT_EQ(list.items[1].Find("d")->kind, Tree::Kind::kNull);
  EXPECT_EQ(tree.Find("z"), nullptr);
}

TEST(YamlTree, AliasesStandForWhatTheyName) {
  const Tree tree = ParseYaml("a: &x {b: 1}\nc: *x\n", "s.yaml");
  EXPECT_EQ(tree.Find("c")->Find("b")->text, "1");
}

TEST(YamlTree, RefusesWhatIsNoSingleTree) {
  EXPECT_EQ(YamlError("a: 1\nb: 2\na: 3\n"),
            "s.yaml:3: the key 'a' is here twice; the first is in line 1");
  EXPECT_EQ(YamlError("a: [1, 2\nb: 3\n"),
            "s.yaml:2: this is not YAML: end of sequence flow not found");
  EXPECT_EQ(YamlError("a: 'x\n\n"), "s.yaml:1: this is not YAML: illegal EOF in scalar");
  EXPECT_EQ(YamlError("a: 'x\nb: 1\n"), "s.yaml:2: this is not YAML: illegal EOF in scalar");
  EXPECT_EQ(YamlError("? [a]\n: 1\n"), "s.yaml:1: a key must be a word");
  EXPECT_EQ(YamlError("a: 1\n---\nb: 1\n"),
            "s.yaml:3: a second YAML document begins here; one file holds one");
  EXPECT_EQ(YamlError("a: &x [*x]\n"), "s.yaml:1: an alias inside of what it stands for");
  EXPECT_EQ(YamlError("a: *x\n"),
            "s.yaml:1: this is not YAML: the referenced anchor is not defined");
  EXPECT_EQ(YamlError(std::string(100, '[') + std::string(100, ']')),
            "s.yaml:1: nested too deeply");
}

TEST(YamlTree, AliasesOfAliasesEnd) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 9; ++k) text += last + ", ";
    text += last + "]\n";
  }
  EXPECT_EQ(YamlError(text), "s.yaml:6: aliases make this file too large");
}

TEST(YamlTree, FilesThatCannotBeRead) {
  const TempFolder folder;
  const std::string missing = folder.Path("none.yaml");
  EXPECT_EQ(ErrorOf([&] { ReadYaml(missing); }),
            missing + ": cannot be read: No such file or directory");
  EXPECT_EQ(ErrorOf([&] { ReadYaml(folder.Path("")); }),
            folder.Path("") + ": is a folder, not a file");
  const std::string empty = folder.Write("empty.yaml", "");
  EXPECT_EQ(ErrorOf([&] { ReadYaml(empty); }), empty + ": the file is empty");
  const std::string comment = folder.Write("comment.yaml", "# nothing\n");
  EXPECT_EQ(ErrorOf([&] { ReadYaml(comment); }), comment + ": the file is empty");
}

TEST(YamlTree, WrittenTextReadsBack) {
  const std::string awkward[] = {"",      " ",     "~",      "null", "a: b", "- a", "#x",   "\"",
                                 "a\\b",  "x\ny",  "{a}",    "true", "*x",   "&x",  "é ü",  "a, b",
                                 "-5",    "1e-05", "\x01",   "yes",  "'",    "a ",  "x: ",  "%",
                                 "@home", "`",     "100 ms", "-",    "?",    "|",   "a#b c"};
  Tree tree;
  tree.kind = Tree::Kind::kMap;
  for (const std::string& text : awkward) {
    tree.Add("k" + std::to_string(tree.keys.size()), {}, Tree::Scalar(text));
  }
  Tree list;
  list.kind = Tree::Kind::kList;
  for (const std::string& text : awkward) list.items.push_back(Tree::Scalar(text));
  tree.Add("list", {}, list);
  Tree nested;
  nested.Add("list", {}, list);
  nested.Add("empty", {},
             Tree{.kind = Tree::Kind::kList, .place = {}, .text = {}, .keys = {}, .items = {}});
  Tree outer;
  outer.kind = Tree::Kind::kList;
  outer.items = {nested, nested, list};
  tree.Add("outer", {}, outer);

  const std::string written = WriteYaml(tree);
  const Tree read = ParseYaml(written, "w.yaml");
  for (std::size_t i = 0; i < std::size(awkward); ++i) {
    EXPECT_EQ(read.items[i].kind, Tree::Kind::kScalar) << awkward[i];
    EXPECT_EQ(read.items[i].text, awkward[i]);
    EXPECT_EQ(read.Find("outer")->items[1].Find("list")->items[i].text, awkward[i]);
    EXPECT_EQ(read.Find("outer")->items[2].items[i].text, awkward[i]);
  }
  EXPECT_EQ(WriteYaml(read), written);
}

TEST(Quoted, IsOneShortLine) {
  EXPECT_EQ(Quoted("a\nb"), "'a b'");
  EXPECT_EQ(Quoted(std::string(100, 'x')), "'" + std::string(60, 'x') + "…'");
  EXPECT_EQ(Quoted(std::string(59, 'x') + "é" + std::string(9, 'y')),
            "'" + std::string(59, 'x') + "…'");
}

}  // namespace
}  // namespace spes::scenarios
